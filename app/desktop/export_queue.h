// Makes files and texts for the clipboard on a thread of its own, one after the other. Lives on the UI thread.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <utility>

namespace stepladder {

class ExportQueue {
 public:
  using Then = std::function<void()>;  // handles the result, on the UI thread
  using Make = std::function<Then()>;  // runs on the other thread; owns all that it reads
  using Fail = std::function<void(const std::exception&)>;

  // `wake` is called on the other thread when an export is done.
  explicit ExportQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  void add(Make make);
  bool is_busy() const { return making_.valid(); }

  // Call between frames: handles finished exports, and passes exceptions of `make` to `fail`. Never blocks.
  void take(const Fail& fail);

  // Waits until every export is done, and calls `waiting` ten times a second meanwhile.
  void finish(const Fail& fail, const std::function<void()>& waiting);

 private:
  void start_next();
  void take_made(const Fail& fail);

  std::function<void()> wake_;
  std::deque<Make> waiting_;
  std::future<Then> making_;
};

}  // namespace stepladder
