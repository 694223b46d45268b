// Predictions and the runs that measured them.
#include "run_store_fixture.h"
#include "storage/database/traces/prediction_store.h"

namespace stepladder {
namespace {

stepladder::Run run_of(const std::string& recipe) {
  stepladder::Run run;
  run.name = "run";
  run.status = RunStatus::finished;
  run.source = "launched";
  run.hardware = "a CPU";
  run.recipe = recipe;
  return run;
}

RunId add(RunStore& store, const stepladder::Run& run) {
  const StepRecord step{.step = 1, .loss = 1, .dt_ms = 10};
  return store.insert_finished(run, {&step, 1});
}

TEST(Predictions, are_joined_to_the_runs_that_measured_them) {
  RunStore store = RunStore::in_memory();
  PredictionStore predictions = store.traces().predictions();
  predictions.keep({.stage = "bf16",
                    .device = "cpu",
                    .hardware = "a CPU",
                    .base_recipe = R"({"steps":5,"seed":1,"autocast":"off"})",
                    .recipe = R"({"steps":5,"seed":1,"autocast":"bf16"})",
                    .at_most = true,
                    .step_ms = 10,
                    .predicted_ms = 8,
                    .low_ms = 8,
                    .high_ms = 10});
  EXPECT_TRUE(predictions.measured().empty());
  const RunId before = add(store, run_of(R"({"steps":100,"seed":7,"autocast":"off"})"));
  EXPECT_FALSE(predictions.is_measured(R"({"autocast":"bf16"})"));
  add(store, run_of("not JSON"));
  stepladder::Run elsewhere = run_of(R"({"autocast":"bf16"})");
  elsewhere.hardware = "another CPU";
  add(store, elsewhere);
  EXPECT_TRUE(predictions.measured().empty());
  const RunId after = add(store, run_of(R"({"steps":20,"autocast":"bf16"})"));
  EXPECT_TRUE(predictions.is_measured(R"({"seed":3,"autocast":"bf16"})"));
  const std::vector<MeasuredPrediction> measured = predictions.measured();
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_EQ(measured[0].before, before);
  EXPECT_EQ(measured[0].after, after);
  EXPECT_EQ(measured[0].prediction.stage, "bf16");
  EXPECT_TRUE(measured[0].prediction.at_most);
  EXPECT_DOUBLE_EQ(measured[0].prediction.predicted_ms, 8);
}

TEST(Predictions, a_new_one_replaces_that_of_the_same_trace_and_stage) {
  RunStore store = RunStore::in_memory();
  const TraceId trace = store.traces().insert({.name = "trace", .format = "kineto"});
  PredictionStore predictions = store.traces().predictions();
  for (const double ms : {1.0, 2.0})
    predictions.keep({.trace = trace,
                      .stage = "a",
                      .device = "cpu",
                      .base_recipe = "{}",
                      .recipe = R"({"a":1})",
                      .step_ms = 3,
                      .predicted_ms = ms,
                      .low_ms = ms,
                      .high_ms = ms});
  ASSERT_EQ(predictions.list().size(), 1U);
  EXPECT_DOUBLE_EQ(predictions.list().front().predicted_ms, 2);
  store.traces().remove(trace);
  ASSERT_EQ(predictions.list().size(), 1U) << "it still counts for the law";
  EXPECT_FALSE(predictions.list().front().trace);
}

}  // namespace
}  // namespace stepladder
