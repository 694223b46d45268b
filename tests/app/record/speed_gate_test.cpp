#include "app/record/speed_gate.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "app/record/machine.h"
#include "app/record/run_doubt.h"
#include "storage/record_fields.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

GateSample sample(std::vector<double> values, FigureBy by = FigureBy::throughput) {
  return {{.by = by}, "s/step", std::move(values), machine_fingerprint()};
}

GateSample accuracies(std::vector<double> values, bool lower = false) {
  GateSample metric = sample(std::move(values), FigureBy::metric);
  metric.question.metric.metric = "acc";
  metric.question.lower_is_better = lower;
  return metric;
}

TEST(SpeedGate, a_metric_may_have_either_direction_and_any_sign) {
  const std::vector<double> low{0.700, 0.701, 0.699}, high{0.750, 0.751, 0.749};
  const auto turns = [](const GateSample& base, const GateSample& now) {
    return judge_turns(base, now, 0.01, 0.05).answer;
  };
  EXPECT_EQ(turns(accuracies(low), accuracies(high)), GateAnswer::passes);
  EXPECT_EQ(turns(accuracies(high), accuracies(low)), GateAnswer::worse);
  EXPECT_EQ(turns(accuracies(low, true), accuracies(high, true)), GateAnswer::worse);
  EXPECT_EQ(judge_gate(accuracies(high), accuracies(low), 0.01).answer, GateAnswer::worse);
  EXPECT_EQ(judge_gate(accuracies(low), accuracies(high), 0.01).answer, GateAnswer::passes);
  EXPECT_EQ(turns(accuracies({-5, -5.01, -4.99}), accuracies({-6, -6.01, -5.99})), GateAnswer::worse);
  EXPECT_EQ(turns(accuracies({-5, -5.01, -4.99}), accuracies({-3, -3.01, -2.99})), GateAnswer::passes);
  EXPECT_EQ(turns(accuracies({-5, -5.01, -4.99}), accuracies({40, 41, 42})), GateAnswer::passes);
  EXPECT_THROW(turns(accuracies({0, 0, 0}), accuracies({1, 2, 3})), StorageError) << "no share of nothing";
}

TEST(SpeedGate, the_factor_of_a_metric_has_no_pole) {
  const GateSample low = accuracies({0.300, 0.301, 0.299}), high = accuracies({0.590, 0.591, 0.589});
  EXPECT_NEAR(judge_turns(low, high, 0.01, 0.05).factor, 59.0 / 30, 0.01);
  EXPECT_NEAR(judge_gate(high, low, 0.01).factor, 30.0 / 59, 0.01);
  EXPECT_NEAR(judge_turns(accuracies({0.3, 0.301}, true), accuracies({0.6, 0.602}, true), 0.01, 0.05).factor, 0.5,
              0.01);
}

TEST(RunDoubt, names_the_flag_of_a_run_with_each_step_twice) {
  stepladder::Run run{.status = RunStatus::finished, .source = "import", .tokens_per_step = 100};
  Series series;
  for (std::int64_t step = 1; step <= 40; ++step)
    series.append(
        {.step = step, .loss = 3 - static_cast<double>(step) / 100, .dt_ms = 100 + static_cast<double>(step % 3)});
  Summary summary = summarise(run, series);
  summary.repeated_steps = 40;
  const MeasuredRun twice{&run, &summary, &series};
  const DoubtedGain found = doubt_of({&twice, 1}, {&twice, 1}, {}, true);
  EXPECT_EQ(found.doubt, RunDoubt::cannot_tell);
  EXPECT_NE(found.reason.find("written more than once"), std::string::npos) << found.reason;
}

// 40 steps of 100 or 80 ms in a process of `wall_s`.
LoadedRun timed_run(double dt_ms, double wall_s) {
  LoadedRun run;
  run.run = {.status = RunStatus::finished, .source = "import", .started_at = 1000, .tokens_per_step = 100};
  run.run.ended_at = 1000 + wall_s;
  for (std::int64_t step = 1; step <= 40; ++step)
    run.series.append({.step = step,
                       .loss = 3.9137 - 0.0101 * static_cast<double>(step),
                       .dt_ms = dt_ms + static_cast<double>(step % 3)});
  run.summary = summarise(run.run, run.series);
  return run;
}

TEST(RunDoubt, one_whole_run_hides_no_short_ones) {
  LoadedRun whole = timed_run(80, missing), cut = whole;
  cut.series = {};
  for (std::size_t i = 0; i < 20; ++i) cut.series.append(record_of(whole.series, i));
  cut.summary = summarise(cut.run, cut.series);
  const auto doubt = [](const std::vector<LoadedRun>& after) {
    const std::vector<LoadedRun> before(3, timed_run(100, missing));
    return doubt_of(measured(before), measured(after), {}, true);
  };
  EXPECT_EQ(doubt({whole, whole, cut}).doubt, RunDoubt::none) << "one may have ended early";
  const DoubtedGain found = doubt({whole, cut, cut});
  EXPECT_EQ(found.doubt, RunDoubt::guard);
  EXPECT_EQ(found.reason, "it trains for 20 steps, and the other side for 40 steps");
}

