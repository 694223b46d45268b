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
  std::vector<const RunColumn*> fitting(float width) const;  // the shown columns that fit into a table of this width
};

void draw_column_popup(HistoryColumns& columns);  // "##columns"

}  // namespace stepladder
