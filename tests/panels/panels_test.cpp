// Every panel of the list, drawn for real and without a window, over data of all kinds: none, live, failed, NaN, huge.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "tests/panels/headless.h"

namespace stepladder {
namespace {

Run run_of(LadderId ladder, int rung, RunStatus status) {
  Run run;
  run.name = "a run with a long name, as people give them when they are in a hurry, number " + std::to_string(rung);
  run.ladder = ladder;
  run.rung = rung;
  run.stage = "stage-" + std::to_string(rung);
  run.title = "Stage " + std::to_string(rung);
  run.status = status;
  run.reason = status == RunStatus::failed ? "the loss is NaN at step 17" : "";
  run.source = "launched";
  run.created_at = run.started_at = 1'700'000'000;
  run.ended_at = 1'700'000'100;
  run.planned_steps = 100;
  run.tokens_per_step = 768;
  run.params = 834'304;
  run.loss_floor = rung == 0 ? 1.5 : missing;
  return run;
}

std::vector<StepRecord> steps_of(std::int64_t count) {
  std::vector<StepRecord> steps;
  for (std::int64_t i = 1; i <= count; ++i) {
    const auto x = static_cast<double>(i);
    steps.push_back({.step = i,
                     .loss = 1.5 + 9 / x,
                     .val_loss = i % 50 ? missing : 1.6,
                     .dt_ms = 20 + std::sin(x),
                     .tokens = 768,
                     .lr = 1e-3});
  }
  return steps;
}

enum class Kind { empty, one_step, no_steps, nan_laden, many_rungs, huge };

void fill(RunStore& store, Kind kind) {
  if (kind == Kind::empty) return;
  const LadderId ladder = store.create_ladder({.name = "ladder", .source = "launched", .created_at = 1'700'000'000});
  const int rungs = kind == Kind::many_rungs ? 40 : 3;
  for (int rung = 0; rung < rungs; ++rung) {
    std::vector<StepRecord> steps = steps_of(kind == Kind::no_steps   ? 0
                                             : kind == Kind::one_step ? 1
                                             : kind == Kind::huge     ? 300'000
                                                                      : 100);
    if (kind == Kind::nan_laden) {
      for (std::size_t i = 0; i < steps.size(); i += 3) steps[i].loss = std::nan("");
      for (std::size_t i = 1; i < steps.size(); i += 3) steps[i].loss = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < steps.size(); i += 2) steps[i].dt_ms = missing;
    }
    store.insert_finished(run_of(ladder, rung, rung % 2 ? RunStatus::failed : RunStatus::finished), steps);
  }
}

class EachPanel : public testing::TestWithParam<Kind> {};

TEST_P(EachPanel, IsDrawn) {
  RunStore store = RunStore::in_memory();
  fill(store, GetParam());
  for (const Panel& panel : all_panels()) {
    SCOPED_TRACE(panel.id);
    Headless imgui;
    DesktopApp app(store, nullptr, {.panels = {panel.id}});
    app.show(panel.id);
    for (const auto& run : store.runs()) app.workspace().selection.runs.insert(run.id);
    int corners = 0;
    for (int frame = 0; frame < 5; ++frame) corners = imgui.frame(app);
    EXPECT_GT(corners, 500);
    EXPECT_LT(corners, 2'000'000);
    EXPECT_TRUE(app.messages().empty()) << app.messages().front().text;
    int quiet = 0;  // frames after which nothing is asked for: then the window sleeps, and a screenshot is taken
    EXPECT_TRUE(imgui.frames_until(app, [&] { return (quiet = imgui.asked() ? 0 : quiet + 1) > 5; }));
  }
}

TEST_P(EachPanel, IsDrawnInASmallWindowAndAtThreeTimesTheSize) {
  RunStore store = RunStore::in_memory();
  fill(store, GetParam());
  for (const Panel& panel : all_panels()) {
    SCOPED_TRACE(panel.id);
    Headless imgui;
    DesktopApp app(store, nullptr, {.theme = ThemeChoice::light, .panels = {panel.id}});
    app.show(panel.id);
    ImGui::GetIO().DisplaySize = ImVec2(400, 300);
    for (int frame = 0; frame < 4; ++frame) EXPECT_GT(imgui.frame(app), 100);
    app.set_display_scale(3);
    for (int frame = 0; frame < 4; ++frame) EXPECT_GT(imgui.frame(app), 100);
  }
}

INSTANTIATE_TEST_SUITE_P(Data, EachPanel,
                         testing::Values(Kind::empty, Kind::one_step, Kind::no_steps, Kind::nan_laden, Kind::many_rungs,
                                         Kind::huge));

TEST(Workspace, ALiveRunGrowsAndEnds) {
  Workspace workspace;
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "ladder", .source = "launched", .created_at = 1});
  stepladder::Run run = run_of(ladder, 0, RunStatus::queued);
  run.started_at = run.ended_at = missing;
  const RunId id = store.create_run(run);
  workspace.load(store);
  workspace.add_ladder(store, ladder, {});
  EXPECT_EQ(workspace.running(), nullptr);
  workspace.ingest(RunStarted{.run = id, .at = 100, .tokens_per_step = 768});
  for (std::int64_t step = 1; step <= 20; ++step) {
    workspace.ingest(StepRecord{
        .run = id, .step = step, .loss = 3, .dt_ms = 500, .tokens = 768, .at = 100 + 0.5 * static_cast<double>(step)});
  }
  const RunEntry* entry = workspace.find(id);
  EXPECT_EQ(entry->run.status, RunStatus::running);
  EXPECT_EQ(entry->steps.size(), 20u);
  EXPECT_EQ(entry->tokens_per_s.back(), 1536);
  EXPECT_NEAR(workspace.seconds_left(*entry), 40, 1e-9);
  EXPECT_TRUE(workspace.ingest(RunEnded{.run = id, .at = 111, .status = RunStatus::stopped, .reason = "by hand"}));
  EXPECT_EQ(entry->run.status, RunStatus::stopped);
  EXPECT_EQ(entry->summary.steps, 20);
}

// The window takes little from a training on the same processors.
TEST(DesktopApp, TextGrowsWithAVeryLargeWindow) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{});
  for (const auto& [width, height, scale] :
       {std::tuple(1280, 720, 1.0f), {2560, 1440, 1.0f}, {3840, 2160, 1.75f}, {7680, 4320, 2.0f}, {5120, 1440, 1.0f}}) {
    app.fit_window(width, height);
    EXPECT_EQ(px(1), scale) << width;
  }
  app.set_display_scale(2);  // where the display's own pixels are small
  app.fit_window(3840, 2160);
  EXPECT_EQ(px(1), 2);
}