TEST(RunDoubt, says_where_the_clock_of_the_processes_differs_from_the_printed_one) {
  const auto note = [](double before_s, double after_s) {
    const std::vector<LoadedRun> before{timed_run(100, before_s)}, after{timed_run(80, after_s)};
    const DoubtedGain found = doubt_of(measured(before), measured(after), {}, true);
    EXPECT_EQ(found.doubt, RunDoubt::none) << found.reason;
    return found.note;
  };
  EXPECT_NE(note(0.1, 0.1).find("nobody measured them"), std::string::npos);
  EXPECT_EQ(note(0.1, 3.7).find("the other side's process took 100 ms"), 0u);
  EXPECT_NE(note(4.5, 4.6).find("its processes took 4.60 s on average, and the other side's 4.50 s"),
            std::string::npos);
  EXPECT_EQ(note(4.5, 3.7), "");
  EXPECT_EQ(note(missing, missing), "");
}

TEST(SpeedGate, copies_do_not_pass) {
  const GateSample baseline = sample({0.1, 0.1, 0.1}), now = sample({0.09, 0.09, 0.09});
  GateJudgement judged = judge_gate(baseline, now, 0.01);
  check_pass(judged, baseline, now);
  EXPECT_EQ(judged.answer, GateAnswer::cannot_tell) << judged.reason;
  judged = judge_gate(baseline, baseline, 0.01);
  check_pass(judged, baseline, baseline);
  EXPECT_EQ(judged.answer, GateAnswer::passes) << judged.reason;
}

TEST(SpeedGate, answers_by_interval_and_tolerance) {
  const GateSample baseline = sample({0.100, 0.101, 0.099, 0.1005, 0.0995});
  const auto answer = [&](std::vector<double> values, double tolerance = 0.01) {
    return judge_gate(baseline, sample(std::move(values)), tolerance).answer;
  };
  EXPECT_EQ(answer({0.1000, 0.1005, 0.0998, 0.1002, 0.0995}), GateAnswer::passes);
  EXPECT_EQ(answer({0.090, 0.091, 0.0905, 0.0899, 0.0901}), GateAnswer::passes);  // faster
  EXPECT_EQ(answer({0.105, 0.106, 0.1055, 0.1049, 0.1051}), GateAnswer::slower);
  EXPECT_EQ(answer({0.105, 0.106, 0.1055, 0.1049, 0.1051}, 0.10), GateAnswer::passes);
  EXPECT_EQ(answer({0.09, 0.12}), GateAnswer::cannot_tell);
  EXPECT_EQ(answer({0.1}), GateAnswer::cannot_tell);
  const GateSample loss = sample({3.28, 3.28, 3.28}, FigureBy::loss);
  EXPECT_EQ(judge_gate(loss, loss, 0.01).answer, GateAnswer::passes);  // the same to the last digit
  EXPECT_EQ(judge_gate(loss, sample({3.6, 3.6, 3.6}, FigureBy::loss), 0.01).answer, GateAnswer::worse);
}

TEST(SpeedGate, equal_figures_are_known_to_their_last_digit_only) {
  const auto metric = [](std::vector<double> values) { return accuracies(std::move(values), true); };
  const GateJudgement coarse = judge_gate(metric({2, 2, 2}), metric({2, 2, 2}), 0.01);  // seconds of a coarse clock
  EXPECT_EQ(coarse.answer, GateAnswer::cannot_tell);
  EXPECT_LT(coarse.ci95.low, 0.7);
  EXPECT_GT(coarse.ci95.high, 1.4);
  EXPECT_EQ(judge_turns(metric({2, 2, 2}), metric({2, 2, 2}), 0.01, 0.05).answer, GateAnswer::cannot_tell);
  EXPECT_EQ(judge_turns(metric({2.0001, 2.0001}), metric({2.0001, 2.0001}), 0.01, 0.05).answer, GateAnswer::passes);
  GateSample ticks = sample({0.1, 0.1, 0.1});
  EXPECT_EQ(judge_gate(ticks, ticks, 0.01).answer, GateAnswer::passes) << "a timer's own figures";
  ticks.resolution = 0.02;  // steps of 100 ms by a clock of 20 ms
  EXPECT_EQ(judge_gate(ticks, ticks, 0.01).answer, GateAnswer::cannot_tell);
}

