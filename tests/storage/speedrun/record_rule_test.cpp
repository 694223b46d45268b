#include "storage/speedrun/record_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

TEST(RecordRule, shipped_rules_are_read) {
  const std::filesystem::path assets = std::string(STEPLADDER_SOURCE_DIR) + "/assets";
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(assets / "rules")) {
    const RecordRule rule = read_record_rule(file.path());
    EXPECT_EQ(rule.name, file.path().stem());
    EXPECT_TRUE(rule.source.starts_with("https://")) << rule.name;
    EXPECT_EQ(rule.date.size(), 10u) << rule.name;
    ++count;
  }
  EXPECT_EQ(count, 5);
  const RecordRule first = find_record_rule("modded-nanogpt-1", assets);
  EXPECT_EQ(first.target, 3.28);
  EXPECT_EQ(first.alpha, 0.01);
  EXPECT_EQ(first.test, RecordTest::t);
  EXPECT_TRUE(first.faster_than_baseline && first.same_hardware && first.systems_only_waiver && first.lower_wins);
  EXPECT_EQ(find_record_rule("modded-nanogpt-2", assets).target, 2.92);
  EXPECT_EQ(find_record_rule("modded-nanogpt-3", assets).margin, 0.004);
  EXPECT_FALSE(find_record_rule("nanochat", assets).lower_wins);
  EXPECT_THROW(find_record_rule("../modded-nanogpt-1", assets), UnknownRule);
}

TEST(RecordRule, a_bad_file_is_a_sentence_with_file_and_key) {
  const TemporaryFolder folder;
  const auto complaint = [&](const std::string& text) -> std::string {
    const std::filesystem::path file = folder.path() / "mine.json";
    std::ofstream(file) << text;
    try {
      read_record_rule(file);
    } catch (const RuleError& error) {
      return std::string(error.what()).substr(file.string().size());
    }
    return "accepted";
  };
  const std::string good =
      R"("title": "Mine", "metric": "val_loss", "direction": "lower", "test": "t", "source": "me", "date": "2026-01-01")";
  EXPECT_EQ(complaint("{" + good + R"(, "target": 3, "alpha": 0.05})"), "accepted");
  EXPECT_EQ(complaint("{" + good + R"(, "target": 3})"), ": \"alpha\" is missing; the test needs a level");
  EXPECT_EQ(complaint("{" + good + R"(, "target": null, "alpha": 0.05})"), ": \"target\" is missing");
  EXPECT_EQ(complaint("{" + good + R"(, "target": 3, "alpha": 5})"), ": \"alpha\" must be a number between 0 and 1");
  EXPECT_EQ(complaint("{" + good + R"(, "target": "3", "alpha": 0.05})"), ": \"target\" must be a number");
  EXPECT_EQ(complaint("{" + good + R"(, "target": 3, "alpha": 0.05, "taget": 3})"),
            ": \"taget\" is not a key of a rule");
  EXPECT_EQ(complaint("{" + good + R"(, "target": 3, "alpha": 0.05, "same_hardware": 1})"),
            ": \"same_hardware\" must be true or false");
  EXPECT_EQ(complaint(R"({"title": "Mine", "metric": "loss"})"),
            ": \"metric\" must be one of val_loss, val_bpb, core_metric");
  EXPECT_EQ(complaint("{\n\"title\" 3}"), ":2: this isn't JSON");
  EXPECT_EQ(complaint("[]"), ":1: a rule must be a JSON object");
  EXPECT_EQ(complaint(""), ":1: this isn't JSON");
}

TEST(RecordRule, TheNearestTargetIsOnlyNearWithinTwoPercent) {
  const std::vector<RecordRule> rules{{.name = "small", .metric = "val_loss", .target = 3.28},
                                      {.name = "medium", .metric = "val_loss", .target = 2.92},
                                      {.name = "open", .metric = "val_loss"},
                                      {.name = "other", .metric = "core_metric", .target = 3.27}};
  const auto name = [&](double mean) {
    const RecordRule* rule = nearest_rule(rules, "val_loss", mean);
    return rule ? rule->name : "none";
  };
  EXPECT_EQ(name(3.27), "small");
  EXPECT_EQ(name(2.95), "medium");
  EXPECT_EQ(name(2.3), "none");
  EXPECT_EQ(name(NAN), "none");
  for (const std::size_t first : {0, 1}) {
    std::vector<RecordRule> tracks{rules[first], rules[first], rules[1 - first]};
    EXPECT_EQ(nearest_rule(tracks, "val_loss", rules[first].target), nullptr) << "nobody knows which track it is";
    EXPECT_NE(nearest_rule(tracks, "val_loss", rules[1 - first].target), nullptr);
  }
}

}  // namespace
}  // namespace stepladder
