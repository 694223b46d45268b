#include "engine/trainer/trainer.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string>

#include "engine/files/tokens.h"
#include "engine/stage.h"
#include "tests/trainer/trained.h"

namespace stepladder {
namespace {

TEST(Trainer, SaysWhatItTrains) {
  Recipe recipe = tiny_recipe();
  recipe.device = "auto";
  recipe.threads = 0;
  const Trained trained = train_here(recipe);
  ASSERT_TRUE(trained.started);
  const RunStarted& started = *trained.started;
  EXPECT_EQ(started.tokens_per_step, 64);
  EXPECT_EQ(started.device, device_report().resolve("auto"));
  EXPECT_EQ(started.hardware, device_report().hardware(started.device));
  EXPECT_EQ(started.precision, "fp32");
  EXPECT_EQ(started.sync, started.device == "cuda" ? Sync::event : Sync::device);
  EXPECT_NEAR(started.loss_floor, 1.9412, 0.0001);
  EXPECT_FALSE(started.torch_version.empty());
  const Recipe resolved = recipe_from_json(started.recipe);
  EXPECT_EQ(resolved.vocab, 256);
  EXPECT_NE(resolved.device, "auto");
  EXPECT_GE(resolved.threads, 1);
  EXPECT_EQ(started.params, parameter_count(resolved));

  ASSERT_EQ(trained.steps.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const StepRecord& step = trained.steps[i];
    EXPECT_EQ(step.step, static_cast<std::int64_t>(i + 1));
    EXPECT_TRUE(std::isfinite(step.loss));
    EXPECT_GT(step.dt_ms, 0);
    EXPECT_EQ(step.tokens, 64);
    EXPECT_EQ(step.lr, recipe.lr);
    EXPECT_GT(step.grad_norm, 0);
    EXPECT_TRUE(is_missing(step.val_loss));
  }
  ASSERT_EQ(trained.endings.size(), 1u);
  EXPECT_EQ(trained.endings[0].status, RunStatus::finished);
}

TEST(Trainer, TheFirstLossIsThatOfGuessing) {
  EXPECT_NEAR(train_here(tiny_recipe()).steps.at(0).loss, std::log(256.0), 0.05);
}

TEST(Trainer, EveryStageOfTheListTrains) {
  for (const Stage& stage : all_stages()) {
    if (!stage.unavailable(Recipe{}, device_report(), "cpu").empty()) continue;
    Recipe recipe = tiny_recipe();
    stage.apply(recipe);
    const Trained trained = train_here(recipe);
    ASSERT_EQ(trained.steps.size(), 3u) << stage.id;
    for (const StepRecord& step : trained.steps) EXPECT_TRUE(std::isfinite(step.loss)) << stage.id;
    EXPECT_EQ(trained.endings.at(0).status, RunStatus::finished) << stage.id;
    EXPECT_EQ(trained.started->precision, precision_name(recipe)) << stage.id;
  }
}

TEST(Trainer, SystemsOnlyStagesKeepTheLoss) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 10;
  const auto expected = train_here(recipe).losses();
  for (const Stage& stage : all_stages()) {
    if (stage.kind != StageKind::systems_only || !stage.unavailable(recipe, device_report(), "cpu").empty()) continue;
    Recipe changed = recipe;
    stage.apply(changed);
    const auto losses = train_here(changed).losses();
    const double tolerance = precision_name(changed) == "bf16" ? 2e-2 : 1e-4;
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], tolerance) << stage.id;
  }
}

TEST(Trainer, SameSeedSameLossesBitForBit) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 10;
  const auto losses = train_here(recipe).losses();
  EXPECT_EQ(train_here(recipe).losses(), losses);
  recipe.seed = 2;
  EXPECT_NE(train_here(recipe).losses(), losses);
}

// A change of the engine's arithmetic changes these ten numbers; its commit should say why.
TEST(Trainer, Signature) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 10;
  const auto losses = train_here(recipe).losses();
  const std::string file = STEPLADDER_SOURCE_DIR "/tests/data/signature.txt";
  std::ifstream in(file);
  std::vector<double> expected;
  for (double value; in >> value;) expected.push_back(value);
  ASSERT_EQ(losses.size(), 10u);
  ASSERT_EQ(expected.size(), 10u) << file;
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(losses[i], expected[i], 1e-4) << "step " << i + 1 << ": " << testing::PrintToString(losses);
  }
}

TEST(Trainer, OverfitsOneBatch) {
  Recipe recipe = tiny_recipe();
  recipe.overfit = true;
  recipe.steps = 300;
  recipe.lr = 3e-3;
  const Trained trained = train_here(recipe);
  EXPECT_LT(trained.steps.back().loss, 0.1);
}

