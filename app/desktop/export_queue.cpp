#include "app/desktop/export_queue.h"

#include <chrono>
#include <exception>
#include <utility>

namespace stepladder {

void ExportQueue::add(Make make) {
  waiting_.push_back(std::move(make));
  if (!is_busy()) start_next();
}

void ExportQueue::start_next() {
  if (waiting_.empty()) return;
  making_ = std::async(std::launch::async, [make = std::move(waiting_.front()), wake = wake_] {
    try {
      Then then = make();
      wake();
      return then;
    } catch (...) {
      wake();
      throw;
    }
  });
  waiting_.pop_front();
}

void ExportQueue::take(const Fail& fail) {
  if (is_busy() && making_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) take_made(fail);
}

void ExportQueue::finish(const Fail& fail, const std::function<void()>& waiting) {
  while (is_busy()) {
    if (making_.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready) {
      take_made(fail);
    } else {
      waiting();
    }
  }
}

void ExportQueue::take_made(const Fail& fail) {
  try {
    if (const Then then = making_.get()) then();
  } catch (const std::exception& error) {  // DataError, StorageError: the disk
    fail(error);
  }
  start_next();
}

}  // namespace stepladder
