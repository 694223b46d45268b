// Which runs of a rung count: not those that have no end, that are copies of another, or that others disturbed. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "storage/analysis/judgement.h"

namespace stepladder {

// Whether it has neither steps nor a reported throughput.
bool is_unmeasured(const Summary& summary);

// Whether its log just ends. The times of its steps are as good as any; its loss is one of an earlier step.
bool is_cut_log(const MeasuredRun& run);

// The subjects with the runs that count.
struct Counted {
  std::vector<Subject> subjects;
  std::vector<int> repeats;      // of each, also the disturbed ones
  std::vector<RunCount> counts;  // of its `runs`
  std::vector<std::size_t> copies;
};
Counted count_runs(std::span<const Subject> all_subjects);

}  // namespace stepladder