TEST(Trainer, LearnsTheSyntheticSource) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 400;
  recipe.lr = 1e-2;
  recipe.batch = 16;
  recipe.eval_every = 400;
  const double val_loss = train_here(recipe).steps.back().val_loss;
  EXPECT_LT(val_loss, 3.5);
  EXPECT_GT(val_loss, 1.9412);
}

TEST(Trainer, MicroBatchesAreTheBigBatchInPieces) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 10;
  const auto whole = train_here(recipe);
  recipe.batch = 1;
  recipe.grad_accum = 4;
  const auto pieces = train_here(recipe);
  EXPECT_EQ(pieces.steps[0].tokens, whole.steps[0].tokens);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(pieces.steps[i].loss, whole.steps[i].loss, 1e-5);
    EXPECT_NEAR(pieces.steps[i].grad_norm, whole.steps[i].grad_norm, 1e-4);
  }
}

TEST(Trainer, TheStepsPartsAddUpToNoMoreThanTheStep) {
  const Trained trained = train_here(tiny_recipe());
  for (const StepRecord& step : trained.steps) {
    const StepParts& parts = step.parts;
    EXPECT_GT(parts.data_ms, 0);
    EXPECT_GT(parts.forward_ms, 0);
    EXPECT_GT(parts.backward_ms, 0);
    EXPECT_GT(parts.optimizer_ms, 0);
    EXPECT_TRUE(is_missing(parts.communication_ms));
    EXPECT_LE(parts.data_ms + parts.forward_ms + parts.backward_ms + parts.optimizer_ms, step.dt_ms * 1.0001);
  }
}

TEST(Trainer, SaysWhatComputedTheAttention) {
  Recipe recipe = tiny_recipe();
  EXPECT_EQ(train_here(recipe).started->attention, "explicit");
  recipe.attention = Attention::scaled_dot_product;
  EXPECT_EQ(train_here(recipe).started->attention, "flash");
}

TEST(Trainer, TheScheduleIsWhatIsRecorded) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 10;
  stage_by_id("cosine-lr").apply(recipe);
  recipe.lr_warmup = 4;
  const Trained trained = train_here(recipe);
  for (const StepRecord& step : trained.steps) EXPECT_EQ(step.lr, learning_rate(recipe, step.step));
}

TEST(Trainer, ClippingRecordsTheNormBefore) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 10;
  const Trained free = train_here(recipe);
  const double norm = free.steps[0].grad_norm;
  recipe.clip = norm / 2;
  const Trained clipped = train_here(recipe);
  EXPECT_NEAR(clipped.steps[0].grad_norm, norm, norm * 1e-6);
  // The first update of AdamW does not depend on the gradients' scale; later ones do if the scale changes.
  EXPECT_NE(clipped.steps[9].loss, free.steps[9].loss);
}

TEST(Trainer, PaddingOfTheVocabularyNeverWins) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 10;
  recipe.vocab = 300;
  for (const bool tied : {false, true}) {
    recipe.tied_head = tied;
    recipe.vocab_multiple = 1;
    const auto expected = train_here(recipe).losses();
    recipe.vocab_multiple = 128;
    for (const Compile compile : {Compile::off, Compile::on}) {
      recipe.compile = compile;
      const auto padded = train_here(recipe).losses();
      for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(padded[i], expected[i], 1e-5);
    }
    recipe.compile = Compile::off;
  }
}

TEST(Trainer, TextSamplesComeOnTimeAndChangeNothing) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 5;
  const auto expected = train_here(recipe).losses();
  recipe.sample_every = 2;
  recipe.sample_tokens = 40;  // more than the model sees at once
  recipe.sample_prompt = "ab";
  const Trained trained = train_here(recipe);
  EXPECT_EQ(trained.losses(), expected);
  ASSERT_EQ(trained.samples.size(), 3u);  // after steps 2, 4 and the last
  EXPECT_EQ(trained.samples[0].step, 2);
  EXPECT_EQ(trained.samples[2].step, 5);
  EXPECT_TRUE(trained.samples[0].text.starts_with("ab"));
  EXPECT_EQ(trained.samples[0].text.size(), 42u);
  EXPECT_EQ(train_here(recipe).samples[2].text, trained.samples[2].text);
}

