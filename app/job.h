// One piece of work on a thread of its own: its progress, its interruption, and its result or exception. Everything
// that the window does in the background is a Job, or a class around one.
#pragma once

#include <atomic>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "storage/thread_safety.h"

namespace stepladder {

struct JobProgress {
  std::string item;  // that is being worked on: a file
  int items = 0;     // begun so far
  double share = 0;  // of the item that is done
};

// The job as its work sees it. Any thread.
class JobControl {
 public:
  bool is_interrupted() const { return interrupted_; }
  const std::atomic<bool>& interrupted() const { return interrupted_; }
  void interrupt() { interrupted_ = true; }

  void begin_item(const std::string& item) {
    const MutexLock lock(mutex_);
    progress_ = {.item = item, .items = progress_.items + 1};
  }
  void report(double share) {
    const MutexLock lock(mutex_);
    progress_.share = share;
  }
  JobProgress progress() const {
    const MutexLock lock(mutex_);
    return progress_;
  }

 private:
  std::atomic<bool> interrupted_ = false;
  mutable Mutex mutex_;
  JobProgress progress_ GUARDED_BY(mutex_);
};

// Used by the thread that made it.
template <class Result>
class Job {
 public:
  using Work = std::function<Result(JobControl&)>;

  Job() = default;
  Job(Job&&) = default;
  ~Job() { cancel(); }

  // `work` owns or shares everything that it reads. `wake` is called on the other thread once take() has something;
  // `item` is the first that is worked on. Call only while nothing is active.
  void start(Work work, std::function<void()> wake = {}, const std::string& item = {}) {
    owner_.check();
    assert(!is_active());
    control_ = std::make_shared<JobControl>();
    if (!item.empty()) control_->begin_item(item);
    std::packaged_task<Result(JobControl&)> task(std::move(work));
    std::future<Result> result = task.get_future();
    thread_ = std::thread([task = std::move(task), wake = std::move(wake), control = control_]() mutable {
      task(*control);
      if (wake) wake();
    });
    result_ = std::move(result);  // not before: without a thread there is no result
  }

  bool is_active() const {  // started, and its result is not taken yet
    owner_.check();
    return result_.valid();
  }
  JobProgress progress() const {
    owner_.check();
    return is_active() ? control_->progress() : JobProgress();
  }
  void interrupt() {  // the work may notice it, and ends as it likes
    owner_.check();
    if (is_active()) control_->interrupt();
  }
  void cancel() {  // interrupts, waits for the end, and drops the result
    owner_.check();
    interrupt();
    if (thread_.joinable()) thread_.join();
    result_ = {};
  }

  // The result, once; waits at most `patience` for it. Throws what the work has thrown.
  std::optional<Result> take(std::chrono::milliseconds patience = {}) {
    owner_.check();
    if (!is_active() || result_.wait_for(patience) != std::future_status::ready) return std::nullopt;
    thread_.join();
    return result_.get();
  }

 private:
  OwnerThread owner_;
  std::shared_ptr<JobControl> control_ GUARDED_BY(owner_);
  std::future<Result> result_ GUARDED_BY(owner_);
  std::thread thread_ GUARDED_BY(owner_);
};

// Jobs that run one after the other, in the order in which they were added. Used by the thread that made it.
template <class Result>
class JobQueue {
  using Work = typename Job<Result>::Work;

 public:
  explicit JobQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  void add(Work work, std::string item = {}) {
    waiting_.push_back({std::move(work), std::move(item)});
    start_next();
  }
  void stop() {  // interrupts the job, and forgets those that wait
    waiting_.clear();
    job_.interrupt();
  }
  bool is_busy() const { return job_.is_active(); }
  std::size_t waiting() const { return waiting_.size(); }
  JobProgress progress() const { return job_.progress(); }

  // The next result, as Job::take has it; then the next job begins.
  std::optional<Result> take(std::chrono::milliseconds patience = {}) {
    try {
      std::optional<Result> result = job_.take(patience);
      start_next();
      return result;
    } catch (...) {
      start_next();
      throw;
    }
  }

 private:
  void start_next() {
    if (waiting_.empty() || job_.is_active()) return;
    auto [work, item] = std::move(waiting_.front());
    waiting_.pop_front();
    job_.start(std::move(work), wake_, item);
  }

  std::function<void()> wake_;
  std::deque<std::pair<Work, std::string>> waiting_;
  Job<Result> job_;
};

}  // namespace stepladder
