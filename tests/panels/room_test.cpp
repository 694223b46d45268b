// Views with little space or no data, and the state that Ladder remembers.
#include <gtest/gtest.h>

#include "app/desktop/widgets.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

bool shows(Headless& imgui, DesktopApp& app, const std::string& anchor) {
  ui_test_anchors::keep();
  for (int i = 0; i < 4; ++i) imgui.frame(app);
  return ui_test_anchors::find(anchor).has_value();
}

// One run a stage, of a hundred steps; the loss of step 50 is a spike.
LadderId add_ladder(RunStore& store, const std::string& name, const std::vector<std::string>& stages) {
  const LadderId ladder = store.create_ladder({.name = name, .source = "launched", .created_at = 1});
  std::vector<StepRecord> steps;
  for (std::int64_t i = 1; i <= 100; ++i) {
    const double loss = i == 50 ? 50 : 5 - 0.01 * static_cast<double>(i);
    steps.push_back({.step = i, .loss = loss, .dt_ms = 20, .tokens = 768});
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Run run;
    run.name = name + ": " + stages[i];
    run.ladder = ladder;
    run.rung = static_cast<int>(i);
    run.stage = run.title = stages[i];
    run.status = RunStatus::finished;
    run.source = "launched";
    run.created_at = run.started_at = 1;
    run.tokens_per_step = 768;
    store.insert_finished(run, steps);
  }
  return ladder;
}

TEST(EmptyView, ALadderWithoutRunsLeadsToTheOthers) {
  const TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "empty.db");
  store.create_ladder({.name = "seeds", .source = "import"});
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  ui_test_anchors::keep();
  EXPECT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("ladder.picker").has_value(); }));
  EXPECT_FALSE(ui_test_anchors::find("ladder.export").has_value());
}

TEST(Ladder, SaysThatALogHasNoLoss) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = add_ladder(store, "mixed", {"with"});
  stepladder::Run run = store.runs().front();
  run.rung = 1;
  run.name = run.stage = run.title = "without";
  run.source = "import";
  const std::vector<StepRecord> steps{{.step = 1, .val_loss = 5, .dt_ms = 20}, {.step = 2, .val_loss = 4, .dt_ms = 20}};
  store.insert_finished(run, steps);
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  app.workspace().selection.ladder = ladder;
  ui_test_anchors::keep();
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("ladder.no_loss.1").has_value(); }));
  EXPECT_FALSE(ui_test_anchors::find("ladder.no_loss.0").has_value());
}

TEST(Ladder, IsDeletedWithItsRunsAndBroughtBack) {
  const TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "two.db");
  const LadderId kept = add_ladder(store, "kept", {"a", "b"});
  const LadderId gone = add_ladder(store, "gone", {"a", "b", "c"});
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  app.workspace().selection.ladder = gone;
  ui_test_anchors::keep();
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("ladder.rung.2").has_value(); }));
  ASSERT_TRUE(imgui.click(app, "ladder.more"));
  ASSERT_TRUE(imgui.click(app, "ladder.delete"));
  ASSERT_EQ(app.workspace().ladders().size(), 1u);
  EXPECT_EQ(app.workspace().shown_ladder()->id, kept);
  EXPECT_EQ(store.runs().size(), 2u);
  EXPECT_EQ(store.ladders().size(), 1u);
  EXPECT_EQ(app.workspace().undoable, "Deleted ladder gone");
  imgui.press(app, ImGuiKey_Z, true);
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().ladders().size() == 2; }));
  EXPECT_EQ(store.runs_of(gone).size(), 3u);
}

TEST(EmptyView, SaysItsName) {
  RunStore store = RunStore::in_memory();
  for (const char* view : {"live", "ladder", "run", "compare", "history", "record", "profile", "machines"}) {
    Headless imgui;
    DesktopApp app(store, nullptr, {.panels = {view}});
    std::string title = view;
    title.front() = static_cast<char>(std::toupper(title.front()));
    EXPECT_TRUE(shows(imgui, app, "title." + title)) << view;
  }
}

