// Charts in groups, each under a heading that folds them away. UI thread, inside a frame.
#pragma once

#include <imgui.h>

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace stepladder {

struct ChartGroup {
  std::string name;                 // empty: it has no heading
  std::vector<std::size_t> charts;  // their places in the caller's list
};

// From the group of each chart. Charts of no group come first, the other groups in the order of their first charts.
std::vector<ChartGroup> in_groups(std::span<const std::string> group_of_each);

// The groups that the user has folded.
class FoldedGroups {
 public:
  bool has(const std::string& group) const { return groups_.contains(group); }
  void click(const std::string& group);  // folds or unfolds it

 private:
  friend nlohmann::json to_json(const FoldedGroups& folded);
  friend FoldedGroups folded_from(const nlohmann::json& read);
  std::set<std::string> groups_;
};

nlohmann::json to_json(const FoldedGroups& folded);
FoldedGroups folded_from(const nlohmann::json& read);  // ignores what isn't understood

// Sizes are in pixels.
struct GridLook {
  int columns = 1;
  float row_height = 0;  // 0: the rows share the height that is left, but have at least the least one
  float least_row_height = 0;
  float gap = 0;            // between columns and, unless `below_row` draws it, between rows
  bool fills_rows = false;  // the last charts of a group share the width of their row
};

struct GridCell {
  std::size_t chart = 0;  // its place in the caller's list
  ImVec2 size;
  bool is_above_one = false;  // of its group
};

// Draws the groups within the current window. `draw` is called for each chart that isn't folded, `below_row` with the
// number of a row and its height, and fills the space to the next one.
void draw_grouped_grid(const std::vector<ChartGroup>& groups, FoldedGroups& folded, const GridLook& look,
                       const std::function<void(const GridCell&)>& draw,
                       const std::function<void(std::size_t row, float height)>& below_row = {});

}  // namespace stepladder