TEST(SpeedGate, times_of_another_machine_say_nothing) {
  GateSample baseline = sample({0.1, 0.101});
  baseline.machine["cores"] = baseline.machine["cores"].get<int>() + 1;
  const GateJudgement judged = judge_gate(baseline, sample({0.1, 0.101}), 0.01);
  EXPECT_EQ(judged.answer, GateAnswer::other_machine);
  EXPECT_NE(judged.reason.find("cores: "), std::string::npos);
  baseline.question.by = FigureBy::loss;
  EXPECT_NE(judge_gate(baseline, sample({0.1, 0.101}, FigureBy::loss), 0.05).answer, GateAnswer::other_machine);
}

TEST(SpeedGate, a_stored_baseline_knows_loss_batch_and_machine) {
  GateSample baseline = sample({0.1, 0.1001, 0.0999});
  baseline.losses = {3.28, 3.281, 3.279};
  baseline.tokens_per_step = 12'288;
  baseline.hardware = "NVIDIA H100";
  const auto answer = [&](const std::function<void(GateSample&)>& change, FigureBy by = FigureBy::throughput) {
    GateSample before = baseline, now = baseline;
    before.question.by = now.question.by = by;
    change(now);
    GateJudgement judged = judge_gate(before, now, 0.01);
    check_pass(judged, before, now);
    return judged.answer;
  };
  EXPECT_EQ(answer([](GateSample&) {}), GateAnswer::passes);
  EXPECT_EQ(answer([](GateSample& now) { now.losses = {3.285, 3.286, 3.284}; }), GateAnswer::passes) << "within 0.02";
  EXPECT_EQ(answer([](GateSample& now) { now.losses = {6.0, 6.01, 5.99}; }), GateAnswer::guard);
  EXPECT_EQ(answer([](GateSample& now) { now.losses = {}; }), GateAnswer::guard);
  EXPECT_EQ(answer([](GateSample& now) { now.tokens_per_step *= 2; }), GateAnswer::cannot_tell);
  EXPECT_EQ(answer([](GateSample& now) { now.tokens_per_step *= 10; }, FigureBy::loss), GateAnswer::cannot_tell);
  EXPECT_EQ(answer([](GateSample& now) { now.hardware = "NVIDIA A100"; }), GateAnswer::other_machine);
  const TemporaryFolder folder;
  write_gate_baseline(folder / "speed.json", baseline, "");
  const GateSample read = read_gate_baseline(folder / "speed.json");
  EXPECT_EQ(read.losses, baseline.losses);
  EXPECT_EQ(read.tokens_per_step, baseline.tokens_per_step);
  EXPECT_EQ(read.hardware, baseline.hardware);
}

// How often a gate that measures in turns gives each answer, at `noise` between runs.
std::array<double, 3> rates(double slower_by, double noise, int gates) {
  const Looks looks(40, 5);
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0, noise);
  std::array<double, 3> rates{};
  for (int gate = 0; gate < gates; ++gate) {
    GateSample base = sample({}), now = sample({});
    GateAnswer answer = GateAnswer::cannot_tell;
    for (const std::size_t runs : looks.runs) {
      while (now.values.size() < runs) {
        base.values.push_back(0.1 * std::exp(normal(random)));
        now.values.push_back(0.1 * (1 + slower_by) * std::exp(normal(random)));
      }
      answer = judge_turns(base, now, 0.01, looks.error_at(runs)).answer;
      if (answer != GateAnswer::cannot_tell) break;
    }
    ++rates[answer == GateAnswer::passes ? 0 : answer == GateAnswer::slower ? 1 : 2];
  }
  for (double& rate : rates) rate /= gates;
  return rates;
}

TEST(SpeedGate, in_turns_passes_what_did_not_change_and_finds_two_percent) {
  EXPECT_GE(rates(0, 0.01, 1000)[0], 0.95);
  EXPECT_LE(rates(0, 0.01, 1000)[1], 0.05);
  EXPECT_GE(rates(0.02, 0.01, 1000)[1], 0.95);
  EXPECT_LE(rates(0.02, 0.01, 1000)[0], 0.05);
  // At the tolerance's edge it may not pass more often than the error that it spends.
  EXPECT_LE(rates(0.0101, 0.01, 1000)[0], 0.05);
  EXPECT_LE(rates(0, 0.05, 1000)[1], 0.05);
}

TEST(SpeedGate, pairs_that_are_copies_say_nothing) {
  EXPECT_EQ(judge_turns(sample({0.1, 0.1, 0.1}), sample({0.09, 0.09, 0.09}), 0.01, 0.05).answer,
            GateAnswer::cannot_tell);
  EXPECT_EQ(judge_turns(sample({3.28, 3.28}), sample({3.28, 3.28}), 0.01, 0.05).answer, GateAnswer::passes);
}

}  // namespace
}  // namespace stepladder