TEST(Chart, TheKeyOLeavesOutliersOffScreenAndCountsThem) {
  RunStore store = RunStore::in_memory();
  add_ladder(store, "ladder", {"baseline"});
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"ladder"}});
  ASSERT_TRUE(imgui.click(app, "chart.loss"));  // the mouse is over it now
  EXPECT_TRUE(shows(imgui, app, "chart.loss.off_screen.0"));
  imgui.press(app, ImGuiKey_O);
  EXPECT_TRUE(shows(imgui, app, "chart.loss.off_screen.1")) << "the spike";
  imgui.press(app, ImGuiKey_O);
  EXPECT_TRUE(shows(imgui, app, "chart.loss.off_screen.0"));
}

TEST(Compare, EscapeThatClosesAListLeavesTheCursors) {
  RunStore store = RunStore::in_memory();
  add_ladder(store, "ladder", {"baseline", "bf16"});
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"compare"}});
  ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
  const auto has_cursors = [&] { return shows(imgui, app, "compare.cursors"); };
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("compare.axis").has_value(); }));
  ASSERT_TRUE(imgui.click(app, "chart.loss.gap"));
  imgui.press(app, ImGuiKey_A);
  EXPECT_TRUE(has_cursors());
  ASSERT_TRUE(imgui.click(app, "compare.axis"));
  ASSERT_TRUE(ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopup));
  imgui.press(app, ImGuiKey_Escape);
  EXPECT_FALSE(ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopup));
  EXPECT_TRUE(has_cursors());
  imgui.press(app, ImGuiKey_Escape);
  EXPECT_FALSE(has_cursors());
}

TEST(Messages, AnErrorMovesNothing) {
  RunStore store = RunStore::in_memory();
  add_ladder(store, "ladder", {"baseline"});
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"ladder"}});
  ASSERT_TRUE(shows(imgui, app, "ladder.export"));
  const auto before = ui_test_anchors::find("ladder.export");
  app.show_error("The checkpoint could not be saved: the disk is full");
  ASSERT_TRUE(shows(imgui, app, "message.dismiss"));
  const auto after = ui_test_anchors::find("ladder.export");
  EXPECT_EQ(before->y0, after->y0);
  EXPECT_GT(ui_test_anchors::find("message.dismiss")->y0, 500) << "at the bottom";
  ASSERT_TRUE(imgui.click(app, "message.dismiss"));
  EXPECT_TRUE(app.messages().empty());
}

// The same sentence is there once, and goes when somebody who has read it opens another view.
TEST(Messages, AnErrorIsSaidOnceAndDoesntFollowIntoOtherViews) {
  RunStore store = RunStore::in_memory();
  add_ladder(store, "ladder", {"baseline"});
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"ladder"}});
  imgui.frame(app);
  for (int i = 0; i < 3; ++i) app.show_error("Nothing was imported");
  EXPECT_EQ(app.messages().size(), 1u);
  app.show("history");
  imgui.frame(app);
  EXPECT_FALSE(app.messages().empty()) << "nobody has been at the window since";
  ImGui::GetIO().AddMousePosEvent(300, 300);
  imgui.frame(app);
  ImGui::GetIO().AddMousePosEvent(320, 300);
  imgui.frame(app);
  const double at = ImGui::GetTime();
  while (ImGui::GetTime() < at + 5) imgui.frame(app);
  app.show("ladder");
  imgui.frame(app);
  EXPECT_TRUE(app.messages().empty());
}

