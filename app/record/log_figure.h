// The one figure of a run's log that commits and machines are compared by.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/metric_figure.h"
#include "storage/records.h"

namespace stepladder {

enum class FigureBy {
  throughput,  // steady seconds per token, else per step; lower is better
  loss,        // the last validation loss, else the last training loss; lower is better
  wall,        // seconds from the command's start to its end; lower is better
  metric,      // a value that the log names
};
const char* to_string(FigureBy by);
std::optional<FigureBy> figure_by(std::string_view name);

struct FigureQuestion {
  FigureBy by = FigureBy::throughput;
  MetricFigure metric = {};  // of `metric`
  bool lower_is_better = true;

  bool operator==(const FigureQuestion&) const = default;
};

// "throughput", or the metric: "val_bpb", "max(acc)".
std::string name_of(const FigureQuestion& question);
// The options that ask for it: "--by loss", "--metric val_bpb --lower".
std::string option_text(const FigureQuestion& question);
// Why a metric's gain doesn't count where it is a guess.
std::string unknown_direction(const std::string& metric);
std::string unit_words(const std::string& unit);  // in a sentence: "a value without a unit" for none
bool takes_time(const FigureQuestion& question);  // rather than a loss or a metric: changes of it are factors

// The last run that a log names: its facts, steps and metrics.
struct LoggedRun {
  Run run = {};
  std::filesystem::path log;
  std::vector<StepRecord> steps = {};
  std::map<std::string, std::pair<Metric, std::vector<MetricPoint>>> metrics = {};
  std::string problem = {};  // why no importer reads all of it: perhaps a script that only prints its result
};
// Imports the log into memory as `stepladder import` would.
LoggedRun read_logged_run(const std::filesystem::path& log);

struct LogFigure {
  double value = missing;
  std::string unit;         // "s/token", "s/step", "nats", "s"; a metric's own, or what is behind the value: "(ema)"
  double resolution = 0;    // the distance between neighbouring values that the log can print; 0: by its digits
  std::size_t printed = 0;  // values without a step under the metric's name; of a lowest or highest one, all values
};

// The log has no such figure. what() is a sentence without the file's name.
struct NoFigure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Any figure but `wall`; of several runs the last counts. A metric may also be a value that is printed once, without a
// step: "val_bpb: 0.9979"; it is read from the log's lines. Throws NoFigure.
LogFigure figure_of_log(const LoggedRun& logged, const FigureQuestion& question);

}  // namespace stepladder
