// A queue between threads: many may post, and one reader takes everything at once.
#pragma once

#include <condition_variable>
#include <utility>
#include <vector>

#include "storage/thread_safety.h"

namespace stepladder {

template <class T>
class Mailbox {
 public:
  // Any thread. Holds the lock for one push_back; never waits for the reader.
  void post(T value) {
    {
      const MutexLock lock(mutex_);
      values_.push_back(std::move(value));
    }
    arrived_.notify_one();
  }

  // The reading thread. Returns at once with everything posted so far, in the order of posting.
  std::vector<T> drain() {
    const MutexLock lock(mutex_);
    return std::exchange(values_, {});
  }

  // The reading thread. Waits until something is posted, then drains; empty after `patience`, or once closed.
  template <class Duration>
  std::vector<T> wait_and_drain(Duration patience) {
    MutexLock lock(mutex_);
    arrived_.wait_for(lock, patience, [this]() REQUIRES(mutex_) { return closed_ || !values_.empty(); });
    return std::exchange(values_, {});
  }

  // Any thread. Wakes the reader, which never waits again; values posted earlier can still be drained.
  void close() {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_all();
  }

  bool closed() const {
    const MutexLock lock(mutex_);
    return closed_;
  }

 private:
  mutable Mutex mutex_;
  std::condition_variable_any arrived_;
  std::vector<T> values_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace stepladder
