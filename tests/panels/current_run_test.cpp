// One current run in all views.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

TEST(CurrentRun, IsTheOneThatWasSelectedOrOpenedLast) {
  RunStore store = RunStore::in_memory();
  const std::vector<StepRecord> steps{{.step = 1, .loss = 3, .dt_ms = 20}, {.step = 2, .loss = 2, .dt_ms = 20}};
  std::vector<RunId> runs;
  for (int ladder = 0; ladder < 2; ++ladder) {
    const LadderId id = store.create_ladder({.name = "ladder " + std::to_string(ladder)});
    for (int rung = 0; rung < 3; ++rung)
      runs.push_back(store.insert_finished(
          {.name = "run " + std::to_string(ladder) + std::to_string(rung), .ladder = id, .rung = rung}, steps));
  }
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"history"}});
  ASSERT_TRUE(imgui.click(app, "history.run." + std::to_string(runs[1])));
  EXPECT_EQ(app.workspace().selection.shown_run, runs[1]) << "a click in History";
  ASSERT_TRUE(imgui.click(app, "side.ladder"));
  ASSERT_TRUE(imgui.click(app, "ladder.rung.2"));
  EXPECT_EQ(app.workspace().selection.shown_run, runs[5]) << "a row of the newest ladder";
  ASSERT_TRUE(imgui.click(app, "side.history"));
  ASSERT_TRUE(imgui.click(app, "history.run." + std::to_string(runs[0])));
  imgui.click(app, "history.run." + std::to_string(runs[0]));  // the second click of a double-click
  EXPECT_EQ(app.workspace().selection.shown_run, runs[0]);
  ASSERT_TRUE(imgui.click(app, "side.ladder"));
  EXPECT_EQ(app.workspace().shown_ladder()->name, "ladder 0") << "the opened run's ladder";
  EXPECT_EQ(app.workspace().selection.rung, 0);
}

TEST(CurrentRun, ItsRecipeBeginsWithWhatDiffersFromTheBaseline) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "mine"});
  const std::vector<StepRecord> steps{{.step = 1, .loss = 3, .dt_ms = 20}};
  store.insert_finished({.name = "base", .ladder = ladder, .recipe = R"({"batch": 8, "zeta": 1})"}, steps);
  store.insert_finished({.name = "rung", .ladder = ladder, .rung = 1, .recipe = R"({"batch": 8, "zeta": 2})"}, steps);
  Headless imgui;
  ui_test_anchors::keep();
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"run"}});
  app.workspace().selection.shown_run = 2;
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("run.setting.zeta").has_value(); }));
  EXPECT_LT(ui_test_anchors::find("run.setting.zeta")->y0, ui_test_anchors::find("run.setting.batch")->y0);
}

// Without a choice it is the ladder's fastest run with a possible speed, in Run and MFU.
TEST(CurrentRun, IsTheFastestOfTheShownLadderUntilOneIsChosen) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "mine"});
  const auto insert = [&](const char* name, std::optional<LadderId> of, int rung, double dt_ms) {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= 20; ++step)
      steps.push_back({.step = step, .loss = 3, .dt_ms = dt_ms, .tokens = 8192});
    return store.insert_finished({.name = name,
                                  .ladder = of,
                                  .rung = rung,
                                  .status = RunStatus::finished,
                                  .source = "launched",
                                  .tokens_per_step = 8192,
                                  .params = 124'439'808,
                                  .device = "cuda",
                                  .hardware = "NVIDIA A100-SXM4-40GB",
                                  .precision = "bf16"},
                                 steps);
  };
  insert("baseline", ladder, 0, 300);
  const RunId fast = insert("fast", ladder, 1, 100);
  insert("impossible", ladder, 2, 1);
  const RunId last = insert("slow", ladder, 3, 200);
  insert("a run apart", std::nullopt, 0, 50);
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"mfu"}});
  app.workspace().hardware = HardwareTable::read(std::string(STEPLADDER_SOURCE_DIR) + "/assets/hardware.csv");
  ASSERT_TRUE(app.workspace().current_run());
  EXPECT_EQ(app.workspace().current_run()->run.id, fast);
  app.workspace().selection.rung = 3;
  EXPECT_EQ(app.workspace().current_run()->run.id, last) << "the chosen rung";
  app.workspace().selection.shown_run = fast;
  EXPECT_EQ(app.workspace().current_run()->run.id, fast) << "the chosen run";
}

