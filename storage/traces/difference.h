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
  double delta_ms() const { return after_ms - before_ms; }
};

struct ProfileDifference {
  double before_ms = 0, after_ms = 0;  // of a step
  std::vector<RowDifference> rows;     // the largest difference first; they add up to after_ms - before_ms
};

// Matches rows by part, operator, kernel and shapes; then products of the same operands; then without shapes; then
// kernels of the same operator; then fused rows with those that they name or must have replaced; then what is of the
// same kind in the same part. The difference of the same two the other way round has the same rows, reversed.
ProfileDifference difference(std::span<const TracedOperator> before, std::span<const TracedOperator> after);

// The part that all its rows are in; empty: none, or several.
std::string part_of(const RowDifference& row);
// The operands that all its rows have, "128x64 64x256"; empty: none, or others.
std::string shapes_of(const RowDifference& row);

// A run's profile of operators as such rows.
std::vector<TracedOperator> traced(const StepProfile& profile);

}  // namespace stepladder
