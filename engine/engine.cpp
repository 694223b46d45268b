// The engine's thread: answers questions (probe, peak, call times) before it starts the next queued run. The mutex is
// never held while the listener is called. Every submitted run gets exactly one RunEnded, whichever way it ends;
// `train` adds one if the library returns without it.
#include "engine/engine.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include "engine/metrics_sampler.h"
#include "engine/open_trainer.h"
#include "engine/others_watch.h"
#include "engine/quiet.h"
#include "engine/trainer_library.h"
#include "storage/thread_safety.h"

namespace stepladder {
void keep_workers_from_spinning() {
  if (std::getenv("OMP_WAIT_POLICY")) return;
  ::setenv("GOMP_SPINCOUNT", "10000", /*overwrite=*/0);
}

struct Engine::Impl {
  struct Job {
    TrainingJob training;
    std::shared_ptr<RunControl> control = std::make_shared<RunControl>();

    RunId run() const { return training.run; }
  };

  explicit Impl(std::function<void(const RunEvent&)> listener_, const TrainerLibrary* library_)
      : listener(std::move(listener_)),
        library(library_),
        thread([this](const std::stop_token& closing) { work(closing); }) {}

  void work(const std::stop_token& closing);
  void train(const Job& job) REQUIRES(engine_thread) EXCLUDES(mutex);
  bool is_quiet_for(const Job& job) REQUIRES(engine_thread) EXCLUDES(mutex);
  template <class Answer>
  std::future<Answer> ask(std::function<Answer(const TrainerLibrary&)> question) REQUIRES(mutex);
  const TrainerLibrary& loaded_library() REQUIRES(engine_thread);
  const DeviceReport& probe() REQUIRES(engine_thread);
  std::deque<Job>::iterator place_of(RunId run) REQUIRES(mutex) { return std::ranges::find(queue, run, &Job::run); }
  bool is_idle() REQUIRES(mutex) { return queue.empty() && !running && cancelling == 0; }
  void end_cancelled(const std::vector<Job>& jobs) EXCLUDES(mutex);

  void emit_ended(RunId run, RunStatus status, std::string reason) {
    listener(RunEnded{.run = run, .at = unix_now(), .status = status, .reason = std::move(reason)});
  }

  const std::function<void(const RunEvent&)> listener;
  OwnerThread engine_thread;
  const TrainerLibrary* library GUARDED_BY(engine_thread);
  std::optional<DeviceReport> probed GUARDED_BY(engine_thread);

  Mutex mutex;  // never held while the listener is called
  std::condition_variable_any changed;
  std::deque<Job> queue GUARDED_BY(mutex);
  std::optional<Job> running GUARDED_BY(mutex);
  int cancelling GUARDED_BY(mutex) = 0;  // calls that took runs off the queue and haven't emitted every RunEnded yet
  // Answered before the next run; refused when closing.
  std::deque<std::function<void(bool is_closing)>> questions GUARDED_BY(mutex);
  std::shared_future<DeviceReport> probe_result GUARDED_BY(mutex);

