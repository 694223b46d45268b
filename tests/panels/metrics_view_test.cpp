// Logged metrics in Live, Compare and Run: live, in groups that fold, chosen by name or pattern, against the baseline.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/desktop/metrics/chart_groups.h"
#include "app/desktop/models/comparison.h"
#include "app/desktop/models/run_points.h"
#include "app/panels/compare/numbers.h"
#include "app/panels/live/metrics.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

TEST(ChartGroups, FollowTheirFirstChartsAndThoseWithoutAGroupComeFirst) {
  const std::vector<std::string> groups{"val/", "", "train/", "val/", ""};
  const std::vector<ChartGroup> found = in_groups(groups);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "");
  EXPECT_EQ(found[0].charts, (std::vector<std::size_t>{1, 4}));
  EXPECT_EQ(found[1].name, "val/");
  EXPECT_EQ(found[1].charts, (std::vector<std::size_t>{0, 3}));
  EXPECT_EQ(found[2].name, "train/");
  EXPECT_EQ(group_by_prefix(quantity_named("val/acc/top1")), "val/");
  EXPECT_EQ(group_by_prefix(quantity_named("reward")), "");
  EXPECT_EQ(group_by_prefix(Quantity::loss), "");
}

TEST(ChartGroups, KeepWhichAreFolded) {
  FoldedGroups folded;
  folded.click("val/");
  folded.click("train/");
  folded.click("train/");
  const FoldedGroups back = folded_from(to_json(folded));
  EXPECT_TRUE(back.has("val/"));
  EXPECT_FALSE(back.has("train/"));
  EXPECT_FALSE(folded_from(nlohmann::json::parse(R"({"val/":1})")).has("val/")) << "from another version";
}

// A run of a script that another process follows into the file: it has a row, an owner and steps there.
class FollowedRun : public testing::Test {
 protected:
  FollowedRun() {
    run_ = store_.create_run({.name = "script", .status = RunStatus::running, .source = "import", .started_at = 10});
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= 50; ++step)
      steps.push_back({.step = step, .loss = 4 - 0.01 * static_cast<double>(step), .dt_ms = 5});
    store_.append_steps(run_, steps);
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {"live"}});
    ImGui::GetIO().DisplaySize = ImVec2(1600, 1200);
    follow();
  }
  void log(const char* name, std::int64_t first, std::int64_t last, double value) {
    std::vector<MetricPoint> points;
    for (std::int64_t step = first; step <= last; ++step) points.push_back({step, value});
    store_.metrics().append(run_, name, points);
  }
  // As the window does twice a second.
  void follow() { app_->workspace().follow_others(store_, store_.processes().runs_under_way()); }
  bool click(const std::string& anchor) { return imgui_.click(*app_, anchor); }
  bool shows(const std::string& anchor) {
    ui_test_anchors::keep();
    for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
    return ui_test_anchors::find(anchor).has_value();
  }
  bool waits_for(const std::string& anchor) {
    return imgui_.frames_until(*app_, [&] { return ui_test_anchors::find(anchor).has_value(); });
  }
  void reopen() {
    const DesktopSettings settings = app_->settings();
    app_.emplace(store_, nullptr, settings);
    follow();
  }
  MetricList list() {
    MetricList list;
    DataRequests asked;
    app_->workspace().load_metrics(store_, run_);
    list.update(app_->workspace(), {app_->workspace().find(run_)}, asked);
    return list;
  }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::open(folder_ / "runs.db");
  RunId run_ = 0;
  Headless imgui_;
  std::optional<DesktopApp> app_;
};