// Products of the model: every linear layer, the head, and the two of explicit attention.
TEST(Trainer, AfterTheLastStepOperatorsAreTimed) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 20;
  const Trained trained = train_here(recipe);
  ASSERT_EQ(trained.steps.size(), 20u);
  ASSERT_EQ(trained.profiles.size(), 1u);
  const StepProfile& profile = trained.profiles.front();
  EXPECT_EQ(profile.steps, 2);
  const double tokens = 4 * 16, C = 32, layers = 2;
  const double forward = 2 * tokens * (layers * 12 * C * C + 256 * C) + layers * 4 * tokens * 16 * C;
  std::map<std::string, double> flops, ms, calls;
  for (const OperatorTime& each : profile.operators) {
    EXPECT_GE(each.self_ms, 0) << each.name;
    ms[each.part] += each.self_ms;
    if (!is_missing(each.flops) && !each.shapes.empty()) flops[each.part] += each.flops;
    if (each.part == "forward") calls[each.name] += each.calls;
  }
  EXPECT_EQ(flops["forward"], forward);
  EXPECT_EQ(flops["backward"], 2 * forward);
  EXPECT_EQ(calls["aten::gelu"], layers);
  EXPECT_EQ(calls["aten::native_layer_norm"], 2 * layers + 1);
  for (const char* part : {"data", "forward", "backward", "optimizer"}) EXPECT_GT(ms[part], 0) << part;
}

TEST(Trainer, WhatIsShortOrNotFinishedHasNoProfile) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 9;
  EXPECT_TRUE(train_here(recipe).profiles.empty());
  recipe.steps = 20;
  const Trained stopped =
      train_here(TrainingJob{.run = 1, .recipe = recipe}, [](const StepRecord& step, RunControl& control) {
        if (step.step == 15) control.request_stop();
      });
  EXPECT_TRUE(stopped.profiles.empty());
}

TEST(Trainer, EvaluatesOnTimeAndAtTheEnd) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 10;
  recipe.eval_every = 4;
  recipe.eval_batches = 2;
  const Trained trained = train_here(recipe);
  for (const StepRecord& step : trained.steps) {
    EXPECT_EQ(!is_missing(step.val_loss), step.step == 4 || step.step == 8 || step.step == 10) << step.step;
  }
  // Evaluation must not change the training.
  recipe.eval_every = 0;
  EXPECT_EQ(train_here(recipe).losses(), trained.losses());
}

TEST(Trainer, StopsAfterTheStepThatIsRunning) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 1'000'000;
  const Trained trained = train_here({.run = 1, .recipe = recipe}, [](const StepRecord& step, RunControl& control) {
    if (step.step == 5) control.request_stop();
  });
  EXPECT_EQ(trained.steps.size(), 5u);
  ASSERT_EQ(trained.endings.size(), 1u);
  EXPECT_EQ(trained.endings[0].status, RunStatus::stopped);
  EXPECT_EQ(trained.endings[0].reason, "stopped after step 5");
}

TEST(Trainer, ALossThatIsNotFiniteEndsTheRunAndIsKept) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 200;
  recipe.lr = 1e30;
  const Trained trained = train_here(recipe);
  ASSERT_FALSE(trained.steps.empty());
  EXPECT_LT(trained.steps.size(), 200u);
  EXPECT_FALSE(std::isfinite(trained.steps.back().loss));
  EXPECT_FALSE(is_missing(trained.steps.back().loss));
  ASSERT_EQ(trained.endings.size(), 1u);
  EXPECT_EQ(trained.endings[0].status, RunStatus::failed);
  const std::string at_step = " at step " + std::to_string(trained.steps.back().step);
  const bool nan = std::isnan(trained.steps.back().loss);
  EXPECT_EQ(trained.endings[0].reason, (nan ? "the loss is NaN" : "the loss is infinite") + at_step);
}

// The reason of a run that can't start; no other event may precede it.
std::string failure_of(const Recipe& recipe) {
  const Trained trained = train_here(recipe);
  EXPECT_FALSE(trained.started);
  EXPECT_TRUE(trained.steps.empty());
  EXPECT_EQ(trained.endings.size(), 1u);
  EXPECT_EQ(trained.endings.at(0).status, RunStatus::failed);
  return trained.endings.at(0).reason;
}

TEST(Trainer, RefusesWhatDoesNotFitIntoMemory) {
  Recipe recipe = tiny_recipe();
  recipe.layers = 1000;
  recipe.d_model = recipe.heads = 16'384;
  const std::string reason = failure_of(recipe);
  EXPECT_EQ(reason.find("out of memory: weights, gradients and moments of 3221442953216 parameters take 51543.1 GB, "
                        "but "),
            0u)
      << reason;
}