  std::jthread thread;  // last: it uses everything above
};

void Engine::Impl::work(const std::stop_token& closing) {
  engine_thread.enter();
  become_run_thread();
  MutexLock lock(mutex);
  while (true) {
    changed.wait(lock, closing, [this]() REQUIRES(mutex) { return !questions.empty() || !queue.empty(); });
    if (closing.stop_requested()) break;
    if (!questions.empty()) {
      const auto answer = std::move(questions.front());
      questions.pop_front();
      lock.unlock();
      answer(false);
      lock.lock();
      continue;
    }
    running = std::move(queue.front());
    queue.pop_front();
    const Job job = *running;
    lock.unlock();
    train(job);
    lock.lock();
    running.reset();
    changed.notify_all();
  }
  for (const auto& refuse : questions) refuse(true);
}

// Once, since on a GPU it trains tiny models.
const DeviceReport& Engine::Impl::probe() {
  if (!probed) probed = loaded_library().probe();
  return *probed;
}

const TrainerLibrary& Engine::Impl::loaded_library() {
  if (!library) library = &trainer_library();
  return *library;
}

// Asks the question on the engine thread. Exceptions become std::runtime_error, since the caller may not have the
// library's types.
template <class Answer>
std::future<Answer> Engine::Impl::ask(std::function<Answer(const TrainerLibrary&)> question) {
  auto promise = std::make_shared<std::promise<Answer>>();
  questions.emplace_back([this, promise, question = std::move(question)](bool is_closing) {
    engine_thread.check();
    try {
      if (is_closing) throw std::runtime_error("the program is closing");
      promise->set_value(question(loaded_library()));
    } catch (const std::exception& error) {
      promise->set_exception(std::make_exception_ptr(std::runtime_error(error.what())));
    }
  });
  changed.notify_all();
  return promise->get_future();
}

// Waits if the job asks for it; false: it has to stop.
bool Engine::Impl::is_quiet_for(const Job& job) {
  if (!job.training.quiet_patience) return true;
  const Recipe& recipe = job.training.recipe;
  const DeviceReport& report = probe();
  const int threads = recipe.threads > 0 ? recipe.threads : report.cpu_cores;
  const int cores = needed_cores(report.resolve(recipe.device), threads, recipe.nproc);
  return wait_until_quiet(cores, *job.training.quiet_patience, *job.control, [&](const std::string& sentence) {
    listener(ConsoleText{.run = job.run(), .at = unix_now(), .text = sentence + "\n"});
  });
}

void Engine::Impl::train(const Job& job) {
  bool ended = false;
  std::optional<MetricsSampler> sampler;  // from RunStarted to RunEnded, so that its events are between these two
  const auto emit = [&](const RunEvent& event) {
    if (ended) return;
    if (const auto* step = std::get_if<StepRecord>(&event); step && sampler) sampler->step_done(step->step);
    ended = std::holds_alternative<RunEnded>(event);
    if (ended) sampler.reset();
    listener(event);
    if (const auto* started = std::get_if<RunStarted>(&event)) sampler.emplace(*started, listener);
  };
  std::string reason = "the training library returned without an end";
  try {
    if (!is_quiet_for(job)) return emit_ended(job.run(), RunStatus::stopped, "stopped before it started");
    loaded_library().train(job.training, *job.control, emit);
  } catch (const std::exception& error) {
    reason = error.what();
  }
  sampler.reset();
  if (!ended) emit_ended(job.run(), RunStatus::failed, std::move(reason));
}

// Emits RunEnded for jobs that were taken off the queue, for which `cancelling` was incremented.
void Engine::Impl::end_cancelled(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) emit_ended(job.run(), RunStatus::stopped, "stopped before it started");
  const MutexLock lock(mutex);
  --cancelling;
  changed.notify_all();
}

Engine::Engine(std::function<void(const RunEvent&)> listener, const TrainerLibrary* library)
    : impl_(std::make_unique<Impl>(std::move(listener), library)) {}

Engine::~Engine() {
  close();
}

void Engine::close() {
  if (!impl_->thread.joinable()) return;
  stop_all();
  impl_->thread.request_stop();
  impl_->thread.join();
}

void Engine::submit(TrainingJob job) {
  const MutexLock lock(impl_->mutex);
  impl_->queue.push_back({std::move(job)});
  impl_->changed.notify_all();
}

void Engine::stop(RunId run) {
  std::vector<Impl::Job> cancelled;
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->running && impl_->running->run() == run) {
      impl_->running->control->request_stop();
      return;
    }
    const auto job = impl_->place_of(run);
    if (job == impl_->queue.end()) return;
    cancelled.push_back(std::move(*job));
    impl_->queue.erase(job);
    ++impl_->cancelling;
  }
  impl_->end_cancelled(cancelled);
}

