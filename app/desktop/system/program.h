// Runs the desktop's helper programs (gdbus, xdg-open, zenity) without a shell.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace stepladder {

struct ProgramEnd {
  bool started = false;  // false: it isn't on PATH
  bool ended = false;    // false: it took too long, or was cancelled
  int status = -1;       // its exit status; -1: a signal ended it
  std::string output;    // of stdout
  std::string errors;    // of stderr

  bool succeeded() const { return ended && status == 0; }
};

enum class Afterwards { kill, leave };  // a program that hasn't ended by the deadline

// Blocks until the program has ended, the deadline is over or `cancelled` returns true. A program that is left goes on
// in a session of its own and survives this one.
ProgramEnd run_program(const std::vector<std::string>& command, std::chrono::steady_clock::time_point deadline,
                       Afterwards afterwards = Afterwards::kill, const std::function<bool()>& cancelled = {});

// Whether there is a D-Bus session. Without one, gdbus would start one.
bool session_bus_is_there();

}  // namespace stepladder
