// "Resume a run" in Launch continues a run from its newest checkpoint.
#include <gtest/gtest.h>

#include "app/desktop/workspace/launch_state.h"
#include "engine/device.h"
#include "tests/engine/files/saved_checkpoint.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

TEST(ResumeTest, LaunchListsTheRunsThatHaveACheckpointAndChecksTheSteps) {
  const TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "runs.db");
  std::vector<RunId> runs;
  for (const RunStatus status : {RunStatus::stopped, RunStatus::finished, RunStatus::failed}) {
    runs.push_back(
        store.insert_finished({.name = "run", .status = status, .source = "launched", .planned_steps = 100}, {}));
  }
  for (const std::size_t i : {0, 1}) {
    const CheckpointOwner owner = checkpoint_owner(store.file(), *store.run(runs[i]));
    save_test_checkpoint(owner, i == 0 ? 40 : 100);
  }
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"launch"}});
  app.workspace().device = describe_cpu();
  const auto shows = [&](const std::string& anchor) {
    ui_test_anchors::keep();
    for (int i = 0; i < 4; ++i) imgui.frame(app);
    return ui_test_anchors::find(anchor).has_value();
  };
  ASSERT_TRUE(imgui.click(app, "launch.resume"));
  ASSERT_TRUE(shows("launch.resume." + std::to_string(runs[0])));
  EXPECT_FALSE(shows("launch.resume." + std::to_string(runs[2]))) << "it has no checkpoint";
  ASSERT_EQ(app.workspace().launch->resumable.size(), 2u);
  EXPECT_EQ(app.workspace().launch->resumable[0].run, runs[1]) << "the newest first";
  EXPECT_EQ(app.workspace().launch->resumable[1].step, 40);
  ASSERT_TRUE(imgui.click(app, "launch.resume." + std::to_string(runs[0])));
  ASSERT_TRUE(imgui.type(app, "launch.resume.steps", "30"));
  ASSERT_TRUE(imgui.click(app, "launch.resume.start"));
  EXPECT_TRUE(shows("launch.resume.start")) << "step 30 is done already, so the popup stays";
  ASSERT_TRUE(imgui.type(app, "launch.resume.steps", "1,000"));
  ASSERT_TRUE(imgui.click(app, "launch.resume.start"));
  EXPECT_FALSE(shows("launch.resume.start"));
}

}  // namespace
}  // namespace stepladder
