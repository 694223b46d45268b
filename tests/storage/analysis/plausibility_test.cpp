#include "storage/analysis/plausibility.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <regex>
#include <set>

#include "storage/analysis/step_sums.h"
#include "storage/database/run_store.h"
#include "tests/storage/analysis/hardware_table.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

// A run as an importer makes it: its model and its clock are unknown.
Run imported(const std::string& hardware, std::int64_t tokens_per_step, const std::string& precision) {
  return {.name = "log",
          .status = RunStatus::finished,
          .source = "import",
          .tokens_per_step = tokens_per_step,
          .device = "cuda",
          .hardware = hardware,
          .precision = precision};
}

Series steady(double dt_ms, double first_loss = 10.99, int steps = 50) {
  Series series;
  for (int i = 0; i < steps; ++i)
    series.append({.step = i + 1, .loss = first_loss - 0.05 * i, .dt_ms = dt_ms * (1 + 0.001 * (i % 3))});
  return series;
}

std::vector<Flag> flags(const Run& run, const Series& series, int repeats = 1) {
  return flags_of(run, summarise(series, run.warmup_steps, run.tokens_per_step), repeats, table());
}

std::string why(const std::vector<Flag>& flags, FlagId id) {
  const auto found = std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.id == id; });
  return found == flags.end() ? "" : found->why;
}

TEST(Impossible, no_device_at_all_reaches_it) {
  stepladder::Run run = imported("", 524288, "bf16");  // 124M parameters, by the first loss
  EXPECT_EQ(why(flags(run, steady(1000)), FlagId::suspicious_throughput), "") << "390 TFLOP/s";
  EXPECT_NE(why(flags(run, steady(1)), FlagId::suspicious_throughput), "") << "some 150 of the fastest devices";
  EXPECT_EQ(trust_of(flags(run, steady(1))), Trust::doubtful) << "nobody says that there aren't as many";
  run.recipe = R"({"devices":8})";
  EXPECT_EQ(trust_of(flags(run, steady(1))), Trust::impossible);
  EXPECT_EQ(trust_of(flags(run, steady(200))), Trust::trusted) << "1,950 TFLOP/s of eight";
}

TEST(Impossible, the_3080_ladder_from_speed_up_1_on) {
  struct Rung {
    const char* precision;
    std::int64_t tokens;
    double dt_ms;  // the medians of the log
    bool impossible;
  };
  for (const Rung& rung :
       {Rung{"fp32", 2048, 177.54, false}, Rung{"fp32", 2048, 14.39, true}, Rung{"tf32", 2048, 16.85, true},
        Rung{"bf16", 3072, 20.77, true}, Rung{"bf16", 3072, 20.74, true}, Rung{"bf16", 3072, 14.77, true},
        Rung{"bf16", 3072, 4.33, true}, Rung{"bf16", 6144, 4.60, true}, Rung{"bf16", 6144, 4.54, true},
        Rung{"bf16", 6144, 5.61, true}}) {
    for (const char* precision : {rung.precision, ""}) {  // "": the log doesn't name it
      const auto found = flags(imported("NVIDIA GeForce RTX 3080", rung.tokens, precision), steady(rung.dt_ms));
      EXPECT_EQ(trust_of(found) == Trust::impossible, rung.impossible) << rung.dt_ms;
      EXPECT_EQ(why(found, FlagId::suspicious_throughput), "") << rung.dt_ms;
    }
  }
}

TEST(Impossible, no_rung_of_the_a100) {
  for (const auto& [precision, dt_ms] :
       std::vector<std::pair<const char*, double>>{{"fp32", 1300}, {"fp32", 301.1}, {"tf32", 125.8}}) {
    const auto found = flags(imported("NVIDIA A100", 4096, precision), steady(dt_ms));
    EXPECT_NE(trust_of(found), Trust::impossible);
    EXPECT_EQ(why(found, FlagId::suspicious_throughput), "");
    EXPECT_EQ(why(found, FlagId::unknown_hardware), "");
  }
}

