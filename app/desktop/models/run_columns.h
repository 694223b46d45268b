// The columns that a table of runs can have: what was measured, what the recipe said, what users said. UI thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/desktop/workspace.h"

namespace stepladder {

enum class ColumnKind { text, number, tags, status, spark };

struct RunColumn {
  std::string id;     // as settings keep it: "tokens_per_s", "recipe.batch"
  std::string title;  // with its unit: "dt, ms"
  ColumnKind kind = ColumnKind::number;
  float width = 80;       // pixels at scale 1; texts stretch by it
  bool at_first = false;  // shown until its user says otherwise
};

// Against what factors and differences are told: a run of the user's choice, else the baseline of the run's own ladder.
struct ColumnContext {
  const Workspace* workspace = nullptr;
  RunId baseline = 0;
};

// Those that every table offers; then one for each value that some recipe has.
const std::vector<RunColumn>& measured_columns();
std::vector<RunColumn> recipe_columns(const Workspace& workspace);

// What stands in a cell, and what it is sorted by where it is a number.
std::string cell_text(const std::string& column, const RunEntry& entry, const ColumnContext& context);
double cell_value(const std::string& column, const RunEntry& entry, const ColumnContext& context);

}  // namespace stepladder
