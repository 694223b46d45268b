// The columns that a table of runs can have: measurements, recipe values, users' marks. UI thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/desktop/workspace.h"
#include "storage/analysis/plausibility.h"

namespace stepladder {

enum class ColumnKind { text, number, tags, status, spark };

// A figure of a metric, or that beside the baseline's.
struct MetricColumn {
  enum class Shows { value, difference, factor };
  MetricFigure figure;
  Shows shows = Shows::value;

  friend bool operator==(const MetricColumn&, const MetricColumn&) = default;
};

struct RunColumn {
  // As settings store it: "tokens_per_s", "recipe.batch", "min(val/loss)", "min(val/loss) - baseline".
  std::string id;
  std::string title;  // with its unit: "dt, ms"
  ColumnKind kind = ColumnKind::number;
  float width = 80;       // pixels at scale 1; relative for texts
  bool at_first = false;  // shown by default
  std::optional<MetricColumn> metric = {};
  bool in_exponents = false;  // a recipe's value: all of the column as 3e-4, since one of them is small
};

// The baseline of factors and differences: a run that the user chose, else the baseline of the run's own ladder.
struct ColumnContext {
  const Workspace* workspace = nullptr;
  RunId baseline = 0;
};

// The run that factors are relative to; null if there is none.
const RunEntry* baseline_of(const RunEntry& entry, const ColumnContext& context);

// Of runs that are compared: the chosen one if it is among them, else the first one's ladder's, else the first with a
// loss and step times. `chosen` if there are no runs.
RunId baseline_among(const std::vector<const RunEntry*>& runs, RunId chosen, const Workspace& workspace);

// Whether a run's speed can be relied on, and in a few words why not: its figures are then grey in every view. It takes
// about 0.1 ms.
struct SpeedDoubt {
  Trust trust = Trust::trusted;
  std::string why;  // "Impossible: throughput above the hardware's peak"; empty if it can
};
SpeedDoubt speed_doubt(const RunEntry& entry, const HardwareTable& hardware);

// The values of a run's recipe by name, parsed once per run. UI thread.
const std::map<std::string, std::string>& parsed_recipe(const RunEntry& entry);

// The columns of every table, and one for each value in any recipe.
const std::vector<RunColumn>& measured_columns();
std::vector<RunColumn> recipe_columns(const Workspace& workspace);

// A metric's column by its id; nullopt for another column's. `unit` may be empty.
std::string id_of(const MetricColumn& column);
std::optional<RunColumn> metric_column(const std::string& id, const std::string& unit = {});
std::string title_of(const MetricColumn& column);  // "min val/loss vs baseline"

// The text of a cell, and its number for sorting. A metric's cell is empty if the run has no value, and "..." until it
// has been read; its number is NaN if NaN was logged.
std::string cell_text(const RunColumn& column, const RunEntry& entry, const ColumnContext& context);
double cell_value(const RunColumn& column, const RunEntry& entry, const ColumnContext& context);

// The same for a column that isn't a metric's.
std::string cell_text(const std::string& column, const RunEntry& entry, const ColumnContext& context);
double cell_value(const std::string& column, const RunEntry& entry, const ColumnContext& context);

}  // namespace stepladder
