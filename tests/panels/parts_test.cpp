// Parts of the views, without a window: actions and their keys, settings, columns, exports of charts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>

#include "app/desktop/actions.h"
#include "app/desktop/charts/chart_export.h"
#include "app/desktop/commands/curation_commands.h"
#include "app/desktop/models/ladder_model.h"
#include "app/desktop/models/run_columns.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/settings.h"
#include "app/desktop/system/portal.h"
#include "app/panels/ladder/beside.h"
#include "engine/stage.h"
#include "storage/database/run_store.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

TEST(Actions, NoKeyDoesTwoThings) {
  Headless imgui;
  const Workspace workspace;
  std::set<ImGuiKeyChord> keys;
  for (const Action& action : window_actions(all_panels(), workspace)) {
    EXPECT_FALSE(action.title.empty());
    if (action.key != 0) {
      EXPECT_TRUE(keys.insert(action.key).second) << action.title << " " << key_text(action.key);
    }
    for (const ImGuiKeyChord key : action.also) EXPECT_TRUE(keys.insert(key).second) << action.title;
  }
  EXPECT_EQ(key_text(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_3), "Ctrl+Shift+3");
}

TEST(Actions, AreLookedForOnlyWhenAKeyGoesDown) {
  Headless imgui;
  ImGuiIO& io = ImGui::GetIO();
  const auto frame = [] {
    ImGui::NewFrame();
    const bool pressed = any_key_pressed();
    ImGui::Render();
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
      texture->SetTexID(1);
      texture->SetStatus(ImTextureStatus_OK);
    }
    return pressed;
  };
  EXPECT_FALSE(frame());
  io.AddMousePosEvent(10, 10);
  io.AddMouseButtonEvent(0, true);
  EXPECT_FALSE(frame());
  for (const ImGuiKey key : {ImGuiKey_K, ImGuiKey_0, ImGuiKey_F5, ImGuiKey_KeypadAdd, ImGuiKey_Backspace}) {
    io.AddKeyEvent(key, true);
    EXPECT_TRUE(frame()) << ImGui::GetKeyName(key);
    io.AddKeyEvent(key, false);
    EXPECT_FALSE(frame()) << ImGui::GetKeyName(key);
  }
}

TEST(Actions, LettersFindWordsThatTheyBegin) {
  EXPECT_FALSE(fuzzy_score("xyz", "Show History").has_value());
  EXPECT_FALSE(fuzzy_score("yrotsih", "Show History").has_value()) << "in order only";
  EXPECT_TRUE(fuzzy_score("hist", "Show History"));
  EXPECT_FALSE(fuzzy_score("hist", "Which is the one to take")) << "letters scattered over words";
  EXPECT_TRUE(fuzzy_score("sh", "Show History"));
  EXPECT_FALSE(fuzzy_score("bin", "Baseline of a run"));
  EXPECT_GT(*fuzzy_score("bin", "Bin: restore runs"), *fuzzy_score("bin", "A combined run"));
  EXPECT_TRUE(fuzzy_score("", "anything").has_value());
}

TEST(Actions, ThePaletteKnowsTheWaterfallExportsAndPause) {
  Headless imgui;
  RunStore store = RunStore::in_memory();
  store.create_ladder({.name = "three rungs"});
  Workspace workspace;
  workspace.load(store);
  for (const char* wanted : {"waterfall", "export", "pause"}) {
    std::string best;
    int score = 0;
    for (const Action& action : window_actions(all_panels(), workspace)) {
      const auto fits = fuzzy_score(wanted, action.title);
      if (fits && *fits > score) score = *fits, best = action.title;
    }
    EXPECT_TRUE(fuzzy_score(wanted, best)) << wanted;
    std::string lower = best;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    EXPECT_NE(lower.find(wanted), std::string::npos) << best;
  }
}

