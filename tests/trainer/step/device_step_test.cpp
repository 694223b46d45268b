// compile-max on a GPU, whole: its kernels run through the shim on the CPU, its products by LibTorch.
#include <gtest/gtest.h>

#include "engine/kernel_parts.h"
#include "engine/stage.h"
#include "engine/trainer/device/device_model.h"
#include "storage/analysis/recipe_facts.h"
#include "tests/trainer/device/kernels_on_cpu.h"
#include "tests/trainer/step/repeating.h"
#include "tests/trainer/trained.h"

namespace stepladder {
namespace {

DeviceModel::Device on_cpu(const Recipe& recipe) {
  return {.launcher = std::make_unique<KernelsOnCpu>(recipe.autocast == Autocast::bf16)};
}

Trained train_by_kernels(const Recipe& recipe, const StepDeviceMaker& make_device = on_cpu) {
  Recipe max = recipe;
  max.compile = Compile::max;
  return train_here(
      TrainingJob{.run = 1, .recipe = max}, {}, [](at::Device) { return std::make_unique<Repeating>(); }, make_device);
}

// Small, since each thread of a GPU is a fibre here.
Recipe small_recipe() {
  Recipe recipe = tiny_recipe();
  recipe.seq = 8;
  recipe.batch = 2;
  recipe.steps = 4;
  recipe.attention = Attention::scaled_dot_product;
  return recipe;
}

void expect_same_training(const Recipe& recipe, double tolerance) {
  const Trained plain = train_here(recipe), kernels = train_by_kernels(recipe);
  ASSERT_EQ(plain.endings.at(0).reason, "");
  ASSERT_EQ(kernels.endings.at(0).reason, "");
  ASSERT_EQ(kernels.steps.size(), plain.steps.size());
  EXPECT_GT(kernels.started->setup_ms, 0);
  for (std::size_t i = 0; i < plain.steps.size(); ++i) {
    const StepRecord &a = kernels.steps[i], &b = plain.steps[i];
    EXPECT_NEAR(a.loss, b.loss, tolerance * b.loss) << "step " << i + 1;
    EXPECT_NEAR(a.grad_norm, b.grad_norm, 2 * tolerance * b.grad_norm) << "step " << i + 1;
    if (!is_missing(b.val_loss)) {
      EXPECT_NEAR(a.val_loss, b.val_loss, tolerance * b.val_loss);
    }
  }
}

TEST(DeviceStep, TrainsAsTheModelsOwnOperations) {
  Recipe recipe = small_recipe();
  recipe.eval_every = 2;
  recipe.eval_batches = 1;
  expect_same_training(recipe, 1e-4);
  recipe.optimizer = Optimizer::fused_adamw;
  recipe.tied_head = false;
  recipe.vocab_multiple = 128;
  recipe.clip = 0.5;
  recipe.grad_accum = 2;
  stage_by_id("decay-groups").apply(recipe);
  expect_same_training(recipe, 1e-4);
}

TEST(DeviceStep, TrainsInBf16) {
  Recipe recipe = small_recipe();
  recipe.autocast = Autocast::bf16;
  recipe.optimizer = Optimizer::fused_adamw;
  recipe.clip = 1;
  expect_same_training(recipe, 2e-2);
}

// A part that is left out is LibTorch's own operation, and nothing else changes.
TEST(DeviceStep, EachPartCanBeLeftOut) {
  Recipe recipe = small_recipe();
  recipe.vocab = 61;
  recipe.clip = 1;
  for (const Autocast autocast : {Autocast::off, Autocast::bf16}) {
    recipe.autocast = autocast;
    const auto model = build_model(recipe);
    const at::Tensor tokens = at::randint(61, {2, 8}, at::kLong), targets = at::randint(61, {2, 8}, at::kLong);
    for (const KernelPart& part : kernel_parts()) {
      recipe.without_kernel = part.name;
      auto launcher = std::make_unique<KernelsOnCpu>(autocast == Autocast::bf16);
      auto& launches = launcher->launches;
      if (part.name == "attention") {
        EXPECT_THROW(DeviceModel(recipe, *model, {.launcher = std::move(launcher)}), RecipeError);
        continue;
      }
      DeviceModel step(recipe, *model, {.launcher = std::move(launcher)});
      EXPECT_NO_THROW(step.verify({tokens, targets})) << part.name;
      step.loss({tokens, targets}).backward();
      const auto optimizer = step.make_optimizer();
      optimizer->begin_step(1e-3);
      optimizer->clip_gradients(1);
      optimizer->update();
      EXPECT_EQ(launches.contains("classifier"), part.name != "softmax");
      EXPECT_EQ(launches.contains("add_norm_backward"), part.name != "add-norm");
      EXPECT_EQ(launches.contains("gelu_backward"), part.name != "gelu");
      EXPECT_EQ(launches.contains("adamw"), part.name != "adamw");
    }
  }
}

// A kernel that computes something else on this card must not train a model.
class Wrong : public KernelsOnCpu {
 public:
  Wrong(bool half, std::string kernel) : KernelsOnCpu(half), kernel_(std::move(kernel)) {}
  void launch(const char* kernel, const LaunchShape& shape, std::span<const Argument> arguments) override {
    if (kernel != kernel_) KernelsOnCpu::launch(kernel, shape, arguments);
  }

