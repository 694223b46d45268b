#include <gtest/gtest.h>

#include "engine/device.h"
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
  const LaunchPlan& plan = app.workspace().launch_plan;
  EXPECT_EQ(plan.problem, "");
  EXPECT_GT(plan.plan.rungs.size(), 5u);
  const SkippedStage* padded = plan.skipped("padded-vocab");
  ASSERT_NE(padded, nullptr) << "256 bytes need no padding";
  EXPECT_NE(padded->reason, "");
  for (const Rung& rung : plan.plan.rungs) EXPECT_EQ(plan.skipped(rung.stage), nullptr);
}

}  // namespace
}  // namespace stepladder
