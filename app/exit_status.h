// The program's exit statuses, and the exceptions for a request that can't be met as it is written.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

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
  exit_command_failed = 14,  // of `try`
  exit_interrupted = 130
};

// The parts of an error that scripts read (`error` of --json); an empty one is null there.
struct ErrorParts {
  std::string code = {};      // what kind of error: "unknown-option"
  std::string argument = {};  // the option or argument that is wrong: "--filter", "run"
  std::string value = {};     // what it was given
  std::string hint = {};      // what to do next; the sentence ends with it
};

// The command line is malformed: an unknown option, a value that isn't one. Ends the process with exit_usage.
struct UsageError : std::runtime_error {
  explicit UsageError(const std::string& sentence, ErrorParts parts_ = {})
      : std::runtime_error(parts_.hint.empty() ? sentence : sentence + "; " + parts_.hint), parts(std::move(parts_)) {}
  ErrorParts parts;
};

// The request is well formed, but names a run, ladder, file, rule or machine that isn't there. Ends the process with
// exit_failed.
struct NotFound : UsageError {
  explicit NotFound(const std::string& sentence, ErrorParts parts_ = {}) : UsageError(sentence, std::move(parts_)) {
    if (parts.code.empty()) parts.code = "not-found";
  }
};

}  // namespace stepladder
