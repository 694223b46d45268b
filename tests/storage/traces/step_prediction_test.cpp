// Traced steps played again: real traces, where they are there, and small ones.
#include "storage/traces/step_prediction.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "storage/traces/trace_file.h"
#include "storage/traces/traced_process.h"
#include "tests/storage/temporary_folder.h"
#include "tests/storage/traces/trace_text.h"

namespace stepladder {
namespace {

PredictedSteps steps_of(const TracedProcess& process) {
  std::vector<StepSlices> slices;
  for (const KeptStep& each : process.kept) slices.push_back(unpack(each.packed));
  return {process.profile, std::move(slices)};
}

double ratio_of(const PredictedSteps& steps, const WorkChange& change) {
  return steps.length_ratios({&change, 1}).front();
}

struct StepPrediction : testing::Test {
  PredictedSteps steps(const std::string& text) {
    const std::filesystem::path file = folder.path() / "trace.json";
    std::ofstream(file, std::ios::binary) << text;
    Trace trace = std::move(read_trace(file).front());
    trace.sort();
    return steps_of(attribute_all(trace));
  }
  TemporaryFolder folder;
};

TEST_F(StepPrediction, parts_and_kinds_of_a_cpu_step) {
  const PredictedSteps made =
      steps(trace_of({cpu_step(0, 0, 1000), event("user_annotation", "mlp", "77", 77, 0, 500), op("aten::gelu", 0, 200),
                      op("aten::mm", 200, 300), event("user_annotation", "attention", "77", 77, 500, 400),
                      op("aten::mm", 500, 400), cpu_step(1, 1000, 10), op("aten::mm", 1000, 5)}));
  EXPECT_TRUE(made.are_parts_known());
  EXPECT_DOUBLE_EQ(ratio_of(made, {}), 1);
  EXPECT_NEAR(ratio_of(made, {.kinds = {OperatorKind::gelu}, .factor = 0}), 0.8, 1e-9);
  EXPECT_NEAR(ratio_of(made, {.kinds = {OperatorKind::products}, .factor = 0.5}), 0.65, 1e-9);
  EXPECT_NEAR(ratio_of(made, {.kinds = {OperatorKind::products}, .part = ModelPart::mlp, .factor = 0}), 0.7, 1e-9);
  EXPECT_NEAR(ratio_of(made, {.part = ModelPart::attention, .factor = 0.5}), 0.8, 1e-9);
  EXPECT_NEAR(ratio_of(made, {.kinds = {OperatorKind::between}, .factor = 0}), 0.9, 1e-9);
}

TEST_F(StepPrediction, the_profilers_time_is_taken_off_where_the_runs_step_is_known) {
  const std::string text = trace_of({cpu_step(0, 0, 1000), op("aten::mm", 0, 600), op("aten::add", 600, 40),
                                     op("aten::add", 640, 40), op("aten::add", 680, 40), op("aten::add", 720, 40),
                                     op("aten::mm", 760, 240), cpu_step(1, 1000, 10), op("aten::mm", 1000, 5)});
  const std::filesystem::path file = folder.path() / "trace.json";
  std::ofstream(file, std::ios::binary) << text;
  Trace trace = std::move(read_trace(file).front());
  trace.sort();
  const TracedProcess process = attribute_all(trace);
  // Six pieces, 120 us too long: 20 us each.
  const PredictedSteps made(process.profile, {unpack(process.kept.front().packed)}, 0.88);
  EXPECT_DOUBLE_EQ(ratio_of(made, {}), 1);
  EXPECT_NEAR(ratio_of(made, {.kinds = {OperatorKind::elementwise}, .factor = 0}), 1 - 80.0 / 880, 1e-6);
}

TEST_F(StepPrediction, a_gpu_that_waits_for_its_launches) {
  std::vector<std::string> events;
  for (int step = 0; step < 3; ++step) {
    events.push_back(cpu_step(step, 1000.0 * step, 1000));
    for (int i = 0; i < 5; ++i) {
      const double at = 1000.0 * step + 200.0 * i;
      events.push_back(op("aten::mm", at, 190));
      events.push_back(launch(step * 10 + i + 1, at + 180));
      events.push_back(kernel("gemm", 7, step * 10 + i + 1, at + 190, 20));
    }
  }
  const PredictedSteps made = steps(trace_of(events));
  EXPECT_DOUBLE_EQ(ratio_of(made, {}), 1);
  EXPECT_NEAR(ratio_of(made, {.kinds = {OperatorKind::products}, .factor = 0}), 1, 0.01);
  EXPECT_NEAR(ratio_of(made, {.kinds = {OperatorKind::idle}, .factor = 0.5}), 0.5, 0.02);
  EXPECT_NEAR(ratio_of(made, {.kinds = {OperatorKind::idle}, .factor = 2}), 2, 0.02);
}

TEST(RealTraces, are_as_long_as_before_without_a_change_and_never_longer_with_less_work) {
  const std::filesystem::path folder = std::filesystem::path(STEPLADDER_SOURCE_DIR).parent_path() / "shared/traces";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "skipped: needs ../shared/traces";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    for (Trace& trace : read_trace(file.path())) {
      trace.sort();
      const TracedProcess process = attribute_all(trace);
      const PredictedSteps steps = steps_of(process);
      ASSERT_FALSE(steps.empty()) << file.path();
      for (const double ratio : steps.length_ratios({})) EXPECT_NEAR(ratio, 1, 1e-6) << file.path();
      const WorkChange faster{.factor = 0.5};
      for (const double ratio : steps.length_ratios({&faster, 1})) {
        EXPECT_LE(ratio, 1 + 1e-9) << file.path();
        EXPECT_GE(ratio, 0.4) << file.path();
      }
    }
  }
}

}  // namespace
}  // namespace stepladder
