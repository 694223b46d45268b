// Verdicts on losses: by the last quarter, one run a side, pairs of repeats, spikes, validation, unknown tokens.
#include "storage/analysis/verdict/loss_parity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/storage/not_finite.h"

namespace stepladder {
namespace {

Series losses(const std::vector<double>& values, std::int64_t first_step = 1) {
  Series series;
  for (const double loss : values) series.append({.step = first_step++, .loss = loss});
  return series;
}

LossParity parity(const stepladder::Run& base_run, const Series& base, const stepladder::Run& run, const Series& series,
                  const LossRules& rules = {}) {
  const LossRun a{&base_run, &base};
  const LossRun b{&run, &series};
  return loss_parity({&a, 1}, {&b, 1}, rules);
}

stepladder::Run of_tokens(std::int64_t tokens_per_step) {
  return {.source = "import", .tokens_per_step = tokens_per_step};
}

LossParity parity(const Series& base, const Series& run, const LossRules& rules = {}) {
  return parity(of_tokens(100), base, of_tokens(100), run, rules);
}

const Series base = losses({9, 8, 7, 6, 5, 4, 3, 2});  // its last quarter: steps 7 and 8

TEST(LossParity, is_judged_by_the_last_quarter) {
  // Far off at step 2, and yet the same in the end.
  const LossParity same = parity(base, losses({9, 8.5, 7, 6, 5, 4, 3.01, 2.03}));
  EXPECT_EQ(same.verdict, LossVerdict::same);
  EXPECT_DOUBLE_EQ(same.max_gap, 0.5);
  EXPECT_EQ(same.at_step, 2);
  EXPECT_NEAR(same.tail_gap, 0.02, 1e-12);

  const LossParity worse = parity(base, losses({9, 8, 7, 6, 5, 4, 3.02, 2.03}));
  EXPECT_EQ(worse.verdict, LossVerdict::worse);
  EXPECT_NEAR(worse.tail_gap, 0.025, 1e-12);
  EXPECT_EQ(worse.at_step, 8);

  const LossParity better = parity(base, losses({9, 8, 7, 6, 5, 4, 2.7, 1.8}));
  EXPECT_EQ(better.verdict, LossVerdict::better);
  EXPECT_NEAR(better.tail_gap, -0.25, 1e-12);
  EXPECT_NEAR(better.max_gap, 0.3, 1e-12);
  EXPECT_EQ(better.at_step, 7);
}

TEST(LossParity, a_run_with_itself_is_the_same) {
  const LossParity self = parity(base, base);
  EXPECT_EQ(self.verdict, LossVerdict::same);
  EXPECT_EQ(self.max_gap, 0);
  EXPECT_EQ(self.tail_gap, 0);
}

TEST(LossParity, only_equal_steps_are_compared) {
  // Shared: 6, 7 and 8; the last quarter of three is one.
  const LossParity late = parity(base, losses({4, 3.5, 2.01, 1, 1}, 6));
  EXPECT_EQ(late.verdict, LossVerdict::same);
  EXPECT_DOUBLE_EQ(late.max_gap, 0.5);
  EXPECT_EQ(late.at_step, 7);
  EXPECT_NEAR(late.tail_gap, 0.01, 1e-12);
}

TEST(LossParity, diverged_where_only_the_run_is_not_finite) {
  for (const double bad : {nan, infinity, -infinity}) {
    const LossParity diverged = parity(base, losses({9, 8, 7, 60, bad, bad, 3, 2}));
    EXPECT_EQ(diverged.verdict, LossVerdict::diverged);
    EXPECT_EQ(diverged.max_gap, infinity);
    EXPECT_EQ(diverged.at_step, 5);
    EXPECT_TRUE(is_missing(diverged.tail_gap));
  }
  EXPECT_EQ(parity(losses({9, nan, 7}), losses({9, nan, 7})).verdict, LossVerdict::same);
  EXPECT_EQ(parity(losses({9, nan, 7}), losses({9, 8, 7})).verdict, LossVerdict::same);
}

TEST(LossParity, two_runs_that_end_without_a_loss_are_not_the_same) {
  const LossParity both = parity(losses({9, 8, nan, nan}), losses({9, 8, 7, nan}));
  EXPECT_EQ(both.verdict, LossVerdict::diverged);
  EXPECT_EQ(both.at_step, 4);
  EXPECT_EQ(parity(losses({9, nan, nan}), losses({9, nan, nan})).at_step, 2);
  EXPECT_EQ(parity(losses({9, 8, nan, nan}), losses({9, 8, 7, 6})).verdict, LossVerdict::not_comparable);
}

TEST(LossParity, a_loss_that_was_not_recorded_is_no_divergence) {
  EXPECT_EQ(parity(base, losses({9, 8, 7, 6, missing, 4, 3, 2})).verdict, LossVerdict::same);
}

TEST(LossParity, not_comparable) {
  EXPECT_EQ(parity(of_tokens(100), base, of_tokens(200), base).verdict, LossVerdict::not_comparable);
  EXPECT_EQ(parity(of_tokens(100), base, of_tokens(0), base).verdict, LossVerdict::not_comparable);
  EXPECT_EQ(parity(of_tokens(100), base, of_tokens(200), losses({nan})).verdict, LossVerdict::not_comparable);
  for (const Series& other : {Series{}, losses({1, 2}, 100), losses({missing, missing})}) {
    EXPECT_EQ(parity(base, other).verdict, LossVerdict::not_comparable);
    EXPECT_TRUE(is_missing(parity(base, other).max_gap));
  }
  EXPECT_EQ(to_string(LossVerdict::not_comparable), "not-comparable");
  EXPECT_EQ(to_string(LossVerdict::diverged), "diverged");
}

TEST(LossParity, diverged_where_a_finite_loss_unlearns) {
  const LossParity diverged = parity(base, losses({9, 8, 7, 12, 14, 15, 15, 16}));
  EXPECT_EQ(diverged.verdict, LossVerdict::diverged);
  EXPECT_EQ(diverged.at_step, 4);
  EXPECT_DOUBLE_EQ(diverged.max_gap, 14);
  // Worse, but still learning.
  EXPECT_EQ(parity(base, losses({9, 8.5, 8.4, 8.3, 8.2, 8.1, 8, 8})).verdict, LossVerdict::worse);
}

// A curve that falls, with steps `off` nats beside it and a ripple that is this run's own.
Series curve(double off, int steps, int ripple) {
  Series series;
  for (int i = 1; i <= steps; ++i)
    series.append({.step = i, .loss = 3 + 6 * std::exp(-i / 10.0) + off + 0.01 * std::sin(i * (1.0 + 0.1 * ripple))});
  return series;
}

const LossRules known{.known = {.squares = 6 * 0.02 * 0.02, .freedom = 6, .from = SpreadFrom::prior}};

TEST(LossParity, one_run_a_side_says_no_more_than_the_spread_between_runs_allows) {
  const LossParity apart = parity(curve(0, 50, 1), curve(0.033, 50, 2), known);
  EXPECT_EQ(apart.verdict, LossVerdict::inconclusive);
  EXPECT_NEAR(apart.tail_gap, 0.033, 0.005);
  EXPECT_LT(apart.ci95.low, -0.02);
  EXPECT_GT(apart.needed_runs, 0);
  EXPECT_EQ(parity(curve(0, 50, 1), curve(0.3, 50, 2), known).verdict, LossVerdict::worse);
  EXPECT_EQ(parity(curve(0, 50, 1), curve(-0.3, 50, 2), known).verdict, LossVerdict::better);
  // From the same weights and batches, a small gap can't be the seed's.
  EXPECT_EQ(parity(curve(0, 50, 1), curve(0.001, 50, 1), known).verdict, LossVerdict::same);
}

TEST(LossParity, repeats_are_compared_in_pairs) {
  const stepladder::Run run = of_tokens(100);
  const std::vector<Series> base{curve(0, 50, 1), curve(0.05, 50, 2), curve(-0.05, 50, 3), curve(0.02, 50, 4)};
  const std::vector<Series> other{curve(0.101, 50, 5), curve(0.15, 50, 6), curve(0.049, 50, 7), curve(0.119, 50, 8)};
  std::vector<LossRun> a, b;
  for (std::size_t i = 0; i < base.size(); ++i) {
    a.push_back({&run, &base[i]});
    b.push_back({&run, &other[i]});
  }
  const LossParity found = loss_parity(a, b, known);
  EXPECT_EQ(found.verdict, LossVerdict::worse) << "0.1 in each pair, though seeds lie as far apart";
  EXPECT_EQ(found.runs, 4u);
  EXPECT_NEAR(found.tail_gap, 0.1, 0.005);
  EXPECT_GT(loss_spread(a).variance(), 0.03 * 0.03);
  EXPECT_FALSE(loss_spread(std::vector<LossRun>(3, a[0])).known()) << "copies";
}

TEST(LossParity, a_spike_of_one_step_decides_nothing) {
  Series spiked = curve(0.001, 50, 1);
  spiked.loss[47] = 9;
  EXPECT_EQ(parity(curve(0, 50, 1), spiked, known).verdict, LossVerdict::same);
  spiked.loss[47] = 1e6;
  EXPECT_EQ(parity(curve(0, 50, 1), spiked, known).verdict, LossVerdict::same) << "and no divergence";
}

// A loss that falls from 4 to 2, with noise of about 0.01 of its own, and the last values `off` from it.
Series falling(std::size_t count, double phase, std::size_t last, double off, double StepRecord::*loss) {
  Series series;
  for (std::size_t i = 0; i < count; ++i) {
    StepRecord step{.step = static_cast<std::int64_t>(i + 1)};
    step.loss = 4 - 2 * static_cast<double>(i) / static_cast<double>(count);
    step.*loss = step.loss + 0.01 * std::sin(phase * static_cast<double>(i)) + (i + last >= count ? off : 0);
    series.append(step);
  }
  return series;
}

TEST(LossParity, a_run_is_worth_what_it_ended_with) {
  const Series usual = falling(400, 1.7, 0, 0, &StepRecord::loss);
  for (const std::size_t last : {3, 5, 20, 60, 99}) {
    const LossParity jumped = parity(usual, falling(400, 2.9, last, 0.5, &StepRecord::loss));
    EXPECT_EQ(jumped.verdict, LossVerdict::worse) << last;
    EXPECT_GT(jumped.tail_gap, 0.4) << last;
    EXPECT_EQ(parity(usual, falling(400, 2.9, last, -0.5, &StepRecord::loss)).verdict, LossVerdict::better) << last;
  }
  EXPECT_EQ(parity(usual, falling(400, 2.9, 2, 0.5, &StepRecord::loss)).verdict, LossVerdict::same) << "a spike";
  EXPECT_EQ(parity(usual, falling(400, 2.9, 60, 0.001, &StepRecord::loss)).verdict, LossVerdict::same);
}

TEST(LossParity, the_last_evaluation_is_never_left_out) {
  for (const std::size_t count : {30, 60, 200}) {
    const Series usual = falling(count, 1.7, 0, 0, &StepRecord::val_loss);
    const LossParity last = parity(usual, falling(count, 2.9, 1, 5, &StepRecord::val_loss));
    EXPECT_EQ(last.verdict, LossVerdict::inconclusive) << count;
    EXPECT_GT(last.ci95.high, 4.9);
    EXPECT_NEAR(last.max_gap, 5, 0.05) << "of the loss that decides";
    EXPECT_EQ(last.at_step, static_cast<std::int64_t>(count));
    EXPECT_EQ(parity(usual, falling(count, 2.9, 2, 0.5, &StepRecord::val_loss)).verdict, LossVerdict::worse) << count;
    EXPECT_EQ(parity(usual, falling(count, 2.9, 0, 0, &StepRecord::val_loss)).verdict, LossVerdict::same) << count;
    EXPECT_EQ(parity(usual, falling(count, 1.7, 2, 0.5, &StepRecord::val_loss)).verdict, LossVerdict::worse)
        << "equal gaps";
  }
}

TEST(LossParity, validation_decides_where_both_have_it_near_the_end) {
  Series base = curve(0, 50, 1);
  Series run = curve(0.5, 50, 2);
  base.val_loss[0] = run.val_loss[0] = 9;
  EXPECT_FALSE(parity(base, run, known).by_validation) << "only before the training";
  base.val_loss[49] = 3;
  run.val_loss[49] = 2.5;
  const LossParity found = parity(base, run, known);
  EXPECT_TRUE(found.by_validation);
  EXPECT_EQ(found.verdict, LossVerdict::better);
  EXPECT_NEAR(found.tail_gap, -0.5, 1e-12);
  // A log that prints validation losses only.
  for (double& loss : base.loss) loss = missing;
  for (double& loss : run.loss) loss = missing;
  EXPECT_EQ(parity(of_tokens(0), base, of_tokens(0), run, known).verdict, LossVerdict::better);
}

TEST(LossParity, unknown_tokens_are_compared_where_steps_or_shape_agree) {
  const Series one = curve(0, 50, 1);
  EXPECT_EQ(parity(of_tokens(0), one, of_tokens(0), one, known).verdict, LossVerdict::same);
  const Series longer = curve(0, 60, 1);
  EXPECT_EQ(parity(of_tokens(0), one, of_tokens(0), longer, known).verdict, LossVerdict::not_comparable);
  const stepladder::Run shape{.recipe = R"({"layers": 12, "d_model": 768})"};
  EXPECT_EQ(parity(shape, one, shape, longer, known).verdict, LossVerdict::same);
}

TEST(LossParity, other_data_or_vocabulary_is_not_comparable) {
  const auto run = [](const std::string& recipe) { return stepladder::Run{.tokens_per_step = 100, .recipe = recipe}; };
  const stepladder::Run text = run(R"({"data": "a.txt", "vocab": 256})");
  EXPECT_EQ(parity(text, base, text, base).verdict, LossVerdict::same);
  EXPECT_EQ(parity(text, base, run("{}"), base).verdict, LossVerdict::same);
  EXPECT_EQ(parity(text, base, run(R"({"data": "b.txt"})"), base).verdict, LossVerdict::not_comparable);
  EXPECT_EQ(parity(text, base, run(R"({"vocab": 50257})"), base).verdict, LossVerdict::not_comparable);
}

// A run whose losses may be of another kind than the base's proves neither "same" nor "better".
TEST(LossParity, losses_that_may_be_of_another_kind_prove_nothing) {
  const auto evaluated = [](double loss, double val, std::int64_t steps = 40) {
    Series series;
    for (std::int64_t step = 1; step <= steps; ++step) {
      const double fall = 8 / static_cast<double>(step);
      series.append({.step = step, .loss = loss + fall, .val_loss = step % 5 == 0 ? val + fall : missing});
    }
    return series;
  };
  const Series plain = evaluated(3, 3.1);
  stepladder::Run a = of_tokens(100), b = of_tokens(100);
  EXPECT_EQ(parity(a, plain, b, plain).verdict, LossVerdict::same);
  EXPECT_EQ(parity(a, plain, b, evaluated(2.8, 2.9)).verdict, LossVerdict::better);
  const auto doubt = [&](const Series& run) {
    const LossParity found = parity(a, plain, b, run);
    EXPECT_EQ(found.verdict, LossVerdict::inconclusive);
    return found.doubt;
  };
  EXPECT_EQ(doubt(evaluated(3, missing)), "only the baseline was validated");
  EXPECT_NE(doubt(evaluated(3, 3.1 / 4.2)).find("another unit"), std::string::npos);
  EXPECT_EQ(parity(a, plain, b, evaluated(3, 2.9)).verdict, LossVerdict::better) << "so much may be a gain";
  EXPECT_NE(doubt(evaluated(-9, 3)).find("0 or less"), std::string::npos);
  EXPECT_EQ(doubt(evaluated(3, 3)), "its validation losses are its training losses");
  EXPECT_EQ(parity(a, evaluated(3.2, 3.2), b, evaluated(3, 3)).verdict, LossVerdict::better) << "both do";
  EXPECT_EQ(parity(a, plain, b, evaluated(3.5, missing)).verdict, LossVerdict::worse) << "a loss that shows is shown";

  a.recipe = R"({"max_iters":400})", b.recipe = R"({"max_iters":120})";
  EXPECT_EQ(doubt(plain), "the schedules differ: max_iters 400 and max_iters 120");
  a.recipe = R"({"eval_iters":200})", b.recipe = R"({"eval_iters":1})";
  EXPECT_EQ(doubt(plain), "the validations differ: eval_iters 200 and eval_iters 1");
  a.recipe = R"({"data.dataset":"openwebtext"})", b.recipe = R"({"data.dataset":"tinystories"})";
  EXPECT_EQ(parity(a, plain, b, plain).verdict, LossVerdict::not_comparable);
  a.recipe = R"({"data_dir":"/here/owt/"})", b.recipe = R"({"data_dir":"/there/owt"})";
  EXPECT_EQ(parity(a, plain, b, plain).verdict, LossVerdict::same) << "one set of data on two disks";
  for (const auto& [one, other] :
       {std::pair(R"({"train_files":"fineweb/train_*.bin"})", R"({"train_files":"tiny/train_*.bin"})"),
        std::pair(R"({"tokenizer":"gpt2"})", R"({"tokenizer":"llama"})"),
        std::pair(R"({"vocab_size":"50257"})", R"({"vocab_size":"32000"})")}) {
    a.recipe = one, b.recipe = other;
    EXPECT_EQ(parity(a, plain, b, plain).verdict, LossVerdict::not_comparable) << one;
  }
  a.recipe = R"({"eval_dataset":"c4_val"})", b.recipe = R"({"eval_dataset":"ptb"})";
  EXPECT_EQ(doubt(plain), "the validations differ: eval_dataset c4_val and eval_dataset ptb");
  a.recipe = R"({"val_files":"/a/fineweb/val.bin"})", b.recipe = R"({"val_files":"/b/fineweb/val.bin"})";
  EXPECT_EQ(parity(a, plain, b, plain).verdict, LossVerdict::same);
}

TEST(LossParity, a_metric_that_is_a_loss_is_asked_the_same) {
  const auto run = [](const std::string& recipe) { return stepladder::Run{.tokens_per_step = 100, .recipe = recipe}; };
  const stepladder::Run text = run(R"({"data": "a.txt", "vocab": 256})"), other = run(R"({"data": "b.txt"})");
  const auto doubt = [&](const char* name, const stepladder::Run& of) {
    return metric_doubt(name, {&text, &base}, {&of, &base});
  };
  for (const char* name : {"loss", "val_loss", "min(val/loss)", "eval/perplexity"}) {
    EXPECT_EQ(doubt(name, text), "") << name;
    EXPECT_NE(doubt(name, other).find("can't be compared"), std::string::npos) << name;
    EXPECT_NE(doubt(name, of_tokens(200)).find("can't be compared"), std::string::npos) << name;
  }
  const stepladder::Run large = of_tokens(200);
  const Series half = losses({9, 7, 5, 3});
  EXPECT_EQ(metric_doubt("val_loss", {&text, &base}, {&large, &half}), "") << "larger steps, and as many tokens";
  for (const char* name : {"val_bpb", "acc", "glossary", "dt_ms"}) EXPECT_EQ(doubt(name, other), "") << name;
}

TEST(LossParity, a_loss_that_ends_early_never_moves_or_begins_lower_shows_nothing) {
  const auto falling = [](double of) {
    std::vector<double> values;
    for (int i = 0; i < 40; ++i) values.push_back(of * (10.9 - 0.1 * i) + 1e-5 * (i % 7));
    return values;
  };
  const Series whole = losses(falling(1));
  std::vector<double> few = falling(1);
  std::fill(few.begin() + 8, few.end(), missing);
  const auto doubt = [](const Series& against, const Series& run) {
    const LossParity found = parity(against, run);
    EXPECT_EQ(found.verdict, LossVerdict::inconclusive);
    return found.doubt;
  };
  EXPECT_EQ(doubt(whole, losses(few)), "its training loss ends early");
  EXPECT_EQ(doubt(losses(std::vector<double>(40, 3.0001)), losses(std::vector<double>(40, 3.0001))),
            "its training loss never changes");
  EXPECT_NE(doubt(whole, losses(falling(1 / 1.4427))).find("far lower"), std::string::npos);
  EXPECT_EQ(parity(whole, whole).verdict, LossVerdict::same);
}

// 200 steps from 10.9 to 3.2, with a little noise, and a validation every 50 steps from step 0 on.
struct Trained {
  double learnt = 0;  // steps before its first one
  std::int64_t first_step = 0;
  double unit = 1;
  std::int64_t last_validation = 200;
  double rise = 0;   // of the training loss after step 160
  double above = 0;  // of the training loss, all along
  bool is_validated = true;