TEST(Impossible, says_that_nobody_counted_the_gpus) {
  auto run = imported("NVIDIA A100", 4096, "bf16");
  const auto is_said = [&] { return flags(run, steady(2)).front().why.find("several of them") != std::string::npos; };
  EXPECT_TRUE(is_said());
  run.recipe = R"({"devices":1})";
  EXPECT_FALSE(is_said());
  EXPECT_EQ(trust_of(flags(run, steady(2))), Trust::impossible);
}

TEST(Impossible, the_peak_is_that_of_the_precision_that_is_named) {
  const auto of = [](const char* hardware, const char* precision, double share_of_bf16) {
    auto run = imported(hardware, 32768, precision);
    run.params = 123'590'000;
    const double bf16 = table().peak(hardware, "bf16").tflops;
    return flags(run, steady(6 * 123.59e6 * 32768 / (share_of_bf16 * bf16 * 1e12) * 1000));
  };
  for (const char* card : {"NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA L40S", "AMD Instinct MI300X"}) {
    EXPECT_EQ(trust_of(of(card, "fp8", 1.1)), Trust::trusted) << "55 % of its fp8 peak: " << card;
    EXPECT_EQ(trust_of(of(card, "fp8", 2.1)), Trust::impossible);
    EXPECT_EQ(trust_of(of(card, "bf16", 1.1)), Trust::impossible);
    EXPECT_EQ(trust_of(of(card, "", 1.1)), Trust::doubtful) << "the log names no precision";
    EXPECT_NE(of(card, "", 1.1).front().why.find("in fp8 it would be 5"), std::string::npos);
    EXPECT_EQ(trust_of(of(card, "", 2.1)), Trust::impossible);
  }
  EXPECT_EQ(trust_of(of("NVIDIA B200", "nvfp4", 2.2)), Trust::trusted);
  EXPECT_NE(why(of("NVIDIA B200", "nvfp4", 2.2), FlagId::unknown_hardware).find("'NVIDIA B200' in nvfp4"),
            std::string::npos);
  EXPECT_EQ(trust_of(of("NVIDIA A100", "nvfp4", 1.1)), Trust::impossible) << "it has neither fp8 nor fp4";
}

TEST(Impossible, says_a_sum_that_can_be_done_again) {
  auto run = imported("RTX 3080", 2048, "bf16");
  run.params = 124'439'808;
  const std::string sum = why(flags(run, steady(14.0)), FlagId::impossible_throughput);
  std::smatch parts;
  ASSERT_TRUE(std::regex_search(sum, parts,
                                std::regex("([\\d,]+) tokens / ([\\d.]+) ms = ([\\d,]+) tokens/s, x 6 x ([\\d,]+) "
                                           "parameters = ([\\d.]+) TFLOP/s, over the peak of ([\\d.]+) TFLOP/s of "
                                           "NVIDIA GeForce RTX 3080 in bf16 \\(dense; .*whitepaper\\)")))
      << sum;
  const auto number = [](std::string text) {
    std::erase(text, ',');
    return std::stod(text);
  };
  EXPECT_NEAR(number(parts[1]) * 1000 / number(parts[2]), number(parts[3]), 0.001 * number(parts[3]));
  EXPECT_NEAR(number(parts[3]) * 6 * number(parts[4]) / 1e12, number(parts[5]), 0.01 * number(parts[5]));
  EXPECT_EQ(number(parts[6]), 59.5);
  EXPECT_NE(sum.find("before the device had finished"), std::string::npos);
}

TEST(Impossible, blames_the_probe_too_where_the_peak_was_measured) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "hardware.csv";
  std::ofstream(file) << with_row(
      "",
      {.name = "2 x Intel Xeon", .peak_tflops = {0.1, missing, missing, missing, missing}, .source = "measured here"});
  HardwareTable own = table();
  own.add(file);
  auto run = imported("2 x Intel Xeon", 1000, "fp32");
  run.params = 1'000'000;
  const Summary summary = summarise(steady(50), run.warmup_steps, run.tokens_per_step);  // 0.12 TFLOP/s
  const std::string sum = why(flags_of(run, summary, 1, own), FlagId::impossible_throughput);
  EXPECT_NE(sum.find("over the peak of 0.1 TFLOP/s of 2 x Intel Xeon in fp32 (dense; measured here)"), sum.npos) << sum;
  EXPECT_NE(sum.find("the probe"), sum.npos) << sum;
}