TEST(Ladder, ThirteenRungsAreOnTheScreenAndTheGapBelowThemCanBeDragged) {
  RunStore store = RunStore::in_memory();
  std::vector<std::string> stages;
  for (int i = 0; i < 13; ++i) stages.push_back("stage " + std::to_string(i));
  add_ladder(store, "ladder", stages);
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"ladder"}});
  ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
  ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("ladder.rung.12").has_value(); }) ||
              shows(imgui, app, "ladder.rung.12"));
  const auto last = ui_test_anchors::find("ladder.rung.12");
  const auto splitter = ui_test_anchors::find("ladder.splitter");
  ASSERT_TRUE(splitter);
  EXPECT_LE(last->y1, splitter->y0);
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(800, (splitter->y0 + splitter->y1) / 2);
  imgui.frame(app);
  io.AddMouseButtonEvent(0, true);
  for (int i = 1; i <= 3; ++i) {
    imgui.frame(app);
    io.AddMousePosEvent(800, (splitter->y0 + splitter->y1) / 2 - static_cast<float>(50 * i));
  }
  imgui.frame(app);
  io.AddMouseButtonEvent(0, false);
  ASSERT_TRUE(shows(imgui, app, "ladder.splitter"));
  EXPECT_NEAR(ui_test_anchors::find("ladder.splitter")->y0, splitter->y0 - 150, 3);
}

TEST(Ladder, TheSelectedRungsButtonsAreOnTheScreen) {
  RunStore store = RunStore::in_memory();
  add_ladder(store, "ladder", {"a", "b", "c", "d", "e", "f", "g", "h", "i"});
  for (const ImVec2 size : {ImVec2(1280, 720), ImVec2(1600, 900)}) {
    Headless imgui;
    DesktopApp app(store, nullptr, {.panels = {"ladder"}});
    ImGui::GetIO().DisplaySize = size;
    ASSERT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("ladder.rung.4").has_value(); }));
    ASSERT_TRUE(imgui.click(app, "ladder.rung.4"));
    ASSERT_TRUE(shows(imgui, app, "chart.loss"));
    const auto chart = ui_test_anchors::find("chart.loss");
    EXPECT_GT(chart->y1 - chart->y0, 60) << "the table leaves room for the curves";
    for (const char* button : {"ladder.open", "ladder.real", "ladder.trace"}) {
      ASSERT_TRUE(shows(imgui, app, button));
      const auto box = ui_test_anchors::find(button);
      EXPECT_LT(box->y1, size.y - 20) << button << " at " << size.x;
      EXPECT_LT(box->x1, size.x - 20) << button << " at " << size.x;
    }
  }
}

TEST(Live, NumbersARungAsLadderDoes) {
  RunStore store = RunStore::in_memory();
  add_ladder(store, "ladder", {"a", "b", "c"});
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"live"}});
  EXPECT_TRUE(shows(imgui, app, "live.place.rung 0 (1 of 3)"));
}

TEST(Live, SaysThatARunOfAMeasuredRungEndedEarly) {
  RunStore store = RunStore::in_memory();
  add_ladder(store, "ladder", {"a", "b"});
  stepladder::Run run = store.runs().front();
  run.repeat = 1;
  run.status = RunStatus::interrupted;
  store.insert_finished(run, {});
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"live"}});
  EXPECT_TRUE(shows(imgui, app, "live.ended_early.1"));
}

TEST(SmallWindow, EveryTabOfRunCanBeReached) {
  RunStore store = RunStore::in_memory();
  add_ladder(store, "ladder", {"baseline"});
  for (const ImVec2 size : {ImVec2(1024, 640), ImVec2(900, 1400)}) {
    Headless imgui;
    DesktopApp app(store, nullptr, {.panels = {"run"}});
    ImGui::GetIO().DisplaySize = size;
    ASSERT_TRUE(imgui.click(app, "run.tab.Note"));
    EXPECT_TRUE(shows(imgui, app, "run.note")) << size.x;
  }
}