class Settings : public testing::Test {
 protected:
  Settings() : folder_(std::filesystem::temp_directory_path() / ("stepladder-settings-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    ::unsetenv("GTK_THEME");
  }
  ~Settings() override {
    ::unsetenv("XDG_CONFIG_HOME");
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path folder_;
};

TEST(Hardware, OfAProcessorIsItsNameAndCores) {
  EXPECT_EQ(hardware_text({.device = "cpu", .hardware = "2 x AMD EPYC"}), "AMD EPYC, 2 cores");
  EXPECT_EQ(hardware_text({.device = "cpu", .hardware = "1 x Intel Xeon"}), "Intel Xeon, 1 core");
  EXPECT_EQ(hardware_text({.device = "cuda", .hardware = "8 x NVIDIA H100"}), "8 \xC3\x97 NVIDIA H100")
      << "eight of them";
  EXPECT_EQ(hardware_text({.device = "cpu", .hardware = "Apple M3"}), "Apple M3");
}

TEST(Palette, WhatDiscardsIsNeverFirst) {
  Headless imgui;
  RunStore store = RunStore::in_memory();
  Workspace workspace;
  workspace.load(store);
  const std::vector<Action> actions = window_actions(all_panels(), workspace);
  for (const std::vector<std::string>& recent : {std::vector<std::string>{}, {"Empty bin"}}) {
    const std::vector<std::size_t> found = matching_actions(actions, "bin", recent);
    ASSERT_GE(found.size(), 2u);
    EXPECT_FALSE(actions[found[0]].is_dangerous) << actions[found[0]].title;
    EXPECT_EQ(actions[found[1]].title, "Empty bin");
  }
}

TEST(Palette, FindsThingsByTheirOtherNames) {
  Headless imgui;
  RunStore store = RunStore::in_memory();
  Workspace workspace;
  workspace.load(store);
  const std::vector<Action> actions = window_actions(all_panels(), workspace);
  for (const auto& [typed, title] : {std::pair("delete", "Bin: restore runs"),
                                     {"remote", "Show Machines"},
                                     {"flops", "Show MFU"},
                                     {"zoom", "Larger text"},
                                     {"open a log", "Show Import"}}) {
    const std::vector<std::size_t> found = matching_actions(actions, typed, {});
    EXPECT_TRUE(std::ranges::any_of(found, [&, wanted = std::string(title)](std::size_t place) {
      return actions[place].title == wanted;
    })) << typed;
  }
}

TEST(Palette, ViewsAndActionsAreBeforeRunsAndRecentOnesFirst) {
  std::vector<Action> actions;
  for (const char* title : {"Show Live", "Switch theme", "Theme: dark", "Reload the database"})
    actions.push_back({.title = title, .command = Undo{}});
  for (const char* title : {"Run: theme park", "Run: live"})
    actions.push_back({.title = title, .command = Undo{}, .is_place = true});
  const auto first = [&](const std::string& typed, const std::vector<std::string>& recent = {}) {
    std::vector<std::string> titles;
    for (const std::size_t place : matching_actions(actions, typed, recent)) titles.push_back(actions[place].title);
    return titles;
  };
  EXPECT_EQ(first("live"), (std::vector<std::string>{"Show Live", "Run: live"}));
  EXPECT_EQ(first("theme").back(), "Run: theme park");
  EXPECT_EQ(first("theme", {"Switch theme"}).front(), "Switch theme");
  EXPECT_EQ(first("theme", {"Theme: dark", "Switch theme"}).front(), "Theme: dark");
  EXPECT_EQ(first("run li").front(), "Run: live");
  EXPECT_EQ(first("", {"Reload the database"}).front(), "Reload the database");
  EXPECT_EQ(first("swithem"), (std::vector<std::string>{"Switch theme"})) << "letters in order";
}

TEST(Palette, AnExactNameIsFirstThenWhatBeginsAsTyped) {
  std::vector<Action> actions;
  for (const char* title : {"Open Live side by side", "Reset the nano view", "Show Live"})
    actions.push_back({.title = title, .command = Undo{}});
  for (const char* title : {"Run: my nano", "Run: nano, wider", "Run: nano"})
    actions.push_back({.title = title, .command = Undo{}, .is_place = true});
  const auto found = [&](const std::string& typed) {
    std::vector<std::string> titles;
    for (const std::size_t place : matching_actions(actions, typed, {})) titles.push_back(actions[place].title);
    return titles;
  };
  EXPECT_EQ(found("live"), (std::vector<std::string>{"Show Live", "Open Live side by side"}));
  EXPECT_EQ(found("nano"),
            (std::vector<std::string>{"Run: nano", "Reset the nano view", "Run: nano, wider", "Run: my nano"}));
}

TEST_F(Settings, ComeBackAsTheyWereSaved) {
  DesktopSettings settings;
  settings.theme = ThemeChoice::system;
  settings.scale = 1.5f;
  settings.width = 1234;
  settings.line_styles = true;
  settings.projects["/a/b.db"] = {.ladder = 3,
                                  .runs = {1, 2},
                                  .panels = {"compare", "history"},
                                  .layout = "[Window][##frame]\n",
                                  .views = {{"history", R"({"filter":"a \"b\""})"}}};
  save_settings(settings);
  const DesktopSettings read = load_settings();
  EXPECT_EQ(read.theme, ThemeChoice::system);
  EXPECT_EQ(read.scale, 1.5f);
  EXPECT_EQ(read.width, 1234);
  EXPECT_TRUE(read.line_styles);
  EXPECT_EQ(read.projects.at("/a/b.db").views, settings.projects.at("/a/b.db").views);
  const DesktopSettings same = read.for_project("/a/b.db"), other = read.for_project("/a/new.db");
  EXPECT_EQ(same.panels, (std::vector<std::string>{"compare", "history"}));
  EXPECT_EQ(same.layout, "[Window][##frame]\n");
  EXPECT_EQ(same.views, settings.projects.at("/a/b.db").views);
  EXPECT_EQ(other.panels, DesktopSettings().panels) << "nothing of one project is another's";
  EXPECT_TRUE(other.layout.empty());
  EXPECT_TRUE(other.views.empty());
  EXPECT_EQ(read.projects.at("/a/b.db").runs, (std::vector<std::int64_t>{1, 2}));
}

TEST_F(Settings, ThoseThatWereEditedByHandDoNoHarm) {
  std::filesystem::create_directories(settings_file().parent_path());
  std::ofstream(settings_file())
      << R"({"theme": 7, "scale": 99, "panels": "ladder", "width": "wide", "projects": [1]})";
  const DesktopSettings read = load_settings();
  EXPECT_EQ(read.theme, ThemeChoice::dark);
  EXPECT_EQ(read.scale, 3.0f);
  EXPECT_EQ(read.panels, DesktopSettings().panels);
  std::ofstream(settings_file()) << "no JSON";
  EXPECT_EQ(load_settings().width, DesktopSettings().width);
}

TEST_F(Settings, TheSystemsThemeIsThatOfItsToolkits) {
  EXPECT_TRUE(system_prefers_dark()) << "nothing says otherwise";
  std::filesystem::create_directories(folder_ / "gtk-3.0");
  std::ofstream(folder_ / "gtk-3.0" / "settings.ini") << "[Settings]\ngtk-application-prefer-dark-theme = 0\n";
  EXPECT_FALSE(system_prefers_dark());
  ::setenv("GTK_THEME", "Adwaita:dark", 1);
  EXPECT_TRUE(system_prefers_dark());
  ::unsetenv("GTK_THEME");
}

// A stand-in for the portal's programs, first on PATH.
class Portal : public Settings {
 protected:
  Portal() {
    ::setenv("PATH", (folder_ / "bin").c_str(), 1);
    ::setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere", 1);
    std::filesystem::create_directories(folder_ / "bin");
  }
  ~Portal() override {
    ::setenv("PATH", path_.c_str(), 1);
    ::unsetenv("DBUS_SESSION_BUS_ADDRESS");
  }
  void stand_in(const char* program, const std::string& script) {
    const std::filesystem::path file = folder_ / "bin" / program;
    std::ofstream(file) << "#!/bin/sh\necho \"$0 $*\" >>'" << (folder_ / "asked").string() << "'\n" << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  std::string asked() const {
    std::ifstream file(folder_ / "asked");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const std::string path_ = std::getenv("PATH");
};

TEST_F(Portal, IsAskedThroughWhicheverProgramThereIs) {
  EXPECT_EQ(portal_prefers_dark(), std::nullopt) << "there is none";
  stand_in("dbus-send", "printf 'method return time=17.5 sender=:1.9\\n   variant       variant          uint32 1\\n'");
  EXPECT_EQ(portal_prefers_dark(), true);
  EXPECT_NE(asked().find("string:org.freedesktop.appearance string:color-scheme"), std::string::npos) << asked();
  stand_in("busctl", "echo 'v v u 2'");
  EXPECT_EQ(portal_prefers_dark(), false);
  stand_in("gdbus", "echo '(<<uint32 1>>,)'");
  EXPECT_EQ(portal_prefers_dark(), true);
  stand_in("gdbus", "echo 'Error: GDBus.Error' >&2; exit 1");
  EXPECT_EQ(portal_prefers_dark(), false) << "busctl answers";
  stand_in("gdbus", "echo '(<<uint32 0>>,)'");
  EXPECT_EQ(portal_prefers_dark(), std::nullopt) << "no preference";
  stand_in("gdbus", "echo nonsense");
  EXPECT_EQ(portal_prefers_dark(), std::nullopt);
}

TEST_F(Portal, IsNotWaitedForIfItHangsAndNotAskedWithoutABus) {
  stand_in("gdbus", "while :; do :; done");
  EXPECT_EQ(portal_prefers_dark(), std::nullopt);
  EXPECT_NE(asked(), "");
  std::filesystem::remove(folder_ / "asked");
  ::unsetenv("DBUS_SESSION_BUS_ADDRESS");
  ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  EXPECT_EQ(portal_prefers_dark(), std::nullopt);
  EXPECT_EQ(asked(), "") << "a program would start a bus of its own";
  ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(Portal, ItsWordComesAfterTheWindowAndCountsMoreThanFiles) {
  std::filesystem::create_directories(folder_ / "gtk-3.0");
  std::ofstream(folder_ / "gtk-3.0" / "settings.ini") << "[Settings]\ngtk-application-prefer-dark-theme = 1\n";
  stand_in("gdbus", "echo '(<<uint32 2>>,)'");
  Headless imgui;
  RunStore store = RunStore::in_memory();
  DesktopApp app(store, nullptr, {.theme = ThemeChoice::system});
  app.set_display_scale(1);
  EXPECT_TRUE(theme_is_dark()) << "as the files say, until the portal has answered";
  const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (theme_is_dark() && std::chrono::steady_clock::now() < patience) imgui.frame(app);
  EXPECT_FALSE(theme_is_dark());
  ::setenv("GTK_THEME", "Adwaita:dark", 1);
  app.set_display_scale(1);
  EXPECT_TRUE(theme_is_dark()) << "what was set for this program alone counts most";
  ::unsetenv("GTK_THEME");
}

TEST(RunColumns, EveryColumnHasSomethingToSayOfEveryRun) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "ladder"});
  const std::vector<StepRecord> steps{{.step = 1, .loss = 3, .dt_ms = 10, .tokens = 100},
                                      {.step = 2, .loss = 2, .dt_ms = 10, .tokens = 100}};
  store.insert_finished({.name = "base", .ladder = ladder, .tokens_per_step = 100, .recipe = R"({"batch": 12})"},
                        steps);
  const std::vector<StepRecord> quick{{.step = 1, .loss = 3, .dt_ms = 5, .tokens = 100},
                                      {.step = 2, .loss = 2.5, .dt_ms = 5, .tokens = 100}};
  store.insert_finished({.name = "quick", .ladder = ladder, .rung = 1, .tokens_per_step = 100}, quick);
  store.insert_finished({.name = "bare"}, {});
  Workspace workspace;
  workspace.load(store);
  const ColumnContext context{.workspace = &workspace};
  std::vector<RunColumn> columns = measured_columns();
  const std::vector<RunColumn> recipe = recipe_columns(workspace);
  ASSERT_EQ(recipe.size(), 1u);
  columns.push_back(recipe.front());
  std::set<std::string> ids;
  for (const RunColumn& column : columns) {
    EXPECT_TRUE(ids.insert(column.id).second) << column.id;
    for (const RunEntry& entry : workspace.runs()) cell_text(column.id, entry, context);
  }
  const RunEntry& second = *workspace.find(2);
  EXPECT_EQ(cell_text("factor", second, context), "2.00 x");
  EXPECT_EQ(cell_text("loss_gap", second, context), "+0.5000");
  EXPECT_EQ(cell_text("recipe.batch", *workspace.find(1), context), "12");
  EXPECT_EQ(cell_value("recipe.batch", *workspace.find(1), context), 12);
  EXPECT_EQ(cell_text("recipe.batch", second, context), "-");
  EXPECT_EQ(cell_text("factor", second, {.workspace = &workspace, .baseline = 2}), "1 x");
  EXPECT_TRUE(is_missing(cell_value("tokens_per_s", *workspace.find(3), context)));
}

TEST(RunColumns, OfSmallNumbersAWholeColumnIsInExponents) {
  RunStore store = RunStore::in_memory();
  for (const char* recipe : {R"({"lr": 0.0003, "decay": 0.1})", R"({"lr": "1e-3", "decay": 0.01})",
                             R"({"lr": 0, "decay": 0.0125})", R"({"lr": 5e-05, "decay": "cosine"})"})
    store.insert_finished({.name = "run", .recipe = recipe}, {});
  Workspace workspace;
  workspace.load(store);
  std::vector<std::string> lr, decay;
  for (RunId run = 1; run <= 4; ++run) {
    const std::vector<RunColumn> columns = recipe_columns(workspace);
    decay.push_back(cell_text(columns.at(0), *workspace.find(run), {&workspace, 0}));
    lr.push_back(cell_text(columns.at(1), *workspace.find(run), {&workspace, 0}));
  }
  EXPECT_EQ(lr, (std::vector<std::string>{"3e-4", "1e-3", "0", "5e-5"}));
  EXPECT_EQ(decay, (std::vector<std::string>{"0.1", "0.01", "0.0125", "cosine"}));
}

TEST(LadderModel, KnowsItsFastestThatCanBeBelievedAndMakesNothingTwice) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "ladder"});
  for (int rung = 0; rung < 3; ++rung) {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= 40; ++step)
      steps.push_back({.step = step,
                       .loss = 5.0 / static_cast<double>(step),
                       .dt_ms = 100.0 / (rung * rung * rung * 40 + 1),
                       .tokens = 8192});
    store.insert_finished({.name = "run",
                           .ladder = ladder,
                           .rung = rung,
                           .tokens_per_step = 8192,
                           .params = 124'439'808,
                           .hardware = "NVIDIA A100-SXM4-40GB",
                           .precision = "bf16"},
                          steps);
  }
  Workspace workspace;
  workspace.load(store);
  workspace.hardware = HardwareTable::read(std::string(STEPLADDER_SOURCE_DIR) + "/assets/hardware.csv");
  for (RunId run = 1; run <= 3; ++run) workspace.load_series(store, run);
  workspace.patience = std::chrono::hours(1);
  LadderViewModel followed;
  const LadderModel& model = followed.model;
  DataRequests asked;
  EXPECT_TRUE(followed.update(workspace, ladder, 0, ComparisonAxis::steps, nullptr, asked));
  EXPECT_FALSE(followed.update(workspace, ladder, 0, ComparisonAxis::steps, nullptr, asked));
  EXPECT_TRUE(asked.empty()) << "all there";
  ASSERT_EQ(model.rungs.size(), 3u);
  EXPECT_NE(model.rungs[0].judged.trust, Trust::impossible);
  EXPECT_EQ(model.rungs[2].judged.trust, Trust::impossible) << "26 M tokens/s on an A100";
  EXPECT_NE(model.fastest(), 2);
  EXPECT_GT(model.rungs[2].judged.tokens_per_s, model.rungs[2].judged.limit.tokens_per_s);
  EXPECT_TRUE(followed.update(workspace, ladder, 1, ComparisonAxis::tokens, nullptr, asked));
  EXPECT_EQ(model.rungs[1].judged.over_baseline.factor, 1);
  EXPECT_EQ(model.losses[0].points.x.front(), 8192) << "tokens";
  EXPECT_FALSE(model.losses[0].gap.empty());
  EXPECT_TRUE(model.losses[1].gap.empty()) << "the baseline itself";
}

