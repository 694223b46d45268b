#include "engine/engine.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include "engine/metrics_sampler.h"
#include "engine/trainer_library.h"

namespace stepladder {
namespace {

// STEPLADDER_TRAINER_LIBRARY, else the library beside the running program.
std::string trainer_library_file() {
  if (const char* named = std::getenv("STEPLADDER_TRAINER_LIBRARY"); named && *named) return named;
#ifdef __APPLE__
  const char* name = "libstepladder_trainer.dylib";
#else
  const char* name = "libstepladder_trainer.so";
#endif
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(name) : (program.parent_path() / name).string();
}

// Opens the library; throws std::runtime_error with a sentence. It is never closed: LibTorch's threads and statics do
// not survive that.
const TrainerLibrary* open_trainer_library() {
  const std::string file = trainer_library_file();
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = ::dlerror();
    throw std::runtime_error(std::string("the training library could not be loaded: ") + (why ? why : file));
  }
  void* symbol = ::dlsym(handle, trainer_library_symbol);
  if (!symbol) throw std::runtime_error(file + " is not Stepladder's training library");
  return reinterpret_cast<TrainerLibraryEntry>(symbol)();
}

}  // namespace

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
  void train(const Job& job);
  template <class Answer>
  std::future<Answer> ask(std::function<Answer(const TrainerLibrary&)> question);
  const TrainerLibrary& loaded_library();
  std::deque<Job>::iterator place_of(RunId run) {
    return std::find_if(queue.begin(), queue.end(), [&](const Job& job) { return job.run() == run; });
  }
  void cancel(std::unique_lock<std::mutex>& lock, const std::vector<Job>& jobs);

  void emit_ended(RunId run, RunStatus status, std::string reason) {
    listener(RunEnded{.run = run, .at = unix_now(), .status = status, .reason = std::move(reason)});
  }

  const std::function<void(const RunEvent&)> listener;
  const TrainerLibrary* library;  // engine thread only

  std::mutex mutex;  // guards what follows; never held while the listener is called
  std::condition_variable_any changed;
  std::deque<Job> queue;
  std::optional<Job> running;
  int cancelling = 0;                                          // runs off the queue whose RunEnded is on its way
  std::deque<std::function<void(bool is_closing)>> questions;  // answered before the next run; refused when closing
  std::shared_future<DeviceReport> probe_result;

  std::jthread thread;  // last: it uses everything above
};

void Engine::Impl::work(const std::stop_token& closing) {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, closing, [&] { return !questions.empty() || !queue.empty(); });
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

const TrainerLibrary& Engine::Impl::loaded_library() {
  if (!library) library = open_trainer_library();
  return *library;
}

