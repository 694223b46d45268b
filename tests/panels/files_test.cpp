// Exports that can be opened, the desktop's file dialogs, and the source lines of a step. The desktop's programs are
// stand-ins, first on PATH.
#include <gtest/gtest.h>

#include <fstream>

#include "app/desktop/models/import_preview.h"
#include "app/desktop/system/file_dialog.h"
#include "app/desktop/system/open_file.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

class Files : public testing::Test {
 protected:
  Files() {
    std::filesystem::create_directories(folder_ / "bin");
    ::setenv("PATH", (folder_ / "bin").c_str(), 1);
    ::unsetenv("DBUS_SESSION_BUS_ADDRESS");
    ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
  }
  ~Files() override {
    ::setenv("PATH", path_.c_str(), 1);
    ::unsetenv("XDG_RUNTIME_DIR");
  }
  void stand_in(const char* program, const std::string& script) {
    const std::filesystem::path file = folder_ / "bin" / program;
    std::ofstream(file) << "#!/bin/sh\necho \"${0##*/} $*\" >>'" << (folder_ / "asked").string() << "'\n"
                        << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  std::string asked() const {
    std::ifstream file(folder_ / "asked");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name.c_str()) << text;
    return (folder_ / name.c_str()).string();
  }
  bool has_error(DesktopApp& app, const std::string& words) {
    for (const Message& message : app.messages())
      if (message.is_error && message.text.find(words) != std::string::npos) return true;
    return false;
  }

  TemporaryFolder folder_;
  const std::string path_ = std::getenv("PATH");
};

TEST_F(Files, AnExportCanBeOpenedAndShownInItsFolder) {
  stand_in("xdg-open", "exit 0");
  RunStore store = RunStore::open((folder_ / "a.stepladder").string());
  const LadderId ladder = store.create_ladder({.name = "One"});
  const std::vector<StepRecord> steps{{.step = 1, .loss = 3, .dt_ms = 20}, {.step = 2, .loss = 2, .dt_ms = 20}};
  store.insert_finished({.name = "run", .ladder = ladder}, steps);
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  const std::string chosen = (folder_ / "my exports").string();
  std::filesystem::create_directories(chosen);
  ASSERT_TRUE(imgui.click(app, "ladder.export"));
  const auto button = ui_test_anchors::find("ladder.export");
  const auto entry = ui_test_anchors::find("ladder.export.html");
  ASSERT_TRUE(button && entry);
  EXPECT_LT(std::abs(entry->y0 - button->y1), 40) << "the popup opens at its button";
  ASSERT_TRUE(imgui.type(app, "ladder.export.folder", chosen));
  EXPECT_EQ(app.settings().exports_folder, chosen);
  ASSERT_TRUE(imgui.click(app, "ladder.export.csv"));
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("notice.open").has_value(); }));
  ASSERT_TRUE(imgui.click(app, "notice.open"));
  ASSERT_TRUE(imgui.frames_until(app, [&] { return !asked().empty(); }));
  EXPECT_TRUE(asked().starts_with("xdg-open " + chosen + "/one-")) << asked();
  ASSERT_TRUE(imgui.click(app, "notice.folder"));
  ASSERT_TRUE(imgui.frames_until(app, [&] { return asked().find("xdg-open " + chosen + "\n") != std::string::npos; }));
  app.close();
}

TEST_F(Files, TheFileManagerIsAskedFirst) {
  ::setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere", 1);
  stand_in("gdbus", "exit 0");
  stand_in("xdg-open", "exit 0");
  show_in_folder(write("a b.csv", "x"));
  EXPECT_NE(asked().find("org.freedesktop.FileManager1.ShowItems ['file://"), std::string::npos) << asked();
  EXPECT_NE(asked().find("/a%20b.csv'] "), std::string::npos) << asked();
  EXPECT_EQ(asked().find("xdg-open"), std::string::npos);
  ::unsetenv("DBUS_SESSION_BUS_ADDRESS");
}