TEST_F(FollowedRun, OfVeryManyMetricsTheFirstAreShown) {
  store_.in_one_transaction([&] {
    for (int i = 0; i < 1100; ++i) log(("m" + std::to_string(10'000 + i)).c_str(), 1, 2, i);
  });
  follow();
  const MetricList known = list();
  EXPECT_EQ(known.all().size(), 1100u);
  EXPECT_FALSE(known.is_cut());
  EXPECT_TRUE(waits_for("chart.metric.m10000"));
  EXPECT_EQ(more_metrics_text(100), "and 100 more; a search narrows them");
}

TEST_F(FollowedRun, HasAChartOfEachMetricInLiveAlsoOfOneThatComesLater) {
  EXPECT_FALSE(shows("live.choose")) << "it has logged none";
  log("val/acc", 10, 50, 0.3);
  follow();
  app_->workspace().load_metrics(store_, run_);
  ASSERT_TRUE(waits_for("chart.metric.val/acc"));
  log("reward", 1, 50, 7);
  log("val/acc", 5, 5, 0.9);  // a late value of an old step
  follow();
  ASSERT_TRUE(waits_for("chart.metric.reward"));
  const Quantity accuracy = quantity_named("val/acc");
  EXPECT_TRUE(imgui_.frames_until(*app_, [&] {
    const auto curve = app_->workspace().overview(run_, accuracy);
    return curve && curve->points.x.front() == 5 && curve->points.y.front() == 0.9;
  }));
  EXPECT_TRUE(shows("group.val/"));
}

TEST_F(FollowedRun, ShowsLateValuesOfOldStepsWhileItGoesOn) {
  ASSERT_TRUE(shows("chart.loss"));
  store_.following().complete_steps(run_, std::vector<StepRecord>{{.step = 20, .val_loss = 3.5}});
  store_.append_steps(run_, std::vector<StepRecord>{{.step = 51, .loss = 3}, {.step = 52, .loss = 2.9}});
  follow();
  const RunEntry& shown = *app_->workspace().find(run_);
  EXPECT_TRUE(imgui_.frames_until(*app_, [&] { return shown.series().val_loss[19] == 3.5; }));
  EXPECT_EQ(shown.series().size(), 52u);
  EXPECT_EQ(shown.steps.size(), 52u);
  EXPECT_EQ(shown.series().loss[19], 3.8);
}

TEST_F(FollowedRun, StaysInLiveWhenItHasEnded) {
  ASSERT_TRUE(shows("chart.loss"));
  auto over = store_.existing_run(run_);
  over.status = RunStatus::finished;
  over.ended_at = 100;
  store_.update_run(over);
  follow();
  EXPECT_EQ(app_->workspace().shown_live(), app_->workspace().find(run_));
  EXPECT_TRUE(shows("chart.loss"));
}

TEST_F(FollowedRun, ShowsTheMetricsThatTheUserChoseByNameOrPattern) {
  for (const char* const name : {"val/acc", "val/f1", "reward"}) log(name, 1, 50, 1);
  follow();
  ASSERT_TRUE(waits_for("chart.metric.val/f1"));
  ASSERT_TRUE(click("live.choose"));
  ASSERT_TRUE(imgui_.type(*app_, "live.metric_search", "val/*"));
  ASSERT_TRUE(imgui_.frames_until(*app_, [] { return !ui_test_anchors::find("chart.metric.reward"); }));
  EXPECT_TRUE(shows("chart.metric.val/acc"));
  ASSERT_TRUE(click("group.val/"));
  EXPECT_FALSE(shows("chart.metric.val/acc")) << "folded";
  log("val/late", 1, 50, 1);
  reopen();
  ASSERT_TRUE(waits_for("group.val/"));
  EXPECT_FALSE(shows("chart.metric.val/late")) << "folded also after a restart";
  ASSERT_TRUE(click("group.val/"));
  EXPECT_TRUE(waits_for("chart.metric.val/late")) << "the pattern means it too";
  EXPECT_FALSE(shows("chart.metric.reward"));
  ASSERT_TRUE(click("live.choose"));
  ASSERT_TRUE(click("live.choose_all"));
  imgui_.press(*app_, ImGuiKey_Escape);
  EXPECT_TRUE(waits_for("chart.metric.reward"));
}

TEST_F(FollowedRun, ACountOfNaNIsInTheCaptionOfAMetric) {
  std::vector<MetricPoint> points;
  for (std::int64_t step = 1; step <= 20; ++step)
    points.push_back({step, step == 7   ? std::numeric_limits<double>::quiet_NaN()
                            : step == 9 ? std::numeric_limits<double>::infinity()
                                        : 1});
  const RunId run = store_.insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 1, .loss = 4}});
  store_.metrics().append(run, "reward", points);
  app_->workspace().load(store_);
  DataRequests asked;
  const Workspace& workspace = app_->workspace();
  const Quantity reward = quantity_named("reward");
  app_->workspace().keep(read_curve(store_, workspace.wanted(run, reward, std::nullopt)));
  Curve curve;
  run_points(workspace, *workspace.find(run), reward, nullptr, asked).draw_as(curve);
  EXPECT_EQ(curve.not_finite, 2u);
  EXPECT_EQ(curve.x.size(), 18u);
}

TEST_F(FollowedRun, AChoiceIsAddedTakenBackAndKept) {
  for (const char* const name : {"val/acc", "val/f1", "reward"}) log(name, 1, 2, 1);
  const MetricList known = list();
  const Quantity accuracy = quantity_named("val/acc"), reward = quantity_named("reward");
  ChosenMetrics chosen;
  EXPECT_EQ(chosen.of(known).size(), 3u) << "all, until the user chooses";
  chosen.choose({.metrics = {reward}, .meant_by = {}}, known);
  EXPECT_EQ(chosen.of(known), std::vector<Quantity>{reward});
  chosen.choose({.metrics = known.meant_by("val/*"), .meant_by = "val/*"}, known);
  EXPECT_EQ(chosen.of(known).size(), 3u);
  chosen.choose({.metrics = {accuracy}, .meant_by = {}}, known);
  EXPECT_FALSE(chosen.has(accuracy)) << "a second click takes it back";
  EXPECT_EQ(chosen.of(known).size(), 2u);
  EXPECT_EQ(chosen_from(to_json(chosen)).of(known), chosen.of(known));
  EXPECT_TRUE(chosen_from(nlohmann::json::parse(R"({"all":3,"names":[1]})")).all()) << "from another version";
}

