// The question that closing the window asks while runs train here. UI thread, inside a frame.
#pragma once

#include <string>

namespace stepladder {

// The fate of the runs that this process trains and queues.
enum class Closing {
  no,             // the window stays
  in_background,  // it goes, and they are trained to the end of the queue
  after_step,     // they are stopped first
};

class ClosingPopup {
 public:
  void open() { opens_ = true; }  // from the next frame on

  // `what` says in a sentence which runs they are. Returns `no` until the user has decided to close.
  Closing draw(const std::string& what);

 private:
  bool opens_ = false;
};

}  // namespace stepladder