TEST(LadderBeside, RowsAreStagesWhateverTheLogsCalledThem) {
  const auto model = [](std::vector<std::pair<std::string, double>> rungs) {
    LadderModel made;
    for (const auto& [changed, tokens_per_s] : rungs) {
      LadderRung& rung = made.rungs.emplace_back();
      rung.first = {.changed = changed, .source = "imported"};
      rung.stage = known_stage(rung.first, known_stages());
      rung.judged.rung = static_cast<int>(made.rungs.size()) - 1;
      rung.judged.tokens_per_s = tokens_per_s;
    }
    return made;
  };
  const LadderModel own = model({{"baseline", 100}, {"tf32 precision", 150}, {"flash attention", 300}});
  const LadderModel first = model({{"Baseline", 1000}, {"Pytorch Flash attention", 4000}, {"torch.compile", 8000}});
  const LadderModel second = model({{"base line", 7}, {"compile", 14}});
  const std::vector<BesideLadder> others{{"first", &first, {}}, {"second", &second, {}}};
  const std::vector<BesideRow> rows = beside_rows(own, others);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].own, &own.rungs[0]);
  EXPECT_EQ(rows[0].others, (std::vector<const LadderRung*>{&first.rungs[0], nullptr}));
  EXPECT_EQ(rows[1].others, (std::vector<const LadderRung*>{nullptr, nullptr}));
  EXPECT_EQ(rows[2].others, (std::vector<const LadderRung*>{&first.rungs[1], nullptr}));
  EXPECT_EQ(rows[3].own, nullptr);
  EXPECT_EQ(rows[3].others, (std::vector<const LadderRung*>{&first.rungs[2], &second.rungs[1]}));
  EXPECT_EQ(rows[4].others, (std::vector<const LadderRung*>{nullptr, &second.rungs[0]})) << "a stage nobody knows";
  EXPECT_EQ(factor_over_own_baseline(first.rungs[2], first), 8);
  EXPECT_EQ(factor_over_own_baseline(second.rungs[0], second), 1);
}

