#include "storage/database/recorder.h"

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

namespace stepladder {
namespace {

// After the first event of a batch the writer waits for more, so that fast runs do not pay for a transaction per step.
constexpr std::chrono::milliseconds gather_time{25};
constexpr std::chrono::milliseconds between_requests{500};
constexpr std::chrono::hours forever{24};

}  // namespace

Recorder::Recorder(const std::filesystem::path& file, std::function<void(const std::string&)> on_error,
                   std::function<void(RunId, RunRequest)> on_request)
    : store_(RunStore::open(file)),
      on_error_(std::move(on_error)),
      on_request_(std::move(on_request)),
      writer_([this] { write_until_closed(); }) {}

Recorder::~Recorder() {
  events_.close();
  {
    const MutexLock lock(mutex_);
    hurry_ = true;
  }
  hurried_.notify_one();
  writer_.join();
}

void Recorder::post(RunEvent event) {
  // Counted before it is queued, so that a thread that reads the count after a post waits at least for that post.
  posted_.fetch_add(1);
  events_.post(std::move(event));
}

void Recorder::flush() {
  const std::uint64_t until = posted_.load();
  MutexLock lock(mutex_);
  if (handled_ >= until) return;
  hurry_ = true;
  hurried_.notify_one();
  written_.wait(lock, [&]() REQUIRES(mutex_) { return handled_ >= until; });
}

bool Recorder::has_written(std::uint64_t count) const {
  const MutexLock lock(mutex_);
  return handled_ >= count;
}

std::string Recorder::error() const {
  const MutexLock lock(mutex_);
  return error_;
}

void Recorder::write_until_closed() {
  writer_thread_.enter();
  auto next_look = std::chrono::steady_clock::now();
  while (true) {
    if (!under_way_.empty() && std::chrono::steady_clock::now() >= next_look) {
      look_for_requests();
      next_look = std::chrono::steady_clock::now() + between_requests;
    }
    // Read before draining: nothing is posted after closing, so an empty drain is then the end.
    const bool closed = events_.closed();
    std::vector<RunEvent> batch =
        under_way_.empty() ? events_.wait_and_drain(forever) : events_.wait_and_drain(between_requests);
    if (!batch.empty()) {
      {
        MutexLock lock(mutex_);
        hurried_.wait_for(lock, gather_time, [&]() REQUIRES(mutex_) { return hurry_ || closed; });
        hurry_ = false;
      }
      for (RunEvent& event : events_.drain()) batch.push_back(std::move(event));
      write(batch);
      {
        const MutexLock lock(mutex_);
        handled_ += batch.size();
      }
      written_.notify_all();
    } else if (closed) {
      return;
    }
  }
}

void Recorder::write(const std::vector<RunEvent>& events) {
  for (const RunEvent& event : events) {
    if (const auto* started = std::get_if<RunStarted>(&event)) under_way_.insert(started->run);
    if (const auto* ended = std::get_if<RunEnded>(&event)) under_way_.erase(ended->run);
  }
  if (!error().empty()) return;
  std::string message;
  try {
    store_.apply(events);
    return;
  } catch (const std::exception& error) {
    message = error.what();
  }
  {
    const MutexLock lock(mutex_);
    error_ = message;
  }
  if (on_error_) on_error_(message);
}

void Recorder::look_for_requests() {
  if (!on_request_ || !error().empty()) return;
  try {
    for (const auto& [run, request] : store_.take_requests()) on_request_(run, request);
  } catch (const std::exception&) {
    // A busy file is free again at the next attempt; a broken one fails the next write, which reports it.
  }
}

}  // namespace stepladder
