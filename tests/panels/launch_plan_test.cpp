#include <gtest/gtest.h>

#include "app/desktop/workspace/launch_state.h"
#include "app/panels/launch/form.h"
#include "engine/device.h"
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
