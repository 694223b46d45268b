// A run of another tracker's store while it is read, and how it is told to the sink.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/importers/trackers/metric_table.h"
#include "storage/records.h"

namespace stepladder {

struct ForeignRun {
  Run run;                        // run.stage and run.title: what the store calls it
  nlohmann::ordered_json config;  // its parameters; an object, nested or flat, or null
  MetricTable metrics;
  std::vector<std::string> notes;
};

// Tells the run with its steps. Fills in from `config` what a Run has a place for (recipe, params, precision, hardware,
// tokens per step) and its times from its points where the store said none. Returns a run's identity among repeats: its
// recipe without the seed; empty where the store keeps no configuration.
std::string tell(ForeignRun run, ImportSink& sink);

// The runs of one project, experiment or group, told one after the other. finish() makes a ladder of them where there
// are several: one rung each, but runs of the same configuration (the seed apart) share one.
class LadderOfRuns {
 public:
  LadderOfRuns(std::string name, ImportSink& sink) : name_(std::move(name)), sink_(sink) {}
  void tell(ForeignRun run);
  void finish();

 private:
  std::string name_;
  ImportSink& sink_;
  std::vector<std::string> recipes_;
  std::vector<int> rungs_;
  double created_at_ = missing;
};

// "mlflow.db", "baseline" -> "mlflow baseline": names of imported runs begin with the file's.
std::string import_name(const std::filesystem::path& path, std::string_view name);

// Text that may be JSON: parsed where it is, else the text itself. "NaN", "Infinity" stay text.
nlohmann::ordered_json json_or_text(std::string_view text);

// A number as trackers write it, JSON's own or NaN, Infinity, -Infinity with or without quotes; false for all else.
bool read_number(std::string_view text, double& value);

// unix seconds of "2026-11-21T17:00:00.123456+00:00" (no zone: UTC), `missing` where it is none.
double unix_from_iso(std::string_view text);

// How often each oddity was seen: one note for many alike.
std::string times(std::uint64_t n, std::string_view one, std::string_view many);

}  // namespace stepladder
