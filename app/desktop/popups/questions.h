// The questions that the window asks in a dialog. UI thread, inside a frame.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "app/machines/ssh_questions.h"

namespace stepladder {

// Whether to train by the recipe of a run that this user hasn't launched here.
class AdoptionPopup {
 public:
  // `what` says in sentences what would be trained. Opens from the next frame on.
  void open(std::string what);

  bool draw();  // whether the user has just agreed

 private:
  std::string what_;
  bool opens_ = false;
};

// The fate of the runs that this process trains and queues.
enum class Closing {
  no,             // the window stays
  in_background,  // it goes, and they are trained to the end of the queue
  after_step,     // they are stopped first
};

// What closing the window asks while runs train here.
class ClosingPopup {
 public:
  void open() { opens_ = true; }  // from the next frame on

  // `what` says in a sentence which runs they are. Returns `no` until the user has decided to close.
  Closing draw(const std::string& what);

 private:
  bool opens_ = false;
};

struct SshAnswer {
  std::string id;
  std::optional<std::string> text;  // nullopt: refused
};

// In which ssh asks for a passphrase, a code, or whether a host's key is right.
class SshPopup {
 public:
  // Opens itself for the question; nullptr: there is none. Returns an answer once the user has given it.
  std::optional<SshAnswer> draw(const SshQuestion* question);

 private:
  std::string asked_;  // the id
  std::array<char, 1024> typed_{};
};

}  // namespace stepladder
