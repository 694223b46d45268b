// Several traced steps beside each other: the ranks of one trace, and any number of traces. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/traces/attribution.h"

namespace stepladder {

// A rank's mean step.
struct RankRow {
  int rank = 0;
  int steps = 0;
  double step_ms = 0;
  double idle_ms = 0;
  double communication_ms = 0;  // exposed: nothing was computed meanwhile
  // Until it is ready to exchange: everything but exposed communication, in which a rank waits for later ones.
  double own_ms() const { return step_ms - communication_ms; }
};

struct RankReport {
  std::vector<RankRow> rows;     // by rank; empty: fewer than two
  std::optional<int> straggler;  // the rank for which the others wait
  // How much longer its own time is than the mean of the others', and the half-width of the 95 % interval, by the steps
  // that all ranks have. missing: fewer than two such steps.
  double late_ms = missing, noise_ms = missing;
  std::string sentence;  // which rank the others wait for, or why that can't be told
};

// A straggler is named if its own time is longer than the others' by at least 1 % of the step and beyond chance
// (paired t test over steps, corrected for the number of ranks).
RankReport rank_report(const TraceProfile& profile);

// An operator or kernel in several traces, whatever its shapes; parts of the step apart.
struct SharedRow {
  std::string part, name;  // as row_of has it: "aten::gelu > KERNEL"
  OperatorKind kind = OperatorKind::between;
  std::vector<double> ms;                                 // of each trace's mean step; missing: it isn't there
  bool is_new() const { return is_missing(ms.front()); }  // not in the first
  bool is_gone() const { return !is_missing(ms.front()) && is_missing(ms.back()); }
};

struct SeveralTraces {
  std::vector<double> step_ms;             // of each trace
  std::vector<std::vector<double>> kinds;  // [trace][OperatorKind], in ms
  std::vector<SharedRow> rows;             // the most expensive in any trace first
};

// At least one trace.
SeveralTraces beside_each_other(std::span<const std::span<const TracedOperator>> traces);

}  // namespace stepladder
