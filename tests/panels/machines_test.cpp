// The Machines view, and where Launch launches.
#include <gtest/gtest.h>

#include "app/desktop/popups/questions.h"
#include "app/desktop/workspace/machines_state.h"
#include "app/machines/machine_check.h"
#include "storage/database/database.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

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
  app.workspace().machines->list = {{.machine = {.alias = *MachineAlias::from("away")},
                                     .link = MachineStatus::Link::lost,
                                     .lost_at = 1.7e9,
                                     .why = "Connection timed out"},
                                    reachable("box")};
  ASSERT_TRUE(imgui.click(app, "machines.remove.away"));
  EXPECT_TRUE(ui_test_anchors::find("machines.really.away") || ui_test_anchors::find("machines.remove.away"));
  ASSERT_TRUE(imgui.click(app, "machines.test.box"));
  imgui.frame(app);
  const auto launch = ui_test_anchors::find("machines.launch.box");
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->y0, ui_test_anchors::find("machines.test.box")->y0);
  EXPECT_FALSE(ui_test_anchors::find("machines.launch.away"));
  ASSERT_TRUE(imgui.click(app, "machines.add"));
  imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("machines.form.save"));
}

TEST(Machines, WithoutAnyThisMachineIsThereAndAButtonAddsTheFirst) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"machines"}});
  ASSERT_TRUE(imgui.click(app, "machines.add"));
  imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("machines.form.save"));
  EXPECT_FALSE(ui_test_anchors::find("machines.none"));
  ASSERT_TRUE(imgui.click(app, "machines.launch"));
  EXPECT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("launch.start").has_value(); }));
}

TEST(Machines, TheFieldsOfTheFormAreInALineAndEnterAdds) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  ui_test_anchors::keep();
  DesktopApp app(store, nullptr, {.panels = {"machines"}});
  ASSERT_TRUE(imgui.click(app, "machines.add"));
  for (int i = 0; i < 4; ++i) imgui.frame(app);
  const auto host = ui_test_anchors::find("machines.form.alias");
  const auto folder = ui_test_anchors::find("machines.form.folder");
  ASSERT_TRUE(host && folder);
  EXPECT_EQ(host->y0, folder->y0);
  ASSERT_TRUE(imgui.type(app, "machines.form.folder", "~/elsewhere"));
  EXPECT_TRUE(ui_test_anchors::find("machines.form.save")) << "the host is missing";
  ASSERT_TRUE(imgui.type(app, "machines.form.alias", "box"));
  EXPECT_FALSE(ui_test_anchors::find("machines.form.save"));
}

TEST(Machines, ManyOfThemAndManyGpusAreDrawn) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"machines"}});
  for (int i = 0; i < 200; ++i) {
    MachineStatus status = reachable("host-" + std::string(100, 'x') + std::to_string(i));
    status.report.gpus.resize(64, status.report.gpus.front());
    status.work.push_back({.uid = std::to_string(i), .name = "ladder", .phase = "queued", .job = "123"});
    app.workspace().machines->list.push_back(status);
  }
  imgui.frame(app);
  imgui.frame(app);
}

TEST(Machines, OneThatCameWithTheFileSaysWhatItWouldDoBeforeItIsAdopted) {
  const TemporaryFolder folder;
  ::setenv("XDG_STATE_HOME", (folder / "state").c_str(), 1);
  ::setenv("STEPLADDER_SSH", "/bin/false", 1);
  Session session(folder / "a.db");
  Database(folder / "a.db", Database::Mode::read_write)
      .execute("INSERT INTO machines (alias, folder, added_at) VALUES ('box', '~/x', 1), ('bad', '/$(id)', 1)");
  Headless imgui;
  DesktopApp app(session.store(), &session, {.panels = {"machines"}});
  ASSERT_EQ(app.workspace().machines->in_file.size(), 2u);
  EXPECT_TRUE(app.workspace().machines->list.empty());
  ASSERT_TRUE(imgui.click(app, "machines.adopt.bad"));
  ASSERT_TRUE(imgui.click(app, "machines.adopt.really"));
  EXPECT_TRUE(imgui.frames_until(app, [&] { return !app.messages().empty(); })) << "its folder is refused";
  ASSERT_TRUE(imgui.click(app, "machines.adopt.box"));
  ASSERT_TRUE(imgui.click(app, "machines.adopt.really"));
  EXPECT_TRUE(imgui.frames_until(app, [&] { return app.workspace().machines->in_file.size() == 1; }));
  EXPECT_TRUE(session.store().machines().machine(*MachineAlias::from("box")));
  EXPECT_FALSE(session.store().machines().machine(*MachineAlias::from("bad")));
  ::unsetenv("STEPLADDER_SSH");
}

TEST(Launch, AnotherMachineNeedsNeitherThisOnesDevicesNorItsFiles) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  ui_test_anchors::keep();
  DesktopApp app(store, nullptr, {.panels = {"launch"}});
  imgui.frame(app);
  EXPECT_FALSE(ui_test_anchors::find("launch.where")) << "there is no choice without machines";
  app.workspace().machines->list = {reachable("box")};
  for (int i = 0; i < 3; ++i) imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("launch.where"));
}

// A click beside the field, as a hand does that tries a slow window again, takes no letter from it.
TEST(SshPopup, HasTheKeyboardAfterAClickBesideItsField) {
  Headless imgui;
  SshPopup popup;
  const SshQuestion question{.id = "1", .text = "Enter passphrase for key '/home/me/.ssh/id_ed25519':"};
  std::optional<SshAnswer> answer;
  const auto frames = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ImGui::NewFrame();
      if (!answer) answer = popup.draw(&question);
      ui_test_anchors::write_frame();
      Headless::render();
    }
  };
  ui_test_anchors::keep();
  frames(4);
  const auto field = ui_test_anchors::find("ssh.answer");
  ASSERT_TRUE(field);
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(field->x0 + 20, field->y0 - 15);  // on the question's text
  frames(2);
  for (const bool down : {true, false}) {
    io.AddMouseButtonEvent(0, down);
    frames(2);
  }
  io.AddInputCharactersUTF8("open sesame");
  frames(3);
  io.AddKeyEvent(ImGuiKey_Enter, true);
  frames(2);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->text, "open sesame");
}

}  // namespace
}  // namespace stepladder
