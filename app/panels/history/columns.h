// The History view's columns: all of them, those shown, and those that fit. UI thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/desktop/models/run_columns.h"

namespace stepladder {

struct HistoryColumns {
  std::vector<std::string> shown;  // in order, after the name
  std::vector<RunColumn> known;    // all that can be shown
  std::uint64_t known_for = 0;

  void update(const Workspace& workspace);
  const RunColumn* find(const std::string& id) const;
  // The columns of a table of this width. It has every column that the user chose, and scrolls if it is too narrow for
  // them; of the columns shown at first, it leaves out those that don't fit.
  std::vector<const RunColumn*> fit(float width);
  std::vector<std::string> left_out;  // titles, by the last fit
};

float wanted_width(const std::vector<const RunColumn*>& columns);  // of the table, in pixels

void draw_column_popup(HistoryColumns& columns);  // "##columns"
void draw_left_out_columns(const HistoryColumns& columns);

}  // namespace stepladder
