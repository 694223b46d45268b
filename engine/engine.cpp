#include "engine/engine.h"

#include <dlfcn.h>

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
    RunId run;
    Recipe recipe;
    std::stop_source stop{};
  };

  explicit Impl(std::function<void(const RunEvent&)> listener_, const TrainerLibrary* library_)
      : listener(std::move(listener_)),
        library(library_),
        thread([this](const std::stop_token& closing) { work(closing); }) {}

  void work(const std::stop_token& closing);
  void train(const Job& job);
  void answer_probe(std::promise<DeviceReport> promise);
  const TrainerLibrary& loaded_library();
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
  int cancelling = 0;  // runs off the queue whose RunEnded is on its way
  std::optional<std::promise<DeviceReport>> asked_probe;
  std::shared_future<DeviceReport> probe_result;

  std::jthread thread;  // last: it uses everything above
};

void Engine::Impl::work(const std::stop_token& closing) {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, closing, [&] { return asked_probe || !queue.empty(); });
    if (closing.stop_requested()) break;
    if (asked_probe) {
      auto promise = std::move(*asked_probe);
      asked_probe.reset();
      lock.unlock();
      answer_probe(std::move(promise));
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
  if (asked_probe) {
    asked_probe->set_exception(std::make_exception_ptr(std::runtime_error("the program is closing")));
  }
}

const TrainerLibrary& Engine::Impl::loaded_library() {
  if (!library) library = open_trainer_library();
  return *library;
}

void Engine::Impl::answer_probe(std::promise<DeviceReport> promise) {
  try {
    promise.set_value(loaded_library().probe());
  } catch (const std::exception& error) {
    promise.set_exception(std::make_exception_ptr(std::runtime_error(error.what())));
  }
}

void Engine::Impl::train(const Job& job) {
  bool ended = false;
  const auto emit = [&](const RunEvent& event) {
    if (ended) return;  // nothing comes after a run's end
    ended = std::holds_alternative<RunEnded>(event);
    listener(event);
  };
  std::string reason = "the training library returned without an end";
  try {
    loaded_library().train(job.run, job.recipe, job.stop.get_token(), emit);
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (!ended) emit_ended(job.run, RunStatus::failed, std::move(reason));
}

// Ends jobs that were taken off the queue under `lock`, which is released for it.
void Engine::Impl::cancel(std::unique_lock<std::mutex>& lock, const std::vector<Job>& jobs) {
  ++cancelling;
  lock.unlock();
  for (const Job& job : jobs) emit_ended(job.run, RunStatus::stopped, "stopped before it started");
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

void Engine::submit(RunId run, Recipe recipe) {
  std::lock_guard lock(impl_->mutex);
  impl_->queue.push_back({run, std::move(recipe)});
  impl_->changed.notify_all();
}

void Engine::stop(RunId run) {
  std::unique_lock lock(impl_->mutex);
  if (impl_->running && impl_->running->run == run) {
    impl_->running->stop.request_stop();
    return;
  }
  auto& queue = impl_->queue;
  for (auto job = queue.begin(); job != queue.end(); ++job) {
    if (job->run != run) continue;
    std::vector<Impl::Job> cancelled = {std::move(*job)};
    queue.erase(job);
    impl_->cancel(lock, std::move(cancelled));
    return;
  }
}

void Engine::stop_all() {
  std::unique_lock lock(impl_->mutex);
  if (impl_->running) impl_->running->stop.request_stop();
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
    impl_->asked_probe.emplace();
    impl_->probe_result = impl_->asked_probe->get_future().share();
    impl_->changed.notify_all();
  }
  return impl_->probe_result;
}

}  // namespace stepladder
