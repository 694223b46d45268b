// The profiles that the view Profile shows: one profile, or two and their difference; and the same of passes. Plain
// values.
#pragma once

#include <cstdint>
#include <vector>

namespace stepladder {

struct ProfileSide {
  enum class Kind { none, trace, run };
  Kind kind = Kind::none;
  std::int64_t id = 0;     // of the trace, or of the run whose operators were timed
  int rank = -1;           // of a trace; -1: the first
  std::int64_t step = -1;  // -1: the median one

  bool operator==(const ProfileSide&) const = default;
};

struct ProfileQuestion {
  ProfileSide before;  // none: `after` is shown alone
  ProfileSide after;
  std::vector<ProfileSide> others;  // in the table of several traces, behind these two
  std::int64_t passes = 0;          // 0: the newest
  std::int64_t passes_before = 0;   // that they are compared with; 0: none

  bool operator==(const ProfileQuestion&) const = default;
};

}  // namespace stepladder