TEST(DesktopApp, WhileARunTrainsItDrawsSeldom) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "ladder", .source = "launched", .created_at = 1});
  stepladder::Run run = run_of(ladder, 0, RunStatus::queued);
  run.started_at = run.ended_at = missing;
  const RunId id = store.create_run(run);
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"live"}});
  for (int i = 0; i < 5; ++i) imgui.frame(app);
  EXPECT_TRUE(std::isinf(app.seconds_to_next_frame(0.02))) << "nothing trains";
  app.workspace().add_runs(store, {id});
  app.workspace().ingest(RunStarted{.run = id, .at = 100, .tokens_per_step = 768});
  EXPECT_DOUBLE_EQ(app.seconds_to_next_frame(0.002), 0.25) << "a fast renderer";
  EXPECT_DOUBLE_EQ(app.seconds_to_next_frame(0.02), 0.64);
  EXPECT_DOUBLE_EQ(app.seconds_to_next_frame(0.2), 1);
  app.show("ladder");
  for (int i = 0; i < 5; ++i) imgui.frame(app);
  EXPECT_GE(app.seconds_to_next_frame(0.02), 0.64);
  app.workspace().ingest(RunEnded{.run = id, .at = 111, .status = RunStatus::finished});
  EXPECT_TRUE(imgui.frames_until(app, [&] { return std::isinf(app.seconds_to_next_frame(0.02)); }));
}