TEST(Trainer, AnAllocationThatFailsEndsTheRun) {
  Recipe recipe = tiny_recipe();
  recipe.seq = 1'000'000;  // the parameters fit, the (T, T) mask of 1 TB does not
  const Trained trained = train_here(recipe);
  ASSERT_EQ(trained.endings.size(), 1u);
  EXPECT_EQ(trained.endings[0].status, RunStatus::failed);
  EXPECT_EQ(trained.endings[0].reason.find("out of memory: "), 0u) << trained.endings[0].reason;
  EXPECT_EQ(trained.endings[0].reason.find('\n'), std::string::npos);
}

TEST(Trainer, RefusesWithASentence) {
  Recipe recipe = tiny_recipe();
  recipe.heads = 3;
  EXPECT_EQ(failure_of(recipe), "--heads: 3 heads do not divide a width of 32");
  recipe = tiny_recipe();
  recipe.data = "/nowhere/tokens.bin";
  EXPECT_EQ(failure_of(recipe), "/nowhere/tokens.bin does not exist");
  recipe = tiny_recipe();
  recipe.vocab = 100;
  EXPECT_EQ(failure_of(recipe), "--vocab: 100 is too small: a synthetic source of 256 tokens needs 256");
  recipe = tiny_recipe();
  recipe.matmul = MatmulPrecision::tf32;
  EXPECT_EQ(failure_of(recipe).find("--stage: tf32 cannot be used: "), 0u);
  if (device_report().gpus.empty()) {
    recipe = tiny_recipe();
    recipe.device = "cuda";
    EXPECT_EQ(failure_of(recipe), "--device: cuda cannot be used: " + device_report().cuda_note);
  }
}

TEST(Trainer, LeavesLibTorchAsItWas) {
  const int threads = at::get_num_threads();
  Recipe recipe = tiny_recipe();
  recipe.threads = threads + 1;
  recipe.autocast = Autocast::bf16;
  train_here(recipe);
  EXPECT_EQ(at::get_num_threads(), threads);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_EQ(at::globalContext().float32MatmulPrecision(), at::Float32MatmulPrecision::HIGHEST);
}

TEST(Trainer, ReportKnowsTheMachine) {
  const DeviceReport& report = device_report();
  EXPECT_FALSE(report.torch_version.empty());
  EXPECT_FALSE(report.cpu_capability.empty());
  EXPECT_EQ(report.gpus.empty(), !report.cuda_note.empty());
}

// Only with a GPU: the same losses as on the CPU, and a synchronised clock.
TEST(Trainer, CudaAgreesWithTheCpu) {
  if (device_report().gpus.empty()) GTEST_SKIP() << device_report().cuda_note;
  Recipe recipe = tiny_recipe();
  recipe.steps = 10;
  const auto expected = train_here(recipe).losses();
  recipe.device = "cuda";
  for (const Stage& stage : all_stages()) {
    if (stage.kind != StageKind::systems_only) continue;
    if (!stage.unavailable(recipe, device_report(), "cuda").empty()) continue;
    stage.apply(recipe);
    const Trained trained = train_here(recipe);
    EXPECT_EQ(trained.endings.at(0).reason, "");
    ASSERT_EQ(trained.steps.size(), 10u) << stage.id;
    EXPECT_EQ(trained.started->sync, Sync::event);
    const double tolerance = precision_name(recipe) == "fp32" ? 1e-4 : 2e-2;
    for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(trained.steps[i].loss, expected[i], tolerance) << stage.id;
  }
}

// Only with two GPUs: gradients over NCCL, and one GPU per process.
TEST(Trainer, TwoGpusTrainAsOne) {
  if (device_report().gpus.size() < 2) GTEST_SKIP() << "needs two GPUs";
  Recipe recipe = tiny_recipe();
  recipe.device = "cuda";
  recipe.steps = 10;
  recipe.grad_accum = 2;
  const auto expected = train_here(recipe).losses();
  recipe.nproc = 2;
  const Trained trained = train_here(recipe);
  ASSERT_EQ(trained.endings.at(0).reason, "");
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(trained.steps.at(i).loss, expected[i], 1e-4);
  recipe.nproc = static_cast<int>(device_report().gpus.size()) + 1;
  recipe.batch = recipe.nproc;
  EXPECT_EQ(failure_of(recipe), "--nproc: " + std::to_string(recipe.nproc) +
                                    " processes need a GPU each, but this "
                                    "machine has " +
                                    std::to_string(recipe.nproc - 1));
}

}  // namespace
}  // namespace stepladder
