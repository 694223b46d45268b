#include <gtest/gtest.h>

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

TEST(LadderRows, TheSelectedRungIsOnTheScreenAtFirst) {
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
  const auto fastest = ui_test_anchors::find("ladder.rung.50");
  ASSERT_TRUE(fastest);
  EXPECT_GT(fastest->y0, 0);
  EXPECT_LT(fastest->y1, 720);
}

}  // namespace
}  // namespace stepladder