 private:
  const std::string kernel_;
};

TEST(DeviceStep, AKernelThatDoesSomethingElseIsLeft) {
  Recipe captured = small_recipe();
  captured.compile = Compile::on;
  const std::vector<double> losses = train_here(captured).losses();
  for (const char* kernel : {"gelu_backward", "embedding_backward", "column_sums"}) {
    const Trained trained = train_by_kernels(small_recipe(), [&](const Recipe&) {
      return DeviceModel::Device{.launcher = std::make_unique<Wrong>(false, kernel)};
    });
    EXPECT_EQ(trained.losses(), losses);
    EXPECT_EQ(trained.endings.at(0).status, RunStatus::finished) << trained.endings.at(0).reason;
    EXPECT_TRUE(trained.console.starts_with(
        "compile-max fell back to compile: the kernels differ from LibTorch's operations: "))
        << trained.console;
    // What was asked for, so that a repeat asks for it again, and what was done.
    ASSERT_TRUE(trained.started);
    EXPECT_TRUE(recipe_from_json(trained.started->recipe).compile == Compile::max);
    EXPECT_EQ(recipe_facts({.recipe = trained.started->recipe}).fell_back + "\n", trained.console);
  }
}

// As a version of cuBLASLt that writes bf16 where float32 is wanted.
class WrongProducts : public Products {
 public:
  using Products::Products;
  WeightGradients weight_gradient(const at::Tensor& d, const at::Tensor& x, bool wants_bias) override {
    WeightGradients found = Products::weight_gradient(d, x, wants_bias);
    if (wants_bias) found.bias = 2 * found.bias;
    return found;
  }
};

TEST(DeviceStep, ALibraryWithWrongProductsIsLeftAlone) {
  const Recipe recipe = small_recipe();
  const Trained trained = train_by_kernels(recipe, [](const Recipe&) {
    return DeviceModel::Device{
        .launcher = std::make_unique<KernelsOnCpu>(false),
        .make_products = [](const DeviceKernels& kernels) { return std::make_unique<WrongProducts>(kernels); }};
  });
  EXPECT_EQ(trained.losses(), train_by_kernels(recipe).losses());
  EXPECT_TRUE(trained.console.starts_with(
      "compile-max fell back to LibTorch's products: the kernels differ from LibTorch's operations: the gradient of "))
      << trained.console;
  ASSERT_TRUE(trained.started);
  EXPECT_EQ(recipe_facts({.recipe = trained.started->recipe}).fell_back + "\n", trained.console);
}

class CannotRecord : public Repeating {
 public:
  void record(const std::function<void()>&) override { TORCH_CHECK(false, "operation not permitted"); }
};

TEST(DeviceStep, ARunThatFallsTwiceNamesBothWays) {
  Recipe recipe = small_recipe();
  recipe.compile = Compile::max;
  const Trained trained = train_here(
      TrainingJob{.run = 1, .recipe = recipe}, {}, [](at::Device) { return std::make_unique<CannotRecord>(); }, on_cpu);
  EXPECT_EQ(trained.endings.at(0).status, RunStatus::finished) << trained.endings.at(0).reason;
  ASSERT_TRUE(trained.started);
  EXPECT_EQ(recipe_facts({.recipe = trained.started->recipe}).fell_back,
            "compile-max fell back to compile: the step cannot be captured: operation not permitted; "
            "compile fell back to plain operations: the step cannot be captured: operation not permitted");
  const Trained whole = train_by_kernels(small_recipe());
  EXPECT_EQ(recipe_facts({.recipe = whole.started->recipe}).fell_back, "");
}

// A card on which, beside the captured step, the logits of at most so many tokens have room.
struct FullCard {
  std::int64_t most_tokens;
  bool is_captured = false;
  std::int64_t refused = 0;
};

class Hoarding : public Repeating {
 public:
  explicit Hoarding(FullCard& card) : card_(card) {}
  ~Hoarding() override { card_.is_captured = false; }
  void record(const std::function<void()>& work) override {
    Repeating::record(work);
    card_.is_captured = true;
  }
  void replay() override {
    card_.is_captured = false;  // in its own memory
    Repeating::replay();
    card_.is_captured = true;
  }