TEST_F(FollowedRun, UnitDirectionAndSectionAreThoseThatWereLogged) {
  log("val/acc", 1, 2, 1);
  store_.metrics().describe(run_,
                            {.name = "val/acc", .unit = "%", .direction = Direction::higher, .section = "Validation"});
  log("other", 1, 2, 1);
  const MetricList known = list();
  const Quantity accuracy = quantity_named("val/acc");
  EXPECT_EQ(known.unit_of(accuracy), "%");
  EXPECT_EQ(known.direction_of(accuracy), Direction::higher);
  EXPECT_EQ(known.group_of(accuracy), "Validation");
  EXPECT_EQ(known.direction_of(quantity_named("other")), Direction::unknown);
  EXPECT_EQ(known.direction_of(Quantity::dt_ms), Direction::lower);
  EXPECT_EQ(known.unit_of(Quantity::dt_ms), "ms");
}

TEST_F(FollowedRun, WithoutStepTimesTheThroughputIsTheLoggedOne) {
  EXPECT_EQ(list().throughput(), Quantity::tokens_per_s);
  log("tokens_per_sec", 1, 2, 100);
  log("val/acc", 1, 2, 1);
  EXPECT_EQ(list().throughput(), quantity_named("tokens_per_sec"));
  stepladder::RunEntry entry;
  EXPECT_FALSE(has_step_throughput(&entry));
  entry.summary.dt_ms_median = 10;
  EXPECT_FALSE(has_step_throughput(&entry)) << "tokens aren't known";
  entry.run.tokens_per_step = 100;
  EXPECT_TRUE(has_step_throughput(&entry));
}

// Three runs that log the same metric: the baseline, one that ends earlier, and one as long with another value at the
// last step.
class ComparedMetrics : public testing::Test {
 protected:
  RunId add(std::int64_t steps, double offset) {
    const RunId run =
        store_.insert_finished({.name = "r" + std::to_string(offset)}, std::vector<StepRecord>{{.step = 1, .loss = 4}});
    std::vector<MetricPoint> points;
    for (std::int64_t step = 1; step <= steps; ++step)
      points.push_back({step, static_cast<double>(step) + (step == steps ? offset : 0)});
    store_.metrics().append(run, "acc", points);
    return run;
  }
  const LastGap& gap(RunId base, RunId run) {
    workspace_.load(store_);
    workspace_.patience = std::chrono::hours(1);
    const ComparisonOptions options{.metrics = {acc_}};
    const std::vector<const RunEntry*> runs{workspace_.find(base), workspace_.find(run)};
    for (int rounds = 0; rounds < 50; ++rounds) {
      DataRequests asked;
      shown_.update(workspace_, runs, base, options, {}, asked);
      if (asked.empty()) break;
      read_now(asked, store_, workspace_);
    }
    return shown_.curves.lines.at(1).of(acc_).last_gap;
  }

  RunStore store_ = RunStore::in_memory();
  Workspace workspace_;
  ComparisonViewModel shown_;
  const Quantity acc_ = quantity_named("acc");
};

TEST_F(ComparedMetrics, AreSaidAtTheLastStepThatBothHave) {
  const RunId base = add(100, 0);
  const LastGap& shorter = gap(base, add(50, 25));
  EXPECT_EQ(shorter.x, 50);
  EXPECT_EQ(shorter.delta, 25);
  EXPECT_EQ(shorter.factor, 1.5);
  EXPECT_FALSE(shorter.is_estimate);
  EXPECT_EQ(last_gap_text(shorter), "+25 (1.50 x)");
  EXPECT_TRUE(is_missing(shown_.curves.lines.at(0).of(acc_).last_gap.delta)) << "the baseline has none";
}

TEST_F(ComparedMetrics, HaveNoDifferenceWhereTheLastValueIsNotFinite) {
  const RunId base = add(100, 0);
  const LastGap lost = gap(base, add(100, std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(is_missing(lost.delta)) << "not that of the last finite one";
  EXPECT_TRUE(shown_.curves.lines.at(1).of(acc_).ends_not_finite);
}

TEST_F(ComparedMetrics, AreExactAtTheEndOfLongRunsAndEstimatedBeforeIt) {
  const RunId base = add(20'000, 0);
  const LastGap as_long = gap(base, add(20'000, 500));
  EXPECT_EQ(as_long.x, 20'000);
  EXPECT_EQ(as_long.delta, 500) << "the last values, though both curves are drawn as means";
  EXPECT_FALSE(as_long.is_estimate);
  const LastGap shorter = gap(base, add(10'000, 0));
  EXPECT_TRUE(shorter.is_estimate);
  EXPECT_NEAR(shorter.delta, 0, 50);
  EXPECT_EQ(last_gap_text({}), "-");
  EXPECT_EQ(metric_value_text(0.30591), "0.3059");
}

}  // namespace
}  // namespace stepladder
