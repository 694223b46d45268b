#include <gtest/gtest.h>

#include "app/desktop/models/ladder_model.h"
#include "app/desktop/ui_test_anchors.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

TEST(LadderRows, BeginAtOnePlaceAlsoBelowARungWithoutAPill) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "L"});
  for (int rung = 0; rung < 4; ++rung)
    store.create_run({.name = "r", .ladder = ladder, .rung = rung, .source = "launched", .planned_steps = 20});
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  app.workspace().patience = std::chrono::hours(1);
  ui_test_anchors::keep();
  for (int i = 0; i < 6; ++i) imgui.frame(app);
  const auto first = ui_test_anchors::find("ladder.rung.0");
  ASSERT_TRUE(first);
  for (const char* name : {"ladder.rung.1", "ladder.rung.2", "ladder.rung.3"}) {
    const auto row = ui_test_anchors::find(name);
    ASSERT_TRUE(row) << name;
    EXPECT_EQ(row->x0, first->x0) << name;
    EXPECT_EQ(row->x1, first->x1) << name;
  }
}

TEST(LadderRows, ABusyMachineIsSaidInTheRow) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "L"});
  for (int rung = 0; rung < 2; ++rung) {
    const RunId id = store.create_run({.name = "r",
                                       .ladder = ladder,
                                       .rung = rung,
                                       .status = RunStatus::running,
                                       .source = "launched",
                                       .planned_steps = 40,
                                       .sync = Sync::device});
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
  ImGui::GetIO().DisplaySize.x = 1600;  // a narrower one has no room for the column
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  app.workspace().patience = std::chrono::hours(1);
  ui_test_anchors::keep();
  for (int i = 0; i < 6; ++i) imgui.frame(app);
  EXPECT_FALSE(ui_test_anchors::find("ladder.doubt.0"));
  EXPECT_TRUE(ui_test_anchors::find("ladder.doubt.1")) << "not 'synchronised' in green";
}

TEST(LadderRows, ARepeatUnderWayIsSaidToBe) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "L"});
  std::vector<StepRecord> steps;
  for (std::int64_t step = 1; step <= 40; ++step)
    steps.push_back({.step = step, .loss = 3, .dt_ms = 10, .tokens = 100});
  for (const int repeat : {0, 1})
    store.insert_finished(
        {.name = "r", .ladder = ladder, .rung = 0, .repeat = repeat, .source = "launched", .planned_steps = 40}, steps);
  const auto create = [&](int rung, int repeat, RunStatus status) {
    return store.create_run({.name = "r",
                             .ladder = ladder,
                             .rung = rung,
                             .repeat = repeat,
                             .status = status,
                             .source = "launched",
                             .planned_steps = 40});
  };
  const RunId running = create(1, 0, RunStatus::running);
  create(1, 1, RunStatus::queued);
  create(2, 0, RunStatus::queued);
  store.apply(
      std::vector<RunEvent>{StepRecord{.run = running, .step = 1, .loss = 3, .dt_ms = 10, .tokens = 100, .at = 1}});
  Headless imgui;
  ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  Workspace& workspace = app.workspace();
  workspace.patience = std::chrono::hours(1);
  workspace.selection.rung = 1;
  std::vector<stepladder::Run> under_way = store.runs_of(ladder);
  std::erase_if(under_way, [](const stepladder::Run& run) { return run.status == RunStatus::finished; });
  workspace.follow_others(store, under_way);
  ui_test_anchors::keep();
  for (int i = 0; i < 8; ++i) imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("ladder.running.1")) << "its answer";
  EXPECT_TRUE(ui_test_anchors::find("ladder.under_way.1")) << "the card's sentence";
  EXPECT_FALSE(ui_test_anchors::find("ladder.answer.1.can't tell"));
  EXPECT_FALSE(ui_test_anchors::find("ladder.running.2")) << "it is queued";
  LadderViewModel shown;
  DataRequests asked;
  shown.update(workspace, ladder, 0, ComparisonAxis::steps, nullptr, asked);
  ASSERT_EQ(shown.model.rungs.size(), 3U);
  EXPECT_EQ(shown.model.rungs[0].under_way, "");
  EXPECT_EQ(shown.model.rungs[0].judged.count.counted(), 2);
  EXPECT_EQ(shown.model.rungs[1].under_way,
            "Repeat 1 of 2 is at step 1 of 40, 1 more is queued: the numbers are of its steps so far.");
  EXPECT_EQ(shown.model.rungs[1].progress, "step 1 of 40");
  EXPECT_EQ(shown.model.rungs[1].judged.count.all, 2);
  EXPECT_EQ(shown.model.rungs[2].under_way, "Queued.");
}

TEST(LadderRows, ShowTheFiguresOfARunThatCountsAndWhatTheNamesDifferIn) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "L"});
  const auto add = [&](int rung, int repeat, double others, std::int64_t memory) {
    stepladder::Run run{.name = "r",
                        .ladder = ladder,
                        .rung = rung,
                        .repeat = repeat,
                        .title = "a night on two borrowed cores: " + std::string(rung == 0 ? "plain" : "fused"),
                        .status = RunStatus::running,
                        .source = "launched",
                        .planned_steps = 40,
                        .peak_memory_bytes = memory};
    const RunId id = store.create_run(run);
    std::vector<RunEvent> events;
    for (std::int64_t step = 1; step <= 40; ++step) {
      const double at = 1000 + static_cast<double>(step);
      events.emplace_back(StepRecord{.run = id, .step = step, .loss = 3, .dt_ms = 900, .tokens = 100, .at = at});
      events.emplace_back(SystemMetrics{
          .run = id, .step = step, .at = at, .contention = {.other_cores = others, .cores = 2, .needed_cores = 2}});
    }
    events.emplace_back(RunEnded{.run = id, .at = 5000});
    store.apply(events);
    return id;
  };
  add(0, 0, 0, 100);
  add(1, 0, 1.5, 900);
  const RunId quiet = add(1, 1, 0, 200);
  Workspace workspace;
  workspace.load(store);
  workspace.patience = std::chrono::hours(1);
  LadderViewModel shown;
  for (int i = 0; i < 3; ++i) {
    DataRequests asked;
    shown.update(workspace, ladder, 0, ComparisonAxis::steps, nullptr, asked);
    read_now(asked, store, workspace);
  }
  ASSERT_EQ(shown.model.rungs.size(), 2U);
  EXPECT_EQ(shown.model.rungs[1].first.id, quiet) << "its memory, setup and warm-up are shown";
  EXPECT_EQ(shown.model.rungs[0].name, "plain");
  EXPECT_EQ(shown.model.rungs[1].name, "fused");
}

