// A run that is being read from another tracker's store, and functions that pass it to the sink.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/importers/trackers/metric_table.h"
#include "storage/json_values.h"
#include "storage/records.h"

namespace stepladder {

// The number of entries of a run's configuration that are kept.
inline constexpr std::size_t most_settings = 10'000;

struct ForeignRun {
  Run run;      // run.stage and run.title: its name in the store
  Json config;  // its parameters; an object, nested or flat, or null
  MetricTable metrics;
  std::vector<std::string> notes;
};

// Passes the run with its steps to the sink. Fills in the fields of Run that `config` has (recipe, params, precision,
// hardware, tokens per step), and its times from its points if the store has none. Returns a run's identity among
// repeats: its recipe without the seed; empty if the store keeps no configuration.
std::string pass_on(ForeignRun run, ImportSink& sink);

// Sets the run's recipe to the configuration, flat, and fills in the fields that it has. Returns the tokens of one
// sample; 0 if it doesn't give them.
std::int64_t fill_from_config(const Json& config, Run& run);

// Passes on the runs of one project, experiment or group, one after the other. finish() makes a ladder of several: each
// is a rung, but runs of the same configuration (apart from the seed) share one.
class LadderOfRuns {
 public:
  LadderOfRuns(std::string name, ImportSink& sink) : name_(std::move(name)), sink_(sink) {}
  void add(ForeignRun run);
  void finish();

 private:
  std::string name_;
  ImportSink& sink_;
  std::unordered_map<std::string, int> rung_of_;  // by recipe
  int next_rung_ = 0;
  std::vector<int> rungs_;
  double created_at_ = missing;
};

// "mlflow.db", "baseline" -> "mlflow baseline": names of imported runs begin with the file's.
std::string import_name(const std::filesystem::path& path, std::string_view name);

// Parses text that may be JSON; other text is returned as it is. "NaN", "Infinity" stay text.
Json json_or_text(std::string_view text);

// A number as trackers write it, JSON's own or NaN, Infinity, -Infinity with or without quotes; false for anything
// else.
bool read_number(std::string_view text, double& value);

// unix seconds of "2026-11-21T17:00:00.123456+00:00" (no zone: UTC), `missing` if it isn't one.
double unix_from_iso(std::string_view text);

}  // namespace stepladder