 private:
  FullCard& card_;
};

class OnFullCard : public KernelsOnCpu {
 public:
  explicit OnFullCard(FullCard& card) : KernelsOnCpu(false), card_(card) {}
  void launch(const char* kernel, const LaunchShape& shape, std::span<const Argument> arguments) override {
    if (card_.is_captured && std::string_view(kernel) == "classifier" && shape.blocks > card_.most_tokens) {
      ++card_.refused;
      C10_THROW_ERROR(OutOfMemoryError, "CUDA out of memory");
    }
    KernelsOnCpu::launch(kernel, shape, arguments);
  }

 private:
  FullCard& card_;
};

Trained train_on(FullCard& card, Recipe recipe) {
  recipe.compile = Compile::max;
  return train_here(
      TrainingJob{.run = 1, .recipe = recipe}, {}, [&](at::Device) { return std::make_unique<Hoarding>(card); },
      [&](const Recipe&) { return DeviceModel::Device{.launcher = std::make_unique<OnFullCard>(card)}; });
}

Recipe validated_recipe() {
  Recipe recipe = small_recipe();
  recipe.batch = 3;
  recipe.eval_every = 2;
  recipe.eval_batches = 2;
  return recipe;
}

TEST(DeviceStep, ValidationTakesFewerRowsWhereMemoryIsShort) {
  const Recipe recipe = validated_recipe();
  FullCard card{.most_tokens = 2 * recipe.seq};
  const Trained short_of_memory = train_on(card, recipe), whole = train_by_kernels(recipe);
  ASSERT_EQ(short_of_memory.endings.at(0).reason, "");
  EXPECT_EQ(short_of_memory.console, whole.console);
  ASSERT_EQ(short_of_memory.steps.size(), whole.steps.size());
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    EXPECT_EQ(short_of_memory.steps[i].loss, whole.steps[i].loss);
    if (i % 2 == 1) {
      EXPECT_NEAR(short_of_memory.steps[i].val_loss, whole.steps[i].val_loss, 1e-6 * whole.steps[i].val_loss);
    }
  }
  EXPECT_EQ(card.refused, 1);  // what doesn't fit is asked for once
}

TEST(DeviceStep, ACaptureThatLeavesNoMemoryForValidationIsLeft) {
  FullCard card{.most_tokens = validated_recipe().seq - 1};
  const Trained trained = train_on(card, validated_recipe());
  EXPECT_EQ(trained.endings.at(0).status, RunStatus::finished) << trained.endings.at(0).reason;
  EXPECT_TRUE(trained.console.starts_with(
      "compile-max fell back to compile: validation has no memory beside the captured step: CUDA out of memory"))
      << trained.console;
  EXPECT_GT(trained.steps.at(1).val_loss, 0);
  Recipe unvalidated = validated_recipe();
  unvalidated.eval_every = 0;
  EXPECT_EQ(train_on(card, unvalidated).console, "");
}

// Only with a GPU: captured, with its own kernels and cuBLASLt's epilogues, against the model's operations one by one.
TEST(CudaKernels, WholeStepsTrainAsTheModelsOwnOperations) {
  if (device_report().gpus.empty()) GTEST_SKIP() << device_report().cuda_note;
  if (const std::string& note = device_report().gpu_kernels_note; !note.empty()) GTEST_SKIP() << note;
  Recipe tiny = small_recipe();
  tiny.steps = 10;
  tiny.clip = 1;
  tiny.grad_accum = 2;
  tiny.eval_every = 3;
  tiny.vocab_multiple = 128;
  stage_by_id("cosine-lr").apply(tiny);
  Recipe real = tiny;  // GPT-2's width, length and vocabulary
  real.layers = 2;
  real.heads = 12;
  real.d_model = 768;
  real.seq = 1024;
  real.batch = 4;
  real.vocab = 50257;
  real.vocab_multiple = 1;  // the kernels pad the head themselves
  real.lr = 1e-4;           // at ten times that, ten steps amplify what rounding leaves a hundredfold
  for (Recipe recipe : {tiny, real}) {
    recipe.device = "cuda";
    for (const Autocast autocast : {Autocast::off, Autocast::bf16}) {
      recipe.autocast = autocast;
      recipe.compile = Compile::max;
      const Trained kernels = train_here(recipe);
      recipe.compile = Compile::off;
      const Trained direct = train_here(recipe);
      ASSERT_EQ(kernels.endings.at(0).reason, "") << recipe.d_model;
      ASSERT_EQ(direct.endings.at(0).reason, "");
      EXPECT_GT(kernels.started->setup_ms, 0);
      const double tolerance = autocast == Autocast::off ? 1e-4 : 2e-2;
      for (std::size_t i = 0; i < direct.steps.size(); ++i) {
        const StepRecord &a = kernels.steps.at(i), &b = direct.steps[i];
        EXPECT_NEAR(a.loss, b.loss, tolerance * b.loss) << i;
        EXPECT_NEAR(a.grad_norm, b.grad_norm, 2 * tolerance * b.grad_norm) << i;
      }
    }
  }
}

}  // namespace
}  // namespace stepladder
