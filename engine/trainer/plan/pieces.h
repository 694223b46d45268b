#pragma once

#include <algorithm>
#include <cstdint>

namespace stepladder {

// The work on [0, all) in pieces of `each`.
struct Pieces {
  std::int64_t all, each;
  std::int64_t count() const { return (all + each - 1) / each; }
  std::int64_t begin(std::int64_t i) const { return i * each; }
  std::int64_t size(std::int64_t i) const { return std::min(each, all - i * each); }
};

}  // namespace stepladder