TEST_F(Files, AnErrorOfOpeningIsSaid) {
  const auto said = [](const std::filesystem::path& file) -> std::string {
    try {
      open_file(file);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  const std::string file = write("a.html", "x");
  stand_in("xdg-open", "echo 'no method available for opening' >&2; exit 3");
  EXPECT_NE(said(file).find("a.html could not be opened: xdg-open says: no method available"), std::string::npos)
      << said(file);
  ::setenv("PATH", "/nowhere", 1);
  EXPECT_NE(said(file).find("xdg-open isn't installed"), std::string::npos) << said(file);
  EXPECT_NE(said(folder_ / "gone.html").find("gone.html isn't there any more"), std::string::npos);
}

TEST_F(Files, AViewerThatGoesOnDoesNotHoldUpTheWindow) {
  stand_in("xdg-open", "exec /bin/sleep 30");
  const auto begun = std::chrono::steady_clock::now();
  open_file(write("a.html", "x"));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(25));
}

TEST_F(Files, ADialogIsThatOfTheDesktop) {
  const std::atomic<bool> no = false;
  stand_in("kdialog", "echo /data/k.log");
  EXPECT_EQ(ask_for_file({.title = "Choose"}, no).paths, std::vector<std::string>{"/data/k.log"});
  stand_in("zenity", "printf '/data/a.log\\n/data/b c.log\\n'");
  const FileAnswer two = ask_for_file({.title = "Choose logs", .kind = FileQuestion::Kind::files}, no);
  EXPECT_EQ(two.paths, (std::vector<std::string>{"/data/a.log", "/data/b c.log"}));
  EXPECT_NE(asked().find("zenity --file-selection --title=Choose logs --multiple"), std::string::npos) << asked();
  stand_in("zenity", "exit 1");
  const FileAnswer cancelled = ask_for_file({.title = "Choose"}, no);
  EXPECT_TRUE(cancelled.paths.empty() && cancelled.problem.empty());
  ::setenv("PATH", "/nowhere", 1);
  EXPECT_NE(ask_for_file({.title = "Choose"}, no).problem.find("no dialog for files"), std::string::npos);
}

TEST_F(Files, AnOpenDialogIsClosedWithTheWindow) {
  stand_in("zenity", "exec /bin/sleep 60");
  const auto begun = std::chrono::steady_clock::now();
  {
    FileDialog dialog;
    open_dialog(dialog, {.title = "Choose"});
    EXPECT_TRUE(dialog.is_active());
    EXPECT_FALSE(dialog.take());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(50));
}

TEST_F(Files, ABrowsedLogIsReadAndItsStepsLeadToTheirLines) {
  std::string text = "# Baseline\n";
  for (int i = 1; i <= 30; ++i)
    text += "step " + std::to_string(i) + " | loss " + std::to_string(5 - 0.01 * i) + " | dt " +
            std::to_string(100 + i) + "ms\n";
  const std::string log = write("train.log", text);
  stand_in("zenity", "echo '" + log + "'");
  RunStore store = RunStore::open((folder_ / "a.stepladder").string());
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"import"}});
  ASSERT_TRUE(imgui.click(app, "import.path.browse"));
  ASSERT_TRUE(
      imgui.frames_until(app, [&] { return app.workspace().import->state == ImportPreview::State::understood; }));
  ASSERT_TRUE(imgui.click(app, "import.show.steps"));
  ASSERT_TRUE(imgui.click(app, "steps.row.2"));
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("steps.line").has_value(); }));
  std::ofstream(log) << "nothing here now\n";
  ASSERT_TRUE(imgui.click(app, "steps.row.1"));
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("steps.problem").has_value(); }));
  app.close();
}

TEST_F(Files, WithoutADialogTheFieldSaysSo) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"import"}});
  ::setenv("PATH", "/nowhere", 1);
  ASSERT_TRUE(imgui.click(app, "import.path.browse"));
  EXPECT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("import.path.problem").has_value(); }));
}

// A hand that is quick on a busy machine presses where the first frame has shown the row.
TEST_F(Files, TheStepsOfAPreviewAppearWhereTheyStay) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"import"}});
  const std::string log = write("train.log", "step 1 | loss 5 | dt 100ms\nstep 2 | loss 4 | dt 100ms\n");
  app.take_dropped({log});
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("import.show.steps").has_value(); }));
  imgui.frames(app);
  const auto chip = ui_test_anchors::find("import.show.steps");
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent((chip->x0 + chip->x1) / 2, (chip->y0 + chip->y1) / 2);
  io.AddMouseButtonEvent(0, true);
  io.AddMouseButtonEvent(0, false);
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("steps.row.1").has_value(); }));
  const auto first = ui_test_anchors::find("steps.row.1");
  imgui.frames(app);
  const auto later = ui_test_anchors::find("steps.row.1");
  EXPECT_EQ(first->x0, later->x0);
  EXPECT_EQ(first->y0, later->y0);
  EXPECT_EQ(first->x1, later->x1);
}

// A long list is searched by typing.
TEST_F(Files, ALongListOfLaddersIsSearched) {
  RunStore store = RunStore::in_memory();
  const std::vector<StepRecord> steps{{.step = 1, .loss = 3, .dt_ms = 20}, {.step = 2, .loss = 2, .dt_ms = 20}};
  for (int i = 0; i < 60; ++i)
    store.insert_finished({.name = "run", .ladder = store.create_ladder({.name = "ladder " + std::to_string(i)})},
                          steps);
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  ASSERT_TRUE(imgui.click(app, "ladder.picker"));
  ASSERT_TRUE(imgui.type(app, "list.search", "dder 17"));
  for (int i = 0; i < 3; ++i) imgui.frame(app);
  ASSERT_TRUE(app.workspace().shown_ladder());
  EXPECT_EQ(app.workspace().shown_ladder()->name, "ladder 17");
  EXPECT_FALSE(ui_test_anchors::find("list.search")) << "the list has closed";
}

}  // namespace
}  // namespace stepladder
