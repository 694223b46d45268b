#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "app/desktop/workspace/launch_state.h"
#include "app/panels/launch/form.h"
#include "app/session/session.h"
#include "engine/device.h"
#include "engine/stage.h"
#include "tests/app/profile/traced_recipe.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

TEST(LaunchPlan, SaysBeforeTheStartWhatWillBeLeftOut) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"launch"}});
  app.workspace().device = describe_cpu();
  for (int i = 0; i < 3; ++i) imgui.frame(app), app.execute();
  ASSERT_TRUE(imgui.click(app, "launch.rungs.all"));
  for (int i = 0; i < 3; ++i) imgui.frame(app), app.execute();
  const LaunchPlan& plan = app.workspace().launch->plan;
  EXPECT_EQ(plan.problem, "");
  EXPECT_GT(plan.plan.rungs.size(), 5u);
  const auto padded = std::find_if(plan.plan.skipped.begin(), plan.plan.skipped.end(),
                                   [](const SkippedRung& each) { return each.stage == "padded-vocab"; });
  ASSERT_NE(padded, plan.plan.skipped.end()) << "256 bytes need no padding";
  EXPECT_NE(padded->reason, "");
  EXPECT_EQ(plan.skipped(padded->asked), &*padded);
  for (const Rung& rung : plan.plan.rungs) EXPECT_EQ(plan.skipped(rung.asked), nullptr);
}

TEST(LaunchPlan, SaysWhatARungIsPredictedToTake) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"launch"}});
  app.workspace().device = describe_cpu();
  ASSERT_TRUE(imgui.click(app, "launch.rungs.all"));
  const LaunchState& launch = *app.workspace().launch;
  ASSERT_TRUE(imgui.frames_until(app, [&] { return launch.plan.plan.rungs.size() > 5; }));
  EXPECT_FALSE(ui_test_anchors::find("launch.rung_predicted.1")) << "nothing was traced";
  Recipe baseline = launch.plan.plan.rungs.front().recipe;
  baseline.threads = app.workspace().device->cpu_cores;  // as runs record it
  keep_traced_step(store, baseline);
  ++app.workspace().version;
  ASSERT_TRUE(imgui.frames_until(app, [&] { return launch.forecast && launch.forecast->ladder.trace; }));
  for (int i = 0; i < 3; ++i) imgui.frame(app);
  std::size_t known = 0, shown = 0;
  for (const PredictedStep& each : launch.forecast->ladder.rungs) known += each.bound != Bound::unknown;
  for (int row = 0; row < 40; ++row)
    shown += ui_test_anchors::find("launch.rung_predicted." + std::to_string(row)).has_value();
  EXPECT_GT(known, 0U);
  EXPECT_EQ(shown, known);
}

Run launched(Recipe recipe, const DeviceReport& report) {
  recipe.device = report.resolve(recipe.device);  // as a run records it
  recipe.threads = report.cpu_cores;
  Run run;
  run.source = "launched";
  run.status = RunStatus::finished;
  run.stage = "run";
  run.hardware = report.hardware(report.resolve(recipe.device));
  run.tokens_per_step = recipe.tokens_per_step();
  run.recipe = to_json(recipe);
  return run;
}

// Two runs of each recipe, whose steps took about these times.
void keep_runs(RunStore& store, const Recipe& recipe, double dt_ms, const DeviceReport& report) {
  for (const double factor : {1.0, 1.01}) {
    std::vector<StepRecord> steps;
    for (int i = 1; i <= 20; ++i) steps.push_back({.step = i, .loss = 3, .dt_ms = dt_ms * factor + 0.001 * i});
    store.insert_finished(launched(recipe, report), steps);
  }
}

TEST(LaunchPlan, DoesNotProposeWhatWasSlowerHere) {
  RunStore store = RunStore::in_memory();
  const DeviceReport report = describe_cpu();
  for (const bool is_measured : {false, true}) {
    Headless imgui;
    DesktopApp app(store, nullptr, DesktopSettings{.panels = {"launch"}});
    app.workspace().device = report;
    const std::vector<Rung>& rungs = app.workspace().launch->plan.plan.rungs;
    const auto found = [&] { return std::ranges::find(rungs, "fused-adamw", &Rung::stage); };
    const auto show = [&] {
      for (int i = 0; i < 4; ++i) imgui.frame(app), app.execute();
    };
    std::size_t row = 0;
    while (all_stages()[row + 1].id != "fused-adamw") ++row;
    const std::string said = "launch.rung_not_proposed." + std::to_string(row);
    ui_test_anchors::keep();
    ImGui::GetIO().DisplaySize = ImVec2(1600, 1600);
    show();
    ASSERT_GT(rungs.size(), 3U);
    EXPECT_EQ(found() == rungs.end(), is_measured);
    if (!is_measured) {
      EXPECT_FALSE(ui_test_anchors::find(said));
      ASSERT_NE(found(), rungs.end());
      keep_runs(store, std::prev(found())->recipe, 31, report);
      keep_runs(store, found()->recipe, 36, report);
    } else {
      EXPECT_TRUE(ui_test_anchors::find(said));
      ASSERT_TRUE(imgui.click(app, "launch.rungs.all"));  // who wants it gets it
      EXPECT_TRUE(imgui.frames_until(app, [&] { return found() != rungs.end(); }));
    }
  }
}

