// Brings ssh's questions (a passphrase, a code, whether a host's key is right) to the window. ssh
// starts this program as its SSH_ASKPASS; question and answer go through files in a private folder, which nobody else
// can open. Nothing is kept.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stepladder {

struct SshQuestion {
  std::string id;
  std::string text;        // as ssh asks it, fit for the screen
  bool is_secret = true;   // don't show what is typed
  bool is_notice = false;  // only to be read: "Confirm user presence for key ..."
  bool operator==(const SshQuestion&) const = default;
};

// Not thread-safe: one thread.
class SshQuestions {
 public:
  SshQuestions();   // throws std::runtime_error if there is no place for the folder
  ~SshQuestions();  // unanswered ones are refused
  SshQuestions(const SshQuestions&) = delete;
  SshQuestions& operator=(const SshQuestions&) = delete;

  std::vector<std::string> environment() const;  // that ssh needs: "NAME=VALUE"
  std::vector<SshQuestion> open() const;
  void answer(const std::string& id, const std::optional<std::string>& text);  // nullopt: it is refused

 private:
  std::filesystem::path folder_;
};

// The other side, in a process that ssh has started to ask; nullopt in any other. Blocks until there is an answer, at
// most five minutes. Returns the exit status.
std::optional<int> ask_for_ssh(int argc, char** argv);

}  // namespace stepladder
