// An import kept in memory, for tests: an importer's calls, in order.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/stage.h"
#include "storage/importers/importer.h"

namespace stepladder {

struct ToldRun {
  Run run;
  std::vector<StepRecord> steps;
  std::map<std::string, std::vector<MetricPoint>> metrics;
  bool ended = false;
};

struct Told : ImportSink {
  std::vector<ToldRun> runs;
  std::vector<int> rungs;
  Ladder ladder_row;
  std::vector<std::string> notes;

  void begin_run(const Run& run) override { runs.push_back({.run = run}); }
  void step(const StepRecord& record) override { runs.back().steps.push_back(record); }
  void metric(const Metric& metric, std::span<const MetricPoint> points) override {
    auto& all = runs.back().metrics[metric.name];
    all.insert(all.end(), points.begin(), points.end());
  }
  void end_run(const Run& run) override {
    runs.back().run = run;
    runs.back().ended = true;
  }
  void ladder(const Ladder& ladder, std::span<const int> places) override {
    EXPECT_TRUE(runs.empty() || runs.back().ended);
    ladder_row = ladder;
    rungs.assign(places.begin(), places.end());
  }
  void note(std::int64_t, std::string text) override { notes.push_back(std::move(text)); }

  bool noted(std::string_view words) const {
    for (const std::string& note : notes)
      if (note.find(words) != std::string::npos) return true;
    return false;
  }
};

// Reads `text` by the importer that recognises it.
inline Told import_text(std::string_view text, ImportOptions options = {}, std::string name = "run.log") {
  options.known_stages = &known_stages();
  Told told;
  MemoryInput input(text, name);
  importer_for(input, options).read(input, options, told);
  return told;
}

}  // namespace stepladder