TEST(Mfu, MeasuresThePeakInAProcessThatCanBeStopped) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder.path() / "project.db");
  store.insert_finished({.name = "here",
                         .status = RunStatus::finished,
                         .source = "launched",
                         .tokens_per_step = 8192,
                         .params = 124'439'808,
                         .device = "cpu",
                         .hardware = "Unheard-of",
                         .precision = "fp32"},
                        std::vector<StepRecord>{{.step = 1, .loss = 3, .dt_ms = 20, .tokens = 8192}});
  ASSERT_EQ(::setenv("XDG_CONFIG_HOME", folder.path().c_str(), 1), 0);
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"mfu"}});
  ASSERT_TRUE(imgui.click(app, "mfu.probe"));
  EXPECT_FALSE(is_missing(app.workspace().measures_peak_since));
  ASSERT_TRUE(imgui.click(app, "mfu.probe.stop"));
  EXPECT_TRUE(imgui.frames_until(app, [&] { return is_missing(app.workspace().measures_peak_since); }));
  EXPECT_FALSE(std::filesystem::exists(HardwareTable::user_file())) << "nothing was measured";
  imgui.frames(app);
  EXPECT_TRUE(ui_test_anchors::find("mfu.probe")) << "it can be asked for again";
  ::unsetenv("XDG_CONFIG_HOME");
}

TEST(CurrentRun, OfAScriptInLiveHasNoEndAndNoButtonsThatCannotAct) {
  for (const bool is_script : {false, true}) {
    RunStore store = RunStore::in_memory();
    stepladder::Run run{.name = "demo", .status = RunStatus::running, .source = is_script ? "import" : "launched"};
    run.planned_steps = is_script ? 0 : 1000;
    run.id = store.create_run(run);
    std::vector<StepRecord> steps;
    for (int i = 1; i <= 50; ++i) steps.push_back({.step = i, .loss = 3, .dt_ms = 20});
    store.append_steps(run.id, steps);
    Headless imgui;
    DesktopApp app(store, nullptr, DesktopSettings{.panels = {"live"}});
    app.workspace().follow_others(store, {run});
    ui_test_anchors::keep();
    for (int i = 0; i < 3; ++i) imgui.frame(app);
    EXPECT_EQ(ui_test_anchors::find("live.stop").has_value(), !is_script);
    EXPECT_EQ(ui_test_anchors::find("live.pause").has_value(), !is_script);
    const RunEntry* shown = app.workspace().running();
    ASSERT_TRUE(shown);
    if (is_script) {
      EXPECT_TRUE(is_missing(app.workspace().seconds_left(*shown)));
    }
  }
}

TEST(CurrentRun, InLiveSaysWhichRungsOfAFinishedLadderAreDoubtful) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "mine", .source = "launched"});
  for (int rung = 0; rung < 3; ++rung) {
    const RunId id = store.create_run({.name = "run",
                                       .ladder = ladder,
                                       .rung = rung,
                                       .status = RunStatus::running,
                                       .source = "launched",
                                       .started_at = 1000.0 + rung,
                                       .planned_steps = 40});
    std::vector<RunEvent> events;
    for (std::int64_t step = 1; step <= 40; ++step) {
      const double at = 1000 + static_cast<double>(step);
      events.emplace_back(StepRecord{.run = id, .step = step, .loss = 3, .dt_ms = 900, .tokens = 100, .at = at});
      events.emplace_back(SystemMetrics{
          .run = id, .step = step, .at = at, .contention = {.other_cores = 1.5 * rung, .cores = 2, .needed_cores = 2}});
    }
    events.emplace_back(RunEnded{.run = id, .at = 5000});
    store.apply(events);
  }
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"live"}});
  ui_test_anchors::keep();
  for (int i = 0; i < 3; ++i) imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("live.doubtful.2"));
}

TEST(CurrentRun, OfARungIsTheOneThatStandsForItInLadder) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "mine"});
  const auto add = [&](int repeat, RunStatus status, std::int64_t steps) {
    std::vector<StepRecord> records;
    for (std::int64_t step = 1; step <= steps; ++step) records.push_back({.step = step, .loss = 3, .dt_ms = 20});
    return store.insert_finished({.name = "run", .ladder = ladder, .rung = 0, .repeat = repeat, .status = status},
                                 records);
  };
  add(0, RunStatus::stopped, 0);
  const RunId finished = add(1, RunStatus::finished, 20);
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"history"}});
  imgui.frame(app);
  app.workspace().selection.rung = 0;
  ASSERT_TRUE(app.workspace().current_run());
  EXPECT_EQ(app.workspace().current_run()->run.id, finished);
  ASSERT_TRUE(imgui.click(app, "side.ladder"));
  ASSERT_TRUE(imgui.click(app, "ladder.rung.0"));
  EXPECT_EQ(app.workspace().selection.shown_run, finished);
  EXPECT_NE(app.workspace().why_not_measure(), "") << "in memory";
}

}  // namespace
}  // namespace stepladder
