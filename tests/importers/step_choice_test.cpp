// Which logged number is the step, as people call log(); read at once and call by call, which has to give the same.
#include "storage/importers/trackers/step_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stepladder {
namespace {

using Values = nlohmann::ordered_json;  // in their order

struct Case {
  const char* name;
  const char* rows;                  // [store's step, {name: number}] each
  const char* key;                   // that is chosen
  std::vector<std::int64_t> losses;  // the steps of the loss
  const char* given = "";
  const char* defined = "{}";  // step_metric by pattern
};

const Case cases[] = {
    {"nanoGPT",
     R"([[0, {"iter": 0, "train/loss": 5, "val/loss": 5}], [1, {"iter": 20, "train/loss": 4, "val/loss": 4}],
                    [2, {"iter": 40, "train/loss": 3, "val/loss": 3}]])",
     "iter",
     {0, 20, 40}},
    {"Transformers",
     R"([[0, {"train/loss": 5, "train/epoch": 0.1, "train/global_step": 10}],
                         [1, {"eval/loss": 5, "train/epoch": 0.1, "train/global_step": 10}],
                         [2, {"train/loss": 4, "train/epoch": 0.2, "train/global_step": 20}],
                         [3, {"train_runtime": 10, "train/global_step": 20}]])",
     "train/global_step",
     {10, 20}},
    {"Lightning",
     R"([[0, {"train_loss": 5, "epoch": 0, "trainer/global_step": 49}],
                      [1, {"train_loss": 4, "epoch": 1, "trainer/global_step": 99}]])",
     "trainer/global_step",
     {49, 99}},
    {"steps were passed",
     R"([[0, {"loss": 5, "iter": 0}], [10, {"loss": 4, "iter": 1}], [20, {"loss": 3, "iter": 2}]])",
     "",
     {0, 10, 20}},
    {"no step is logged", R"([[0, {"loss": 5}], [1, {"loss": 4}], [2, {"loss": 3}]])", "", {0, 1, 2}},
    {"a setting", R"([[0, {"loss": 5, "steps": 1000}], [1, {"loss": 4, "steps": 1000}]])", "", {0, 1}},
    {"an evaluation counts on its own",
     R"([[0, {"train/step": 0, "train/loss": 5}], [1, {"val/step": 0, "val/loss": 5}],
                                            [2, {"train/step": 10, "train/loss": 4}], [3, {"val/step": 10, "val/loss": 4}]])",
     "train/step",
     {0, 10}},
    {"a call without the step",
     R"([[0, {"step": 5, "loss": 5}], [1, {"speed": 7}], [2, {"step": 10, "loss": 4}]])",
     "step",
     {5, 10}},
    {"the global one of two",
     R"([[0, {"loss": 5, "iter": 0, "global_step": 0}], [1, {"loss": 4, "iter": 8, "global_step": 2}]])",
     "global_step",
     {0, 2}},
    {"only with evaluations",
     R"([[0, {"loss": 5}], [1, {"loss": 4}], [2, {"val/loss": 4, "step": 2}], [3, {"loss": 3}]])",
     "",
     {0, 1, 3}},
    {"an inner loop's",
     R"([[0, {"loss": 5, "iter": 0}], [1, {"loss": 4, "iter": 1}], [2, {"loss": 3, "iter": 0}], [3, {"loss": 2, "iter": 1}]])",
     "",
     {0, 1, 2, 3}},
    {"a small setting",
     R"([[0, {"loss": 5, "n_step": 2}], [1, {"loss": 4, "n_step": 2}], [2, {"loss": 3, "n_step": 2}], [3, {"loss": 2, "n_step": 2}]])",
     "",
     {0, 1, 2, 3}},
    {"an evaluation's setting",
     R"([[0, {"loss": 5, "iter": 0}], [1, {"loss": 4, "iter": 10}], [2, {"val/loss": 4, "train/iterations": 500}], [3, {"loss": 3, "iter": 20}]])",
     "iter",
     {0, 10, 20}},
    {"define_metric",
     R"([[0, {"seen": 0, "loss": 5, "step": 0}], [1, {"seen": 7, "loss": 4, "step": 1}]])",
     "seen",
     {0, 7},
     "",
     R"({"*": "seen"})"},
    {"chosen",
     R"([[0, {"seen": 0, "loss": 5, "step": 0}], [1, {"seen": 7, "loss": 4, "step": 1}]])",
     "seen",
     {0, 7},
     "seen"},
};

std::vector<std::int64_t> steps_of_loss(MetricTable& table) {
  std::vector<std::int64_t> steps;
  table.take_points([&](const std::string& name, std::span<const MetricPoint> points) {
    if (meaning_of_metric(name).role == MetricRole::loss)
      for (const MetricPoint& point : points) steps.push_back(point.step);
  });
  return steps;
}

StepChoice choice_of(const Case& it, const Values& state = nullptr) {
  StepChoice steps(it.given, state);
  const Values defined = Values::parse(it.defined);
  for (const auto& [pattern, step] : defined.items()) steps.define(pattern, step);
  return steps;
}

LoggedRow row_of(const Values& json) {
  LoggedRow row{.counted = json[0]};
  for (const auto& [name, value] : json[1].items()) row.values.emplace_back(name, value);
  return row;
}

TEST(StepChoice, IsByWhatEveryCallLogs) {
  for (const Case& it : cases) {
    SCOPED_TRACE(it.name);
    StepChoice steps = choice_of(it);
    MetricTable table;
    for (const Values& row : Values::parse(it.rows)) steps.add(row_of(row), table);
    steps.flush(table);
    EXPECT_EQ(steps.name(), it.key);
    EXPECT_EQ(steps_of_loss(table), it.losses);
  }
}

TEST(StepChoice, IsTheSameForCallsThatComeOneByOne) {
  for (const Case& it : cases) {
    SCOPED_TRACE(it.name);
    Values state;
    std::vector<std::int64_t> losses;
    for (const Values& row : Values::parse(it.rows)) {
      StepChoice steps = choice_of(it, state);
      MetricTable table;
      steps.add(row_of(row), table);
      steps.flush(table);
      for (const std::int64_t step : steps_of_loss(table)) losses.push_back(step);
      state = steps.state();
    }
    EXPECT_EQ(losses, it.losses);
  }
}

// The first call alone can't show that "iter" grows; it must not become a metric for that.
TEST(StepChoice, LeavesNoMetricOfACallThatCameAlone) {
  const Case& it = cases[0];
  Values state;
  std::vector<std::string> metrics;
  for (const Values& row : Values::parse(it.rows)) {
    StepChoice steps = choice_of(it, state);
    MetricTable table;
    steps.add(row_of(row), table);
    steps.flush(table);
    table.take_points([&](const std::string& name, std::span<const MetricPoint>) { metrics.push_back(name); });
    state = steps.state();
  }
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), "iter"), 0);
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), "train/loss"), 3);
}

}  // namespace
}  // namespace stepladder
