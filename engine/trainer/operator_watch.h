// Times every operator that LibTorch runs on one thread, through its own observers (ATen/record_function.h), which its
// profiler uses too. For CPUs: elsewhere an operator has only been started when it returns.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// Watches the thread that creates it (which also runs the backward pass on a CPU) until it is destroyed; at most one at
// a time on a thread. Excludes the time of the watching itself.
class OperatorWatch {
 public:
  OperatorWatch();
  ~OperatorWatch();
  OperatorWatch(const OperatorWatch&) = delete;
  OperatorWatch& operator=(const OperatorWatch&) = delete;

  // A step is a begin and its parts. Everything run since the last call belongs to `part`.
  void begin_step();
  void end_part(double StepParts::*part);

  // Means over the steps so far.
  std::vector<OperatorTime> operators() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Call;
  struct Totals {
    double calls = 0;
    Clock::duration self{};
    double flops = missing;
    void add(const Totals& more);
  };
  struct Key {
    std::string part, name, shapes;
    auto operator<=>(const Key&) const = default;
  };

  void left(const Call& call);

  std::uint64_t handle_ = 0;
  int steps_ = 0;
  Clock::time_point part_began_;
  Clock::duration accounted_{};  // of this part: in operators, and in watching them
  Call* innermost_ = nullptr;
  std::map<Key, Totals> of_part_;  // since the last end_part, under no part
  std::map<Key, Totals> totals_;
};

}  // namespace stepladder
