// The program's exit statuses, and the exception for a request that names something unknown.
#pragma once

#include <stdexcept>

namespace stepladder {

// Part of the contract with scripts.
enum ExitStatus {
  exit_done = 0,
  exit_failed = 1,
  exit_usage = 2,
  exit_slower = 10,
  exit_cannot_tell = 11,
  exit_implausible = 12,
  exit_loss_not_at_parity = 13,
  exit_other_machine = 14,
  exit_interrupted = 130
};

// The user asked for something unknown, such as a run or a view. Ends the process with exit_usage.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace stepladder
