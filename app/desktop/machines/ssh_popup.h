// The dialog in which ssh asks for a passphrase, a code, or whether a host's key is right. UI thread, inside a frame.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "app/machines/ssh_questions.h"

namespace stepladder {

struct SshAnswer {
  std::string id;
  std::optional<std::string> text;  // nullopt: refused
};

class SshPopup {
 public:
  // Opens itself for the question; nullptr: there is none. Returns an answer once the user has given it.
  std::optional<SshAnswer> draw(const SshQuestion* question);

 private:
  std::string asked_;  // the id
  std::array<char, 1024> typed_{};
};

}  // namespace stepladder
