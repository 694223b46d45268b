// The tables of the view Profile: operators, the difference of two, the parts of the model, rooflines, ranks, and
// several traces. UI thread, inside a frame.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/desktop/profile/profile_view.h"
#include "app/panels/profile/icicle.h"

namespace stepladder {

// The unit of a table's times: a trace that marks no steps counts as one.
inline const char* unit_of(const ShownProfile& shown) {
  return shown.has_steps ? "ms/step" : "ms";
}

bool holds(const std::string& text, const std::string& searched);  // whatever the case of letters

// The column that a table is sorted by, as it numbers them; -1: its own order.
struct TableSort {
  int column = -1;
  bool descending = true;
  bool operator==(const TableSort&) const = default;
};

// What a table is shown with, and what was clicked in it.
struct TableUse {
  TableSort& sort;
  const SliceChoice& chosen;           // its rows are marked
  bool scrolls = false;                // to the first of them
  std::optional<SliceChoice> clicked;  // a row: its slices; an empty choice: it was the chosen one
};

// The rows whose names hold the searched text, sorted. Found once, since a trace may have 100,000 rows.
class FoundRows {
 public:
  void update(const std::shared_ptr<const ProfileView>& view, const std::string& search, const TableSort& operators_by,
              const TableSort& differences_by, const TableSort& several_by);
  bool is_searched() const { return !search_.empty(); }

  std::vector<const TracedOperator*> operators;  // of the step after
  std::vector<const RowDifference*> differences;
  double left_out_ms = 0;  // of the other differences
  std::vector<const SharedRow*> several;

 private:
  std::shared_ptr<const ProfileView> view_;  // owns the rows
  std::string search_;
  TableSort operators_by_, differences_by_, several_by_;
};

// Each fills the available room.
void draw_operator_table(const ShownProfile& shown, const FoundRows& found, TableUse& use);
void draw_roofline_table(const ShownProfile& shown, TableUse& use);
void draw_difference_table(const ProfileView& view, const FoundRows& found, TableUse& use);
void draw_anatomy_table(const ProfileView& view, bool& by_block, TableUse& use);
void draw_rank_table(const RankReport& report, TableUse& use);
void draw_several_table(const ProfileView& view, const FoundRows& found, TableUse& use);

}  // namespace stepladder
