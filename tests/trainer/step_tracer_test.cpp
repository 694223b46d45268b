// Traces of our own steps, read back by the importer that reads everybody's.
#include "engine/trainer/profile/step_tracer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "engine/stage.h"
#include "engine/step_tracing.h"
#include "engine/trainer/operator_watch.h"
#include "engine/trainer/trainer.h"
#include "storage/analysis/own_kernels.h"
#include "storage/traces/step_slices.h"
#include "storage/traces/trace_file.h"
#include "storage/traces/traced_process.h"
#include "trained.h"

namespace stepladder {
namespace {

struct File {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("stepladder-step-tracer-" + std::to_string(::getpid()) + ".json");
  ~File() { std::filesystem::remove(path); }
};

TracedProcess traced(const Recipe& recipe, std::int64_t steps = 2) {
  const File file;
  trace_training({.recipe = recipe, .skipped = 1, .steps = steps, .file = file.path}, [] { return false; });
  return attribute_all(read_trace(file.path).front());
}

Recipe with_stages(std::initializer_list<const char*> stages) {
  Recipe recipe = tiny_recipe();
  for (const char* stage : stages) stage_by_id(stage).apply(recipe);
  return recipe;
}

// Of forward and backward, without autograd's own rows, which OperatorWatch puts in one.
template <class Operators>
std::map<std::string, double> calls_of(const Operators& operators) {
  std::map<std::string, double> calls;
  for (const OperatorTime& each : operators) {
    const bool counts =
        each.name.starts_with("aten::") || each.name.starts_with("stepladder::") || each.name.starts_with("plan::");
    if (counts && (each.part == "forward" || each.part == "backward")) calls[each.part + " " + each.name] += each.calls;
  }
  return calls;
}

std::vector<OperatorTime> times_of(const TraceProfile& profile) {
  std::vector<OperatorTime> times;
  for (const TracedOperator& each : profile.operators) times.push_back(each.time);
  return times;
}

template <class Which>
double flops_of(const std::vector<OperatorTime>& operators, const Which& which) {
  double flops = 0;
  for (const OperatorTime& each : operators) flops += which(each) && !is_missing(each.flops) ? each.flops : 0;
  return flops;
}

TEST(StepTracer, SeesTheOperatorsThatTheRunsOwnProfileHas) {
  for (const auto& stages : {std::initializer_list<const char*>{}, {"compile"}, {"bf16", "compile-max"}}) {
    Recipe recipe = with_stages(stages);
    const TracedProcess process = traced(recipe);
    EXPECT_FALSE(process.profile.on_gpu);
    EXPECT_TRUE(process.profile.has_steps);
    ASSERT_EQ(process.profile.steps.size(), 2u);
    EXPECT_EQ(process.profile.steps.front().step, 2);  // after the skipped one
    EXPECT_EQ(process.kept.size(), 2u);
    recipe.steps = 20;
    const Trained trained = train_here(recipe);
    ASSERT_EQ(trained.profiles.size(), 1u);
    const std::vector<OperatorTime>& timed = trained.profiles.front().operators;
    EXPECT_EQ(calls_of(times_of(process.profile)), calls_of(timed));
    for (const OperatorTime& each : times_of(process.profile)) {
      const bool is_own = each.name.starts_with("plan::") || each.name.starts_with("stepladder::");
      EXPECT_TRUE(!is_own || find_own_kernel(each.name)) << each.name << " isn't in own_kernels.cpp";
    }
    const auto aten = [](const OperatorTime& each) { return !each.shapes.empty(); };
    EXPECT_DOUBLE_EQ(flops_of(times_of(process.profile), aten), flops_of(timed, aten));
  }
}

// The plan's kernels say what they do. Their products are those of the baseline, whatever the number of threads that
// share them; attention is products there, and an operator of its own here.
TEST(StepTracer, SeesTheWorkOfThePlansKernels) {
  const auto is_layer = [](const OperatorTime& each) {
    return each.name != "aten::bmm" && kind_of(each) == OperatorKind::products;
  };
  const double layers = flops_of(times_of(traced(with_stages({})).profile), is_layer);
  EXPECT_GT(layers, 0);
  for (const int threads : {1, 3}) {
    Recipe recipe = with_stages({"compile-max"});
    recipe.threads = threads;
    const TraceProfile profile = traced(recipe).profile;
    EXPECT_DOUBLE_EQ(flops_of(times_of(profile), is_layer), layers) << threads;
    for (const TracedOperator& each : profile.operators) {
      if (!each.time.name.starts_with("plan::")) continue;
      EXPECT_GT(each.bytes, 0) << each.time.name;
      EXPECT_EQ(each.time.flops > 0,
                kind_of(each) == OperatorKind::products || kind_of(each) == OperatorKind::attention)
          << each.time.name;
      // On the workers' threads no range says so.
      if (each.time.name == "plan::weight_gradient") {
        EXPECT_EQ(each.time.part, "backward");
      } else if (each.time.name == "plan::adamw") {
        EXPECT_EQ(each.time.part, "optimiser");
      }
    }
  }
}

int threads_of_plan(const StepSlices& step) {
  std::set<std::uint32_t> lanes;
  for (const SliceRow& row : step.rows) {
    for (const KeptSlice& slice : row.slices) {
      if (step.names[slice.name].starts_with("plan::")) lanes.insert(row.lane);
    }
  }
  return static_cast<int>(lanes.size());
}

// A busy machine may leave a quick step to one of the workers, so one of several attempts counts.
TEST(StepTracer, SeesAllWorkersOfThePlan) {
  Recipe recipe = with_stages({"compile-max"});
  recipe.threads = 2;
  recipe.d_model = 128;  // enough work for both
  recipe.seq = 64;
  recipe.batch = 12;
  int most = 0;
  for (int attempt = 0; attempt < 20 && most < 2; ++attempt) {
    for (const KeptStep& each : traced(recipe).kept) most = std::max(most, threads_of_plan(unpack(each.packed)));
  }
  EXPECT_EQ(most, 2);
}

TEST(StepTracer, KnowsThePartsOfTheStepAndOfTheModel) {
  for (const auto& stages : {std::initializer_list<const char*>{}, {"compile"}, {"compile-max"}}) {
    const TracedProcess process = traced(with_stages(stages));
    std::map<std::string, double> parts;
    double sum = 0;
    for (const AnatomyRow& row : process.anatomy) {
      sum += row.ms;
      parts[title_of(row)] += row.ms;
      if (row.part == ModelPart::attention || row.part == ModelPart::mlp) {
        EXPECT_EQ(row.known_by, KnownBy::name);
      }
    }
    EXPECT_NEAR(sum, mean_step_ms(process.profile), 0.001 * sum);
    const Anatomy by_parts = by_part(process.anatomy);
    for (const ModelPart part : {ModelPart::embedding, ModelPart::attention, ModelPart::mlp, ModelPart::loss}) {
      for (const StepPhase phase : {StepPhase::forward, StepPhase::backward}) {
        // Our classifiers compute the loss's gradient beside the loss.
        if (part == ModelPart::loss && phase == StepPhase::backward && stages.size() > 0) continue;
        const bool found = std::any_of(by_parts.begin(), by_parts.end(), [&](const AnatomyRow& row) {
          return row.phase == phase && row.part == part && row.ms > 0;
        });
        EXPECT_TRUE(found) << to_string(phase) << " " << to_string(part);
      }
    }
  }
}

TEST(StepTracer, AccumulatedGradientsHaveOneUpdate) {
  Recipe recipe = tiny_recipe();
  recipe.grad_accum = 3;
  const TracedProcess process = traced(recipe, 1);
  double forward = 0;
  for (const TracedOperator& each : process.profile.operators) {
    if (each.time.part == "forward" && each.time.name == "aten::cross_entropy_loss") forward += each.time.calls;
  }
  EXPECT_EQ(forward, 3);
}

TEST(StepTracer, ANeverEndingTrainingStopsAndASentenceSaysWhy) {
  const File file;
  const StepTracing asked{.recipe = tiny_recipe(), .skipped = 1'000'000, .steps = 1, .file = file.path};
  EXPECT_THROW(trace_training(asked, [] { return true; }), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(file.path));
  StepTracing unwritable{.recipe = tiny_recipe(), .file = "/nowhere/at/all.json"};
  EXPECT_THROW(trace_training(unwritable, [] { return false; }), std::runtime_error);
}

// Milliseconds of both operators in three steps: by the operator watch, and by the trace, which see the same calls.
struct TwiceObserved {
  std::map<std::string, double> watched, seen;
  bool agree() {
    for (const char* name : {"aten::mm", "aten::gelu"})
      if (std::abs(seen[name] - watched[name]) > 0.05 * watched[name] + 0.3) return false;
    return true;
  }
};

TwiceObserved observe(const at::Tensor& a, const at::Tensor& b) {
  const File file;
  TwiceObserved observed;
  {
    StepTracer tracer(0, 3, file.path);
    tracer.prepare(at::kCPU);
    OperatorWatch watch;
    for (std::int64_t step = 1; step <= 3; ++step) {
      watch.begin_step();
      tracer.begin_step(step, 1);
      tracer.end_part(&StepParts::data_ms);
      at::mm(a, a);
      at::gelu(b);
      watch.end_part(&StepParts::forward_ms);
      tracer.end_step(step);
    }
    for (const OperatorTime& each : watch.operators()) observed.watched[each.name] += each.self_ms;
  }
  for (const TracedOperator& each : attribute(read_trace(file.path).front()).operators)
    observed.seen[each.time.name] += each.time.self_ms;
  return observed;
}

// Another program may push this thread aside between the two readings of the clock, so one of several attempts counts.
TEST(StepTracer, TimesAreThoseOfTheOperatorWatch) {
  const at::Tensor a = at::ones({768, 768}), b = at::ones({2'000'000});
  TwiceObserved observed = observe(a, b);
  for (int attempt = 1; attempt < 20 && !observed.agree(); ++attempt) observed = observe(a, b);
  EXPECT_TRUE(observed.agree()) << ::testing::PrintToString(observed.watched) << " against "
                                << ::testing::PrintToString(observed.seen);
}

}  // namespace
}  // namespace stepladder
