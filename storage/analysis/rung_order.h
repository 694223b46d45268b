// What the rungs of a ladder stand on, by their recipes: each on another one, or all on the baseline, as in a sweep.
// Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "storage/analysis/judgement.h"

namespace stepladder {

const Run& run_of(const Subject& subject);  // its first one

// Whether each rung but the first sets the same values and nothing else.
bool is_sweep(std::span<const Subject> subjects);

// The places of the rungs that each one stands on by their recipes (judge_rungs says how that is found).
std::vector<std::size_t> inferred_places_below(std::span<const Subject> subjects, std::size_t baseline);

}  // namespace stepladder
