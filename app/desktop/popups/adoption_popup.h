// The question whether to train by the recipe of a run that this user hasn't launched here. UI thread, inside a frame.
#pragma once

#include <string>

namespace stepladder {

class AdoptionPopup {
 public:
  // `what` says in sentences what would be trained. Opens from the next frame on.
  void open(std::string what);

  bool draw();  // whether the user has just agreed

 private:
  std::string what_;
  bool opens_ = false;
};

}  // namespace stepladder
