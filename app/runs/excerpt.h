// The number of steps to read of runs that are compared: all of short runs, an excerpt (RunStore::excerpt) of long
// ones. Window, reports and command line share this rule, so that they give the same verdicts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace stepladder {

// Longer runs are drawn from overviews; their steps are read only where the user zooms in.
inline constexpr std::int64_t most_steps_read_whole = 200'000;
inline constexpr std::int64_t longest_excerpt = 100'000;

// The length up to which runs are read whole if this many are compared: some four million steps of all together, whole
// or in excerpts, at some seventy bytes and a microsecond to read each.
inline std::int64_t most_steps_of_each(std::size_t runs) {
  constexpr std::int64_t in_all = 4'000'000, least = 2'000;
  return std::clamp(in_all / std::max<std::int64_t>(1, static_cast<std::int64_t>(runs)), least, most_steps_read_whole);
}

inline std::int64_t excerpt_of(std::int64_t most_steps) {
  return std::min(most_steps, longest_excerpt);
}

}  // namespace stepladder
