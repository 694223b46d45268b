// The Machines view, and where Launch launches.
#include <gtest/gtest.h>

#include "app/machines/machine_check.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

MachineStatus reachable(const std::string& alias) {
  MachineStatus status{.machine = {.alias = *MachineAlias::from(alias)}, .link = MachineStatus::Link::up};
  status.report = {
      .is_reachable = true,
      .version = "0.1.0",
      .host = "node1",
      .platform = "Linux x86_64",
      .folder = "/home/me/.stepladder",
      .is_writable = true,
      .clock_ahead_s = 0,
      .load = 3.5,
      .cores = 64,
      .gpus = {
          {.name = "NVIDIA H100", .load = 0.9, .memory_bytes = 60'000'000'000, .all_memory_bytes = 80'000'000'000}}};
  status.checks = checks_of(status.report, status.machine);
  return status;
}

TEST(Machines, TheirButtonsAndTheFormAreThere) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  ui_test_anchors::keep();
  DesktopApp app(store, nullptr, {.panels = {"machines"}});
  app.workspace().machines = {{.machine = {.alias = *MachineAlias::from("away")},
                               .link = MachineStatus::Link::lost,
                               .lost_at = 1.7e9,
                               .why = "Connection timed out"},
                              reachable("box")};
  ASSERT_TRUE(imgui.click(app, "machines.remove.away"));
  EXPECT_TRUE(ui_test_anchors::find("machines.really.away") || ui_test_anchors::find("machines.remove.away"));
  ASSERT_TRUE(imgui.click(app, "machines.test.box"));
  ASSERT_TRUE(imgui.click(app, "machines.add"));
  imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("machines.form.save"));
}

TEST(Machines, ManyOfThemAndManyGpusAreDrawn) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"machines"}});
  for (int i = 0; i < 200; ++i) {
    MachineStatus status = reachable("host-" + std::string(100, 'x') + std::to_string(i));
    status.report.gpus.resize(64, status.report.gpus.front());
    status.work.push_back({.uid = std::to_string(i), .name = "ladder", .phase = "queued", .job = "123"});
    app.workspace().machines.push_back(status);
  }
  imgui.frame(app);
  imgui.frame(app);
}

TEST(Launch, AnotherMachineNeedsNeitherThisOnesDevicesNorItsFiles) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  ui_test_anchors::keep();
  DesktopApp app(store, nullptr, {.panels = {"launch"}});
  imgui.frame(app);
  EXPECT_FALSE(ui_test_anchors::find("launch.where")) << "there is no choice without machines";
  app.workspace().machines = {reachable("box")};
  for (int i = 0; i < 3; ++i) imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("launch.where"));
}

}  // namespace
}  // namespace stepladder