TEST(LadderRows, RunsAreNotJudgedBeforeTheirStepsAreRead) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "L"});
  std::vector<StepRecord> steps;
  for (std::int64_t step = 1; step <= 40; ++step)
    steps.push_back({.step = step, .loss = 3, .dt_ms = 10, .tokens = 100});
  for (int rung = 0; rung < 2; ++rung)
    store.insert_finished({.name = "r", .ladder = ladder, .rung = rung, .tokens_per_step = 100}, steps);
  Workspace workspace;
  workspace.load(store);
  workspace.patience = std::chrono::hours(1);
  LadderViewModel shown;
  DataRequests asked;
  EXPECT_FALSE(shown.update(workspace, ladder, 0, ComparisonAxis::steps, nullptr, asked));
  EXPECT_EQ(asked.series.size(), 2U);
  workspace.load_series(store, asked.series.front());
  DataRequests rest;
  EXPECT_FALSE(shown.update(workspace, ladder, 0, ComparisonAxis::steps, nullptr, rest));
  workspace.load_series(store, rest.series.front());
  EXPECT_TRUE(shown.update(workspace, ladder, 0, ComparisonAxis::steps, nullptr, rest));
  EXPECT_EQ(shown.model.rungs[1].judged.loss.verdict, LossVerdict::same);
}

TEST(LadderRows, ARunThatCannotBeReadDoesNotHideTheOthers) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "L"});
  store.insert_finished({.name = "r", .ladder = ladder}, std::vector<StepRecord>{{.step = 1, .loss = 3}});
  Workspace workspace;
  workspace.load(store);
  workspace.patience = std::chrono::hours(1);
  LadderViewModel shown;
  DataRequests asked;
  EXPECT_FALSE(shown.update(workspace, ladder, 0, ComparisonAxis::steps, nullptr, asked));
  EXPECT_TRUE(shown.update(workspace, ladder, 0, ComparisonAxis::steps, nullptr, asked))
      << "nothing was read meanwhile";
}

TEST(LadderRows, ANarrowWindowSaysThatColumnsAreHidden) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "L"});
  for (int rung = 0; rung < 2; ++rung) store.create_run({.name = "r", .ladder = ladder, .rung = rung});
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  app.workspace().patience = std::chrono::hours(1);
  for (const float width : {1000.0F, 1900.0F}) {
    ImGui::GetIO().DisplaySize = ImVec2(width, 900);
    ui_test_anchors::keep();
    for (int i = 0; i < 6; ++i) imgui.frame(app);
    EXPECT_EQ(ui_test_anchors::find("ladder.hidden_columns").has_value(), width < 1100) << width;
  }
}

TEST(LadderRows, BarsHaveRoomInASmallWindow) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "L"});
  for (const double dt_ms : {10.0, 20.0, 400.0, 20.0}) {  // a rung whose two runs are too far apart for an interval
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= 20; ++step)
      steps.push_back({.step = step, .loss = 3, .dt_ms = dt_ms, .tokens = 100});
    const bool is_second = dt_ms > 10;
    store.insert_finished({.name = "r",
                           .ladder = ladder,
                           .rung = is_second ? 1 : 0,
                           .status = RunStatus::finished,
                           .tokens_per_step = 100},
                          steps);
  }
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  app.workspace().patience = std::chrono::hours(1);
  ImGui::GetIO().DisplaySize = ImVec2(1280, 720);
  ui_test_anchors::keep();
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("ladder.points.1").has_value(); }));
  const auto bar = ui_test_anchors::find("ladder.points.1");
  EXPECT_GT(bar->x1 - bar->x0, 130);
}

TEST(LadderRows, ALadderOpensAtItsTopOrAtTheRungThatWasChosen) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "L"});
  for (int rung = 0; rung < 60; ++rung) {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= 20; ++step)
      steps.push_back({.step = step, .loss = 3, .dt_ms = rung == 50 ? 10.0 : 20.0, .tokens = 100});
    store.insert_finished({.name = "r", .ladder = ladder, .rung = rung, .tokens_per_step = 100}, steps);
  }
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  app.workspace().patience = std::chrono::hours(1);
  ui_test_anchors::keep();
  for (int i = 0; i < 8; ++i) imgui.frame(app);
  const auto is_in_sight = [](const char* rung) {
    const auto row = ui_test_anchors::find(rung);
    return row && row->y0 > 0 && row->y1 < 720;
  };
  EXPECT_TRUE(is_in_sight("ladder.rung.0")) << "the baseline, though rung 50 is the fastest";
  app.workspace().selection.rung = 50;
  for (int i = 0; i < 8; ++i) imgui.frame(app);
  EXPECT_TRUE(is_in_sight("ladder.rung.50"));
}

}  // namespace
}  // namespace stepladder
