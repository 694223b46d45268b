// The columns that a table of runs can have: measurements, recipe values, users' marks. UI thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/desktop/workspace.h"

namespace stepladder {

enum class ColumnKind { text, number, tags, status, spark };

struct RunColumn {
  std::string id;     // as settings store it: "tokens_per_s", "recipe.batch"
  std::string title;  // with its unit: "dt, ms"
  ColumnKind kind = ColumnKind::number;
  float width = 80;       // pixels at scale 1; relative for texts
  bool at_first = false;  // shown by default
};

// The baseline of factors and differences: a run that the user chose, else the baseline of the run's own ladder.
struct ColumnContext {
  const Workspace* workspace = nullptr;
  RunId baseline = 0;
};

// The values of a run's recipe by name, parsed once per run. UI thread.
const std::map<std::string, std::string>& parsed_recipe(const RunEntry& entry);

// The columns of every table, and one for each value in any recipe.
const std::vector<RunColumn>& measured_columns();
std::vector<RunColumn> recipe_columns(const Workspace& workspace);

// The text of a cell, and its number for sorting.
std::string cell_text(const std::string& column, const RunEntry& entry, const ColumnContext& context);
double cell_value(const std::string& column, const RunEntry& entry, const ColumnContext& context);

}  // namespace stepladder
