#include "engine/trainer/step/captured_step.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <utility>

#include "engine/stage.h"
#include "engine/trainer/device_probe.h"
#include "tests/trainer/step/repeating.h"
#include "tests/trainer/trained.h"

namespace stepladder {
namespace {

// Runs the step twice, so its first loss is that of the second step.
class Hasty : public Repeating {
 public:
  void replay() override {
    work_();
    work_();
  }
};

// Keeps the tokens of the first replay, like a graph that reads its tokens from the wrong place.
class Stuck : public Repeating {
 public:
  void replay() override {
    if (!std::exchange(done_, true)) work_();
  }

 private:
  bool done_ = false;
};

class Refusing : public StepGraph {
 public:
  void record(const std::function<void()>&) override { TORCH_CHECK(false, "operation not permitted"); }
  void replay() override { FAIL(); }
};

template <class Graph>
Trained train_captured(const Recipe& recipe, const std::filesystem::path& checkpoints = {}) {
  return train_here(TrainingJob{.run = 1, .recipe = recipe, .checkpoints = {.owner = {.database = checkpoints}}}, {},
                    [](at::Device) { return std::make_unique<Graph>(); });
}

// With the compile stage on, so that the same recipe is trained directly and captured.
Recipe compiled_recipe() {
  Recipe recipe = tiny_recipe();
  recipe.steps = 10;
  recipe.compile = Compile::on;
  return recipe;
}

void expect_same_training(const Recipe& recipe) {
  const Trained direct = train_here(recipe);
  const Trained captured = train_captured<Repeating>(recipe);
  ASSERT_EQ(captured.endings.at(0).reason, "");
  ASSERT_EQ(captured.steps.size(), direct.steps.size());
  for (std::size_t i = 0; i < direct.steps.size(); ++i) {
    EXPECT_EQ(captured.steps[i].loss, direct.steps[i].loss) << "step " << i + 1;
    EXPECT_EQ(captured.steps[i].grad_norm, direct.steps[i].grad_norm) << "step " << i + 1;
    EXPECT_EQ(captured.steps[i].lr, direct.steps[i].lr);
    EXPECT_EQ(is_missing(captured.steps[i].val_loss), is_missing(direct.steps[i].val_loss));
    if (!is_missing(direct.steps[i].val_loss)) {
      EXPECT_EQ(captured.steps[i].val_loss, direct.steps[i].val_loss);
    }
  }
}

TEST(CapturedStep, TrainsNanoBitForBitAsTheStepItself) {
  Recipe recipe;
  recipe.device = "cpu";
  recipe.threads = 1;
  recipe.steps = 5;
  recipe.compile = Compile::on;
  expect_same_training(recipe);
}

TEST(CapturedStep, NothingThatChangesFromStepToStepIsFrozen) {
  for (const Optimizer optimizer : {Optimizer::adamw, Optimizer::fused_adamw}) {
    Recipe recipe = compiled_recipe();
    recipe.optimizer = optimizer;
    stage_by_id("gpt3-adamw").apply(recipe);  // clips
    stage_by_id("cosine-lr").apply(recipe);
    recipe.lr_warmup = 4;
    stage_by_id("decay-groups").apply(recipe);
    recipe.batch = 2;
    recipe.grad_accum = 3;
    recipe.eval_every = 3;
    recipe.sample_every = 2;
    expect_same_training(recipe);
  }
}

TEST(CapturedStep, StagesOfTheModelAreCapturedToo) {
  for (const char* stage : {"bf16", "flash-attention", "overfit", "weight-tying"}) {
    Recipe recipe = compiled_recipe();
    stage_by_id(stage).apply(recipe);
    expect_same_training(recipe);
  }
}

TEST(CapturedStep, SetUpTimeIsRecordedAndPartsWithinAreNot) {
  const Trained captured = train_captured<Repeating>(compiled_recipe());
  ASSERT_TRUE(captured.started);
  EXPECT_GT(captured.started->setup_ms, 0);
  for (const StepRecord& step : captured.steps) {
    EXPECT_GT(step.parts.data_ms, 0);
    EXPECT_TRUE(is_missing(step.parts.forward_ms));
    EXPECT_TRUE(is_missing(step.parts.backward_ms));
    EXPECT_TRUE(is_missing(step.parts.optimizer_ms));
  }
  EXPECT_TRUE(is_missing(train_here(compiled_recipe()).started->setup_ms));
}

TEST(CapturedStep, GoesOnFromACheckpoint) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "captured_checkpoints";
  std::filesystem::remove_all(folder);
  Recipe recipe = compiled_recipe();
  const auto expected = train_here(recipe).losses();
  recipe.save_every = 4;
  recipe.keep = 0;
  const Trained saved = train_captured<Repeating>(recipe, folder / "runs.db");
  ASSERT_EQ(saved.losses(), expected);
  ASSERT_FALSE(saved.checkpoints.empty());
  const CheckpointSaved& first = saved.checkpoints.front();
  ASSERT_LT(first.step, 10);
  const StepGraphMaker graphs[] = {[](at::Device) { return std::make_unique<Repeating>(); },
                                   [](at::Device) { return std::make_unique<Hasty>(); }};  // which is left again
  for (const StepGraphMaker& graph : graphs) {
    const Trained resumed = train_here(TrainingJob{.run = 1,
                                                   .recipe = recipe,
                                                   .checkpoints = {.owner = {.database = folder / "runs.db"}},
                                                   .start_from = first.folder},
                                       {}, graph);
    ASSERT_EQ(resumed.endings.at(0).reason, "");
    EXPECT_EQ(resumed.losses(), std::vector<double>(expected.begin() + first.step, expected.end()));
  }
  std::filesystem::remove_all(folder);
}

// What the run says when its step's graph fails; it must train as the model's own operations do then.
template <class Graph>
std::string complaint() {
  const Trained trained = train_captured<Graph>(compiled_recipe());
  EXPECT_EQ(trained.losses(), train_here(compiled_recipe()).losses());
  EXPECT_EQ(trained.endings.at(0).status, RunStatus::finished) << trained.endings.at(0).reason;
  EXPECT_TRUE(trained.started && is_missing(trained.started->setup_ms));
  return trained.console;
}

TEST(CapturedStep, AGraphThatDoesSomethingElseIsLeftWithBothNumbers) {
  const auto losses = train_here(compiled_recipe()).losses();
  const std::string hasty = complaint<Hasty>();
  double found = 0, direct = 0;
  ASSERT_EQ(
      std::sscanf(
          hasty.c_str(),
          "compile fell back to plain operations: the captured step differs from the direct one: replayed, step 1 has "
          "a loss of %lf, run directly %lf",
          &found, &direct),
      2)
      << hasty;
  EXPECT_NEAR(direct, losses[0], 1e-6);
  EXPECT_GT(std::abs(found - direct), 1e-4 * direct);

  const std::string stuck = complaint<Stuck>();
  EXPECT_TRUE(
      stuck.starts_with("compile fell back to plain operations: the captured step differs from the direct one: "
                        "replayed, step 2 has a loss of "))
      << stuck;
}

TEST(CapturedStep, AStepThatCannotBeCapturedSaysWhyAndIsTakenDirectly) {
  EXPECT_EQ(complaint<Refusing>(),
            "compile fell back to plain operations: the step cannot be captured: operation not permitted\n");
}

TEST(CapturedStep, IsTriedOnATinyModelBeforeItIsOffered) {
  EXPECT_EQ(
      try_to_compile(at::kCPU, Compile::on, Autocast::off, [](at::Device) { return std::make_unique<Repeating>(); }),
      "");
  EXPECT_EQ(
      try_to_compile(at::kCPU, Compile::on, Autocast::off, [](at::Device) { return std::make_unique<Refusing>(); }),
      "compile: the step cannot be captured: operation not permitted");
}

// Only with a GPU: what a capture that failed had reserved is there for the next run.
TEST(CapturedStep, CudaGivesTheMemoryOfAFailedCaptureBack) {
  if (device_report().gpus.empty()) GTEST_SKIP() << device_report().cuda_note;
  const at::Device card(at::kCUDA, 0);
  if (!make_step_graph(card)) GTEST_SKIP() << device_report().step_capture_note;
  const auto tensor = [&](std::int64_t mebibytes) {
    return at::ones({mebibytes << 18}, at::device(card).dtype(at::kFloat));
  };
  const auto reserved = [] {
    at::getDeviceAllocator(at::kCUDA)->emptyCache();
    return at::getDeviceAllocator(at::kCUDA)->getDeviceStats(0).reserved_bytes[0].current;  // of all pools
  };
  tensor(64).sum().item<float>();
  const auto before = reserved();
  const std::vector<std::function<void()>> failures = {[&] { tensor(64 << 20); },                 // out of memory
                                                       [&] { tensor(64).sum().item<float>(); }};  // must not wait
  for (const auto& fail : failures) {
    const auto graph = make_step_graph(card);
    EXPECT_THROW(graph->record([&] {
      const at::Tensor held = tensor(256);
      fail();
    }),
                 c10::Error);
  }
  EXPECT_EQ(tensor(64).sum().item<float>(), 64 << 18);
  EXPECT_LE(reserved(), before + (2 << 20));  // the block in which LibTorch keeps a few numbers of each graph
}

// Only with a GPU: ten steps captured and ten one by one.
TEST(CapturedStep, CudaGraphsTrainAsTheStepItself) {
  if (device_report().gpus.empty()) GTEST_SKIP() << device_report().cuda_note;
  if (const std::string& note = device_report().step_capture_note; !note.empty()) GTEST_SKIP() << note;
  for (const Optimizer optimizer : {Optimizer::adamw, Optimizer::fused_adamw}) {
    for (const Autocast autocast : {Autocast::off, Autocast::bf16}) {
      Recipe recipe = compiled_recipe();
      recipe.device = "cuda";
      recipe.optimizer = optimizer;
      recipe.autocast = autocast;
      recipe.clip = 1;
      recipe.batch = 2;
      recipe.grad_accum = 2;
      recipe.eval_every = 3;
      stage_by_id("cosine-lr").apply(recipe);
      const Trained captured = train_here(recipe);
      ASSERT_EQ(captured.endings.at(0).reason, "");
      EXPECT_GT(captured.started->setup_ms, 0);
      recipe.compile = Compile::off;
      const Trained direct = train_here(recipe);
      ASSERT_EQ(captured.steps.size(), 10u);
      const double tolerance = autocast == Autocast::off ? 1e-4 : 2e-2;
      for (std::size_t i = 0; i < 10; ++i) {
        EXPECT_NEAR(captured.steps[i].loss, direct.steps[i].loss, tolerance) << i;
        EXPECT_NEAR(captured.steps[i].grad_norm, direct.steps[i].grad_norm, tolerance * direct.steps[i].grad_norm) << i;
        if (!is_missing(direct.steps[i].val_loss)) {
          EXPECT_NEAR(captured.steps[i].val_loss, direct.steps[i].val_loss, tolerance) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepladder
