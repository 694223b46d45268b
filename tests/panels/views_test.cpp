// The Import view from the paste to the import, and the MFU view, by mouse and keyboard.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>

#include "app/desktop/models/import_preview.h"
#include "app/panels/mfu/parts.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

using State = ImportPreview::State;

std::string log_of(int steps) {
  std::string text = "B=8 T=1024 device: NVIDIA A100-SXM4-40GB\n";
  for (int step = 0; step < steps; ++step)
    text += "step " + std::to_string(step) + " | loss " + std::to_string(10.9 - 0.1 * step) + " | dt 100.00ms\n";
  return text + "step oops | loss none\n";
}

class ImportView : public testing::Test {
 protected:
  // Another thread reads, so this draws frames until it has finished, even on a slow machine.
  void wait_until(const std::function<bool()>& is_so) {
    ASSERT_TRUE(imgui_.frames_until(*app_, is_so));
    for (int i = 0; i < 4; ++i) corners_ = imgui_.frame(*app_);
  }
  void wait_for(State state) {
    wait_until([&] { return import().state == state; });
  }
  void paste(const std::string& text) {
    imgui_.frame(*app_);
    ImGui::SetClipboardText(text.c_str());
    imgui_.press(*app_, ImGuiKey_V, true);
    wait_for(State::understood);
  }
  bool click(const std::string& anchor) { return imgui_.click(*app_, anchor); }
  bool type(const std::string& anchor, const std::string& text) { return imgui_.type(*app_, anchor, text); }
  bool shows(const std::string& anchor) {
    ui_test_anchors::keep();
    for (int i = 0; i < 2; ++i) imgui_.frame(*app_);
    return ui_test_anchors::find(anchor).has_value();
  }
  void restart(DesktopSettings settings) {
    app_.emplace(store_, nullptr, std::move(settings));
    app_->show("import");
  }
  const ImportPreview& import() { return *app_->workspace().import; }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::open(folder_ / "import.db");
  Headless imgui_;
  std::optional<DesktopApp> app_{std::in_place, store_, nullptr, DesktopSettings{.panels = {"import"}}};
  int corners_ = 0;
};

TEST_F(ImportView, PastedTextIsUnderstoodAndNothingIsKept) {
  paste(log_of(30));
  ASSERT_EQ(import().runs.size(), 1u);
  const ImportPreview::PreviewRun& run = import().runs.front();
  EXPECT_EQ(run.summary.steps, 30);
  EXPECT_EQ(run.steps.size(), 30u);
  EXPECT_EQ(run.run.tokens_per_step, 8192);
  EXPECT_FALSE(run.run.printed.unit.empty());
  EXPECT_EQ(import().formats, std::vector<std::string>{"log"});
  ASSERT_FALSE(import().notes.empty());
  EXPECT_EQ(import().notes.back().line, 32);  // the malformed one
  EXPECT_TRUE(shows("import.row.0"));
  EXPECT_GT(corners_, 1000);
  EXPECT_TRUE(store_.runs().empty());
  EXPECT_TRUE(click("import.forget"));
  EXPECT_EQ(import().state, State::nothing);
}

TEST_F(ImportView, WhatIsTypedIsReadAgainAndOfferedTheNextTime) {
  paste(log_of(30));
  ASSERT_TRUE(type("import.tokens", "16 x 1024"));
  wait_until([&] { return import().state == State::understood && import().asked.options.tokens_per_step == 16384; });
  EXPECT_EQ(import().runs.front().run.tokens_per_step, 16384);
  ASSERT_TRUE(click("import.keep"));
  wait_for(State::kept);
  const auto kept = store_.runs();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept.front().tokens_per_step, 16384);
  EXPECT_NE(app_->workspace().find(kept.front().id), nullptr);
  ASSERT_TRUE(click("import.runs"));
  EXPECT_EQ(app_->workspace().selection.runs, std::set<RunId>{kept.front().id});
  EXPECT_TRUE(shows("history.filter"));

  const DesktopSettings settings = app_->settings();
  restart({.panels = {"import"}, .views = settings.views});
  paste(log_of(20));
  EXPECT_EQ(import().runs.front().run.tokens_per_step, 8192);
  ASSERT_TRUE(click("import.as_last_time"));
  wait_until([&] { return import().state == State::understood && import().asked.options.tokens_per_step == 16384; });
  EXPECT_EQ(import().runs.front().run.tokens_per_step, 16384);
  EXPECT_FALSE(shows("import.as_last_time"));
}

TEST_F(ImportView, WhatIsNoNumberChangesNothingAndCannotBeKept) {
  paste(log_of(30));
  const int before = import().number;
  ASSERT_TRUE(type("import.tokens", "many"));
  EXPECT_EQ(import().state, State::understood);
  EXPECT_EQ(import().number, before);
  ASSERT_TRUE(click("import.keep"));
  EXPECT_EQ(import().state, State::understood);
  ASSERT_TRUE(type("import.tokens", ""));  // from the file
  EXPECT_EQ(import().number, before);
  ASSERT_TRUE(click("import.keep"));
  wait_for(State::kept);
  EXPECT_EQ(store_.runs().size(), 1u);
}

TEST_F(ImportView, APathIsTypedAndAFolderIsALadder) {
  const std::filesystem::path sweep = folder_ / "a sweep";
  for (const char* stage : {"slow", "fast"}) {
    std::filesystem::create_directories(sweep / stage);
    for (const char* file : {"1.log", "2.log"}) std::ofstream(sweep / stage / file) << log_of(30);
  }
  ASSERT_TRUE(type("import.path", "'" + sweep.string() + "'"));
  wait_for(State::understood);
  EXPECT_EQ(import().runs.size(), 4u);
  EXPECT_EQ(import().progress.items, 4);
  ASSERT_TRUE(click("import.row.0"));  // out of the chart
  ASSERT_TRUE(click("import.keep"));
  wait_for(State::kept);
  ASSERT_EQ(store_.ladders().size(), 1u);
  ASSERT_TRUE(click("import.ladder.0"));
  EXPECT_EQ(app_->workspace().selection.ladder, store_.ladders().front().id);
  EXPECT_TRUE(shows("ladder.rung.1"));
}

TEST_F(ImportView, ThePreviewSaysWhetherFilesAreRepeatsOrRungsAndTheUserCanChoose) {
  const std::filesystem::path logs = folder_ / "logs";
  std::filesystem::create_directories(logs);
  for (const char* dt : {"100", "67"}) {
    std::ofstream file(logs / (std::string(dt) + ".log"));
    for (int step = 1; step <= 30; ++step) file << "step " << step << " | loss 4.5 | dt " << dt << ".00ms\n";
  }
  app_->take_dropped({logs.string()});
  wait_for(State::understood);
  ASSERT_EQ(import().groupings.size(), 1u);
  EXPECT_EQ(import().groupings.front().decision.files, FilesAre::rungs);
  EXPECT_EQ(import().runs.at(1).run.rung, 1);
  EXPECT_EQ(import().runs.at(1).run.title, "67");
  ASSERT_TRUE(click("import.files"));
  ASSERT_TRUE(click("import.files.Repeats"));
  wait_until([&] { return import().state == State::understood && import().asked.options.files == FilesAre::repeats; });
  EXPECT_TRUE(import().groupings.front().asked);
  EXPECT_EQ(import().runs.at(1).run.rung, 0);
  EXPECT_EQ(import().runs.at(1).run.repeat, 1);
}

TEST_F(ImportView, AnImportIsUndoneAsAWholeAndRecognisedBefore) {
  const std::filesystem::path logs = folder_ / "logs";
  std::filesystem::create_directories(logs);
  for (const char* name : {"a.log", "b.log"}) std::ofstream(logs / name) << log_of(30) << name;
  app_->take_dropped({logs.string()});
  wait_for(State::understood);
  EXPECT_EQ(import().source_lines.size(), import().notes.size());
  EXPECT_NE(std::find(import().source_lines.begin(), import().source_lines.end(), "step oops | loss none"),
            import().source_lines.end());
  ASSERT_TRUE(click("import.keep"));
  wait_for(State::kept);
  ASSERT_EQ(store_.runs().size(), 2u);
  ASSERT_EQ(app_->workspace().undoable, "Imported 2 runs");

  app_->take_dropped({logs.string()});
  wait_for(State::understood);
  EXPECT_TRUE(import().runs.empty());
  EXPECT_EQ(import().skipped.size(), 2u);
  EXPECT_FALSE(shows("import.keep"));
  ASSERT_TRUE(click("import.skipped.again"));
  wait_until([&] { return import().state == State::understood && import().runs.size() == 2; });
  EXPECT_TRUE(import().skipped.empty());
  ASSERT_TRUE(click("import.forget"));

  imgui_.press(*app_, ImGuiKey_Z, true);
  wait_until([&] { return app_->workspace().runs().empty(); });
  EXPECT_TRUE(store_.runs().empty());
  EXPECT_TRUE(store_.ladders().empty());
  EXPECT_TRUE(app_->workspace().ladders().empty());
  for (const auto& [run, curation] : store_.curation().all()) EXPECT_TRUE(curation.deleted());
  app_->take_dropped({logs.string()});
  wait_for(State::understood);
  EXPECT_EQ(import().runs.size(), 2u) << "what was undone can be imported again";
}

// As with a full disk: the preview isn't lost, so that the same button imports it once it can be written.
TEST_F(ImportView, AnImportThatCannotBeStoredCanBeTriedAgain) {
  paste(log_of(30));
  const std::filesystem::path strange = folder_ / "strange.db";
  std::ofstream(strange) << std::string(4096, 'x');
  const std::string project = std::exchange(app_->workspace().database, strange.string());
  ASSERT_TRUE(click("import.keep"));
  wait_until([&] { return !app_->messages().empty(); });
  EXPECT_EQ(app_->messages().front().text.find("Nothing was imported: " + strange.string()), 0u)
      << app_->messages().front().text;
  EXPECT_EQ(import().state, State::understood);
  ASSERT_EQ(import().runs.size(), 1u);
  app_->workspace().database = project;
  ASSERT_TRUE(click("import.keep"));
  wait_for(State::kept);
  EXPECT_EQ(store_.runs().size(), 1u);
}

TEST_F(ImportView, APartThatWasStoredIsCountedAndUndoneAndTheRestIsPreviewed) {
  std::vector<std::string> logs;
  for (const auto& [name, steps] : {std::pair("a.log", 30), {"b.log", 60'000}}) {
    logs.push_back((folder_ / name).string());
    std::ofstream(logs.back()) << log_of(steps);
  }
  app_->take_dropped(logs);
  wait_for(State::understood);
  ASSERT_EQ(import().runs.size(), 2u);
  store_.create_run({.name = "of another program", .status = RunStatus::finished});
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{1 << 20, before.rlim_max};  // for a, but not for b
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  EXPECT_TRUE(click("import.keep"));
  wait_until([&] { return !app_->messages().empty(); });
  wait_for(State::understood);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(std::ranges::any_of(app_->messages(), [](const Message& each) {
    return each.is_error && each.text.starts_with("Only 1 run was imported: ");
  })) << app_->messages().back().text;
  ASSERT_EQ(import().runs.size(), 1u);
  EXPECT_EQ(import().runs.front().run.name, "b");
  EXPECT_EQ(app_->workspace().undoable, "Imported 1 run");
}

TEST_F(ImportView, TheButtonBesideTheImportedRunsUndoesIt) {
  paste(log_of(30));
  ASSERT_TRUE(click("import.keep"));
  wait_for(State::kept);
  ASSERT_TRUE(click("import.undo"));
  wait_until([&] { return app_->workspace().runs().empty(); });
  EXPECT_EQ(import().state, State::nothing);
}

TEST(ImportPreview, CountsTheTriesAmongTheRuns) {
  ImportPreview tries{.runs = std::vector<ImportPreview::PreviewRun>(3)};
  tries.tries = {{.tries = 2, .kept = 1, .runs = 3}};
  EXPECT_EQ(contents_text(tries), "3 runs of 2 tries");
}

TEST_F(ImportView, AFolderWithATraceIsCountedAndUndoneWithItWhateverCameAfter) {
  const std::filesystem::path logs = folder_ / "logs";
  std::filesystem::create_directories(logs);
  std::ofstream(logs / "a.log") << log_of(30);
  std::filesystem::copy_file(
      std::filesystem::path(STEPLADDER_SOURCE_DIR) / "tests/data/traces" / "kernel_names.json.gz",
      logs / "step.json.gz");
  app_->take_dropped({logs.string()});
  wait_for(State::understood);
  EXPECT_EQ(contents_text(import()), "1 run and 1 trace");
  ASSERT_TRUE(click("import.keep"));
  wait_for(State::kept);
  wait_until([&] { return app_->workspace().undoable.starts_with("Imported trace"); });
  ASSERT_TRUE(click("side.history"));
  ASSERT_TRUE(click("side.import"));
  ASSERT_TRUE(click("import.undo"));
  wait_until([&] { return app_->workspace().runs().empty(); });
  EXPECT_TRUE(app_->workspace().traces.empty());
}

TEST_F(ImportView, TheRoleAndPlaceOfAFileAreSetInThePreview) {
  const std::filesystem::path logs = folder_ / "logs";
  std::filesystem::create_directories(logs);
  for (const char* dt : {"100", "67", "50"}) {
    std::ofstream file(logs / (std::string(dt) + ".log"));
    for (int step = 1; step <= 30; ++step) file << "step " << step << " | loss 4.5 | dt " << dt << ".00ms\n";
  }
  app_->take_dropped({logs.string()});
  wait_for(State::understood);
  ASSERT_EQ(import().runs.size(), 3u);
  const auto wait_for_reading = [&](int after) {
    wait_until([&] { return import().state == State::understood && import().number > after; });
  };
  int number = import().number;
  ASSERT_TRUE(click("import.edit.2"));
  ASSERT_TRUE(click("import.file.role.3"));  // apart
  wait_for_reading(number);
  EXPECT_EQ(std::count_if(import().runs.begin(), import().runs.end(),
                          [](const ImportPreview::PreviewRun& run) { return run.run.ladder.has_value(); }),
            2);
  number = import().number;
  const std::string first = import().runs.front().run.title;
  ASSERT_TRUE(click("import.edit.0"));
  ASSERT_TRUE(click("import.file.down"));
  wait_for_reading(number);
  const auto is_first = [&](const ImportPreview::PreviewRun& run) { return run.run.title == first; };
  const auto moved = std::find_if(import().runs.begin(), import().runs.end(), is_first);
  ASSERT_NE(moved, import().runs.end());
  EXPECT_EQ(moved->run.rung, 1);
}

TEST_F(ImportView, WhatCannotBeReadIsSaidAndThereIsNothingToKeep) {
  app_->take_dropped({(folder_ / "nowhere.txt").string()});
  wait_for(State::understood);
  EXPECT_TRUE(import().runs.empty());
  EXPECT_EQ(import().failures.size(), 1u);
  EXPECT_FALSE(shows("import.keep"));
  paste("no log at all");
  EXPECT_TRUE(import().runs.empty());
  EXPECT_FALSE(import().failures.empty());
  EXPECT_TRUE(app_->messages().empty());
}

TEST_F(ImportView, WhileItReadsItSaysWhatAndCanBeCancelled) {
  imgui_.frame(*app_);
  for (const State state : {State::reading, State::keeping}) {
    *app_->workspace().import = {.state = state, .progress = {.item = "/runs/17.log", .items = 17}};
    EXPECT_LE(app_->seconds_to_next_frame(0), 0.1);
    EXPECT_FALSE(shows("import.keep"));
    EXPECT_TRUE(click("import.forget"));
    EXPECT_EQ(import().state, State::nothing);
  }
}

TEST_F(ImportView, MemoriesOfAnotherVersionArePassedOver) {
  for (const char* text : {"", "[]", "{\"corrections\": 7}", "{\"corrections\": [{\"params\": \"x\"}]}", "not JSON"}) {
    restart({.panels = {"import"}, .views = {{"import", text}}});
    EXPECT_TRUE(shows("import.path")) << text;
  }
}

TEST(MfuView, TakesARowIntoTheCalculatorAndRemembersItsConvention) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"mfu"}, .views = {{"mfu", "PaLM/Mosaic"}}});
  for (const char* item : {"mfu.row.0", "mfu.row.3"}) EXPECT_TRUE(imgui.click(app, item)) << item;
  ASSERT_TRUE(imgui.type(app, "mfu.tokens", "1M"));
  ASSERT_TRUE(imgui.type(app, "mfu.filter", "GPT7B"));
  EXPECT_TRUE(ui_test_anchors::find("mfu.row.0"));
  ASSERT_TRUE(imgui.type(app, "mfu.filter", "no such model"));
  EXPECT_FALSE(ui_test_anchors::find("mfu.row.0"));
  for (const char* item : {"mfu.convention", "mfu.run", "mfu.hardware"}) {
    EXPECT_TRUE(imgui.click(app, item)) << item;
    imgui.press(app, ImGuiKey_Escape);
  }
  EXPECT_EQ(app.settings().views.at("mfu"), "PaLM/Mosaic");
  EXPECT_TRUE(app.messages().empty());
}

TEST(MfuView, SaysInASentenceWhatTheShareIsAndCountsCores) {
  RunStore store = RunStore::in_memory();
  std::vector<StepRecord> steps;
  for (std::int64_t step = 1; step <= 20; ++step)
    steps.push_back({.step = step, .loss = 3, .dt_ms = 50, .tokens = 1000});
  store.insert_finished({.name = "on two cores",
                         .source = "launched",
                         .tokens_per_step = 1000,
                         .params = 1'000'000,
                         .device = "cpu",
                         .hardware = "2 x AMD EPYC",
                         .precision = "fp32"},
                        steps);
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"mfu"}});
  ui_test_anchors::keep();
  for (int i = 0; i < 5; ++i) imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("mfu.answer.unknown.cores")) << "no peak of it is known";
  ASSERT_TRUE(imgui.type(app, "mfu.peak", "1"));
  EXPECT_TRUE(ui_test_anchors::find("mfu.answer.possible.devices")) << "typed numbers are of no run";
}

// The table is in the order of the shown number, or of the peaks if one asks for that; the chart says what it lacks.
TEST(Mfu, RunsAreOrderedByWhatIsShownAndThoseNotDrawnAreCounted) {
  RunStore store = RunStore::in_memory();
  const auto insert = [&](const char* precision, std::int64_t tokens) {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= 20; ++step)
      steps.push_back({.step = step, .loss = 3, .dt_ms = 100, .tokens = tokens});
    return store.insert_finished({.name = precision,
                                  .status = RunStatus::finished,
                                  .source = "launched",
                                  .tokens_per_step = tokens,
                                  .params = 124'439'808,
                                  .device = "cuda",
                                  .hardware = "NVIDIA A100-SXM4-40GB",
                                  .precision = precision,
                                  .sync = Sync::event},
                                 steps);
  };
  const RunId fp32 = insert("fp32", 1500), bf16 = insert("bf16", 3000);  // 57 % of 19.5, 7 % of 312 TFLOP/s
  insert("bf16", 0);
  Headless imgui;
  DesktopApp app(store, nullptr, {.panels = {"mfu"}});
  app.workspace().hardware = HardwareTable::read(std::string(STEPLADDER_SOURCE_DIR) + "/assets/hardware.csv");
  ui_test_anchors::keep();
  for (int i = 0; i < 5; ++i) imgui.frame(app);
  const auto place_of = [](RunId run) { return ui_test_anchors::find("mfu.run." + std::to_string(run)); };
  ASSERT_TRUE(place_of(fp32) && place_of(bf16));
  EXPECT_LT(place_of(fp32)->y0, place_of(bf16)->y0);
  EXPECT_TRUE(ui_test_anchors::find("mfu.not_drawn.1.2")) << "no throughput; no shape";
  MfuTable table;
  derive_rows(table, app.workspace(), MfuConvention::six_n);
  EXPECT_EQ(mfu_answer(table),
            "Best: fp32, 57.4 % of the fp32 peak of NVIDIA A100-SXM4-40GB. 1 of 3 runs has no share.");
  EXPECT_EQ(table.rows[1].name, "bf16, run " + std::to_string(bf16)) << "two runs have this name";
}

// The same buttons in every view that has them.
TEST(ReadOnly, NothingThatTrainsCanBeStarted) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "two rungs", .source = "launched"});
  for (const int rung : {0, 1}) {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= 20; ++step)
      steps.push_back({.step = step, .loss = 3, .dt_ms = 50.0 - 10 * rung, .tokens = 1000});
    store.insert_finished({.name = "rung " + std::to_string(rung),
                           .ladder = ladder,
                           .rung = rung,
                           .status = RunStatus::finished,
                           .source = "launched",
                           .planned_steps = 20,
                           .tokens_per_step = 1000,
                           .device = "cpu",
                           .recipe = to_json(Recipe{})},
                          steps);
  }
  const std::vector<std::pair<const char*, std::vector<const char*>>> views{
      {"run", {"run.again", "run.real", "run.trace"}}, {"ladder", {"ladder.real", "ladder.trace"}}};
  for (const auto& [panel, buttons] : views) {
    Headless imgui;
    DesktopApp app(store, nullptr, {.panels = {panel}});
    ImGui::GetIO().DisplaySize.y = 2000;
    app.workspace().patience = std::chrono::hours(1);
    app.workspace().read_only = "the file may only be read";
    app.workspace().selection.shown_run = 2;
    app.workspace().selection.rung = 1;
    for (const char* button : buttons) {
      ui_test_anchors::keep();
      ASSERT_TRUE(imgui.frames_until(app, [&] { return ui_test_anchors::find(button).has_value(); })) << button;
      ASSERT_TRUE(imgui.click(app, button));
      EXPECT_TRUE(app.messages().empty()) << button << " is disabled";
    }
  }
}

}  // namespace
}  // namespace stepladder