void Engine::pause(RunId run, bool paused) {
  const MutexLock lock(impl_->mutex);
  if (impl_->running && impl_->running->run() == run)
    impl_->running->control->pause(paused);
  else if (const auto job = impl_->place_of(run); job != impl_->queue.end())
    job->control->pause(paused);
}

bool Engine::paused(RunId run) const {
  const MutexLock lock(impl_->mutex);
  if (impl_->running && impl_->running->run() == run) return impl_->running->control->paused();
  const auto job = impl_->place_of(run);
  return job != impl_->queue.end() && job->control->paused();
}

std::optional<QuietWait> Engine::quiet_wait() const {
  const MutexLock lock(impl_->mutex);
  return impl_->running ? impl_->running->control->quiet_wait() : std::nullopt;
}

void Engine::start_anyway() {
  const MutexLock lock(impl_->mutex);
  if (impl_->running) impl_->running->control->start_anyway();
  for (const Impl::Job& job : impl_->queue) job.control->start_anyway();
}

bool Engine::gave_up_quiet() const {
  const MutexLock lock(impl_->mutex);
  return impl_->running && impl_->running->control->starts_anyway();
}

bool Engine::is_idle_or_paused() const {
  const MutexLock lock(impl_->mutex);
  return impl_->running ? impl_->running->control->is_held() : impl_->queue.empty();
}

void Engine::move_to(RunId run, std::size_t place) {
  const MutexLock lock(impl_->mutex);
  auto& queue = impl_->queue;
  const auto job = impl_->place_of(run);
  if (job == queue.end()) return;
  const auto target = queue.begin() + static_cast<std::ptrdiff_t>(std::min(place, queue.size() - 1));
  if (job < target)
    std::rotate(job, job + 1, target + 1);
  else
    std::rotate(target, job, job + 1);
}

std::optional<RunId> Engine::running() const {
  const MutexLock lock(impl_->mutex);
  if (!impl_->running) return std::nullopt;
  return impl_->running->run();
}

std::vector<RunId> Engine::queue() const {
  const MutexLock lock(impl_->mutex);
  std::vector<RunId> runs;
  for (const Impl::Job& job : impl_->queue) runs.push_back(job.run());
  return runs;
}

void Engine::stop_all(AtStop at_stop) {
  std::vector<Impl::Job> cancelled;
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->running) impl_->running->control->request_stop(at_stop);
    cancelled.assign(impl_->queue.begin(), impl_->queue.end());
    impl_->queue.clear();
    ++impl_->cancelling;
  }
  impl_->end_cancelled(cancelled);
}

bool Engine::idle() const {
  const MutexLock lock(impl_->mutex);
  return impl_->is_idle();
}

void Engine::wait_idle() {
  MutexLock lock(impl_->mutex);
  impl_->changed.wait(lock, [this]() REQUIRES(impl_->mutex) { return impl_->is_idle(); });
}

std::shared_future<DeviceReport> Engine::probe() {
  const MutexLock lock(impl_->mutex);
  if (!impl_->probe_result.valid()) {
    impl_->probe_result = impl_
                              ->ask<DeviceReport>([impl = impl_.get()](const TrainerLibrary&) {
                                impl->engine_thread.check();
                                return impl->probe();
                              })
                              .share();
  }
  return impl_->probe_result;
}

std::future<PeakProbe> Engine::measure_peak(std::function<bool()> stop_requested) {
  const MutexLock lock(impl_->mutex);
  return impl_->ask<PeakProbe>([stop_requested = std::move(stop_requested)](const TrainerLibrary& library) {
    return library.measure_peak(stop_requested);
  });
}

std::future<std::vector<CallTimes>> Engine::time_calls(CallTimesRequest request, std::function<bool()> stop_requested) {
  const MutexLock lock(impl_->mutex);
  return impl_->ask<std::vector<CallTimes>>(
      [request = std::move(request), stop_requested = std::move(stop_requested)](const TrainerLibrary& library) {
        return library.time_calls(request, stop_requested);
      });
}

}  // namespace stepladder
