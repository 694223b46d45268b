// The planned step against LibTorch's autograd: every parameter's gradient, the loss, and whole runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/kernel_parts.h"
#include "engine/trainer/plan/pair_products.h"
#include "engine/trainer/planned_model.h"
#include "engine/trainer/settings.h"
#include "storage/analysis/recipe_facts.h"
#include "tests/trainer/trained.h"

namespace stepladder {
namespace {

Recipe odd_recipe(int length, int width, int heads, int vocab) {
  Recipe recipe = tiny_recipe();
  recipe.seq = length;
  recipe.d_model = width;
  recipe.heads = heads;
  recipe.vocab = vocab;
  recipe.batch = length > 100 ? 1 : 3;
  recipe.tied_head = false;
  return recipe;
}

Tokens random_tokens(const Recipe& recipe) {
  const auto draw = [&] { return at::randint(recipe.vocab, {recipe.batch, recipe.seq}, at::kLong); };
  return {draw(), draw()};
}

// Gradients and loss of two micro-batches by autograd and by the plan.
void expect_the_gradients_of_autograd(Recipe recipe) {
  const std::string what = difference(tiny_recipe(), recipe);
  const bool half = recipe.autocast == Autocast::bf16;
  recipe.grad_accum = 2;
  const std::shared_ptr<Gpt> plain = build_model(recipe);
  recipe.compile = Compile::max;
  const std::shared_ptr<Gpt> model = build_model(recipe);
  const std::unique_ptr<AdamW> optimizer = make_optimizer(recipe, named_parameters(*model));
  PlannedModel planned(recipe, *model, *optimizer, recipe.batch);
  for (int round = 0; round < 2; ++round) {  // the second must not see anything of the first
    double exact = 0, found = 0;
    for (const auto& [name, parameter] : named_parameters(*plain)) at::Tensor(parameter).mutable_grad().reset();
    for (int micro = 0; micro < recipe.grad_accum; ++micro) {
      const Tokens tokens = random_tokens(recipe);
      {
        const AutocastScope scope(recipe.autocast, at::kCPU);
        const at::Tensor loss = plain->loss(tokens.inputs, tokens.targets) / recipe.grad_accum;
        loss.backward();
        exact += loss.item<double>();
      }
      const double alone = planned.loss(tokens), share = planned.forward(tokens, micro);
      EXPECT_NEAR(alone, share * recipe.grad_accum, 1e-12) << what;
      planned.backward(micro);
      found += share;
    }
    EXPECT_NEAR(found, exact, half ? 2e-2 : 2e-5) << what;
    const auto wanted = named_parameters(*plain), got = named_parameters(*model);
    double squares = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const at::Tensor a = got[i].second.grad().to(at::kDouble), b = wanted[i].second.grad().to(at::kDouble);
      squares += a.square().sum().item<double>();
      const double size = b.norm().item<double>(), gap = (a - b).norm().item<double>();
      EXPECT_LE(gap, (half ? 3e-2 : 2e-5) * size + 1e-7) << wanted[i].first << " of size " << size << ", " << what;
    }
    EXPECT_NEAR(planned.gradient_norm(), std::sqrt(squares), 1e-6 * std::sqrt(squares));
  }
}

TEST(PlannedStep, HasTheGradientsOfAutograd) {
  torch::manual_seed(7);
  for (const Autocast autocast : {Autocast::off, Autocast::bf16}) {
    std::vector<Recipe> recipes = {odd_recipe(1, 32, 2, 65), odd_recipe(63, 65, 5, 65), odd_recipe(64, 100, 4, 257),
                                   odd_recipe(7, 36, 3, 5021)};
    recipes.push_back(odd_recipe(5, 264, 4, 1100));  // wide: weights are packed once, for the forward pass
    recipes.back().layers = 1;
    recipes[2].tied_head = true;
    recipes[2].init = Init::pytorch;  // large logits
    recipes[3].vocab_multiple = 128;
    recipes.push_back(recipes[3]);
    recipes.back().tied_head = true;
    recipes.back().layers = 1;
    if (autocast == Autocast::off) {
      recipes.push_back(odd_recipe(1000, 16, 2, 65));
      recipes.push_back(odd_recipe(3, 16, 1, 50257));
    }
    for (Recipe& recipe : recipes) {
      recipe.autocast = autocast;
      expect_the_gradients_of_autograd(recipe);
    }
  }
}

// As on a CPU with bf16 instructions.
TEST(PlannedStep, HasTheGradientsOfAutogradByPairs) {
  torch::manual_seed(8);
  const PairUnit own = pair_unit();
  for (const PairUnit unit : {PairUnit::plain, PairUnit::plain_tiles}) {
    use_pair_unit(unit);
    std::vector<Recipe> recipes = {odd_recipe(1, 32, 2, 65), odd_recipe(63, 65, 5, 65), odd_recipe(7, 36, 3, 2021),
                                   odd_recipe(5, 264, 4, 1100)};
    recipes[2].tied_head = true;
    recipes.back().layers = 1;
    for (Recipe& recipe : recipes) {
      recipe.autocast = Autocast::bf16;
      expect_the_gradients_of_autograd(recipe);
    }
  }
  use_pair_unit(own);
}

TEST(PlannedStep, HasTheGradientsOfAutogradWithoutEachKernel) {
  torch::manual_seed(9);
  std::string all;
  for (const KernelPart& part : kernel_parts()) all += (all.empty() ? "" : "+") + std::string(part.name);
  std::vector<std::string> left_out = {all};
  for (const KernelPart& part : kernel_parts()) left_out.emplace_back(part.name);
  for (const std::string& parts : left_out) {
    for (const Autocast autocast : {Autocast::off, Autocast::bf16}) {
      for (Recipe recipe : {odd_recipe(63, 65, 5, 65), odd_recipe(5, 264, 4, 1100)}) {
        recipe.layers = 1;
        recipe.vocab_multiple = 128;
        recipe.autocast = autocast;
        recipe.without_kernel = parts;
        SCOPED_TRACE(parts);
        expect_the_gradients_of_autograd(recipe);
      }
    }
  }
}

// Everything that changes a step, so that one run tests it all.
std::vector<Recipe> rich_recipes() {
  Recipe recipe = tiny_recipe();
  recipe.steps = 50;
  recipe.lr = 2e-3;
  recipe.seq = 13;
  recipe.vocab = 300;
  Recipe rich = recipe;
  rich.vocab_multiple = 128;
  rich.tied_head = false;
  rich.grad_accum = 3;
  rich.clip = 0.5;
  rich.schedule = Schedule::cosine;
  rich.lr_warmup = 5;
  rich.decay = Decay::matrices;
  rich.weight_decay = 0.1;
  rich.beta2 = 0.95;
  rich.optimizer = Optimizer::fused_adamw;
  rich.attention = Attention::scaled_dot_product;
  rich.eval_every = 25;
  rich.eval_batches = 2;
  return {recipe, rich};
}

TEST(PlannedStep, TrainsWithoutItsKernels) {
  Recipe recipe = rich_recipes().back();
  recipe.compile = Compile::max;
  const Trained own = train_here(recipe);
  recipe.without_kernel = "products+add-norm+attention+gelu+softmax+adamw";
  const Trained library = train_here(recipe);
  ASSERT_EQ(library.endings.at(0).reason, "");
  EXPECT_NE(library.losses(), own.losses());  // else nothing was replaced
  ASSERT_EQ(library.steps.size(), own.steps.size());
  for (std::size_t i = 0; i < own.steps.size(); ++i)
    EXPECT_NEAR(library.steps[i].loss, own.steps[i].loss, 1e-4) << "step " << i + 1;
}

TEST(PlannedStep, TrainsLikeTheRungsBelowIt) {
  for (const Autocast autocast : {Autocast::off, Autocast::bf16}) {
    for (Recipe recipe : rich_recipes()) {
      recipe.autocast = autocast;
      const Trained plain = train_here(recipe);
      recipe.compile = Compile::max;
      const Trained planned = train_here(recipe);
      EXPECT_EQ(planned.endings.at(0).reason, "");
      EXPECT_EQ(planned.started->attention, "flash");
      EXPECT_NE(planned.losses(), plain.losses());  // else nothing was planned
      const double allowed = autocast == Autocast::off ? 1e-4 : 2e-2;
      ASSERT_EQ(planned.steps.size(), plain.steps.size());
      EXPECT_LT(plain.losses().back(), plain.losses().front() - 0.2)
          << "a run that learns nothing agrees with anything";
      for (std::size_t i = 0; i < plain.steps.size(); ++i) {
        const StepRecord &a = planned.steps[i], &b = plain.steps[i];
        EXPECT_NEAR(a.loss, b.loss, allowed) << "step " << i + 1;
        EXPECT_NEAR(a.grad_norm, b.grad_norm, 10 * allowed * b.grad_norm) << "step " << i + 1;
        ASSERT_EQ(is_missing(a.val_loss), is_missing(b.val_loss));
        if (!is_missing(a.val_loss)) {
          EXPECT_NEAR(a.val_loss, b.val_loss, allowed);
        }
        EXPECT_GT(a.parts.forward_ms + a.parts.backward_ms + a.parts.optimizer_ms, 0);
      }
      ASSERT_EQ(planned.profiles.size(), 1u);
      const auto& operators = planned.profiles.front().operators;
      EXPECT_TRUE(std::any_of(operators.begin(), operators.end(), [](const auto& each) {
        return each.name == "plan::weight_gradient";
      })) << "its kernels are not in the profile";
    }
  }
}

// What other processes are sent while the backward pass runs.
TEST(PlannedStep, HandsOverGradientsThatAreFinal) {
  torch::manual_seed(10);
  for (const bool tied : {false, true}) {
    Recipe recipe = odd_recipe(17, 36, 3, 257);
    recipe.layers = 3;
    recipe.grad_accum = 2;
    recipe.decay = Decay::matrices;  // two groups of parameters
    recipe.tied_head = tied;
    recipe.compile = Compile::max;
    const std::shared_ptr<Gpt> model = build_model(recipe);
    const std::unique_ptr<AdamW> optimizer = make_optimizer(recipe, named_parameters(*model));
    PlannedModel planned(recipe, *model, *optimizer, recipe.batch);
    std::vector<at::Tensor> given, then;
    for (int micro = 0; micro < recipe.grad_accum; ++micro) {
      planned.forward(random_tokens(recipe), micro);
      if (micro == 0) {
        planned.backward(micro);
        continue;
      }
      const auto ready = [&](const at::Tensor& gradients) {
        given.push_back(gradients);
        then.push_back(gradients.clone());
      };
      planned.backward(micro, ready, 1000);
    }
    std::int64_t all = 0;
    for (const auto& [name, parameter] : named_parameters(*model)) all += parameter.numel();
    EXPECT_EQ(std::ssize(given), (all + 999) / 1000);
    EXPECT_EQ(at::cat(given).numel(), all);
    EXPECT_TRUE(at::equal(at::cat(given), at::cat(then)));
    double squares = 0;
    for (const at::Tensor& piece : given) squares += piece.to(at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(planned.gradient_norm(), std::sqrt(squares), 1e-6 * std::sqrt(squares));
  }
}

// With the products that were chosen on one thread: each number of threads has a choice of its own.
TEST(PlannedStep, HasTheSameBitsOnAnyNumberOfThreads) {
  const std::filesystem::path cache =
      std::filesystem::temp_directory_path() / ("planned_step_" + std::to_string(::getpid()));
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string kept_before = before ? before : "";
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const auto take_choices_of_one_thread = [&](int threads) {
    for (const auto& entry : std::filesystem::directory_iterator(cache / "stepladder")) {
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      std::ofstream file(entry.path(), std::ios::app);
      for (std::string line; std::getline(text, line);) {
        const std::size_t at = line.find(", 1 thread\t");
        if (at == std::string::npos) continue;
        file << line.replace(at, std::string(", 1 thread").size(), ", " + std::to_string(threads) + " threads") << '\n';
      }
    }
  };
  for (const Autocast autocast : {Autocast::off, Autocast::bf16}) {
    Recipe recipe = rich_recipes().back();
    recipe.steps = 5;
    recipe.batch = 12;
    recipe.autocast = autocast;
    recipe.compile = Compile::max;
    const auto alone = train_here(recipe).losses();
    for (const int threads : {2, 3}) {
      take_choices_of_one_thread(threads);
      recipe.threads = threads;
      EXPECT_EQ(train_here(recipe).losses(), alone) << threads << " threads";
    }
  }
  before ? ::setenv("XDG_CACHE_HOME", kept_before.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove_all(cache);
}

TEST(PlannedStep, EndsARunWhoseLossIsNotANumber) {
  Recipe recipe = tiny_recipe();
  recipe.compile = Compile::max;
  recipe.lr = 1e30;
  recipe.steps = 20;
  const Trained trained = train_here(recipe);
  EXPECT_EQ(trained.endings.at(0).status, RunStatus::failed);
  EXPECT_NE(trained.endings.at(0).reason.find("the loss is"), std::string::npos) << trained.endings.at(0).reason;
}

TEST(PlannedStep, RefusesATokenThatTheModelDoesNotHave) {
  Recipe recipe = tiny_recipe();
  recipe.vocab = 50;
  recipe.compile = Compile::max;
  const std::shared_ptr<Gpt> model = build_model(recipe);
  const std::unique_ptr<AdamW> optimizer = make_optimizer(recipe, named_parameters(*model));
  PlannedModel planned(recipe, *model, *optimizer, recipe.batch);
  Tokens tokens = random_tokens(recipe);
  tokens.targets[0][3] = 50;
  EXPECT_THROW(planned.forward(tokens, 0), c10::Error);
  tokens.targets[0][3] = 49;
  tokens.inputs[1][0] = -1;
  EXPECT_THROW(planned.loss(tokens), c10::Error);
}

// Where `compile` was measured to be faster, the run is `compile`'s and says so.
TEST(PlannedStep, MakesWayForAFasterCompiledStep) {
  const std::filesystem::path cache =
      std::filesystem::temp_directory_path() / ("plan_way_" + std::to_string(::getpid()));
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string kept_before = before ? before : "";
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  Recipe recipe = tiny_recipe();
  recipe.compile = Compile::max;
  const Trained first = train_here(recipe);
  EXPECT_NE(first.console.find("whole step"), std::string::npos) << first.console;

  std::size_t changed = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(cache)) {
    if (!file.is_regular_file()) continue;
    std::ifstream in(file.path());
    std::ostringstream lines;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("whole step, ")) {
        line = line.substr(0, line.find('\t')) + "\tcompile\tplan 3.000 ms, compile 2.000 ms";
        ++changed;
      }
      lines << line << "\n";
    }
    std::ofstream(file.path()) << lines.str();
  }
  EXPECT_EQ(changed, 1U);
  const Trained second = train_here(recipe);
  EXPECT_EQ(
      recipe_facts({.recipe = second.started->recipe}).fell_back,
      "compile-max fell back to compile: its whole step is faster on this machine (plan 3.000 ms, compile 2.000 ms)");
  EXPECT_EQ(second.started->attention, "explicit");
  recipe.compile = Compile::on;
  EXPECT_EQ(second.losses(), train_here(recipe).losses());
  before ? ::setenv("XDG_CACHE_HOME", kept_before.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove_all(cache);
}

}  // namespace
}  // namespace stepladder