TEST(SmallWindow, EveryViewIsReachedAndKeepsTheRoomThatItNeeds) {
  RunStore store = RunStore::in_memory();
  add_ladder(store, "ladder", {"baseline", "bf16"});
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"history"}});
  ImGui::GetIO().DisplaySize = ImVec2(640, 400);
  for (const char* view : {"launch", "live", "ladder", "compare", "history", "run", "mfu", "tries", "record", "import",
                           "profile", "machines"}) {
    ASSERT_TRUE(imgui.click(app, std::string("side.") + view)) << view;
    const auto item = ui_test_anchors::find(std::string("side.") + view);
    ASSERT_TRUE(item);
    EXPECT_LE(item->y1, 400) << view;
  }
  ASSERT_TRUE(imgui.click(app, "side.compare"));
  ASSERT_TRUE(shows(imgui, app, "chart.loss.gap"));
  const auto chart = ui_test_anchors::find("chart.loss.gap");
  EXPECT_GT(chart->x1 - chart->x0, 150) << "it scrolls instead of being squeezed";
  EXPECT_GT(chart->y1 - chart->y0, 60);
}

TEST(Ladder, LaddersThatStoodBesideComeBackInTheirProjectOnly) {
  TemporaryFolder folder;
  DesktopSettings settings{.panels = {"ladder"}};
  for (const char* project : {"a.db", "b.db"}) {
    RunStore store = RunStore::open(folder / project);
    const LadderId theirs = add_ladder(store, "theirs", {"baseline", "flash-attention"});
    const LadderId own = add_ladder(store, "own", {"baseline", "bf16"});
    const std::string others = "ladder.others.0";  // the stage that only the other ladder has
    {
      Headless imgui;
      DesktopApp app(store, nullptr, settings);
      app.workspace().selection.ladder = own;
      EXPECT_FALSE(shows(imgui, app, others)) << project << ": the other project's ladders are not shown";
      ASSERT_TRUE(imgui.click(app, "ladder.beside"));
      ASSERT_TRUE(imgui.click(app, "ladder.beside." + std::to_string(theirs)));
      imgui.press(app, ImGuiKey_Escape);
      ASSERT_TRUE(shows(imgui, app, others));
      settings.views = app.settings().views;
    }
    Headless imgui;
    DesktopApp app(store, nullptr, settings);
    app.workspace().selection.ladder = own;
    EXPECT_TRUE(shows(imgui, app, others)) << project;
    settings.views = app.settings().views;
  }
}

TEST(CutText, KeepsWholeCharactersAndTheEndOfAName) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"history"}});
  imgui.frame(app);
  ImGui::NewFrame();
  const std::string greek = "\xCE\xB1\xCE\xB2\xCE\xB3\xCE\xB4\xCE\xB5\xCE\xB6\xCE\xB7\xCE\xB8";
  const float width = ImGui::CalcTextSize(greek.c_str()).x;
  EXPECT_EQ(cut_to(greek, width), greek);
  const std::string cut = cut_to(greek, width * 0.8f);
  EXPECT_GT(cut.size(), 3u) << "more than the dots";
  EXPECT_TRUE(cut.ends_with("..."));
  EXPECT_EQ(greek.find(cut.substr(0, cut.size() - 3)), 0u);
  EXPECT_EQ(cut.size() % 2, 1u) << "letters of two bytes, and three dots";
  const std::string name = "nano on tinyshakespeare.txt: Cosine schedule #12";
  const std::string middle = cut_to(name, ImGui::CalcTextSize(name.c_str()).x * 0.5f, Cut::middle);
  EXPECT_TRUE(middle.starts_with("nano"));
  EXPECT_TRUE(middle.ends_with("#12"));
  EXPECT_EQ(cut_to(name, 0), "...");
  // A stranger's project may have any name: each frame measures what is shown, not all of it again and again.
  for (const Cut where : {Cut::end, Cut::middle}) {
    const std::string endless = cut_to(std::string(1 << 20, 'x'), 100, where);
    EXPECT_TRUE(endless.starts_with("x"));
    EXPECT_LT(endless.size(), 100u);
  }
  ImGui::EndFrame();
}

}  // namespace
}  // namespace stepladder
