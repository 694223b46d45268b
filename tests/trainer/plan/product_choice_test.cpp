// How a plan chooses among ways to compute its products, and what it keeps of that. Time is the test's own.
#include "engine/trainer/plan/product_choice.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "engine/trainer/library_kernels.h"
#include "engine/trainer/planned_model.h"
#include "tests/trainer/trained.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> other_ran = false;

// The plan's own products, which tell that they ran.
ProductWay<float> other_way() {
  ProductWay<float> way{.name = "other"};
  way.multiply_weight = [](const Product& product, const float* packed) {
    other_ran = true;
    multiply(product, packed);
  };
  way.multiply_rows = way.multiply_weight;
  return way;
}

Stopwatch watch(double own_s, double other_s, int* calls = nullptr) {
  return [=](const std::function<void()>& call) {
    other_ran = false;
    call();
    if (calls) ++*calls;
    return other_ran ? other_s : own_s;
  };
}

class ProductChoice : public testing::Test {
 public:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  ChosenProducts<float> choose(const Stopwatch& stopwatch, double budget_s = 400) const {
    KeptChoices kept(file());
    return choose_products<float>(shape_, {own_way<float>(), other_way()}, kept, budget_s, stopwatch);
  }
  fs::path file() const { return folder_ / "made" / "products.tsv"; }
  const fs::path& folder() const { return folder_; }

 private:
  const fs::path folder_ = fs::temp_directory_path() / ("product_choice_" + std::to_string(::getpid()));
  const PlanShape shape_{.layers = 1,
                         .heads = 2,
                         .width = 24,
                         .vocab = 65,
                         .padded_vocab = 80,
                         .sequences = 1,
                         .length = 40,
                         .tied_head = false};

 public:
  PlanShape shape_on(int workers) const {
    PlanShape shape = shape_;
    shape.workers = workers;
    return shape;
  }
};

TEST_F(ProductChoice, TakesTheFastestAndKeepsIt) {
  const ChosenProducts<float> chosen = choose(watch(1e-3, 1e-4));
  for (const ProductWay<float>* way : {&chosen.products.attention, &chosen.products.attention_out, &chosen.products.fc,
                                       &chosen.products.fc_out, &chosen.products.head, &chosen.products.gradient})
    EXPECT_EQ(way->name, "other");
  ASSERT_EQ(chosen.lines.size(), 6U);
  EXPECT_EQ(chosen.lines[2],
            "product fc, 40 x 96 x 24 and back, float32, 1 thread: other (own 1.000 ms, other 0.100 ms)");

  int calls = 0;
  const ChosenProducts<float> again = choose(watch(1e-4, 1e-3, &calls));
  EXPECT_EQ(calls, 0) << "kept choices are not timed again";
  EXPECT_EQ(again.lines, chosen.lines);
  EXPECT_EQ(again.products.fc.name, "other");
}

// A library that is fast on one thread may not be so on all.
TEST_F(ProductChoice, TimesAllThreadsAtOnce) {
  static std::atomic<int> inside = 0;
  static std::atomic<bool> have_met = false;
  ProductWay<float> meeting = own_way<float>();
  meeting.multiply_weight = [](const Product& product, const float* packed) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    if (++inside == 2) have_met = true;
    while (!have_met && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    multiply(product, packed);
    --inside;
  };
  KeptChoices kept(file());
  choose_products<float>(shape_on(2), {meeting}, kept, 0.001, wall_clock());
  EXPECT_TRUE(have_met);
}

TEST_F(ProductChoice, IsMadeForEachNumberOfThreads) {
  choose(watch(1e-3, 1e-4));
  KeptChoices kept(file());
  const std::vector<ProductWay<float>> ways = {own_way<float>(), other_way()};
  const ChosenProducts<float> on_two = choose_products<float>(shape_on(2), ways, kept, 400, watch(1e-4, 1e-3));
  EXPECT_EQ(on_two.products.fc.name, "own");
  EXPECT_EQ(on_two.lines[2],
            "product fc, 40 x 96 x 24 and back, float32, 2 threads: own (own 0.100 ms, other over 1.000 ms)");
  EXPECT_EQ(choose(watch(1e-4, 1e-3)).products.fc.name, "other") << "that of one thread is kept";
}

