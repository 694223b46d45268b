// A sink that records its calls and checks their order.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "storage/importers/importer.h"

namespace stepladder {

struct CollectingSink : ImportSink {
  struct Told {
    Run run;
    std::vector<StepRecord> steps;
    std::string ladder;
    int rung = -1;
    std::map<std::string, std::vector<MetricPoint>> metrics;
    std::vector<SystemMetrics> machine;
  };
  std::vector<Told> runs;
  std::vector<std::string> notes;
  bool inside = false;
  std::size_t in_ladders = 0;  // how many runs the ladders so far have

  void begin_run(const Run& run) override {
    EXPECT_FALSE(inside);
    inside = true;
    runs.push_back({.run = run});
  }
  void step(const StepRecord& record) override {
    ASSERT_TRUE(inside);
    runs.back().steps.push_back(record);
  }
  void metric(const Metric& metric, std::span<const MetricPoint> points) override {
    ASSERT_TRUE(inside);
    auto& all = runs.back().metrics[metric.name];
    all.insert(all.end(), points.begin(), points.end());
  }
  void machine(const SystemMetrics& sample) override {
    ASSERT_TRUE(inside);
    runs.back().machine.push_back(sample);
  }
  void end_run(const Run& run) override {
    EXPECT_TRUE(inside);
    inside = false;
    runs.back().run = run;
  }
  void ladder(const Ladder& ladder, std::span<const int> rungs) override {
    ASSERT_FALSE(inside);
    ASSERT_LE(rungs.size(), runs.size());
    // The runs since the last ladder.
    in_ladders = runs.size() - rungs.size();
    for (std::size_t i = 0; i < rungs.size(); ++i) {
      runs[in_ladders + i].ladder = ladder.name;
      runs[in_ladders + i].rung = rungs[i];
    }
  }
  void note(std::int64_t, std::string text) override { notes.push_back(std::move(text)); }

  bool noted(std::string_view words) const {
    for (const std::string& note : notes)
      if (note.find(words) != std::string::npos) return true;
    return false;
  }
};

}  // namespace stepladder
