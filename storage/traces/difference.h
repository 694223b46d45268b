// Explains why one step is faster than another: the rows of two profiles, matched, whose differences add up to the
// steps'. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/traces/attribution.h"

namespace stepladder {

enum class RowChange {
  same,    // within a hundredth of itself, or a thousandth of the step
  faster,  // as many calls
  slower,  //
  fewer_calls,
  more_calls,
  replaced,  // other kernels of the same operator, or other operators of the same kind in the same part
  fused,     // new rows do what several did before
  split,     // the reverse
  appeared,
  vanished
};
std::string_view to_string(RowChange change);  // "fewer calls"

// One row, or the rows that replace each other.
struct RowDifference {
  RowChange change = RowChange::same;
  OperatorKind kind = OperatorKind::between;  // of the most expensive row, after if there is one
  std::vector<TracedOperator> before, after;  // the most expensive first
  double before_ms = 0, after_ms = 0;         // of a step
  double before_calls = 0, after_calls = 0;
  // delta_ms is within this by chance with a probability of 95 %, by how both rows vary from step to step (Welch's t).
  // Rows in one group count as if they varied together. missing: fewer than two steps on a side, or they aren't known.
  // Another trace of the same program may differ by more: only its steps are compared, not runs.
  double noise_ms = missing;
  bool is_clear = false;  // beyond chance, for all rows together (Holm 1979)
  double delta_ms() const { return after_ms - before_ms; }
};

struct ProfileDifference {
  double before_ms = 0, after_ms = 0;  // of a step
  double noise_ms = missing;           // of the steps' difference, as of a row's; no correction
  std::vector<RowDifference> rows;     // the largest difference first; they add up to after_ms - before_ms
  double delta_ms() const { return after_ms - before_ms; }
  bool is_clear() const;           // the steps differ beyond their noise; false if that isn't known
  std::size_t clear_rows() const;  // that differ beyond noise
};

// Matches rows by part, operator, kernel and shapes; then products of the same operands; then without shapes; then
// kernels of the same operator; then fused rows with those that they name or must have replaced; then what is of the
// same kind in the same part. The difference of the same two the other way round has the same rows, reversed.
// `spreads` are of the steps whose means the rows are; if they aren't known, neither is the noise.
struct StepSpreads {
  StepSpread before, after;
};
ProfileDifference difference(std::span<const TracedOperator> before, std::span<const TracedOperator> after,
                             const StepSpreads& spreads = {});

// The part that all its rows are in; empty: none, or several.
std::string part_of(const RowDifference& row);
// The operands that all its rows have, "128x64 64x256"; empty: none, or others.
std::string shapes_of(const RowDifference& row);

// A run's profile of operators as such rows.
std::vector<TracedOperator> traced(const StepProfile& profile);

}  // namespace stepladder