TEST(LaunchPlan, AWrongValueLeavesTheProposalAsItIs) {
  Workspace workspace;
  workspace.device = describe_cpu();
  LaunchForm form;
  FormCheck checker;
  const auto propose = [&]() -> const CheckedForm& {
    for (int frame = 0; frame < 8; ++frame) {
      const CheckedForm& checked = checker.check(form, workspace);
      form.propose(checked, workspace);
      if (checked.can_be_planned && !checked.plan)
        workspace.launch->plan = {.asked = checked.text, .plan = plan_of(checked.request, *workspace.device)};
    }
    return checker.check(form, workspace);
  };
  const auto ticked = [&] {
    std::vector<std::string> rungs;
    for (const RungRow& row : form.rows)
      if (row.on) rungs.push_back(row.text);
    return rungs;
  };
  propose();
  const std::vector<std::string> proposed = ticked();
  ASSERT_EQ(std::ranges::count(proposed, "tf32"), 0) << "a CPU has none";
  for (const char* seldom : {"grad-accumulation", "ddp"}) {
    EXPECT_EQ(std::ranges::count(proposed, seldom), 0);
    const auto row = std::ranges::find(form.rows, seldom, &RungRow::text);
    ASSERT_NE(row, form.rows.end());
    EXPECT_NE(row->not_proposed, "");
    const auto is_it = [&](const PlannedRung& rung) { return rung.stages.front() == seldom; };
    EXPECT_TRUE(std::ranges::any_of(usual_rungs(), is_it)) << "the command line's ladder keeps it";
  }
  for (const auto& [field, value] : {std::pair("steps", "1e-4, 3e-4"), {"steps", "x"}, {"lr", "1e-4, 1e-4"}}) {
    form.values[field] = value;
    const CheckedForm& checked = propose();
    EXPECT_NE(checked.problem, "");
    EXPECT_EQ(checked.problem.find(std::string(field) + " "), std::string::npos) << checked.problem;
    EXPECT_EQ(ticked(), proposed) << value;
    form.values.clear();
  }
  propose();
  EXPECT_EQ(ticked(), proposed);
}

TEST(LaunchPlan, EstimatesAgainWhenTheRecipeHasBeenMeasured) {
  RunStore store = RunStore::in_memory();
  const DeviceReport report = describe_cpu();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"launch"}});
  app.workspace().device = report;
  const LaunchPlan& plan = app.workspace().launch->plan;
  for (int i = 0; i < 4; ++i) imgui.frame(app);
  ASSERT_FALSE(plan.plan.rungs.empty());
  EXPECT_FALSE(plan.steps.front().is_measured);
  keep_runs(store, plan.plan.rungs.front().recipe, 31, report);
  std::vector<StepRecord> slow;
  for (int i = 1; i <= 20; ++i) slow.push_back({.step = i, .loss = 3, .dt_ms = 2000});
  store.insert_finished(launched(plan.plan.rungs[1].recipe, report), slow);
  app.workspace().load(store);
  for (int i = 0; i < 4; ++i) imgui.frame(app);
  EXPECT_TRUE(plan.steps.front().is_measured);
  EXPECT_NEAR(plan.steps.front().seconds, 0.031, 0.001);
  EXPECT_NEAR(plan.steps[1].seconds, 2, 0.01);
}

TEST(LaunchPlan, DoesNotProposeWhatThisMachineCannotTrain) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"launch"}});
  app.workspace().device = describe_cpu();
  ImGui::GetIO().DisplaySize = ImVec2(1600, 1600);
  ui_test_anchors::keep();
  for (int i = 0; i < 8; ++i) imgui.frame(app);
  const LadderPlan& plan = app.workspace().launch->plan.plan;
  ASSERT_GT(plan.rungs.size(), 3U);
  EXPECT_TRUE(plan.skipped.empty()) << plan.skipped.front().stage << " is ticked";
  std::size_t row = 0;
  while (all_stages()[row + 1].id != "tf32") ++row;
  EXPECT_TRUE(ui_test_anchors::find("launch.rung_left_out." + std::to_string(row))) << "its row says why";
  ASSERT_TRUE(imgui.click(app, "launch.rung.tf32"));
  for (int i = 0; i < 8; ++i) imgui.frame(app);
  EXPECT_FALSE(plan.skipped.empty()) << "who ticks it is told too";
}

TEST(LaunchPlan, ProposesBf16WhereItsProductsAreFaster) {
  for (const double bf16 : {0.0, 0.3, 1.7}) {
    RunStore store = RunStore::in_memory();
    Headless imgui;
    DesktopApp app(store, nullptr, DesktopSettings{.panels = {"launch"}});
    DeviceReport report = describe_cpu();
    report.cpu_bf16 = true;
    Hardware row{.name = report.hardware("cpu"), .aliases = {}, .source = "measured here"};
    row.peak_tflops[static_cast<std::size_t>(Precision::fp32)] = 0.32;
    if (bf16 > 0) row.peak_tflops[static_cast<std::size_t>(Precision::bf16)] = bf16;
    const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "bf16.csv";
    std::ofstream(file) << with_row("", row);
    app.workspace().hardware.add(file);
    app.workspace().device = report;
    const LaunchPlan& plan = app.workspace().launch->plan;
    ASSERT_TRUE(imgui.frames_until(app, [&] { return plan.plan.rungs.size() > 3; }));
    for (int i = 0; i < 3; ++i) imgui.frame(app), app.execute();
    const bool is_there =
        std::ranges::any_of(plan.plan.rungs, [](const Rung& rung) { return rung.stage.starts_with("bf16"); });
    EXPECT_EQ(is_there, bf16 > 1) << bf16;
  }
}

TEST(LaunchPlan, WithoutATrainerItSaysWhatIsMissing) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"launch"}});
  app.workspace().device = describe_cpu();
  app.workspace().device_problem = "training isn't set up: do this";
  FormCheck form;
  EXPECT_EQ(form.check(LaunchForm{}, app.workspace()).problem, "Training isn't set up: do this.");
}

}  // namespace
}  // namespace stepladder