// Called with the mutex held; the question is asked on the engine thread. Exceptions become ones of this side's own
// type, since the library's may be unknown to who waits.
template <class Answer>
std::future<Answer> Engine::Impl::ask(std::function<Answer(const TrainerLibrary&)> question) {
  auto promise = std::make_shared<std::promise<Answer>>();
  questions.emplace_back([this, promise, question = std::move(question)](bool is_closing) {
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

void Engine::Impl::train(const Job& job) {
  bool ended = false;
  std::optional<MetricsSampler> lanes;  // from the start to the end: nothing comes before the one or after the other
  const auto emit = [&](const RunEvent& event) {
    if (ended) return;
    if (const auto* step = std::get_if<StepRecord>(&event); step && lanes) lanes->step_done(step->step);
    ended = std::holds_alternative<RunEnded>(event);
    if (ended) lanes.reset();
    listener(event);
    if (const auto* started = std::get_if<RunStarted>(&event)) {
      lanes.emplace(started->run, started->device == "cuda" ? 0 : -1, listener);
    }
  };
  std::string reason = "the training library returned without an end";
  try {
    loaded_library().train(job.training, *job.control, emit);
  } catch (const std::exception& error) {
    reason = error.what();
  }
  lanes.reset();
  if (!ended) emit_ended(job.run(), RunStatus::failed, std::move(reason));
}

// Ends jobs that were taken off the queue under `lock`, which is released for it.
void Engine::Impl::cancel(std::unique_lock<std::mutex>& lock, const std::vector<Job>& jobs) {
  ++cancelling;
  lock.unlock();
  for (const Job& job : jobs) emit_ended(job.run(), RunStatus::stopped, "stopped before it started");
  lock.lock();
  --cancelling;
  changed.notify_all();
}

Engine::Engine(std::function<void(const RunEvent&)> listener, const TrainerLibrary* library)
    : impl_(std::make_unique<Impl>(std::move(listener), library)) {}

Engine::~Engine() {
  stop_all();
  impl_->thread.request_stop();
  impl_->thread.join();
}

void Engine::submit(TrainingJob job) {
  std::lock_guard lock(impl_->mutex);
  impl_->queue.push_back({std::move(job)});
  impl_->changed.notify_all();
}

void Engine::stop(RunId run) {
  std::unique_lock lock(impl_->mutex);
  if (impl_->running && impl_->running->run() == run) {
    impl_->running->control->request_stop();
    return;
  }
  const auto job = impl_->place_of(run);
  if (job == impl_->queue.end()) return;
  const std::vector<Impl::Job> cancelled = {std::move(*job)};
  impl_->queue.erase(job);
  impl_->cancel(lock, cancelled);
}

void Engine::pause(RunId run, bool paused) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->running && impl_->running->run() == run) {
    impl_->running->control->pause(paused);
  } else if (const auto job = impl_->place_of(run); job != impl_->queue.end()) {
    job->control->pause(paused);
  }
}

bool Engine::paused(RunId run) const {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->running && impl_->running->run() == run) return impl_->running->control->paused();
  const auto job = impl_->place_of(run);
  return job != impl_->queue.end() && job->control->paused();
}

bool Engine::holding() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->running ? impl_->running->control->holding() : impl_->queue.empty();
}

void Engine::move_to(RunId run, std::size_t place) {
  const std::lock_guard lock(impl_->mutex);
  auto& queue = impl_->queue;
  const auto job = impl_->place_of(run);
  if (job == queue.end()) return;
  const auto target = queue.begin() + static_cast<std::ptrdiff_t>(std::min(place, queue.size() - 1));
  if (job < target) {
    std::rotate(job, job + 1, target + 1);
  } else {
    std::rotate(target, job, job + 1);
  }
}

std::vector<RunId> Engine::queue() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<RunId> runs;
  for (const Impl::Job& job : impl_->queue) runs.push_back(job.run());
  return runs;
}

void Engine::stop_all() {
  std::unique_lock lock(impl_->mutex);
  if (impl_->running) impl_->running->control->request_stop();
  std::vector<Impl::Job> cancelled(impl_->queue.begin(), impl_->queue.end());
  impl_->queue.clear();
  impl_->cancel(lock, std::move(cancelled));
}

void Engine::wait_idle() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->queue.empty() && !impl_->running && impl_->cancelling == 0; });
}

std::shared_future<DeviceReport> Engine::probe() {
  std::lock_guard lock(impl_->mutex);
  if (!impl_->probe_result.valid()) {
    impl_->probe_result =
        impl_->ask<DeviceReport>([](const TrainerLibrary& library) { return library.probe(); }).share();
  }
  return impl_->probe_result;
}

std::future<PeakProbe> Engine::measure_peak(std::function<bool()> stop_requested) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->ask<PeakProbe>([stop_requested = std::move(stop_requested)](const TrainerLibrary& library) {
    return library.measure_peak(stop_requested);
  });
}

std::future<std::vector<CallTimes>> Engine::time_calls(CallTimesRequest request, std::function<bool()> stop_requested) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->ask<std::vector<CallTimes>>(
      [request = std::move(request), stop_requested = std::move(stop_requested)](const TrainerLibrary& library) {
        return library.time_calls(request, stop_requested);
      });
}

}  // namespace stepladder
