#include "storage/speedrun/record_claim.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/storage/speedrun/speedrun_text.h"

namespace stepladder {
namespace {

const std::vector<double> good_losses{3.2781, 3.2769, 3.2790, 3.2775, 3.2772, 3.2779};

RecordRule rule(const char* name = "modded-nanogpt-1") {
  return read_record_rule(std::string(STEPLADDER_SOURCE_DIR) + "/assets/rules/" + name + ".json");
}

// Runs an hour apart whose losses and times differ.
RecordPool pool_of(const std::vector<double>& losses, LogText log = {}, double step_ms = 97.5) {
  RecordPool pool;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    log.final_loss = losses[i];
    log.curve = 0.001 * static_cast<double>(i);
    log.step_ms = step_ms + 0.05 * static_cast<double>(i);
    if (log.date == LogText{}.date || i > 0) log.date.replace(11, 2, std::to_string(10 + i));
    SpeedrunLog read = read_speedrun_log(log.text(), {});
    read.file = "folder/" + std::to_string(i) + ".txt";
    pool.add(std::move(read));
  }
  return pool;
}

RecordPool record_pool(LogText log = {}) {
  log.script += "# the record so far\n";
  log.curve = 0.5;
  RecordPool pool = pool_of({3.2788, 3.2779, 3.2791, 3.2782}, log, 101);
  for (SpeedrunLog& it : pool.logs)
    for (PrintedEvaluation& evaluation : it.evaluations) evaluation.value += 0.5;
  return pool;
}

std::vector<std::string> ids(const RecordClaim& claim) {
  std::vector<std::string> list;
  for (const RecordFlag& flag : claim.flags) list.push_back(flag.id);
  return list;
}

RecordClaim judge(const RecordPool& pool, const RecordPool& baseline, ClaimOptions options = {}) {
  return judge_record(pool, &baseline, rule(), options);
}

using Ids = std::vector<std::string>;

TEST(RecordClaim, passes_a_clean_record) {
  const RecordPool baseline = record_pool();
  const RecordClaim claim = judge(pool_of(good_losses), baseline);
  EXPECT_EQ(ids(claim), Ids{});
  EXPECT_EQ(claim.verdict, RecordVerdict::record) << claim.reason;
  EXPECT_EQ(claim.metric.n, 6u);
  EXPECT_NEAR(claim.metric.mean, 3.277766666666667, 1e-12);
  EXPECT_NEAR(claim.p, 0.00030, 0.0002);
  EXPECT_NEAR(claim.speedup, 101.075 / 97.625, 2e-4);
  EXPECT_LT(claim.speedup_ci95.low, claim.speedup);
  EXPECT_GT(claim.speedup_ci95.low, 1);
  EXPECT_GT(claim.needed_n, 1);
  EXPECT_LE(claim.needed_n, 7);
}

TEST(RecordClaim, a_second_value_of_the_last_step_is_flagged_and_does_not_count) {
  const LogText log;
  const std::string plain = log.text();
  const std::string last = plain.substr(plain.rfind("step:", plain.rfind("val_loss:")));
  const std::string better = "val_loss:3.2000" + last.substr(last.find(' ', last.find("val_loss:")));
  const std::string again = last.substr(0, last.find("val_loss:")) + better;
  for (const std::string& other : {"ema weights: " + again, again}) {
    const SpeedrunLog read = read_speedrun_log(plain + other, {});
    EXPECT_EQ(read.final.value, read_speedrun_log(plain, {}).final.value) << other;
    EXPECT_EQ(read.other_final, 3.2) << other;
  }
  RecordPool pool = pool_of(good_losses);
  pool.logs[2].other_final = 3.2;
  EXPECT_EQ(ids(judge(pool, record_pool())), Ids{"two-final-values"});
}

TEST(RecordClaim, near_copies_and_other_validation_sets_are_flagged) {
  RecordPool pool = pool_of(good_losses, {.steps = 600});
  ASSERT_GE(pool.logs[0].evaluations.size(), 6u);
  pool.logs[3].evaluations = pool.logs[0].evaluations;
  for (std::size_t i = 0; i < pool.logs[3].evaluations.size(); ++i)
    pool.logs[3].evaluations[i].value += i % 2 == 0 ? 1e-4 : -1e-4;
  EXPECT_EQ(ids(judge(pool, record_pool({.steps = 600}))), Ids{"same-curve"});
  pool = pool_of(good_losses);
  for (SpeedrunLog& log : pool.logs) log.val_tokens = 1024;
  EXPECT_EQ(ids(judge(pool, record_pool())), Ids{"val-tokens"});
  EXPECT_EQ(ids(judge(pool_of(good_losses, {.gpus = 0}), record_pool())), Ids{"gpu-models"}) << "named by one side";
  EXPECT_EQ(ids(judge(pool_of(good_losses), record_pool({.gpus = 0}))), Ids{"gpu-models"});
  EXPECT_EQ(ids(judge(pool_of(good_losses, {.gpus = 0}), record_pool({.gpus = 0}))), Ids{});
}

TEST(RecordClaim, verdicts_follow_the_figures) {
  const RecordPool baseline = record_pool();
  EXPECT_EQ(judge(pool_of({3.2811, 3.2799, 3.2820}), baseline).verdict, RecordVerdict::misses);
  EXPECT_EQ(judge(pool_of({3.2790, 3.2799, 3.2802}), baseline).verdict, RecordVerdict::cannot_tell);
  EXPECT_EQ(judge(pool_of({3.27}), baseline).verdict, RecordVerdict::cannot_tell);
  EXPECT_EQ(judge_record(pool_of(good_losses), nullptr, rule(), {}).verdict, RecordVerdict::cannot_tell);
  EXPECT_EQ(judge_record(pool_of(good_losses), nullptr, {}, {}).verdict, RecordVerdict::cannot_tell);
  EXPECT_EQ(judge(pool_of(good_losses, {}, 105), baseline).verdict, RecordVerdict::misses);          // slower
  EXPECT_EQ(judge(pool_of(good_losses, {}, 100.95), baseline).verdict, RecordVerdict::cannot_tell);  // no faster
  EXPECT_EQ(judge({}, baseline).verdict, RecordVerdict::cannot_tell);
  EXPECT_EQ(judge(pool_of({3.27, NAN, 3.27}), baseline).verdict, RecordVerdict::misses);
  EXPECT_EQ(judge(pool_of({3.2790, 3.2799, 3.2802}), baseline, {.systems_only = true}).verdict, RecordVerdict::record);
}

TEST(RecordClaim, other_rules) {
  const RecordClaim third =
      judge_record(pool_of({3.2775, 3.2785, 3.2780, 3.2779}), nullptr, rule("modded-nanogpt-3"), {});
  EXPECT_EQ(third.verdict, RecordVerdict::record) << third.reason;  // 0.002025 * 2 >= 0.004
  EXPECT_EQ(third.needed_n, 4);
  EXPECT_TRUE(is_missing(third.p));
  EXPECT_EQ(judge_record(pool_of({3.2775, 3.2785, 3.2780}), nullptr, rule("modded-nanogpt-3"), {}).verdict,
            RecordVerdict::cannot_tell);
  EXPECT_EQ(judge_record(pool_of(good_losses, {.script = ""}), nullptr, rule("modded-nanogpt-3"), {}).flags.front().id,
            "no-script");
  RecordRule higher = rule("nanochat");
  higher.faster_than_baseline = false;
  EXPECT_EQ(judge_record(pool_of({0.2575, 0.2590}), nullptr, higher, {}).verdict, RecordVerdict::record);
  EXPECT_EQ(judge_record(pool_of({0.2475, 0.2590}), nullptr, higher, {}).verdict, RecordVerdict::misses);
  const RecordPool baseline = record_pool();
  const RecordClaim golf = judge_record(pool_of({3.27, 3.2705, 3.2703}), &baseline, rule("parameter-golf"), {});
  EXPECT_EQ(golf.verdict, RecordVerdict::record) << golf.reason;
  EXPECT_LT(golf.p, 0.01);
  EXPECT_EQ(judge_record(pool_of({3.2745, 3.2740, 3.2748}), &baseline, rule("parameter-golf"), {}).verdict,
            RecordVerdict::misses);  // better, but by less than 0.005
}

TEST(RecordClaim, a_systems_only_change_leaves_the_loss_where_it_was) {
  const RecordPool baseline = record_pool();
  const auto waived = [&](const std::vector<double>& losses) {
    return judge(pool_of(losses), baseline, {.systems_only = true});
  };
  const RecordClaim worse = waived({3.4990, 3.4999, 3.5002, 3.4995});
  EXPECT_EQ(worse.verdict, RecordVerdict::misses);
  EXPECT_NE(worse.reason.find("isn't systems-only"), std::string::npos) << worse.reason;
  EXPECT_EQ(waived({3.2795, 3.2799, 3.2790}).verdict, RecordVerdict::record);
  EXPECT_EQ(waived({3.2690, 3.2695, 3.2700}).verdict, RecordVerdict::record) << "a better loss is none that gave way";
  EXPECT_EQ(judge_record(pool_of({3.5}), &baseline, rule(), {.systems_only = true}).verdict,
            RecordVerdict::cannot_tell);
}

TEST(RecordFlags, copies_of_one_run) {
  RecordPool pool = pool_of(good_losses, {.steps = 600});
  for (std::size_t i = 0; i < pool.logs.size(); ++i) {  // the first one's curve, but for a constant
    pool.logs[i].evaluations = pool.logs[0].evaluations;
    for (PrintedEvaluation& it : pool.logs[i].evaluations) it.value += 0.002 * static_cast<double>(i);
  }
  EXPECT_EQ(ids(judge(pool, record_pool({.steps = 600}))), Ids{"same-curve"});
  // Final values that scatter by a fiftieth of the baseline's.
  EXPECT_EQ(ids(judge(pool_of({3.27780, 3.27781, 3.27780, 3.27782, 3.27779, 3.27781}),
                      pool_of({3.2788, 3.2769, 3.2799, 3.2772, 3.2790, 3.2775},
                              {.script = LogText{}.script + "# before\n", .curve = 0.5}, 101))),
            Ids{"little-scatter"});
}

TEST(RecordFlags, a_clock_whose_columns_disagree) {
  const auto with = [](double factor, std::int64_t left_out) {
    RecordPool pool = pool_of(good_losses);
    for (SpeedrunLog& log : pool.logs)
      for (ClockReading& it : log.clock) {
        it.average_ms = it.step > left_out ? it.time_ms / static_cast<double>(it.step - left_out) : missing;
        it.time_ms *= factor;
      }
    return ids(judge(pool, record_pool()));
  };
  EXPECT_EQ(with(1, 0), Ids{});
  EXPECT_EQ(with(1, 10), Ids{}) << "modded-nanogpt's once left out ten steps";
  EXPECT_EQ(with(0.85, 0), Ids{"clock-columns"});
  EXPECT_EQ(with(1.0 / 60, 0), Ids{"clock-columns"});
  const SpeedrunLog read = read_speedrun_log(LogText{}.text(), {});
  EXPECT_NEAR(read.clock.back().average_ms, 97.5, 0.01);
}

TEST(RecordFlags, a_clock_that_runs_backwards_in_few_readings) {
  RecordPool pool = pool_of(good_losses);
  for (SpeedrunLog& log : pool.logs)
    std::erase_if(log.clock, [](const ClockReading& it) { return it.step % 100 != 0; });
  EXPECT_EQ(ids(judge(pool, record_pool())), Ids{});
  ClockReading& last = pool.logs[2].clock.back();
  last.time_ms = 0.8 * (pool.logs[2].clock.end() - 2)->time_ms;
  last.average_ms = missing;
  const RecordClaim claim = judge(pool, record_pool());
  EXPECT_EQ(ids(claim), Ids{"clock-backwards"});
  EXPECT_EQ(claim.verdict, RecordVerdict::flagged);
}

TEST(RecordFlags, evaluations_that_are_no_numbers_before_the_last) {
  RecordPool pool = pool_of(good_losses);
  (pool.logs[1].evaluations.end() - 2)->value = missing;
  EXPECT_EQ(ids(judge(pool, record_pool())), Ids{"lost-evaluations"});
}

TEST(RecordFlags, a_plan_counts_runs_that_were_hidden) {
  RecordPool pool = pool_of(good_losses);
  const std::string loser = LogText{.final_loss = 3.3}.text();
  std::string renamed = loser;
  for (std::size_t at = 0; (at = renamed.find("val_loss", at)) != std::string::npos;)
    renamed.replace(at, 8, "loss_val");
  for (const std::string& text : {loser + loser, renamed, std::string()}) {
    RecordPool with = pool;
    SpeedrunLog log = read_speedrun_log(text, {});
    log.file = "folder/hidden.txt";
    with.add(std::move(log));
    ASSERT_EQ(with.excluded.size(), 1u);
    EXPECT_EQ(ids(judge(with, record_pool(), {.plan = 6})), Ids{"plan-not-kept"});
    EXPECT_EQ(ids(judge(with, record_pool(), {.plan = 7})), Ids{});
  }
}

TEST(RecordFlags, what_the_project_says_and_failed_runs) {
  RecordPool pool = pool_of(good_losses);
  pool.logs[1].doubt_id = pool.logs[3].doubt_id = "impossible-throughput";
  pool.logs[1].doubt = "above the peak";
  const RecordClaim claim = judge(pool, record_pool());
  EXPECT_EQ(ids(claim), Ids{"impossible-throughput"});
  EXPECT_NE(claim.flags[0].why.find("above the peak (and so in 2 of 6 runs)"), std::string::npos) << claim.flags[0].why;
  pool = pool_of(good_losses);
  pool.excluded.push_back(
      {.file = "folder/02.failed-1.log", .why = "is of a run whose command failed", .failed = true});
  EXPECT_EQ(ids(judge(pool, record_pool())), Ids{"failed-runs"});
}

TEST(RecordFlags, of_the_pool) {
  const RecordPool baseline = record_pool();
  const auto with = [&](LogText odd) {
    RecordPool pool = pool_of(good_losses);
    odd.curve = 0.7;
    SpeedrunLog log = read_speedrun_log(odd.text(), {});
    log.file = "folder/odd.txt";
    pool.add(std::move(log));
    return judge(pool, baseline);
  };
  const std::string other_script = LogText{}.script + "x = 1\n";
  EXPECT_EQ(ids(with({.curve = 1})), Ids{});
  EXPECT_EQ(ids(with({.script = other_script})), Ids{"several-scripts"});
  EXPECT_EQ(ids(with({.torch = "2.10.0"})), Ids{"torch-versions"});
  EXPECT_EQ(ids(with({.driver = "570.1"})), Ids{"driver-versions"});
  EXPECT_EQ(ids(with({.gpu = "NVIDIA A100"})), Ids{"gpu-models"});
  EXPECT_EQ(ids(with({.gpus = 4})), Ids{"gpu-counts"});
  EXPECT_EQ(ids(with({.steps = 420})), Ids{"step-counts"});
  EXPECT_EQ(ids(with({.printed = 200})), Ids{"unfinished-logs"});
  EXPECT_EQ(ids(with({.clock_restart = 10})), Ids{"clock-starts-late"});
  EXPECT_EQ(ids(with({.stopped_clock_at = 200})), Ids{"clock-gap"});
  EXPECT_EQ(ids(with({.slow_clock_from = 150})), Ids{"clock-gap"});
  EXPECT_EQ(ids(with({.slower_from = 200})), Ids{});
  EXPECT_EQ(ids(with({.shorter_from = 200})), Ids{}) << "sequences get shorter, or layers are frozen";
  const RecordClaim claim = with({.script = other_script});
  EXPECT_EQ(claim.verdict, RecordVerdict::flagged);
  EXPECT_NE(claim.flags[0].why.find("0 lines removed, 1 added: + x = 1"), std::string::npos) << claim.flags[0].why;
  const RecordClaim late = with({.step_ms = 98, .clock_restart = 10});
  EXPECT_NE(late.flags[0].why.find("9 x 98.0 ms = 0.88 s"), std::string::npos) << late.flags[0].why;
  const RecordClaim comment = with({.script = LogText{}.script + "# more\n"});
  EXPECT_NE(comment.flags[0].why.find("only comments"), std::string::npos);
}

TEST(RecordFlags, a_gain_that_is_one_slow_step_of_the_baseline) {
  const auto with = [](int slow_step, double slow_ms) {
    RecordPool baseline = record_pool();
    for (SpeedrunLog& log : baseline.logs) {
      for (ClockReading& it : log.clock)
        it.time_ms = it.time_ms * 97.5 / 101 + (it.step >= slow_step ? slow_ms : 0), it.average_ms = missing;
      log.final.time_ms = log.clock.back().time_ms;
    }
    return ids(judge(pool_of(good_losses), baseline));
  };
  EXPECT_EQ(with(170, 3000), Ids{"uneven-steps"});
  EXPECT_EQ(with(1, 3000), Ids{}) << "compiling, which the record's clock includes";
  EXPECT_EQ(ids(judge(pool_of(good_losses), record_pool())), Ids{});
}

TEST(RecordFlags, copies_and_seeds) {
  const RecordPool baseline = record_pool();
  RecordPool pool = pool_of(good_losses);
  pool.add(pool.logs[2]);
  EXPECT_EQ(ids(judge(pool, baseline)), Ids{"same-curve"});
  pool = pool_of(good_losses);
  pool.logs[0].seed = "1";
  pool.logs[1].seed = "2";
  EXPECT_EQ(ids(judge(pool, baseline)), Ids{});
  pool.logs[1].seed = "1";
  EXPECT_EQ(ids(judge(pool, baseline)), Ids{"equal-seeds"});
}

TEST(RecordFlags, of_the_baseline) {
  const RecordPool pool = pool_of(good_losses);
  EXPECT_EQ(ids(judge(pool, record_pool({.bus = "77"}))), Ids{"baseline-other-node"});
  EXPECT_EQ(ids(judge(pool, record_pool({.date = "Mon Sep  1 19:58:00 2025"}))), Ids{"baseline-other-day"});
  EXPECT_EQ(ids(judge(pool, record_pool({.torch = "2.10.0"}))), Ids{"torch-versions"});
  const RecordPool elsewhere = record_pool({.torch = "2.10.0", .bus = "77"});
  EXPECT_EQ(judge_record(pool, &elsewhere, rule("modded-nanogpt-3"), {}).flags.size(), 0u);
}

TEST(RecordFlags, runs_added_until_p_is_low) {
  const RecordPool baseline = record_pool();
  // p is 0.02 after four runs and below 0.01 with the fifth.
  const std::vector<double> added{3.2779, 3.2796, 3.2784, 3.2786, 3.2785};
  const RecordClaim claim = judge(pool_of(added), baseline);
  ASSERT_LT(claim.p, 0.01);
  EXPECT_EQ(ids(claim), Ids{"runs-added"}) << claim.p;
  EXPECT_EQ(ids(judge(pool_of(added), baseline, {.plan = 5})), Ids{});
  EXPECT_EQ(ids(judge(pool_of(added), baseline, {.plan = 4})), Ids{"plan-not-kept"});
  EXPECT_EQ(ids(judge(pool_of(good_losses), baseline)), Ids{});
}

// The window says the flags beside it.
TEST(RecordClaim, the_finding_is_the_reason_without_the_flags) {
  RecordPool pool = pool_of(good_losses);
  EXPECT_EQ(judge_record(pool, nullptr, {}, {}).finding, "no rule was given");
  const RecordClaim flagged = judge_record(pool, nullptr, rule(), {.plan = 7});
  ASSERT_EQ(flagged.verdict, RecordVerdict::flagged);
  EXPECT_TRUE(flagged.finding.starts_with("the mean val_loss is")) << flagged.finding;
  EXPECT_TRUE(flagged.reason.ends_with(flagged.finding)) << flagged.reason;
  EXPECT_EQ(judge_record({}, nullptr, {}, {}).reason, "no log holds a finished run");
}

}  // namespace
}  // namespace stepladder
