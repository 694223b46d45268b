// Ranks of one trace beside each other, and several traces in one table.
#include "storage/traces/several.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

TracedStep step(int rank, std::int64_t number, double own_ms, double communication_ms) {
  TracedStep made{.rank = rank, .step = number, .dt_ms = own_ms + communication_ms};
  made.ms[static_cast<std::size_t>(OperatorKind::products)] = own_ms;
  made.ms[static_cast<std::size_t>(OperatorKind::communication)] = communication_ms;
  return made;
}

TEST(Ranks, the_rank_for_which_the_others_wait_is_named) {
  TraceProfile profile{.ranks = 3};
  for (int number = 0; number < 5; ++number) {
    const double scatter = 0.1 * (number % 2);
    profile.steps.push_back(step(0, number, 80 + scatter, 20));
    profile.steps.push_back(step(1, number, 95 - scatter, 5));  // waits least
    profile.steps.push_back(step(2, number, 81, 19 + scatter));
  }
  const RankReport report = rank_report(profile);
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_EQ(report.straggler, 1);
  EXPECT_NEAR(report.late_ms, 14.5, 0.2);
  EXPECT_GT(report.noise_ms, 0);
  EXPECT_LT(report.noise_ms, 1);
  EXPECT_NE(report.sentence.find("wait for rank 1"), std::string::npos) << report.sentence;
  EXPECT_NEAR(report.rows[1].own_ms(), 95, 0.1);
}

TEST(Ranks, none_is_named_where_nothing_is_exchanged) {
  TraceProfile profile{.ranks = 2};
  for (int number = 0; number < 4; ++number) {
    profile.steps.push_back(step(0, number, 80 + 0.1 * number, 0));
    profile.steps.push_back(step(1, number, 95, 0));
  }
  const RankReport report = rank_report(profile);
  EXPECT_FALSE(report.straggler);
  EXPECT_NE(report.sentence.find("no communication"), std::string::npos) << report.sentence;
}

TEST(Ranks, none_is_named_within_the_noise_or_from_one_step) {
  TraceProfile profile{.ranks = 2};
  for (int number = 0; number < 4; ++number) {
    profile.steps.push_back(step(0, number, 80 + 8 * (number % 2), 20));
    profile.steps.push_back(step(1, number, 88 - 7 * (number % 2), 12));
  }
  EXPECT_FALSE(rank_report(profile).straggler);
  profile.steps.resize(2);
  const RankReport one = rank_report(profile);
  EXPECT_FALSE(one.straggler);
  EXPECT_TRUE(is_missing(one.noise_ms));
  EXPECT_NE(one.sentence.find("fewer than two steps"), std::string::npos);
  profile.steps.resize(1);
  EXPECT_TRUE(rank_report(profile).rows.empty()) << "one rank has nobody to wait for";
}

TracedOperator row(const std::string& name, double ms, const std::string& shapes = "") {
  return {.time = {.part = "forward", .name = name, .shapes = shapes, .calls = 1, .self_ms = ms}, .busy_ms = ms};
}

TEST(SeveralTraces, rows_are_joined_and_what_is_new_or_gone_is_marked) {
  const std::vector<TracedOperator> first{row("aten::mm", 3, "8x8 8x8"), row("aten::mm", 2, "4x4 4x4"),
                                          row("aten::gelu", 1)};
  const std::vector<TracedOperator> second{row("aten::mm", 4, "8x8 8x8"), row("aten::gelu", 1)};
  const std::vector<TracedOperator> third{row("aten::mm", 4, "8x8 8x8"), row("aten::relu", 9)};
  const std::vector<std::span<const TracedOperator>> all{first, second, third};
  const SeveralTraces made = beside_each_other(all);
  EXPECT_EQ(made.step_ms, (std::vector<double>{6, 5, 13}));
  ASSERT_EQ(made.rows.size(), 3U);
  EXPECT_EQ(made.rows[0].name, "aten::relu");
  EXPECT_TRUE(made.rows[0].is_new());
  EXPECT_EQ(made.rows[1].name, "aten::mm");
  EXPECT_DOUBLE_EQ(made.rows[1].ms[0], 5);
  EXPECT_TRUE(made.rows[2].is_gone());
  EXPECT_DOUBLE_EQ(made.kinds[0][static_cast<std::size_t>(OperatorKind::products)], 5);
}

}  // namespace
}  // namespace stepladder
