// Which parts of a change have which effect: fewer runs than combinations, by a fractional factorial (Plackett and
// Burman, "The design of optimum multifactorial experiments", 1946). Pure.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "storage/analysis/statistics.h"
#include "storage/analysis/verdict/run_spread.h"

namespace stepladder {

using PartSet = std::vector<bool>;  // which parts are on

inline constexpr std::size_t most_parts = 19;

// Every combination of up to 4 parts, 12 of 5 to 11, 20 of more. The cells that run one after the
// other are far from each other, so that a drift of the machine favours no part. Throws std::invalid_argument beyond
// most_parts.
std::vector<PartSet> fractional_design(std::size_t parts);

struct PartEffect {
  double gain =
      missing;  // of having the part, averaged over the others; missing: the runs can't tell it from another's
  Interval ci95;
};
struct PairEffect {
  std::size_t a = 0, b = 0;
  double gain = missing;  // of having both beyond the sum of each
  Interval ci95;
  std::vector<std::pair<std::size_t, std::size_t>> others;  // that the runs don't tell from it
};
struct FactorialAnswer {
  std::vector<PartEffect> parts;
  std::vector<PairEffect> pairs;  // those that the runs show
};

// By least squares. `values`: higher is better; those that are missing are left out. `noise`: of single runs, from
// elsewhere. Intervals take the larger of it and what the fit leaves over; what is no more than rounding isn't noise,
// and without a noise there are no intervals. A pair is named if its probability without an interaction is below 5 %
// divided by the number of pairs, or if it leaves nothing but rounding.
FactorialAnswer fit_factorial(std::span<const PartSet> cells, std::span<const double> values, const RunSpread& noise);

// The parts that can go together without loss: the upper ends of their intervals add up to at most a tenth of the sum
// of all gains. None that surely helps, and none that may be of a pair.
std::vector<std::size_t> droppable_parts(const FactorialAnswer& answer);

}  // namespace stepladder
