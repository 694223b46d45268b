#include "app/launch/sweep.h"

#include <gtest/gtest.h>

#include "engine/rungs.h"

namespace stepladder {
namespace {

LadderRequest sweep(std::initializer_list<const char*> texts, int repeats = 1) {
  std::vector<SweptValue> swept;
  for (const char* text : texts) swept.push_back(parse_swept_value(text));
  LadderRequest request;
  request.repeats = repeats;
  return sweep_request(request, swept);
}

std::string complaint(std::initializer_list<const char*> texts, int repeats = 1) {
  try {
    sweep(texts, repeats);
  } catch (const RecipeError& error) {
    return error.what();
  }
  return "";
}

TEST(Sweep, HasEveryCombinationOnceAndSeedsAreItsRepeats) {
  const LadderRequest request = sweep({"lr=1e-4,3e-4", "seed=1,2,3", "batch=4,8"});
  EXPECT_EQ(rungs_text(request.rungs), "baseline:lr=1e-4:batch=4,lr=1e-4:batch=8,lr=3e-4:batch=4,lr=3e-4:batch=8");
  EXPECT_EQ(request.seeds, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(request.repeats, 3);
  const LadderPlan plan = plan_ladder(Recipe{}, request.rungs, DeviceReport{}, request.climb);
  ASSERT_EQ(plan.rungs.size(), 4u);
  EXPECT_EQ(plan.rungs[1].recipe.lr, 1e-4);
  EXPECT_EQ(plan.rungs[1].recipe.batch, 8);
  EXPECT_EQ(plan.rungs[2].recipe.lr, 3e-4);
  EXPECT_EQ(plan.rungs[2].recipe.batch, 4);
}

TEST(Sweep, OneValueBesideListsIsOfTheRecipeAndInNoName) {
  const LadderRequest request = sweep({"batch=8", "lr=1e-4,3e-4"});
  EXPECT_EQ(rungs_text(request.rungs), "baseline:lr=1e-4,lr=3e-4");
  EXPECT_EQ(request.base.batch, 8);
  EXPECT_EQ(rungs_text(sweep({"batch=8"}).rungs), "baseline:batch=8");
}

TEST(Sweep, SeedsAloneAreRepeatsOfTheBaseline) {
  const LadderRequest request = sweep({"seed=1,2"});
  EXPECT_EQ(rungs_text(request.rungs), "baseline");
  EXPECT_EQ(request.repeats, 2);
}

TEST(Sweep, SaysWhatIsWrong) {
  EXPECT_EQ(complaint({"lr"}), "--over: 'lr' has no values; write it like lr=1e-4,3e-4");
  EXPECT_EQ(complaint({"lr="}), "--over: lr has an empty list of values; write it like lr=1e-4,3e-4");
  EXPECT_EQ(complaint({"lr=1e-4,,3e-4"}), "--over: lr must be a number, not ''");
  EXPECT_EQ(complaint({"lr=1e-4,many"}), "--over: lr must be a number, not 'many'");
  EXPECT_NE(complaint({"batsch=1,2"}).find("did you mean batch?"), std::string::npos);
  EXPECT_NE(complaint({"lr=1,1"}).find("lists 1 twice"), std::string::npos);
  EXPECT_NE(complaint({"lr=1,2", "lr=3"}).find("lr is swept twice"), std::string::npos);
  EXPECT_NE(complaint({"seed=1,2"}, 3).find("--repeats"), std::string::npos);
  EXPECT_EQ(complaint({"lr=1,2,3", "batch=1,2"}, 500),
            "--over: 3 x 2 x 500 repeats are too many: a sweep has at most 1,000 runs");
}

TEST(Sweep, SeedsAloneAreRepeatsOfTheRungsThatAreThere) {
  LadderRequest request;
  request.rungs = parse_rungs("baseline,bf16");
  request = sweep_request(request, {parse_swept_value("seed=1,2")});
  EXPECT_EQ(rungs_text(request.rungs), "baseline,bf16");
  EXPECT_EQ(request.seeds, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(request.climb, Climb::together);
}

TEST(Sweep, ItsTextIsReadAsTheSame) {
  const SweptValue swept{"data", {"a,b.txt", "c:d.txt"}};
  EXPECT_EQ(text_of(swept), "data=a\\,b.txt,c\\:d.txt");
  EXPECT_EQ(parse_swept_value(text_of(swept)).values, swept.values);
}

}  // namespace
}  // namespace stepladder
