// Metrics of runs as text, JSON and CSV, for `show`, `compare` and `export`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/figures/sink.h"
#include "app/runs/run_json.h"
#include "storage/analysis/metric_comparison.h"
#include "storage/database/run_store.h"

namespace stepladder {

// All numeric series of a run: name to a list of [step, value]. NaN and infinities are "NaN", "Infinity", "-Infinity".
Json metrics_json(RunStore& store, RunId run);

// A line for each: name, unit, how many values, last, lowest, highest and median.
std::string metrics_text(RunStore& store, RunId run);

// One metric of several runs, the first of which is the baseline.
struct MetricOfRun {
  Run run;
  std::optional<MetricAndFigures> metric;  // unset if the run has none of this name
  MetricComparison judged;                 // its last values and those of its rung's other finished runs, likewise
  std::string doubt = {};                  // why nothing follows from them; then the verdict is `cannot_tell`
};
// `lower`: lower values are better; else the metric's own direction counts. Throws UsageError for a run that lacks the
// metric, with the names that the runs have.
std::vector<MetricOfRun> compared_metrics(RunStore& store, std::span<const Run> runs, const std::string& name,
                                          bool lower, double noise_floor);
Json compared_metrics_json(std::span<const MetricOfRun> compared, const std::string& name);
std::string compared_metrics_text(std::span<const MetricOfRun> compared);

// CSV that `import` reads back. long: a row for each value. wide: a row for each step, a column for each name.
enum class MetricRows { tall, wide };
void write_metrics_csv(RunStore& store, std::span<const Run> runs, MetricRows rows, const Sink& sink);

}  // namespace stepladder
