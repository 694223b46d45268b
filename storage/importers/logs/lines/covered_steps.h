// How many steps a printed time covers. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "storage/importers/logs/lines/pair_scanner.h"
#include "storage/importers/logs/units.h"

namespace stepladder {

// The unit of a number that is a time; unknown for others.
TimeUnit time_unit_of(const Pair& pair);

// The number in front of a time.
struct CountBefore {
  std::int64_t count = -1;  // if it is a whole one without a unit
  std::string_view key;
  std::string_view gap;  // the text between both numbers
};

// "10 steps in 5.02s", "time for the last 10 steps: 5.0s", "5.0s for 10 steps": the steps that a time covers; 0 if the
// line doesn't say. A mean over so many steps doesn't cover them. `behind`: the text behind the time.
std::int64_t covered_steps(const Pair& pair, const CountBefore& before, std::string_view behind);

}  // namespace stepladder