  Series series() const {
    Series series;
    for (std::int64_t step = first_step; step <= 200; ++step) {
      const double noise = 0.004 * static_cast<double>((step * 7) % 5) - 0.008;
      const double loss = unit * (3.2 + 7.7 * std::exp(-(static_cast<double>(step) + learnt) / 25));
      const bool has_validation = is_validated && step % 50 == 0 && step <= last_validation;
      series.append({.step = step,
                     .loss = loss + noise + above + (step > 160 ? rise : 0),
                     .val_loss = has_validation ? loss + 0.05 : missing});
    }
    return series;
  }
};

TEST(LossParity, trained_weights_at_the_start_show_nothing) {
  const auto doubt = [](const Series& against, const Series& run) {
    const LossParity found = parity(against, run);
    if (found.doubt.empty()) return std::string(to_string(found.verdict));
    EXPECT_EQ(found.verdict, LossVerdict::inconclusive);
    EXPECT_EQ(found.needed_runs, 0);
    return found.doubt;
  };
  const std::string far = "far lower";
  EXPECT_NE(doubt(Trained{}.series(), Trained{.learnt = 60}.series()).find(far), std::string::npos) << "validated";
  EXPECT_NE(doubt(Trained{.first_step = 1, .is_validated = false}.series(),
                  Trained{.learnt = 60, .first_step = 3, .is_validated = false}.series())
                .find(far),
            std::string::npos)
      << "its log begins later";
  EXPECT_EQ(doubt(Trained{.first_step = 1}.series(), Trained{.learnt = 60, .first_step = 50}.series()), "same")
      << "by then the base has learnt too";
  EXPECT_EQ(doubt(Trained{.is_validated = false}.series(), Trained{.learnt = 2, .is_validated = false}.series()),
            "same");
  // Inconclusive by its gap, and the reason is said.
  Series noisy = Trained{.learnt = 60}.series();
  for (std::size_t i = 0; i < noisy.size(); ++i)
    if (!is_missing(noisy.val_loss[i]) && noisy.step[i] == 200) noisy.val_loss[i] += 0.0205;
  EXPECT_NE(doubt(Trained{}.series(), noisy).find(far), std::string::npos);
}

TEST(LossParity, a_training_loss_that_leaves_after_the_last_validation_shows_nothing) {
  const Series plain = Trained{.last_validation = 150}.series();
  const LossParity left = parity(plain, Trained{.last_validation = 150, .rise = 3}.series());
  EXPECT_TRUE(left.by_validation);
  EXPECT_EQ(left.verdict, LossVerdict::inconclusive);
  EXPECT_EQ(left.doubt,
            "its training loss rises at the end, far above the baseline's, and its validation loss doesn't");
  EXPECT_EQ(parity(plain, Trained{.last_validation = 150, .above = 0.3}.series()).verdict, LossVerdict::same)
      << "dropout, or another loss beside it";
  EXPECT_EQ(parity(plain, Trained{.last_validation = 150, .rise = 0.05}.series()).verdict, LossVerdict::same);
}

TEST(LossParity, a_constant_ratio_of_ln_2_is_a_unit) {
  const double bits = 1 / std::log(2.0);
  const Series base_bits = Trained{.first_step = 10, .unit = bits, .is_validated = false}.series();
  const LossParity unit = parity(base_bits, Trained{.first_step = 10, .is_validated = false}.series());
  EXPECT_EQ(unit.verdict, LossVerdict::inconclusive);
  EXPECT_EQ(unit.doubt, "its losses are ln 2 times the baseline's all along, so they may be in nats and those in bits");
  EXPECT_EQ(parity(base_bits, Trained{.first_step = 10, .unit = 1.2, .is_validated = false}.series()).verdict,
            LossVerdict::better);
}

TEST(LossParity, a_loss_of_another_measure_or_schedule_shows_nothing) {
  const Trained plain{.is_validated = false};
  const Series whole = plain.series();
  const auto doubt = [&](const Series& run) {
    const LossParity found = parity(whole, run);
    EXPECT_EQ(found.verdict, LossVerdict::inconclusive);
    return found.doubt;
  };
  EXPECT_EQ(doubt(Trained{.unit = 0.95, .is_validated = false}.series()),
            "its losses are 0.95 times the baseline's from the first step on, so they may be another measure");
  Series leak = whole;
  for (std::size_t i = 0; i < leak.size(); ++i)
    leak.loss[i] = 10.9 * std::exp(-static_cast<double>(i) / 30) + 0.02 + 0.01 * static_cast<double>(i % 2);
  EXPECT_EQ(doubt(leak), "its loss is less than half of the baseline's, so the model may see what it is to predict");
  Series lowest = whole;
  for (std::size_t i = 1; i < lowest.size(); ++i) lowest.loss[i] = std::min(lowest.loss[i - 1], lowest.loss[i]);
  EXPECT_EQ(doubt(lowest), "its training loss never rises, so it may be the lowest or a mean of all so far");
  const Series half = losses({whole.loss.begin(), whole.loss.begin() + 100}, 0);
  Series decayed = half;
  for (std::size_t i = 60; i < decayed.size(); ++i) decayed.loss[i] -= 0.3;
  EXPECT_EQ(doubt(decayed), "it ends before the baseline, so its schedule may be a shorter one");
  stepladder::Run stopped = of_tokens(100);
  stopped.planned_steps = 200;
  EXPECT_EQ(parity(of_tokens(100), whole, stopped, half).verdict, LossVerdict::same);
}

TEST(LossParity, another_context_length_is_not_comparable) {
  stepladder::Run a = of_tokens(100), b = of_tokens(100);
  a.recipe = R"({"seq":1024})", b.recipe = R"({"seq":256})";
  EXPECT_EQ(parity(a, base, b, base).verdict, LossVerdict::not_comparable);
  b.recipe = R"({"seq":1024})";
  EXPECT_EQ(parity(a, base, b, base).verdict, LossVerdict::same);
}

TEST(LossParity, counts_the_last_printed_digit) {
  const Series low = losses(std::vector<double>(40, 3.0)), high = losses(std::vector<double>(40, 3.1));
  EXPECT_EQ(parity(low, high).verdict, LossVerdict::inconclusive) << "perhaps 3.0495 and 3.0505";
  EXPECT_EQ(parity(losses(std::vector<double>(40, 3.0001)), losses(std::vector<double>(40, 3.1002))).verdict,
            LossVerdict::worse);
}

TEST(LossParity, one_batch_again_and_again_is_another_task) {
  stepladder::Run plain = of_tokens(100), overfit = of_tokens(100);
  overfit.recipe = R"({"overfit": true})";
  EXPECT_EQ(parity(plain, base, overfit, base).verdict, LossVerdict::not_comparable);
}

}  // namespace
}  // namespace stepladder