TEST(Impossible, needs_parameters_and_a_peak) {
  const Series small = steady(1, 5.5);  // not GPT-2's vocabulary
  EXPECT_NE(trust_of(flags(imported("RTX 3080", 1'000'000, "bf16"), small)), Trust::impossible);
  auto named = imported("RTX 3080", 1'000'000, "bf16");
  named.title = "GPT-2 medium";
  EXPECT_EQ(trust_of(flags(named, small)), Trust::impossible);
  EXPECT_EQ(params_of(named, {}).count, 354'823'168);
  named.hardware = "Some Accelerator";
  EXPECT_NE(trust_of(flags(named, small)), Trust::impossible);
  EXPECT_NE(why(flags(named, small), FlagId::unknown_hardware), "");
}

TEST(Impossible, begins_at_the_throughput_limit) {
  auto run = imported("NVIDIA A100-SXM4-40GB", 8192, "bf16");
  run.params = 124'439'808;
  const double limit = limit_of(run, {}, table()).tokens_per_s;
  EXPECT_NEAR(limit, 312e12 / (6 * 124'439'808.0), 1);
  for (const double share : {0.99, 1.01})
    EXPECT_EQ(trust_of(flags(run, steady(8192e3 / (limit * share) / 1.001))) == Trust::impossible, share > 1) << share;
  run.hardware = "Some Accelerator";
  EXPECT_TRUE(is_missing(limit_of(run, {}, table()).tokens_per_s));
}

TEST(Impossible, the_peak_says_which_precision_it_is_in) {
  auto run = imported("NVIDIA GeForce RTX 3080", 8192, "fp32");
  run.params = 124'439'808;
  EXPECT_EQ(limit_of(run, {}, table()).peak_in, "fp32");
  run.title = "fp32, Batch=2";
  EXPECT_EQ(limit_of(run, {}, table()).peak_in, "fp32, as its name says");
  run.precision.clear();
  EXPECT_EQ(limit_of(run, {}, table()).peak_in, "bf16, its fastest: the run's precision is unknown");
}

