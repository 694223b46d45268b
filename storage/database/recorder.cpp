#include "storage/database/recorder.h"

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

namespace stepladder {
namespace {

// After the first event of a batch more are waited for, so that fast runs do not pay for a transaction per step.
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
    std::lock_guard lock(mutex_);
    hurry_ = true;
  }
  hurried_.notify_one();
  writer_.join();
}

void Recorder::post(RunEvent event) {
  // Counted before it is queued: whoever reads the count after a post waits for that post at least.
  posted_.fetch_add(1);
  events_.post(std::move(event));
}

void Recorder::flush() {
  const std::uint64_t until = posted_.load();
  std::unique_lock lock(mutex_);
  if (handled_ >= until) return;
  hurry_ = true;
  hurried_.notify_one();
  written_.wait(lock, [&] { return handled_ >= until; });
}

std::string Recorder::error() const {
  std::lock_guard lock(mutex_);
  return error_;
}

void Recorder::write_until_closed() {
  auto next_look = std::chrono::steady_clock::now();
  while (true) {
    if (under_way_ > 0 && std::chrono::steady_clock::now() >= next_look) {
      look_for_requests();
      next_look = std::chrono::steady_clock::now() + between_requests;
    }
    // Asked before draining: nothing is posted after the closing, so then an empty drain is the end.
    const bool closed = events_.closed();
    std::vector<RunEvent> batch =
        under_way_ > 0 ? events_.wait_and_drain(between_requests) : events_.wait_and_drain(forever);
    if (!batch.empty()) {
      {
        std::unique_lock lock(mutex_);
        hurried_.wait_for(lock, gather_time, [&] { return hurry_ || closed; });
        hurry_ = false;
      }
      for (RunEvent& event : events_.drain()) batch.push_back(std::move(event));
      write(batch);
      {
        std::lock_guard lock(mutex_);
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
    under_way_ += std::holds_alternative<RunStarted>(event) ? 1 : 0;
    if (under_way_ > 0 && std::holds_alternative<RunEnded>(event)) --under_way_;
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
    std::lock_guard lock(mutex_);
    error_ = message;
  }
  if (on_error_) on_error_(message);
}

void Recorder::look_for_requests() {
  if (!on_request_ || !error().empty()) return;
  try {
    for (const auto& [run, request] : store_.take_requests()) on_request_(run, request);
  } catch (const std::exception&) {
    // The file is busy or broken; the first is over at the next look, the second is found by the next write.
  }
}

}  // namespace stepladder
