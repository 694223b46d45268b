#include "engine/recipe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace stepladder {
namespace {

std::string error_of(const std::function<void(Recipe&)>& change) {
  Recipe recipe;
  change(recipe);
  try {
    validate(recipe);
  } catch (const RecipeError& error) {
    return error.what();
  }
  return "";
}

TEST(Recipe, DefaultsAreValid) {
  EXPECT_NO_THROW(validate(Recipe{}));
}

TEST(Recipe, EveryPresetIsValid) {
  for (const ModelPreset& preset : model_presets()) {
    Recipe recipe;
    apply_preset(recipe, preset.name);
    EXPECT_NO_THROW(validate(recipe)) << preset.name;
    EXPECT_EQ(recipe.model, preset.name);
  }
}

TEST(Recipe, NanoIsWhatARecipeStartsWith) {
  Recipe recipe;
  apply_preset(recipe, "nano");
  EXPECT_EQ(recipe, Recipe{});
}

TEST(Recipe, UnknownPresetNamesTheNearest) {
  Recipe recipe;
  try {
    apply_preset(recipe, "gtp2");
    FAIL();
  } catch (const RecipeError& error) {
    EXPECT_STREQ(error.what(), "--model: \"gtp2\" is unknown; did you mean gpt2?");
    EXPECT_EQ(error.field(), "model");
  }
  EXPECT_EQ(recipe, Recipe{});
}

TEST(Recipe, ValidateNamesTheOptionAndTheValue) {
  EXPECT_EQ(error_of([](Recipe& r) { r.heads = 3; }), "--heads: 3 heads do not divide a width of 128");
  EXPECT_EQ(error_of([](Recipe& r) { r.steps = 0; }), "--steps: must be at least 1, not 0");
  EXPECT_EQ(error_of([](Recipe& r) { r.layers = 0; }), "--layers: must be at least 1, not 0");
  EXPECT_EQ(error_of([](Recipe& r) { r.heads = 0; }), "--heads: must be at least 1, not 0");
  EXPECT_EQ(error_of([](Recipe& r) { r.batch = -2; }), "--batch: must be at least 1, not -2");
  EXPECT_EQ(error_of([](Recipe& r) { r.vocab = 1; }), "--vocab: must be at least 2, not 1");
  EXPECT_EQ(error_of([](Recipe& r) { r.lr = 0; }), "--lr: must be greater than 0, not 0");
  EXPECT_EQ(error_of([](Recipe& r) { r.lr = -1; }), "--lr: must be greater than 0, not -1");
  EXPECT_EQ(error_of([](Recipe& r) { r.lr = std::nan(""); }), "--lr: must be a finite number, not nan");
  EXPECT_EQ(error_of([](Recipe& r) { r.lr = INFINITY; }), "--lr: must be a finite number, not inf");
  EXPECT_EQ(error_of([](Recipe& r) { r.beta2 = 1; }), "--beta2: must be less than 1, not 1");
  EXPECT_EQ(error_of([](Recipe& r) { r.weight_decay = -0.1; }), "--weight-decay: must not be negative, but is -0.1");
  EXPECT_EQ(error_of([](Recipe& r) { r.eval_batches = 0; }), "--eval-batches: must be at least 1, not 0");
  EXPECT_EQ(error_of([](Recipe& r) { r.nproc = 0; }), "--nproc: must be at least 1, not 0");
  EXPECT_EQ(error_of([](Recipe& r) { r.nproc = 5; }), "--nproc: 5 processes do not divide a batch of 12");
  EXPECT_EQ(error_of([](Recipe& r) { r.device = "cdua"; }), "--device: \"cdua\" is unknown; did you mean cuda?");
}

TEST(Recipe, LargestValuesDoNotOverflow) {
  Recipe recipe;
  recipe.batch = recipe.seq = recipe.grad_accum = 1'000'000;
  recipe.layers = 10'000;
  recipe.d_model = recipe.heads = 65'536;
  recipe.vocab = 16'777'216;
  EXPECT_NO_THROW(validate(recipe));
  EXPECT_EQ(recipe.tokens_per_step(), 1'000'000'000'000'000'000);
  EXPECT_GT(parameter_count(recipe), 0);
}

TEST(Recipe, ParameterCounts) {
  // As printed by the published code of each (nanoGPT and Hugging Face), positions included; the seed models by hand.
  const std::vector<std::pair<std::string, std::int64_t>> published = {
      {"gpt2", 124'439'808},      {"gpt2-medium", 354'823'168}, {"gpt2-large", 774'030'080},
      {"gpt2-xl", 1'557'611'200}, {"seed-small", 100'412'160},  {"seed-medium", 322'651'136}};
  for (const auto& [name, count] : published) {
    Recipe recipe;
    apply_preset(recipe, name);
    EXPECT_EQ(parameter_count(recipe), count) << name;
  }
}

TEST(Recipe, JsonRoundTrip) {
  Recipe recipe;
  apply_preset(recipe, "gpt2-xl");
  recipe.data = "a folder/tokens \"x\".bin";
  recipe.vocab = 50304;
  recipe.grad_accum = 7;
  recipe.overfit = true;
  recipe.steps = 123'456'789;
  recipe.warmup = 3;
  recipe.eval_every = 5;
  recipe.eval_batches = 6;
  recipe.device = "cuda";
  recipe.threads = 9;
  recipe.seed = std::numeric_limits<std::uint64_t>::max();
  recipe.lr = 0.1 + 0.2;
  recipe.beta1 = 0.95;
  recipe.beta2 = 0.99;
  recipe.eps = 1e-10;
  recipe.weight_decay = 0;
  recipe.attention = Attention::scaled_dot_product;
  recipe.matmul = MatmulPrecision::tf32;
  recipe.autocast = Autocast::bf16;
  recipe.optimizer = Optimizer::fused_adamw;
  EXPECT_EQ(recipe_from_json(to_json(recipe)), recipe);
}

TEST(Recipe, JsonIgnoresUnknownAndKeepsDefaults) {
  const Recipe recipe = recipe_from_json(R"({"layers": 2, "invented": [1], "lr": null})");
  Recipe expected;
  expected.layers = 2;
  EXPECT_EQ(recipe, expected);
}

TEST(Recipe, JsonThatIsWrongIsARecipeError) {
  for (const char* json : {"", "{", "[1]", "3", R"({"layers": "two"})", R"({"layers": 2.5})", R"({"lr": "fast"})",
                           R"({"optimizer": "adam"})", R"({"optimizer": 3})", R"({"overfit": 1})"}) {
    EXPECT_THROW(recipe_from_json(json), RecipeError) << json;
  }
}

TEST(Recipe, JsonSurvivesAPathThatIsNotUtf8) {
  Recipe recipe;
  recipe.data = "odd\xff.txt";
  EXPECT_NO_THROW(recipe_from_json(to_json(recipe)));
}

TEST(Recipe, Difference) {
  Recipe after;
  EXPECT_EQ(difference(Recipe{}, after), "");
  after.autocast = Autocast::bf16;
  after.batch = 3;
  after.data = "x.txt";
  EXPECT_EQ(difference(Recipe{}, after), "data synthetic -> x.txt, batch 12 -> 3, autocast off -> bf16");
  Recipe without;
  without.without_kernel = "gelu";
  EXPECT_EQ(difference(Recipe{}, without), "without_kernel none -> gelu");
  EXPECT_EQ(difference(without, Recipe{}), "without_kernel gelu -> none");
}

TEST(Recipe, DescribeListsEveryMember) {
  // A member that is missing from the list wouldn't reach the database.
  EXPECT_EQ(describe(Recipe{}).size(), 43u);
}

TEST(Recipe, ValuesAreSetByNameAndText) {
  Recipe recipe;
  set_value(recipe, "batch", "24");
  set_value(recipe, "lr", "6e-4");
  set_value(recipe, "schedule", "cosine");
  set_value(recipe, "tied_head", "on");
  EXPECT_EQ(difference(Recipe{}, recipe),
            "tied_head off -> on, batch 12 -> 24, lr 0.001 -> 6e-04, schedule constant -> cosine");
  const auto complaint = [&](const char* name, const char* value) -> std::string {
    try {
      set_value(recipe, name, value);
      return "";
    } catch (const RecipeError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(complaint("weight_decay", "much"), "--weight-decay: must be a number, not 'much'");
  EXPECT_EQ(complaint("batch", "2.5"), "--batch: must be a whole number, not '2.5'");
  EXPECT_EQ(complaint("seed", "-5"), "--seed: must be a whole number of at least 0, not '-5'");
  EXPECT_EQ(complaint("schedule", "cosin"), "--schedule: \"cosin\" is unknown; did you mean cosine?");
  EXPECT_NE(complaint("batsch", "1"), "");
}

TEST(Recipe, TheLearningRateClimbsAndFalls) {
  Recipe recipe;
  recipe.lr = 1;
  recipe.steps = 10;
  EXPECT_EQ(learning_rate(recipe, 1), 1);
  recipe.lr_warmup = 4;
  EXPECT_EQ(learning_rate(recipe, 1), 0.25);
  EXPECT_EQ(learning_rate(recipe, 4), 1);
  EXPECT_EQ(learning_rate(recipe, 10), 1);
  recipe.schedule = Schedule::cosine;
  EXPECT_EQ(learning_rate(recipe, 4), 1);
  EXPECT_EQ(learning_rate(recipe, 5), 1);
  EXPECT_NEAR(learning_rate(recipe, 8), 0.55, 1e-12);  // half-way from 1 to 0.1
  EXPECT_NEAR(learning_rate(recipe, 11), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(recipe, 99), 0.1, 1e-12);
}

TEST(Recipe, PrecisionName) {
  Recipe recipe;
  EXPECT_EQ(precision_name(recipe), "fp32");
  recipe.matmul = MatmulPrecision::tf32;
  EXPECT_EQ(precision_name(recipe), "tf32");
  recipe.autocast = Autocast::bf16;
  EXPECT_EQ(precision_name(recipe), "bf16");
}

}  // namespace
}  // namespace stepladder
