// The parts of Compare's model that are pure functions of snapshots: lines with their curves and gaps, and targets. Any
// thread.
#pragma once

#include <string>
#include <vector>

#include "app/desktop/models/comparison.h"

namespace stepladder {

struct RunsOfLine {
  std::string group;  // their common value: "lr = 0.001"; empty for a run that is alone
  std::vector<const RunSnapshot*> runs;
};

// Lines are in the order of their first runs, or in that of the values of a recipe that they are grouped by.
std::vector<RunsOfLine> grouped_by_line(const std::vector<RunSnapshot>& runs, const std::string& group_by);

// The line with this run; the first if none has it.
std::size_t place_of(const std::vector<RunsOfLine>& lines, RunId base);

ComparedCurves curves_of(const std::vector<RunSnapshot>& runs, RunId base, const ComparisonOptions& options);
ComparedTargets targets_of(const std::vector<RunSnapshot>& runs, const ComparisonOptions& options);

}  // namespace stepladder