// A product that is fast alone may be slow among the others.
TEST_F(ProductChoice, IsConfirmedByWholeSteps) {
  const auto confirmed = [&](double other_s, int& steps) {
    ChosenProducts<float> chosen = choose(watch(1e-3, 1e-4));
    KeptChoices kept(file());
    const auto step_s = [&](const PlanProducts<float>& products) {
      ++steps;
      return products.fc.name == "other" ? other_s : 2e-3;
    };
    confirm_by_steps<float>(shape_on(1), own_way<float>(), kept, step_s, chosen);
    return chosen;
  };
  int steps = 0;
  const ChosenProducts<float> slower = confirmed(3e-3, steps);
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(slower.products.fc.name, "own");
  ASSERT_EQ(slower.lines.size(), 7U);
  EXPECT_EQ(slower.lines[6],
            "all in a step, 1 layers of 24, 2 heads, 80 tokens, batch 1 x 40, float32, 1 thread: own "
            "(other+other+other+other+other+other 3.000 ms, own 2.000 ms)");
  EXPECT_EQ(confirmed(1e-3, steps).products.fc.name, "own") << "the answer is kept";
  EXPECT_EQ(steps, 2);
  fs::remove(file());
  EXPECT_EQ(confirmed(1e-3, steps).products.fc.name, "other");
  EXPECT_EQ(steps, 4);
}

TEST_F(ProductChoice, TakesCompilesStepOnlyIfItIsFasterByATenthTwice) {
  const auto choice = [&](std::vector<double> plan, double compiled_s) {
    fs::remove(file());
    KeptChoices kept(file());
    const auto plan_s = [&] {
      const double seconds = plan.front();
      plan.erase(plan.begin());
      return seconds;
    };
    const StepChoice first = choose_step<float>(shape_on(1), kept, plan_s, [=] { return compiled_s; });
    EXPECT_TRUE(plan.empty());
    const auto never = []() -> double { throw std::logic_error("it is kept"); };
    KeptChoices again(file());
    const StepChoice second = choose_step<float>(shape_on(1), again, never, never);
    EXPECT_EQ(second.is_plan, first.is_plan);
    EXPECT_EQ(second.timings, first.timings);
    return first;
  };
  EXPECT_TRUE(choice({2e-3}, 3e-3).is_plan);
  EXPECT_TRUE(choice({2e-3}, 1.9e-3).is_plan);
  EXPECT_TRUE(choice({4e-3, 2e-3}, 2e-3).is_plan) << "the machine was busy for a moment";
  const StepChoice slower = choice({4e-3, 3e-3}, 2e-3);
  EXPECT_FALSE(slower.is_plan);
  EXPECT_EQ(slower.timings, "plan 3.000 ms, compile 2.000 ms");
}

TEST_F(ProductChoice, StaysWithTheFirstWayUnlessAnotherIsFasterByATenth) {
  EXPECT_EQ(choose(watch(1e-3, 0.95e-3)).products.fc.name, "own");
}

TEST_F(ProductChoice, TriesASlowWayOnAFewRowsOnly) {
  int calls = 0;
  const ChosenProducts<float> chosen = choose(watch(1e-3, 2, &calls));
  EXPECT_EQ(calls, 6 * 5) << "three times the first way, and twice the other";
  EXPECT_EQ(chosen.lines[0],
            "product qkv, 40 x 72 x 24 and back, float32, 1 thread: own (own 1.000 ms, other over 2000.000 ms)");
}

