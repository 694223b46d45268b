// Whether the words behind a run's last step say that its program ended early: an exception, a signal, a scheduler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/records.h"

namespace stepladder {

class EarlyEnd {
 public:
  // Reads a line without a step, in the order of the log; `number` counts from 1.
  void read(std::string_view line, std::int64_t number);

  // A further step, or words that the training is complete: the program went on.
  void forget() { *this = {}; }

  bool found() const { return found_.has_value(); }
  RunStatus status() const { return found_->status; }           // failed or interrupted
  const std::string& reason() const { return found_->reason; }  // the line that says so, shortened
  std::int64_t line() const { return found_ ? found_->line : 0; }

 private:
  struct Found {
    RunStatus status = RunStatus::failed;
    std::string reason;
    std::int64_t line = 0;
  };
  std::optional<Found> found_;
  bool in_traceback_ = false;
};

}  // namespace stepladder
