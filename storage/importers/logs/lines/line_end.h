// Whether a file's last line, which has no end, may be cut. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

// Whether a line ends as a whole one does: with as many numbers, and the same behind the last of them. A number at the
// very end has as many digits behind the point, or as a whole number no fewer digits.
bool end_alike(std::string_view line, std::string_view whole);

// The last `most` whole lines, by whose ends a cut one is known.
class KnownEnds {
 public:
  explicit KnownEnds(std::size_t most) : most_(most) {}

  void keep(std::string_view line) {
    if (lines_.size() < most_)
      lines_.emplace_back(line);
    else
      lines_[next_++ % most_] = line;
  }
  bool empty() const { return lines_.empty(); }
  bool have_alike(std::string_view line) const {
    return std::ranges::any_of(lines_, [&](const std::string& known) { return end_alike(line, known); });
  }

 private:
  const std::size_t most_;
  std::vector<std::string> lines_;
  std::size_t next_ = 0;  // the oldest one
};

}  // namespace stepladder
