// The view Record: empty, judged, failed, very large, and the published records.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/panels/headless.h"
#include "tests/storage/speedrun/speedrun_text.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

// A pool of logs whose losses and clocks differ.
fs::path pool_of(const fs::path& folder, int runs, double loss, double step_ms, double curve) {
  fs::create_directories(folder);
  for (int i = 0; i < runs; ++i) {
    LogText log;
    log.steps = 60;
    log.final_loss = loss + 0.0004 * (i % 5);
    log.curve = curve + 0.001 * i;
    log.step_ms = step_ms + 0.05 * (i % 7);
    log.date.replace(11, 2, std::to_string(10 + i % 10));
    std::ofstream(folder / (std::to_string(1000 + i) + ".txt")) << log.text();
  }
  return folder;
}

class RecordPanel : public testing::Test {
 protected:
  RecordPanel() : store_(RunStore::in_memory()) {
    if (const char* const before = std::getenv("STEPLADDER_ASSETS")) assets_before_ = before;
    ::setenv("STEPLADDER_ASSETS", (std::string(STEPLADDER_SOURCE_DIR) + "/assets").c_str(), 1);
  }
  ~RecordPanel() override {
    if (assets_before_) {
      ::setenv("STEPLADDER_ASSETS", assets_before_->c_str(), 1);
    } else {
      ::unsetenv("STEPLADDER_ASSETS");
    }
  }

  DesktopSettings asking(const fs::path& pool, const fs::path& baseline, const std::string& rule) {
    return {.panels = {"record"},
            .views = {{"record", R"({"pool":")" + pool.string() + R"(","baseline":")" + baseline.string() +
                                     R"(","rule":")" + rule + "\"}"}}};
  }
  // Draws until the question has been answered.
  static bool is_judged(Headless& imgui, DesktopApp& app) {
    return imgui.frames_until(app,
                              [&] { return app.workspace().record && !app.workspace().record->asked.pool.empty(); });
  }

  std::optional<std::string> assets_before_;
  const TemporaryFolder folder_;
  RunStore store_;
};

TEST_F(RecordPanel, runs_that_arrive_are_judged_without_asking) {
  const fs::path runs = pool_of(folder_ / "runs", 3, 3.2770, 97.5, 0);
  Headless imgui;
  DesktopApp app(store_, nullptr, asking(runs, "", "modded-nanogpt-1"));
  ASSERT_TRUE(is_judged(imgui, app));
  ASSERT_EQ(app.workspace().record->dots.size(), 3u);
  pool_of(runs, 5, 3.2770, 97.5, 0);
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().record->dots.size() == 5; }));
  const auto last = app.workspace().record;
  // Nothing has changed, so nothing is judged.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2'500);
  while (std::chrono::steady_clock::now() < end) {
    imgui.frame(app);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(app.workspace().record, last);
}

TEST_F(RecordPanel, says_what_will_appear_and_how) {
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"record"}});
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().record != nullptr; }));
  EXPECT_EQ(app.workspace().record->rules.size(), 5u);
  EXPECT_TRUE(ui_test_anchors::find("record.pool.browse"));
  ASSERT_TRUE(imgui.click(app, "record.published"));
  EXPECT_GT(imgui.frame(app), 0);
  ASSERT_TRUE(imgui.click(app, "record.yours"));
}

TEST_F(RecordPanel, offers_the_rungs_that_have_several_runs) {
  const LadderId ladder = store_.create_ladder({.name = "mine"});
  for (int repeat = 0; repeat < 3; ++repeat)
    for (int rung = 0; rung < (repeat == 0 ? 2 : 1); ++rung)
      store_.insert_finished(
          {.name = "run", .ladder = ladder, .rung = rung, .repeat = repeat, .status = RunStatus::finished},
          std::vector<StepRecord>{{.step = 1, .loss = 3, .val_loss = 3}});
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"record"}});
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().record != nullptr; }));
  ASSERT_TRUE(imgui.click(app, "record.own.0"));
  EXPECT_FALSE(ui_test_anchors::find("record.own.1")) << "one run is no pool";
  ASSERT_TRUE(is_judged(imgui, app));
  EXPECT_EQ(app.workspace().record->asked.pool, "rung:" + std::to_string(ladder) + "/0");
}

TEST_F(RecordPanel, verdict_flags_and_figures_follow_the_logs) {
  const fs::path runs = pool_of(folder_ / "runs", 8, 3.2770, 97.5, 0);
  const fs::path before = pool_of(folder_ / "before", 4, 3.2785, 101, 0.5);
  Headless imgui;
  {
    DesktopApp app(store_, nullptr, asking(runs, before, "modded-nanogpt-1"));
    ASSERT_TRUE(is_judged(imgui, app));
    const RecordView& view = *app.workspace().record;
    EXPECT_EQ(view.problem, "");
    EXPECT_EQ(view.claim.verdict, RecordVerdict::record) << view.claim.reason;
    ASSERT_EQ(view.dots.size(), 8u);
    EXPECT_DOUBLE_EQ(view.dots.back().p, view.claim.p) << "the last p is that of the claim";
    imgui.frame(app);
    EXPECT_TRUE(ui_test_anchors::find("record.verdict.record"));
    EXPECT_FALSE(ui_test_anchors::find("record.flag.0"));
  }
  LogText odd;
  odd.steps = 60;
  odd.script += "x = 1\n";
  std::ofstream(runs / "odd.txt") << odd.text();
  std::ofstream(runs / "cut.txt") << odd.text().substr(0, 2'000);
  DesktopApp app(store_, nullptr, asking(runs, before, "modded-nanogpt-1"));
  ASSERT_TRUE(is_judged(imgui, app));
  imgui.frame(app);
  imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("record.verdict.flagged"));
  EXPECT_TRUE(ui_test_anchors::find("record.flag.0"));
}

