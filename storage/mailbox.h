// A queue between two threads: many may post, one drains everything at once by swapping.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace stepladder {

template <class T>
class Mailbox {
 public:
  // Any thread. Holds the lock for one push_back; never waits for the reader.
  void post(T value) {
    {
      std::lock_guard lock(mutex_);
      values_.push_back(std::move(value));
    }
    arrived_.notify_one();
  }

  // The reading thread. Returns at once with whatever has come, in the order of posting.
  std::vector<T> drain() {
    std::lock_guard lock(mutex_);
    return std::exchange(values_, {});
  }

  // The reading thread. Waits until something has come, then as drain; empty after `patience`, or once closed.
  template <class Duration>
  std::vector<T> wait_and_drain(Duration patience) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, patience, [&] { return closed_ || !values_.empty(); });
    return std::exchange(values_, {});
  }

  // Any thread. Wakes the reader, who waits no more from now on; what has been posted can still be drained.
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_all();
  }

  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<T> values_;  // guarded by mutex_, as is closed_
  bool closed_ = false;
};

}  // namespace stepladder
