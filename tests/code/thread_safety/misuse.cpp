// Code that must not compile with Clang's thread-safety analysis, a case for each macro. Compiled by
// ../thread_safety_test.py alone; without a macro it is correct.
#include "storage/thread_safety.h"

namespace stepladder {

class Counter {
 public:
  int with_lock() {
    const MutexLock lock(mutex_);
    return count_ + helper();
  }
  int on_owner() {
    owner_.check();
    return owned_;
  }

#ifdef MISUSE_MEMBER_WITHOUT_LOCK
  int misuse() {
    return count_;
  }
#endif
#ifdef MISUSE_FUNCTION_WITHOUT_LOCK
  int misuse() {
    return helper();
  }
#endif
#ifdef MISUSE_MEMBER_AFTER_UNLOCK
  int misuse() {
    MutexLock lock(mutex_);
    lock.unlock();
    return count_;
  }
#endif
#ifdef MISUSE_MEMBER_OF_ANOTHER_THREAD
  int misuse() {
    return owned_;
  }
#endif
#ifdef MISUSE_LAMBDA_FOR_ANOTHER_THREAD
  std::thread misuse() {
    owner_.check();
    return std::thread([this] { ++owned_; });
  }
#endif

 private:
  int helper() REQUIRES(mutex_) {
    return count_;
  }

  Mutex mutex_;
  int count_ GUARDED_BY(mutex_) = 0;
  OwnerThread owner_;
  int owned_ GUARDED_BY(owner_) = 0;
};

}  // namespace stepladder
