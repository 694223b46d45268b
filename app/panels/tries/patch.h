// A patch side by side: what was there at the left, what is there now at the right.
#pragma once

#include <string>
#include <vector>

namespace stepladder {

struct PatchRow {
  enum class Kind { file, place, same, changed };
  Kind kind = Kind::same;
  std::string before, after;            // of `file` and `place` only `before`
  int line_before = 0, line_after = 0;  // 0: that side has no line here
};

std::vector<PatchRow> patch_rows(
    const std::string& patch);  // of git's unified format; what isn't one is shown as it is

void draw_patch(const std::vector<PatchRow>& rows);

}  // namespace stepladder
