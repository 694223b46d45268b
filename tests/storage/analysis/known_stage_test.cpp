#include "storage/analysis/known_stage.h"

#include <gtest/gtest.h>

#include "engine/stage.h"

namespace stepladder {
namespace {

std::string of(const std::string& changed, const std::string& title = "") {
  return known_stage({.stage = title, .title = title, .changed = changed, .source = "imported"}, known_stages());
}

TEST(KnownStage, OfARunLaunchedHereIsItsOwn) {
  EXPECT_EQ(known_stage({.stage = "decay-groups", .changed = "flash", .source = "launched"}, known_stages()),
            "decay-groups");
}

// The words of the example ladders' logs, and of other logs.
TEST(KnownStage, IsFoundInWhatALogWroteAboutARung) {
  EXPECT_EQ(of("weight sharing self.transformer.wte.weights = self.lm_head.weight"), "weight-tying");
  EXPECT_EQ(of("torch.set_float32_matmul_precision('high') this trades-off precision for speed"), "tf32");
  EXPECT_EQ(of("Precision change to TF32 to save memory", "OPTIMIZATION #1"), "tf32");
  EXPECT_EQ(of("with torch.autocast(device_type='cuda', dtype=torch.bfloat16): logits, loss = model(x, y)"), "bf16");
  EXPECT_EQ(of("Solving for residual std scaling issue"), "init-scaling");
  EXPECT_EQ(of("torch.compile, default mode (train_loader = DataLoaderLite(B=3, T=1024))"), "compile");
  EXPECT_EQ(of("torch.compile, 'max-autotune'"), "compile-max");
  EXPECT_EQ(of("Pytorch Flash attention"), "flash-attention");
  EXPECT_EQ(of("power of 2 (nice numbers), vocab size changed"), "padded-vocab");
  EXPECT_EQ(of("GPT-3 Paper model training, hyper-parameters Adam W gradient clipping"), "gpt3-adamw");
  EXPECT_EQ(of("GPT-3 Paper add cosing delay for LR"), "cosine-lr");
  EXPECT_EQ(of("optimizer modified and fused version checked: Performance degraded for this one"), "fused-adamw");
  EXPECT_EQ(of("Overfit a single batch of data"), "overfit");
  EXPECT_EQ(of("tokens/second: 211_646", "DDP"), "ddp");
  EXPECT_EQ(of("for 50 epochs Batch=2 seq_len = 1024", "Baseline"), "baseline");
}

TEST(KnownStage, IsNothingWhereTheLogSaysNothingKnown) {
  EXPECT_EQ(of("changing the baseline metric from time to throughput", "BASELINE CHANGE"), "");
  EXPECT_EQ(of("Calculating time taken at tf32 precision"), "");
  EXPECT_EQ(of("faster tokenizer", "step 4"), "");
  EXPECT_EQ(of("reformatted"), "") << "formatted";
}

}  // namespace
}  // namespace stepladder
