// Runs another program to its end, without a shell, and gives what it has printed.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace stepladder {

struct ProgramResult {
  bool started = false;  // false: it isn't on PATH
  bool ended = false;    // false: it took too long, or was cancelled
  int status = -1;       // its exit status; 128 + N after signal N
  std::string output;    // of stdout
  std::string errors;    // of stderr

  bool succeeded() const { return ended && status == 0; }
};

enum class Afterwards { kill, leave };  // a program that hasn't ended by the deadline

// Blocks until the program has ended, the deadline is over or `cancelled` returns true. A program that is left
// continues in a session of its own and survives this one.
ProgramResult run_program(const std::vector<std::string>& command, std::chrono::steady_clock::time_point deadline,
                          Afterwards afterwards = Afterwards::kill, const std::function<bool()>& cancelled = {});

// Returns the program's output. Blocks until it has ended. Throws std::runtime_error with its last words if it fails,
// or if it takes longer than `patience`; then it is ended. `environment` is as in Launch (storage/process.h); with
// `has_terminal` it may ask on ours.
std::string output_of(const std::vector<std::string>& command, const std::string& input = {},
                      const std::vector<std::string>& environment = {}, bool has_terminal = false,
                      std::chrono::seconds patience = std::chrono::hours(24));

}  // namespace stepladder