// A folder alone is enough where one rule's target is near.
TEST_F(RecordPanel, a_folder_gets_a_verdict_in_one_step) {
  const auto judged = [&](const fs::path& pool) {
    Headless imgui;
    DesktopApp app(store_, nullptr, {.panels = {"record"}});
    EXPECT_TRUE(imgui.frames_until(app, [&] { return app.workspace().record != nullptr; }));
    app.take_dropped({pool.string()});
    EXPECT_TRUE(is_judged(imgui, app));
    imgui.frame(app);
    imgui.frame(app);
    EXPECT_EQ(ui_test_anchors::find("record.rule.modded-nanogpt-1").has_value(), !app.workspace().record->rule)
        << "the rules are offered where none is the nearest";
    return *app.workspace().record;
  };
  const RecordView passes = judged(pool_of(folder_ / "passes", 8, 2.9170, 97.5, 0));
  ASSERT_TRUE(passes.rule);
  EXPECT_EQ(passes.rule->name, "modded-nanogpt-2");
  EXPECT_EQ(passes.claim.verdict, RecordVerdict::cannot_tell) << "the record's own runs are missing";
  EXPECT_EQ(judged(pool_of(folder_ / "fails", 8, 2.94, 97.5, 0)).claim.verdict, RecordVerdict::misses);
  const RecordView one = judged(pool_of(folder_ / "one", 1, 2.9170, 97.5, 0));
  EXPECT_EQ(one.claim.verdict, RecordVerdict::cannot_tell);
  EXPECT_NE(one.claim.finding.find("run at least two"), std::string::npos) << one.claim.finding;
  EXPECT_FALSE(judged(pool_of(folder_ / "far", 3, 2.2, 97.5, 0)).rule);
  const RecordView of_two_tracks = judged(pool_of(folder_ / "tracks", 8, 3.2770, 97.5, 0));
  EXPECT_FALSE(of_two_tracks.rule) << "tracks 1 and 3 have one target, and other demands";
  EXPECT_EQ(of_two_tracks.claim.verdict, RecordVerdict::cannot_tell);
}

TEST_F(RecordPanel, a_folder_of_pools_offers_them) {
  pool_of(folder_ / "out" / "candidate", 3, 3.2770, 97.5, 0);
  pool_of(folder_ / "out" / "baseline", 3, 3.2770, 99, 0);
  Headless imgui;
  DesktopApp app(store_, nullptr, asking(folder_ / "out", "", ""));
  ASSERT_TRUE(is_judged(imgui, app));
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("record.instead.1").has_value(); }));
  ASSERT_TRUE(imgui.click(app, "record.instead.1"));
  EXPECT_TRUE(imgui.frames_until(app, [&] { return app.workspace().record->claim.metric.n == 3; }));
}

TEST_F(RecordPanel, a_pool_that_cannot_be_judged_is_explained) {
  Headless imgui;
  for (const char* pool : {"/no/such/folder", "nothing", "rung:1/0", "filter:loss<<"}) {
    DesktopApp app(store_, nullptr, asking(pool, "", "modded-nanogpt-1"));
    ASSERT_TRUE(is_judged(imgui, app));
    EXPECT_FALSE(app.workspace().record->problem.empty()) << pool;
    imgui.frame(app);
    imgui.frame(app);
    EXPECT_TRUE(ui_test_anchors::find("record.problem")) << pool;
  }
  DesktopApp app(store_, nullptr, asking(pool_of(folder_ / "runs", 2, 3.27, 97, 0), "", "no-such-rule"));
  ASSERT_TRUE(is_judged(imgui, app));
  EXPECT_NE(app.workspace().record->problem.find("no-such-rule"), std::string::npos);
}

TEST_F(RecordPanel, draws_a_thousand_runs_and_broken_values) {
  const fs::path runs = pool_of(folder_ / "runs", 1'000, 3.2770, 97.5, 0);
  LogText broken;
  broken.steps = 60;
  broken.final_loss = NAN;
  std::ofstream(runs / "nan.txt") << broken.text();
  Headless imgui;
  for (const ImVec2 size : {ImVec2(1600, 900), ImVec2(640, 400)}) {
    ImGui::GetIO().DisplaySize = size;
    DesktopApp app(store_, nullptr, asking(runs, "", "modded-nanogpt-1"));
    ASSERT_TRUE(is_judged(imgui, app));
    EXPECT_EQ(app.workspace().record->dots.size(), 1'001u);
    EXPECT_EQ(app.workspace().record->claim.verdict, RecordVerdict::misses) << "NaN counts";
    EXPECT_GT(imgui.frame(app), 0);
  }
}

}  // namespace
}  // namespace stepladder
