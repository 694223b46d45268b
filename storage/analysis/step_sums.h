// The doubt that the sums of the steps raise about a gain in their medians: a step in twenty that takes eight times as
// long hides from a median.
#pragma once

#include <optional>
#include <span>

#include "storage/analysis/plausibility.h"

namespace stepladder {

// The flag of a factor between the medians of which less than a third is left, and 5 % are lost, by the mean of all
// steady steps; of one near 1, if 5 % are lost. Evaluations don't count where the baseline's times hold them, unless
// the runs evaluate more often; nor does the slowest hundredth (checkpoints, a disturbed step). Each mean is taken at
// the end of its standard error that doubts less. Nullopt: it is none, as between runs that were launched here.
std::optional<Flag> doubt_sums(double factor, std::span<const RunTimes> base, std::span<const RunTimes> runs);

}  // namespace stepladder