TEST(Workspace, TheTimeLeftFollowsAPaceThatChangesAndSaysHowUnsureItIs) {
  Workspace workspace;
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "ladder", .source = "launched", .created_at = 1});
  stepladder::Run run = run_of(ladder, 0, RunStatus::queued);
  run.planned_steps = 100;
  run.started_at = run.ended_at = missing;
  const RunId id = store.create_run(run);
  workspace.load(store);
  workspace.add_ladder(store, ladder, {});
  workspace.ingest(RunStarted{.run = id, .at = 100, .tokens_per_step = 768});
  double at = 100;
  const auto train = [&](std::int64_t from, std::int64_t to, double dt_ms, double pause = 0) {
    for (std::int64_t step = from; step <= to; ++step) {
      at += dt_ms / 1000 + (step == from ? pause : 0);
      workspace.ingest(StepRecord{.run = id, .step = step, .loss = 3, .dt_ms = dt_ms, .tokens = 768, .at = at});
    }
  };
  const RunEntry* entry = workspace.find(id);
  train(1, 2, 100);
  EXPECT_TRUE(is_missing(workspace.seconds_left(*entry)));
  train(3, 3, 100);
  EXPECT_NEAR(workspace.seconds_left(*entry), 9.7, 1e-6) << "measured from the third step on";
  EXPECT_TRUE(is_missing(workspace.seconds_off(*entry)));
  train(4, 20, 100);
  EXPECT_NEAR(workspace.seconds_left(*entry), 8, 1e-6);
  EXPECT_NEAR(workspace.seconds_off(*entry), 0, 1e-6);
  workspace.pause(true);
  workspace.pause(false);
  train(21, 30, 100, 600);
  EXPECT_NEAR(workspace.seconds_left(*entry), 7, 1e-6) << "ten minutes of pause are no training";
  train(31, 60, 300);  // something else began on this machine
  EXPECT_NEAR(workspace.seconds_left(*entry), 12, 1e-6);
  EXPECT_NEAR(workspace.seconds_off(*entry), 4, 1e-6) << "with the earlier pace it would be 8 seconds";
}

TEST(Workspace, APauseOfAnotherProcesssRunIsNoTrainingEither) {
  Workspace workspace;
  RunStore store = RunStore::in_memory();
  stepladder::Run run =
      run_of(store.create_ladder({.name = "ladder", .source = "launched", .created_at = 1}), 0, RunStatus::running);
  run.planned_steps = 100;
  run.started_at = 100;
  run.ended_at = missing;
  run.id = store.create_run(run);
  double at = 100;
  const auto train = [&](std::int64_t from, std::int64_t to, double pause = 0) {
    std::vector<RunEvent> events;
    for (std::int64_t step = from; step <= to; ++step) {
      at += 0.1 + (step == from ? pause : 0);
      events.emplace_back(StepRecord{.run = run.id, .step = step, .loss = 3, .dt_ms = 100, .tokens = 768, .at = at});
    }
    store.apply(events);
    workspace.follow_others(store, {run});
  };
  workspace.load(store);
  train(1, 10);
  train(11, 20);
  workspace.pause(true);
  train(21, 21);  // it was under way
  workspace.pause(false);
  train(22, 30, 600);
  EXPECT_NEAR(workspace.seconds_left(*workspace.find(run.id)), 7, 1e-6);
}

// The file has a run of this session as running until its end is written.
TEST(Workspace, ARunThatHasJustEndedHereIsNoOthers) {
  Workspace workspace;
  RunStore store = RunStore::in_memory();
  stepladder::Run run =
      run_of(store.create_ladder({.name = "ladder", .source = "launched", .created_at = 1}), 0, RunStatus::running);
  run.id = store.create_run(run);
  workspace.load(store);
  workspace.add_runs(store, {run.id});
  workspace.ingest(RunEnded{.run = run.id, .at = 2, .status = RunStatus::finished});
  workspace.follow_others(store, {run});
  EXPECT_TRUE(workspace.others().empty());
  EXPECT_FALSE(workspace.running());
  workspace.follow_others(store, {});  // the end is written
  workspace.follow_others(store, {run});
  EXPECT_EQ(workspace.others().size(), 1u) << "another process continues it";
}

TEST(DesktopApp, AnUnknownPanelIsRefusedAndAnUnknownSettingIsNot) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"of another version"}});
  EXPECT_THROW(app.show("nowhere"), std::out_of_range);
  EXPECT_GT(imgui.frame(app), 100);
}

}  // namespace
}  // namespace stepladder