TEST(LadderBeside, FactorsAreOverTheFirstRungWhereTokensAreUnknownToo) {
  LadderModel model;
  for (const double steps_per_s : {2.0, 5.0}) model.rungs.emplace_back().judged.steps_per_s = steps_per_s;
  model.rungs[0].judged.over_baseline.factor = 0.4;  // the second rung was chosen as the baseline
  model.rungs[1].judged.over_baseline.factor = 1;
  EXPECT_EQ(factor_over_own_baseline(model.rungs[0], model), 1);
  EXPECT_EQ(factor_over_own_baseline(model.rungs[1], model), 2.5);
}

TEST(ChartExport, AFigureHasEveryPointAndItsUnits) {
  const std::vector<double> x{1, 2, 3};
  const std::vector<double> y{5, missing, 7};
  const std::vector<double> smoothed{5, missing, 6};
  const Chart chart{.title = "Step time",
                    .x_label = "step",
                    .unit = "ms",
                    .curves = {{.label = "second##2", .x = x, .y = y, .order = 1, .smoothed = smoothed},
                               {.label = "first##1", .x = x, .y = y, .order = 0}},
                    .caption = {"one A100"},
                    .smoothing = "smoothed by 0.60"};
  const Figure figure = figure_of(chart);
  EXPECT_EQ(figure.y.label, "Step time, ms");
  ASSERT_EQ(figure.curves.size(), 2u);
  EXPECT_EQ(figure.curves[0].label, "first");
  EXPECT_EQ(figure.curves[0].y, (std::vector<double>{5, 7}));
  EXPECT_EQ(figure.curves[1].y, (std::vector<double>{5, 6}));
  EXPECT_EQ(figure.caption.front(), "one A100");
  EXPECT_NE(figure.caption.back().find("0.60"), std::string::npos);
  EXPECT_EQ(points_csv(points_of(chart)), "curve,step,Step time (ms)\nsecond,1,5\nsecond,3,7\nfirst,1,5\nfirst,3,7\n");
}

TEST(ChartExport, TablesKeepTheirCells) {
  EXPECT_EQ(csv_table({{"run", "note"}, {"a", "x, \"y\""}}), "run,note\na,\"x, \"\"y\"\"\"\n");
  EXPECT_EQ(markdown_table({{"run"}, {"a|b"}}), "| run |\n| --- |\n| a\\|b |\n");
}

TEST(ChartExport, FilesLieBesideTheDatabaseUnderANameThatEveryDiskTakes) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("stepladder-exports-" + std::to_string(::getpid()));
  const std::filesystem::path file = export_path(folder / "x.db", "", "Loss: nano / \xC3\xA4 #2", ".svg");
  EXPECT_EQ(file.parent_path(), folder / "exports");
  EXPECT_TRUE(file.filename().string().starts_with("loss-nano-2-")) << file;
  EXPECT_EQ(file.extension(), ".svg");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stepladder
