// Locks and threads that Clang checks at compile time (tests/code/thread_safety_test.py). For other compilers the
// annotations are empty.
#pragma once

#include <cassert>
#include <mutex>
#include <thread>

#if defined(__clang__)
#define STEPLADDER_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define STEPLADDER_ATTRIBUTE(attribute)
#endif
#define CAPABILITY(name) STEPLADDER_ATTRIBUTE(capability(name))
#define SCOPED_CAPABILITY STEPLADDER_ATTRIBUTE(scoped_lockable)
#define ACQUIRE(...) STEPLADDER_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) STEPLADDER_ATTRIBUTE(release_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(owner) STEPLADDER_ATTRIBUTE(assert_capability(owner))
#define GUARDED_BY(owner) STEPLADDER_ATTRIBUTE(guarded_by(owner))             // a member: only with this lock or thread
#define REQUIRES(...) STEPLADDER_ATTRIBUTE(requires_capability(__VA_ARGS__))  // a function: the caller has it
#define EXCLUDES(...) STEPLADDER_ATTRIBUTE(locks_excluded(__VA_ARGS__))       // a function: the caller must not hold it

namespace stepladder {

// std::mutex, which libstdc++ does not annotate.
class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Holds a Mutex during its lifetime. std::condition_variable_any waits on it; the condition is a lambda marked
// REQUIRES(mutex).
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() {
    if (is_held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() ACQUIRE() {
    mutex_.lock();
    is_held_ = true;
  }
  void unlock() RELEASE() {
    mutex_.unlock();
    is_held_ = false;
  }

 private:
  Mutex& mutex_;
  bool is_held_ = true;
};

// The one thread that may touch some members: the one that made this, or that called `enter` last. A function that
// uses such a member without `check` or `enter` does not compile with Clang; a call from another thread fails an
// assertion in debug builds.
class CAPABILITY("thread") OwnerThread {
 public:
  void enter() ASSERT_CAPABILITY(this) { id_ = std::this_thread::get_id(); }
  void check() const ASSERT_CAPABILITY(this) { assert(id_ == std::this_thread::get_id()); }

 private:
  [[maybe_unused]] std::thread::id id_ = std::this_thread::get_id();
};

}  // namespace stepladder