TEST_F(ProductChoice, EndsWithItsBudgetAndKeepsNothingThen) {
  const ChosenProducts<float> chosen = choose(watch(1e-3, 1e-4), 0);
  EXPECT_EQ(chosen.products.fc.name, "own");
  EXPECT_EQ(chosen.lines[0],
            "product qkv, 40 x 72 x 24 and back, float32, 1 thread: own (not timed: the budget is used up)");
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(ProductChoice, TimesAgainWhatItsFileDoesNotSayRightly) {
  choose(watch(1e-3, 1e-4));
  std::string text;
  {
    std::ifstream stream(file());
    text.assign(std::istreambuf_iterator<char>(stream), {});
  }
  const auto timed_after = [&](const std::string& content) {
    std::ofstream(file()) << content;
    int calls = 0;
    EXPECT_EQ(choose(watch(1e-3, 1e-4, &calls)).products.head.name, "other") << content;
    return calls;
  };
  std::string unknown = text;
  unknown.replace(unknown.find("\tother\t"), 7, "\tnobody\t");
  const int each = 2 * 3 + 2;
  EXPECT_EQ(timed_after(text), 0);
  EXPECT_EQ(timed_after(unknown), each);
  EXPECT_EQ(timed_after(text.substr(0, text.size() - 1)), each) << "the last line is cut off";
  EXPECT_EQ(timed_after(text + "a line\nanother\twith\ttoo\tmany\n"), 0);
  EXPECT_EQ(timed_after("another program's file\n" + text), 6 * each);
  EXPECT_EQ(timed_after(""), 6 * each);
}

TEST_F(ProductChoice, WorksWithoutAFile) {
  std::ofstream(folder() / "made") << "a file where the folder would be";
  EXPECT_EQ(choose(watch(1e-3, 1e-4)).products.fc.name, "other");
  KeptChoices nowhere{fs::path()};
  nowhere.keep("a", {"b", "c"});
  nowhere.save();
  EXPECT_EQ(nowhere.find("a")->name, "b");
}

// Each product by another way than its neighbours, so that what one packs another one would misread.
TEST(MixedProducts, HaveTheLossAndGradientsOfOwnOnes) {
  const fs::path cache = fs::temp_directory_path() / ("mixed_products_" + std::to_string(::getpid()));
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string kept_before = before ? before : "";
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  for (const Autocast autocast : {Autocast::off, Autocast::bf16}) {
    Recipe recipe = tiny_recipe();
    recipe.vocab = 65;
    recipe.autocast = autocast;
    recipe.compile = Compile::max;
    const std::string machine = "mixed " + std::to_string(static_cast<int>(autocast));
    torch::manual_seed(3);
    const Tokens tokens{at::randint(recipe.vocab, {recipe.batch, recipe.seq}, at::kLong),
                        at::randint(recipe.vocab, {recipe.batch, recipe.seq}, at::kLong)};
    const auto gradients = [&](const std::string& on, std::vector<std::string>& lines) {
      torch::manual_seed(5);
      const std::shared_ptr<Gpt> model = build_model(recipe);
      const std::unique_ptr<AdamW> optimizer = make_optimizer(recipe, named_parameters(*model));
      PlannedModel planned(recipe, *model, *optimizer, recipe.batch, on);
      lines = planned.choices();
      planned.forward(tokens, 0);
      planned.backward(0);
      std::vector<at::Tensor> all;
      for (const auto& [name, parameter] : named_parameters(*model)) all.push_back(parameter.grad().flatten().clone());
      return at::cat(all);
    };
    std::vector<std::string> lines;
    const at::Tensor own = gradients("", lines);
    EXPECT_TRUE(lines.empty());
    gradients(machine, lines);  // makes the file
    ASSERT_GE(lines.size(), 6U);
    KeptChoices kept(kept_choices_file(machine));
    for (std::size_t i = 0; i < 6; ++i) {
      const std::size_t begin = lines[i].find(", ") + 2, end = lines[i].find(": ");
      if (i % 2 == 0) kept.keep(lines[i].substr(begin, end - begin), {"LibTorch", "LibTorch 1 ms"});
    }
    kept.save();
    gradients(machine, lines);  // times the whole step
    ASSERT_EQ(lines.size(), 7U);
    const std::size_t key_end = lines[6].find(": "), names = lines[6].find('(') + 1;
    kept.keep(lines[6].substr(0, key_end), {lines[6].substr(names, lines[6].find(' ', names) - names), "as set"});
    kept.save();
    const at::Tensor mixed = gradients(machine, lines);
    EXPECT_NE(lines[0].find(": LibTorch ("), std::string::npos) << lines[0];
    const double gap = (mixed - own).norm().item<double>() / own.norm().item<double>();
    EXPECT_LT(gap, autocast == Autocast::bf16 ? 3e-2 : 1e-5);
  }
  before ? ::setenv("XDG_CACHE_HOME", kept_before.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
  fs::remove_all(cache);
}

}  // namespace
}  // namespace stepladder
