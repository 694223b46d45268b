// Runs too long to be read whole: reports and figures take excerpts and overviews, and say so.
#include "app/runs/loaded_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "app/figures/run_figures.h"
#include "app/figures/svg.h"
#include "app/figures/tex.h"
#include "app/runs/excerpt.h"

namespace stepladder {
namespace {

constexpr std::int64_t many = most_steps_read_whole + 50'000;

class LoadedRuns : public testing::Test {
 protected:
  LoadedRuns() {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= many; ++step)
      steps.push_back({.step = step, .loss = 3, .dt_ms = 20, .tokens = 768});
    steps[123'455].loss = 9;  // a spike of one step
    steps[200'000].loss = std::numeric_limits<double>::infinity();
    store_.insert_finished({.name = "long", .created_at = 1, .tokens_per_step = 768, .params = 1000}, steps);
    steps.resize(100);
    store_.insert_finished({.name = "short", .created_at = 2, .tokens_per_step = 768, .params = 1000}, steps);
  }
  Study study() { return make_study("two", "", load_runs(store_, store_.runs()), {}); }

  RunStore store_ = RunStore::in_memory();
};

TEST_F(LoadedRuns, LongOnesAreExcerptsWithOverviews) {
  const std::vector<LoadedRun> loaded = load_runs(store_, store_.runs());
  ASSERT_EQ(loaded.size(), 2u);
  EXPECT_TRUE(loaded[0].is_excerpt());
  EXPECT_LE(std::ssize(loaded[0].series.step), 2 * longest_excerpt);
  EXPECT_EQ(loaded[0].summary.steps, many);
  EXPECT_EQ(loaded[0].overviews.size(), 3u);
  EXPECT_FALSE(loaded[1].is_excerpt());
  EXPECT_EQ(loaded[1].series.size(), 100u);
  EXPECT_TRUE(loaded[1].overviews.empty());
}

TEST_F(LoadedRuns, FiguresOfLongOnesKeepEverySpikeAndSayThatTheyAreExcerpts) {
  const Study of = study();
  for (const XAxis x : {XAxis::step, XAxis::tokens, XAxis::time}) {
    const Figure figure = loss_figure(of, x);
    ASSERT_EQ(figure.curves.size(), 2u);
    const FigureCurve& curve = figure.curves[0];
    EXPECT_LT(curve.x.size(), 20'000u);
    EXPECT_TRUE(std::is_sorted(curve.x.begin(), curve.x.end()));
    ASSERT_EQ(curve.high.size(), curve.x.size());
    ASSERT_EQ(curve.low.size(), curve.x.size());
    EXPECT_EQ(std::count(curve.high.begin(), curve.high.end(), 9), 1) << "the spike";
    EXPECT_LT(std::ranges::max(curve.y), 9) << "a mean is drawn, as in the window";
    EXPECT_EQ(curve.behind, many);
    EXPECT_TRUE(figure.subtitle.ends_with("; 100 points, means and range of 250,000 values")) << figure.subtitle;
    EXPECT_EQ(curve.not_finite, 1);
    const double end = x == XAxis::step ? 1 : x == XAxis::tokens ? 768 : 0.020;
    EXPECT_NEAR(curve.x.back(), many * end, many * end * 1e-6);
    const bool says = std::any_of(figure.caption.begin(), figure.caption.end(),
                                  [](const std::string& line) { return line.starts_with("Of 1 long run"); });
    EXPECT_TRUE(says);
  }
  const Figure loss = loss_figure(of, XAxis::step);
  const DrawnCurve line = drawn(loss.curves[0], loss, 400);
  EXPECT_EQ(std::ranges::max(line.high), 9);
  EXPECT_LT(line.band_x.size(), 1000u);
  EXPECT_NE(to_svg(loss).find("fill-opacity"), std::string::npos);
  EXPECT_NE(to_tex(loss, of).find("fill opacity=0.2"), std::string::npos);
  EXPECT_TRUE(drawn(loss.curves[1], loss, 400).band_x.empty()) << "every step of a short run is drawn";
  EXPECT_EQ(throughput_figure(of, XAxis::step).curves[0].y.front(), 38'400);
  EXPECT_EQ(step_time_figure(of, XAxis::step).curves[0].y.back(), 20);
}

TEST(LongLadder, DifferencesOfLossesAreThoseOfMeans) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "two"});
  for (int rung = 0; rung < 2; ++rung) {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= many; ++step) {
      const double noise = step * 7919 % 13 == rung ? 1 : 0;  // in other steps of each run
      steps.push_back({.step = step, .loss = 3 + 0.1 * rung + noise, .dt_ms = 20, .tokens = 768});
    }
    store.insert_finished(
        {.name = "rung", .ladder = ladder, .rung = rung, .created_at = 1, .tokens_per_step = 768, .params = 1000},
        steps);
  }
  const Study study = make_study("two", "", load_runs(store, store.runs_of(ladder)), {});
  for (const XAxis x : {XAxis::step, XAxis::tokens}) {
    const Figure figure = loss_difference_figure(study, x);
    ASSERT_EQ(figure.curves.size(), 1u);
    EXPECT_NEAR(std::ranges::max(figure.curves[0].y), 0.1, 0.1) << "not a zig-zag between -0.9 and 1.1";
    EXPECT_GT(figure.curves[0].x.back(), x == XAxis::step ? 200'000 : 200'000 * 768.0);
    EXPECT_TRUE(figure.caption.front().starts_with("At equal steps; of long runs")) << figure.caption.front();
  }
}

TEST_F(LoadedRuns, ShortOnesSayNothingOfExcerpts) {
  const Study of = make_study("one", "", load_runs(store_, {*store_.run(2)}), {});
  EXPECT_EQ(excerpt_line(of), "");
}

}  // namespace
}  // namespace stepladder