TEST(Impossible, a_figure_that_a_text_reports_is_judged_too) {
  auto run = imported("NVIDIA GeForce RTX 3080", 0, "bf16");
  run.status = RunStatus::reported;
  run.params = 124'439'808;
  const auto of = [&](double tokens_per_s) {
    Summary summary;
    summary.tokens_per_s = tokens_per_s;
    return flags_of(run, summary, 1, table());
  };
  EXPECT_EQ(trust_of(of(211'646)), Trust::impossible);
  EXPECT_EQ(trust_of(of(21'164)), Trust::doubtful);  // nothing but a sentence is behind it
  EXPECT_EQ(why(of(21'164), FlagId::missing_steps),
            "A text reports 21,164 tokens/s, and no step is behind the figure.");
  EXPECT_TRUE(of(missing).empty());  // no figure, no doubt
}

TEST(Impossible, counts_every_device) {
  auto run = imported("2x RTX 4090", 524'288, "bf16");
  run.params = 124'439'808;
  EXPECT_NE(trust_of(flags(run, steady(2477))), Trust::impossible);  // 211,646 tokens/s: 158 of 330 TFLOP/s
  EXPECT_EQ(trust_of(flags(run, steady(1000))), Trust::impossible);
  run.hardware = "RTX 4090";
  EXPECT_NE(why(flags(run, steady(2477)), FlagId::suspicious_throughput), "");
  run.recipe = R"({"devices": 2})";
  EXPECT_EQ(why(flags(run, steady(2477)), FlagId::suspicious_throughput), "");
}

TEST(Impossible, a_clock_that_waited_is_not_blamed) {
  auto run = imported("RTX 3080", 2048, "fp32");
  const std::string unknown = why(flags(run, steady(1)), FlagId::impossible_throughput);
  EXPECT_NE(unknown.find("the clock was read before the device had finished"), std::string::npos) << unknown;
  for (const Sync sync : {Sync::device, Sync::event}) {
    run.sync = sync;
    const std::string waited = why(flags(run, steady(1)), FlagId::impossible_throughput);
    EXPECT_EQ(waited.find("the clock was read before"), std::string::npos) << waited;
    EXPECT_NE(waited.find("the peak or the number of parameters is wrong"), std::string::npos) << waited;
  }
}

TEST(Units, what_the_log_prints_is_held_against_what_it_measured) {
  auto run = imported("RTX 3080", 2048, "fp32");
  run.printed = {.unit = "tokens/ms printed as tokens/sec", .tokens_per_s = 11570};
  const auto fine = flags(run, steady(177));
  EXPECT_NE(why(fine, FlagId::unit_tokens_per_ms).find("11.56 tokens/ms"), std::string::npos)
      << why(fine, FlagId::unit_tokens_per_ms);
  EXPECT_EQ(why(fine, FlagId::dt_throughput_mismatch), "");
  run.printed = {.tokens_per_s = 23140};
  const auto twice = flags(run, steady(177));
  EXPECT_EQ(why(twice, FlagId::unit_tokens_per_ms), "");
  EXPECT_NE(why(twice, FlagId::dt_throughput_mismatch).find("2 times"), std::string::npos);
  run.printed = {};
  EXPECT_EQ(why(flags(run, steady(177)), FlagId::dt_throughput_mismatch), "");
}

TEST(Steps, that_cannot_be_are_flagged) {
  RunStore store = RunStore::in_memory();
  auto run = imported("A100", 4096, "bf16");
  run.sync = Sync::none;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const RunId id =
      store.insert_finished(run, std::vector<StepRecord>{{.step = 1, .loss = 11, .dt_ms = 20, .at = 100},
                                                         {.step = 2, .loss = nan, .dt_ms = 20, .at = 99},
                                                         {.step = 3, .loss = 9, .at = 101},
                                                         {.step = 3, .loss = 8, .at = 102},
                                                         {.step = 4, .loss = nan, .dt_ms = 20, .at = 103}});
  const auto kept = *store.run(id);
  for (const Summary& summary : {store.summary(kept), store.runs_with_summaries().front().summary}) {
    const auto found = flags_of(kept, summary, 1, table());
    EXPECT_NE(why(found, FlagId::nonfinite_loss).find("2 of 4 steps is NaN or infinite, first at step 2"),
              std::string::npos);
    EXPECT_NE(why(found, FlagId::step_overlap).find("1 of 4 steps were written more than once, first step 3"),
              std::string::npos);
    EXPECT_NE(why(found, FlagId::clock_backwards).find("step 2"), std::string::npos);
    EXPECT_NE(why(found, FlagId::missing_dt).find("1 of 4"), std::string::npos);
    EXPECT_NE(why(found, FlagId::no_sync), "");
    EXPECT_NE(why(found, FlagId::not_repeated), "");
  }
  EXPECT_TRUE(flags_of(kept, {}, 1, table()).empty()) << "no steps";
}

TEST(Steps, that_are_missing_are_counted_where_every_step_is_recorded) {
  auto run = imported("NVIDIA A100-SXM4-40GB", 524288, "bf16");
  Series series;
  for (const int step : {1, 2, 3, 4, 5, 8, 9, 10}) series.append({.step = step, .loss = 3, .dt_ms = 100});
  EXPECT_EQ(why(flags(run, series), FlagId::missing_steps), "") << "a log needn't have every step";
  run.source = "launched";
  run.planned_steps = 10;
  EXPECT_EQ(why(flags(run, series), FlagId::missing_steps),
            "8 of 10 steps are stored; 2 between 1 and 10 are missing.");
  run.status = RunStatus::stopped;
  EXPECT_NE(why(flags(run, series), FlagId::missing_steps), "");
  run.planned_steps = 1000;
  const Series whole = steady(100, 11, 50);
  EXPECT_EQ(why(flags(run, whole), FlagId::missing_steps), "") << "it was stopped after them";
  run.status = RunStatus::finished;
  EXPECT_EQ(why(flags(run, whole), FlagId::missing_steps),
            "50 of 1,000 steps are stored; 950 between 51 and 1,000 are missing.");
  run.planned_steps = 50;
  EXPECT_EQ(why(flags(run, whole), FlagId::missing_steps), "");
  Series fork;
  for (int step = 21; step <= 50; ++step) fork.append({.step = step, .loss = 3, .dt_ms = 100});
  EXPECT_EQ(why(flags(run, fork), FlagId::missing_steps),
            "30 of 50 steps are stored; 20 between 1 and 20 are missing.");
  run.forked_at_step = 20;
  EXPECT_EQ(why(flags(run, fork), FlagId::missing_steps), "");
}

TEST(Steps, that_take_far_longer_by_the_wall_clock_are_doubtful) {
  stepladder::Run run = imported("", 0, "");
  Summary summary = summarise(run, steady(90));
  const auto found = [&](double wall_ms) {
    summary.wall_ms_median = wall_ms;
    return flags_of(run, summary, 2, table());
  };
  EXPECT_EQ(why(found(missing), FlagId::wall_clock_mismatch), "");
  EXPECT_EQ(why(found(110), FlagId::wall_clock_mismatch), "") << "some time between steps is usual";
  EXPECT_EQ(why(found(2), FlagId::wall_clock_mismatch), "") << "lines that came in one piece";
  EXPECT_NE(why(found(500), FlagId::wall_clock_mismatch).find("500 ms by the wall clock"), std::string::npos);
  EXPECT_EQ(trust_of(found(500)), Trust::doubtful);
  run.source = "launched";
  EXPECT_EQ(why(found(500), FlagId::wall_clock_mismatch), "");
}

// Whoever wrote the file may have written that, too.
TEST(Steps, of_a_run_that_only_its_file_calls_launched_here_are_asked_as_an_import_s) {
  stepladder::Run run = imported("", 0, "");
  run.source = "launched";
  run.is_claimed = true;
  Summary summary = summarise(run, steady(90));
  summary.wall_ms_median = 500;
  EXPECT_NE(why(flags_of(run, summary, 2, table()), FlagId::wall_clock_mismatch), "");
}

TEST(Steps, that_the_log_s_other_figures_deny) {
  stepladder::Run run = imported("", 0, ""), base = run;
  const Series fast = steady(400), slow = steady(500);
  const Summary of_fast = summarise(run, fast), of_slow = summarise(base, slow);
  const auto doubt = [&](const char* name, double theirs, double ours) {
    base.printed.per_step = {{name, theirs}};
    run.printed.per_step = {{name, ours}};
    const auto flag = doubt_median(1.25, {base, of_slow, slow}, {run, of_fast, fast});
    return flag ? std::string(to_string(flag->id)) + ": " + flag->why : "";
  };
  EXPECT_NE(doubt(per_step::mfu, 0.292 * 500, 0.292 * 400).find("by the MFU that both logs print it is 1 x"),
            std::string::npos)
      << doubt(per_step::mfu, 0.292 * 500, 0.292 * 400);
  EXPECT_EQ(doubt(per_step::mfu, 0.292 * 500, 0.365 * 400), "");
  EXPECT_NE(doubt(per_step::steps_rate, 1, 0.8), "");
  EXPECT_NE(doubt(per_step::samples, 512, 256), "");
  EXPECT_NE(doubt(per_step::configured, 480, 240), "");
  EXPECT_EQ(doubt(per_step::configured, 240, 480), "") << "the gain is larger than it says";
  EXPECT_EQ(doubt(per_step::untimed_ms, 5, 150).find("wall-clock-mismatch"), 0u);
  EXPECT_EQ(doubt(per_step::untimed_ms, 300, 320), "") << "both evaluate as often";
  run.precision = "bf16";
  EXPECT_EQ(doubt(per_step::mfu, 0.292 * 500, 0.292 * 400), "") << "perhaps a share of another peak";
  run.tokens_per_step = 1000;
  EXPECT_EQ(doubt(per_step::samples, 512, 256), "");
}

TEST(Steps, whose_parts_take_longer_are_doubtful) {
  stepladder::Run run = imported("", 0, "");
  const auto doubt = [&](double parts_ms) {
    run.printed.per_step = {{per_step::parts_ms, parts_ms}};
    return why(flags(run, steady(350), 2), FlagId::dt_throughput_mismatch);
  };
  EXPECT_EQ(doubt(350), "");
  EXPECT_NE(doubt(500).find("add up to 500 ms"), std::string::npos) << doubt(500);
}

TEST(Steps, of_a_log_that_names_two_devices_are_doubtful) {
  stepladder::Run run = imported("NVIDIA A100-SXM4-80GB", 0, "");
  EXPECT_EQ(trust_of(flags(run, steady(350), 2)), Trust::trusted);
  run.recipe = R"({"other_hardware":"NVIDIA H100 80GB HBM3"})";
  EXPECT_EQ(trust_of(flags(run, steady(350), 2)), Trust::doubtful);
}

TEST(Steps, that_a_log_lacks_or_repeats_make_it_doubtful) {
  const stepladder::Run run = imported("", 0, "");
  const auto found = [&](std::int64_t steps, std::int64_t last, std::int64_t repeated) {
    Summary summary = summarise(run, steady(90));
    summary.steps = steps;
    summary.last_step = last;
    summary.repeated_steps = repeated;
    return flags_of(run, summary, 2, table());
  };
  EXPECT_EQ(trust_of(found(100, 100, 0)), Trust::trusted);
  EXPECT_EQ(trust_of(found(98, 100, 0)), Trust::trusted);
  EXPECT_NE(why(found(80, 100, 0), FlagId::missing_steps).find("20 of the 100 steps"), std::string::npos);
  EXPECT_EQ(trust_of(found(80, 100, 0)), Trust::doubtful);
  EXPECT_EQ(trust_of(found(50, 100, 0)), Trust::trusted) << "every second step";
  EXPECT_EQ(trust_of(found(100, 100, 20)), Trust::trusted) << "resumed";
  EXPECT_EQ(trust_of(found(100, 100, 45)), Trust::doubtful) << "enough to decide the median";
  EXPECT_EQ(trust_of(found(100, 100, 100)), Trust::doubtful) << "each step twice";
}

TEST(Steps, of_a_gain_that_only_the_median_has) {
  stepladder::Run run = imported("", 0, "");
  const auto steps = [](auto&& dt_ms) {
    Series series;
    for (int step = 1; step <= 200; ++step)
      series.append({.step = step, .loss = 3, .dt_ms = dt_ms(step) + 0.0131 * (step * 37 % 101)});
    return series;
  };
  const auto evaluate = [](Series series, int period) {
    for (std::size_t i = 0; i < series.size(); ++i)
      if (series.step[i] % period == 0) series.val_loss[i] = 3;
    return series;
  };
  const Series base = evaluate(steps([](int step) { return step % 20 == 0 ? 660 : 100; }), 20);
  const Summary of_base = summarise(run, base);
  const auto doubt = [&](const Series& series, double wall_ms = missing) {
    Summary summary = summarise(run, series);
    summary.wall_ms_median = wall_ms;
    Summary against = of_base;
    against.wall_ms_median = wall_ms;
    const RunTimes theirs{run, against, base}, ours{run, summary, series};
    const double factor = against.dt_ms_median / summary.dt_ms_median;
    std::optional<Flag> flag = doubt_sums(factor, {&theirs, 1}, {&ours, 1});
    if (!flag) flag = doubt_median(factor, theirs, ours);
    return flag ? std::string(to_string(flag->id)) + ": " + flag->why : "";
  };
  EXPECT_NE(doubt(steps([](int step) { return step % 5 < 3 ? 75 : 165; })).find("with its slower steps"),
            std::string::npos);
  EXPECT_NE(doubt(steps([](int step) { return step < 95 ? 250 : 90; })).find("with the warm-up"), std::string::npos);
  EXPECT_EQ(doubt(steps([](int) { return 80; }), 100).find("wall-clock-mismatch"), 0u);
  EXPECT_EQ(doubt(steps([](int) { return 80; })), "");
  run.source = "launched";
  EXPECT_EQ(doubt(steps([](int) { return 80; }), 100), "") << "the clock is ours";
  EXPECT_EQ(doubt(steps([](int step) { return step % 5 < 3 ? 75 : 165; })), "") << "and others are watched";
  run.source = "import";
  EXPECT_EQ(doubt(steps([](int step) { return step == 1 ? 30'000 : 80; })), "") << "compiled";
  EXPECT_EQ(doubt(steps([](int step) { return step % 50 == 0 ? 900 : 80; })), "") << "evaluated";
  EXPECT_EQ(doubt(steps([](int step) { return step == 120 ? 9'000 : 80; })), "") << "disturbed once";
  EXPECT_NE(doubt(steps([](int step) { return step == 120 || step == 130 ? 9'000 : 80; })), "") << "and once more";
  EXPECT_NE(doubt(steps([](int step) { return step % 20 == 0 ? 640 : 80; })), "") << "a costly step in twenty";
  EXPECT_NE(doubt(steps([](int step) { return step % 20 == 0 ? 640 : 100; })), "") << "and no gain in the median";
  EXPECT_EQ(doubt(steps([](int step) { return step % 20 == 0 ? 640 : 120; })), "") << "slower, as it says";
  EXPECT_EQ(doubt(evaluate(steps([](int step) { return step % 20 == 0 ? 640 : 80; }), 20)), "") << "evaluated";
  EXPECT_NE(doubt(evaluate(steps([](int step) { return step % 10 == 0 ? 800 : 80; }), 10)), "") << "more often";
  EXPECT_NE(doubt(steps([](int step) { return 65 + 0.15 * step; })).find("drift"), std::string::npos);
  EXPECT_EQ(doubt(steps([](int step) { return step % 2 ? missing : 80.0; })).find("missing-steps"), 0u);
}

TEST(Steps, of_no_time_at_all_stop_the_clock) {
  const stepladder::Run run = imported("", 0, "");
  const auto trust = [&](double dt_ms, int at) {
    Series series;
    for (int step = 0; step < 100; ++step)
      series.append({.step = step, .loss = 3, .dt_ms = step == at ? dt_ms : 100.0 + step % 3});
    return trust_of(flags_of(run, summarise(run, series), 2, table()));
  };
  EXPECT_EQ(trust(0, 50), Trust::doubtful);
  EXPECT_EQ(trust(missing, 50), Trust::trusted);
  EXPECT_EQ(trust(0, 0), Trust::trusted) << "before the first step";
}

TEST(Steps, without_a_time_are_doubtful_unless_most_have_none) {
  const stepladder::Run run = imported("", 0, "");
  const auto trust = [&](auto&& has_time) {
    Series series;
    for (int step = 1; step <= 200; ++step)
      series.append({.step = step, .loss = 3, .dt_ms = has_time(step) ? 100.0 + step % 3 : missing});
    return trust_of(flags_of(run, summarise(run, series), 2, table()));
  };
  EXPECT_EQ(trust([](int step) { return step % 3 != 0; }), Trust::doubtful);
  EXPECT_EQ(trust([](int step) { return step % 10 == 0; }), Trust::trusted) << "every tenth is printed";
  EXPECT_EQ(trust([](int step) { return step % 20 != 0; }), Trust::trusted) << "evaluations";
}

TEST(Steps, of_an_honest_repeated_run_are_not_flagged) {
  auto run = imported("NVIDIA A100-SXM4-40GB", 4096, "bf16");
  run.sync = Sync::event;
  EXPECT_TRUE(flags(run, steady(40), 3).empty());
}

TEST(Utilisation, names_its_convention_and_knows_no_guesses) {
  auto run = imported("A100", 4096, "bf16");
  const Summary summary = summarise(steady(40), -1, 4096);
  EXPECT_TRUE(is_missing(utilisation_of(run, summary, table()).mfu)) << "its parameters are only a guess";
  run.params = 124'439'808;
  const RunUtilisation used = utilisation_of(run, summary, table());
  EXPECT_NEAR(used.mfu, 6 * 124'439'808.0 * summary.tokens_per_s / 312e12, 1e-12);
  EXPECT_EQ(used.convention, "6N");
  run.precision.clear();
  EXPECT_EQ(utilisation_of(run, summary, table()).convention, "6N of the bf16 peak");
  run.hardware = "a toaster";
  EXPECT_TRUE(is_missing(utilisation_of(run, summary, table()).mfu));
  EXPECT_EQ(utilisation_of(run, summary, table()).flops_per_token, 6 * 124'439'808.0);
}

TEST(Utilisation, that_rests_on_a_guess_says_so) {
  auto run = imported("A100", 4096, "bf16");
  auto steps = steady(40);
  std::fill(steps.loss.begin(), steps.loss.end(), 10.9);
  const Summary summary = summarise(steps, -1, 4096);
  EXPECT_TRUE(is_missing(utilisation_of(run, summary, table()).mfu));
  const RunUtilisation guessed = assumed_utilisation_of(run, summary, table());
  EXPECT_NEAR(guessed.mfu, 6 * 124'439'808.0 * summary.tokens_per_s / 312e12, 1e-12);
  EXPECT_NE(guessed.assumed, "");
  run.params = 124'439'808;
  EXPECT_EQ(assumed_utilisation_of(run, summary, table()).assumed, "");
  EXPECT_EQ(assumed_utilisation_of(run, summary, table()).mfu, utilisation_of(run, summary, table()).mfu);
}

TEST(Flags, have_names_of_their_own) {
  std::set<std::string_view> names;
  std::set<std::string_view> titles;
  for (const FlagKind& kind : flag_kinds) {
    EXPECT_EQ(&kind_of(kind.id), &kind) << kind.name;
    names.insert(kind.name);
    titles.insert(kind.title);
  }
  EXPECT_EQ(names.size(), flag_kinds.size());
  EXPECT_EQ(titles.size(), flag_kinds.size());
  EXPECT_EQ(names.count("impossible-throughput"), 1);
}

TEST(RepeatCounts, CancelledRepeatsDoNotCount) {
  const auto run = [](RunStatus status, double started_at) {
    return stepladder::Run{.ladder = 1, .rung = 2, .status = status, .started_at = started_at};
  };
  RepeatCounts counts;
  counts.add(run(RunStatus::finished, 1));
  counts.add(run(RunStatus::stopped, 2));
  counts.add(run(RunStatus::stopped, missing));
  counts.add(run(RunStatus::queued, missing));
  EXPECT_EQ(counts.of(run(RunStatus::finished, 1)), 1);
  counts.add(run(RunStatus::finished, 3));
  EXPECT_EQ(counts.of(run(RunStatus::finished, 1)), 2);
  RepeatCounts unfinished;
  unfinished.add(run(RunStatus::stopped, 1));
  unfinished.add(run(RunStatus::interrupted, 1));
  unfinished.add(run(RunStatus::stopped, missing));
  EXPECT_EQ(unfinished.of(run(RunStatus::stopped, 1)), 2);
}

TEST(Assumed, AModelThatOnlyTheFirstLossSuggestsIsACondition) {
  Series series;
  for (int i = 0; i < 30; ++i) series.append({.step = i + 1, .loss = 10.95 - 0.1 * i, .dt_ms = 300});
  stepladder::Run run{
      .status = RunStatus::finished, .tokens_per_step = 4096, .hardware = "NVIDIA A100-SXM4-40GB", .precision = "fp32"};
  const Summary summary = summarise(series, -1, 4096);
  EXPECT_EQ(limit_of(run, summary, table()).condition, "if this is GPT-2 124M");
  EXPECT_TRUE(is_missing(utilisation_of(run, summary, table()).mfu));
  EXPECT_EQ(assumed_utilisation_of(run, summary, table()).condition, "if this is GPT-2 124M");
  run.name = "gpt2-medium, bf16";
  EXPECT_EQ(limit_of(run, summary, table()).condition, "if this is gpt2-medium, as its name says");
  run.params = 124'439'808;
  EXPECT_EQ(limit_of(run, summary, table()).condition, "");
  EXPECT_EQ(assumed_utilisation_of(run, summary, table()).condition, "");
}

}  // namespace
}  // namespace stepladder
