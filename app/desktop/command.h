// Commands: the user's wishes, which panels push while a frame is drawn and DesktopApp::execute carries out after it.
// With them go requests for data that a view lacks. UI thread.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "app/desktop/data_requests.h"

namespace stepladder {

struct DesktopState;

// Each command is a struct in the header of its feature; commands.def lists them all. Each carries itself out by a
// function that may touch the disk and throws StorageError, DataError, RecipeError or std::runtime_error, which becomes
// a message.
#define COMMAND(name) struct name;
#include "app/desktop/commands.def"
#undef COMMAND
template <class Asked>
inline constexpr bool is_change = false;
#define COMMAND(name)
#define CHANGE(name) \
  template <>        \
  inline constexpr bool is_change<name> = true;
#include "app/desktop/commands.def"
#undef COMMAND
namespace commands {
#define COMMAND(name) void execute(DesktopState& desktop, const name& asked);
#include "app/desktop/commands.def"
#undef COMMAND
}  // namespace commands

template <class Asked>
concept IsCommand = requires(DesktopState& desktop, const Asked& asked) {
  commands::execute(desktop, asked);
};

class Command {
 public:
  template <IsCommand Asked>
  Command(Asked asked)  // NOLINT(google-explicit-constructor): panels push the struct itself
      : execute_([asked = std::move(asked)](DesktopState& desktop) { commands::execute(desktop, asked); }),
        is_change_(is_change<Asked>) {}

  void execute(DesktopState& desktop) const { execute_(desktop); }
  bool can_wait() const { return is_change_; }  // for a locked file, and be carried out later

 private:
  std::function<void(DesktopState&)> execute_;
  bool is_change_ = false;
};

struct Commands {
  std::vector<Command> list;
  DataRequests data;

  void push_back(Command command) { list.push_back(std::move(command)); }
};

}  // namespace stepladder
