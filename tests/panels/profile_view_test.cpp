// The view Profile: empty, one step, two and their difference, a million slices, search, zoom by wheel and keys,
// failed.
#include "app/desktop/profile/profile_view.h"

#include <gtest/gtest.h>

#include <fstream>

#include "app/desktop/profile/imported_trace.h"
#include "app/desktop/profile/profile_state.h"
#include "app/import/trace_import.h"
#include "app/profile/difference_text.h"
#include "engine/recipe.h"
#include "storage/database/traces/trace_store.h"
#include "storage/errors.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"
#include "tests/storage/traces/trace_text.h"

namespace stepladder {
namespace {

using namespace std::chrono_literals;

// A step of ten operators; `gelu_us` tells two traces apart.
std::string step_text(double gelu_us) {
  std::vector<std::string> events{cpu_step(1, 0, 100 + gelu_us)};
  double at = 0;
  for (int i = 0; i < 5; ++i) {
    events.push_back(op("aten::linear", at, 18));
    events.push_back(op("aten::addmm", at + 2, 14));
    at += 20;
  }
  events.push_back(op("aten::gelu", at, gelu_us));
  return trace_of(events);
}

class ProfilePanel : public testing::Test {
 protected:
  ProfilePanel() : store_(RunStore::open(folder_ / "runs.db")) {}

  TraceId import(const std::string& name, const std::string& text) {
    const std::filesystem::path file = folder_.path() / (name + ".json");
    std::ofstream(file, std::ios::binary) << text;
    const ReadTrace read = read_traces({.files = {file.string()}});
    return keep_trace(store_.traces(), read.trace, read.process);
  }
  static bool is_shown(Headless& imgui, DesktopApp& app) {
    return imgui.frames_until(app, [&] {
      const auto& view = app.workspace().profile_state->view;
      return view && (view->after || view->sources.empty() || !view->problem.empty());
    });
  }

  const TemporaryFolder folder_;
  RunStore store_;
};

TEST_F(ProfilePanel, a_stopped_import_keeps_nothing_and_the_next_one_works) {
  std::vector<std::string> events;
  for (int i = 0; i < 200'000; ++i) events.push_back(op("aten::mm", i, 1));
  const std::filesystem::path file = folder_ / "long.json";
  std::ofstream(file, std::ios::binary) << trace_of(events);
  const std::filesystem::path database = folder_ / "runs.db";
  const auto work = [&](JobControl& job) { return import_trace(database, file.string(), job); };
  JobQueue<ImportedTrace> imports([] {});
  imports.add(work);
  imports.add(work);
  imports.stop();
  EXPECT_EQ(imports.take(5min).value().id, 0);
  EXPECT_FALSE(imports.is_busy()) << "the second file doesn't begin";
  EXPECT_TRUE(store_.traces().list().empty());
  imports.add(work);
  EXPECT_NE(imports.take(5min).value().id, 0);
}

TEST_F(ProfilePanel, says_how_to_get_a_profile) {
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  imgui.frame(app);
  imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("profile.empty"));
  ASSERT_TRUE(imgui.click(app, "profile.copy"));
  EXPECT_NE(std::string(ImGui::GetClipboardText()).find("torch.profiler"), std::string::npos);
}

TEST_F(ProfilePanel, one_trace_then_the_difference_of_two) {
  import("slow", step_text(60));
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  EXPECT_EQ(app.workspace().profile_state->view->after->name, "slow");
  EXPECT_FALSE(app.workspace().profile_state->view->difference);
  const ShownNext& next = app.workspace().profile_state->view->after->next;
  EXPECT_TRUE(next.largest.starts_with("The largest part of this step is matrix products, ")) << next.largest;
  for (const ShownStage& each : next.stages) EXPECT_NE(each.step, "-") << each.title;
  ASSERT_TRUE(imgui.click(app, "profile.tab.6"));
  imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("profile.next"));
  // Dropped, read on another thread, and compared with the first.
  const std::filesystem::path file = folder_ / "fast.json.dropped";
  std::ofstream(file, std::ios::binary) << step_text(20);
  app.take_dropped({file.string()});
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().profile_state->view->difference.has_value(); }));
  const ProfileView& view = *app.workspace().profile_state->view;
  EXPECT_EQ(view.before->name, "slow");
  EXPECT_EQ(view.after->name, "fast.json.dropped");
  double sum = 0;
  for (const RowDifference& row : view.difference->rows) sum += row.delta_ms();
  EXPECT_NEAR(sum, -0.04, 1e-9);
  imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("profile.before"));
  EXPECT_TRUE(ui_test_anchors::find("profile.after"));
  for (const char* tab : {"profile.tab.1", "profile.tab.2", "profile.tab.3", "profile.tab.0"})
    ASSERT_TRUE(imgui.click(app, tab)) << tab;
  ASSERT_TRUE(imgui.click(app, "profile.swap"));
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().profile_state->view->after->name == "slow"; }));
  // Undo removes it again.
  app.execute();
  imgui.press(app, ImGuiKey_Z, true);
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().profile_state->view->sources.size() == 1; }));
}

TEST_F(ProfilePanel, what_next_launches_a_stage_on_a_run_that_was_trained_here) {
  Recipe recipe;
  recipe.vocab = 256;
  const RunId run = store_.insert_finished(
      {.name = "mine", .status = RunStatus::finished, .source = "launched", .device = "cpu", .recipe = to_json(recipe)},
      std::vector<StepRecord>{{.step = 1, .loss = 4, .dt_ms = 0.16}});
  store_.traces().attach(import("t", step_text(60)), run);
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  const ShownNext& next = app.workspace().profile_state->view->after->next;
  EXPECT_EQ(next.run, run);
  ASSERT_FALSE(next.stages.empty()) << next.rest;
  const std::string stage = next.stages.front().id;
  ASSERT_TRUE(imgui.click(app, "profile.tab.6"));
  ASSERT_TRUE(imgui.click(app, "profile.launch." + stage));
  ui_test_anchors::keep();
  for (int i = 0; i < 4; ++i) imgui.frame(app);
  EXPECT_FALSE(ui_test_anchors::find("profile.next")) << "Launch is shown";
  EXPECT_TRUE(app.messages().empty());
}

TEST_F(ProfilePanel, what_next_is_of_the_run_that_a_trace_is_attached_to) {
  Recipe with, without;
  with.vocab = without.vocab = 256;
  with.compile = Compile::max;
  const auto add = [&](const Recipe& recipe) {
    return store_.insert_finished({.name = "mine",
                                   .status = RunStatus::finished,
                                   .source = "launched",
                                   .device = "cpu",
                                   .recipe = to_json(recipe)},
                                  std::vector<StepRecord>{{.step = 1, .loss = 4, .dt_ms = 0.16}});
  };
  const RunId first = add(without), second = add(with);
  const TraceId trace = import("t", step_text(60));
  store_.traces().attach(trace, first);
  const ProfileQuestion question{.after = {.kind = ProfileSide::Kind::trace, .id = trace}};
  const ProfileView before = profile_view(question, store_);
  store_.traces().attach(trace, second);
  const ProfileView after = profile_view(question, store_, &before), fresh = profile_view(question, store_);
  EXPECT_EQ(after.after->next.rest, fresh.after->next.rest);
  EXPECT_NE(before.after->next.rest, fresh.after->next.rest);
}

TEST_F(ProfilePanel, a_step_beside_itself_is_said_to_be) {
  import("slow", step_text(60));
  const TraceId fast = import("fast", step_text(20));
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  EXPECT_FALSE(ui_test_anchors::find("profile.same"));
  for (const char* side : {"profile.after.source", "profile.before.source"}) {
    ASSERT_TRUE(imgui.click(app, side));
    ASSERT_TRUE(imgui.click(app, "profile.source." + std::to_string(fast))) << side;
  }
  EXPECT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("profile.same").has_value(); }));
}

TEST_F(ProfilePanel, mouse_and_keys_and_search) {
  import("t", step_text(40));
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  imgui.frame(app);
  imgui.frame(app);
  const auto box = ui_test_anchors::find("profile.after").value();
  ImGuiIO& io = ImGui::GetIO();
  const auto corners_after = [&](const std::function<void()>& act) {
    act();
    imgui.frame(app);
    return imgui.frame(app);
  };
  const int all = corners_after([] {});
  io.AddMousePosEvent(box.x0 + (box.x1 - box.x0) * 0.9f, box.y0 + 50);  // over gelu
  const int near = corners_after([&] { io.AddMouseWheelEvent(0, 12); });
  EXPECT_LT(near, all) << "most slices are outside now";
  imgui.press(app, ImGuiKey_Home);
  io.AddMousePosEvent(box.x0 + 40, box.y0 + 29);  // the first row
  imgui.frame(app);
  for (const bool down : {true, false}) {
    io.AddMouseButtonEvent(0, down);
    for (int i = 0; i < 2; ++i) imgui.frame(app);
  }
  imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("profile.chosen"));
  ASSERT_TRUE(imgui.type(app, "profile.search", "gelu"));
  imgui.frame(app);
  EXPECT_STREQ(app.workspace().profile_state->view->after->slices->names.back().c_str(), "aten::gelu");
}

// Drags with the left button from one point to another. On a busy machine the last frame comes after everything.
void drag(Headless& imgui, DesktopApp& app, ImVec2 from, ImVec2 to, bool is_busy = false) {
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(from.x, from.y);
  imgui.frame(app);
  io.AddMouseButtonEvent(0, true);
  imgui.frame(app);
  io.AddMousePosEvent((from.x + to.x) / 2, (from.y + to.y) / 2);
  if (!is_busy) imgui.frame(app);
  io.AddMousePosEvent(to.x, to.y);
  if (!is_busy) imgui.frame(app);
  io.AddMouseButtonEvent(0, false);
  for (int i = 0; i < 3; ++i) imgui.frame(app);
}

TEST_F(ProfilePanel, a_drag_in_the_ruler_measures_and_one_in_the_rows_moves) {
  import("t", step_text(40));
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  for (int i = 0; i < 3; ++i) imgui.frame(app);
  const auto rows = ui_test_anchors::find("profile.after").value();
  const auto whole = ui_test_anchors::find("profile.icicle").value();
  const float width = rows.x1 - rows.x0;
  drag(imgui, app, {rows.x0 + width * 0.5f, rows.y0 + 60}, {rows.x0 + width * 0.4f, rows.y0 + 60});
  EXPECT_FALSE(ui_test_anchors::find("profile.range"));
  imgui.press(app, ImGuiKey_Home);
  drag(imgui, app, {rows.x0 + width * 0.25f, whole.y0 + 6}, {rows.x0 + width * 0.75f, whole.y0 + 6});
  EXPECT_TRUE(ui_test_anchors::find("profile.range")) << "the kinds of work are those of the range";
  ASSERT_TRUE(imgui.click(app, "profile.range.clear"));
  imgui.frame(app);
  EXPECT_FALSE(ui_test_anchors::find("profile.range"));
  drag(imgui, app, {rows.x0 + width * 0.25f, whole.y0 + 6}, {rows.x0 + width * 0.75f, whole.y0 + 6}, /*is_busy=*/true);
  EXPECT_TRUE(ui_test_anchors::find("profile.range")) << "moved and let go within one frame";
  ASSERT_TRUE(imgui.click(app, "profile.range.clear"));
  imgui.frame(app);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, true);
  imgui.frame(app);
  drag(imgui, app, {rows.x0 + width * 0.25f, rows.y0 + 60}, {rows.x0 + width * 0.5f, rows.y0 + 60});
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, false);
  EXPECT_TRUE(ui_test_anchors::find("profile.range")) << "with Shift, over the rows too";
  imgui.press(app, ImGuiKey_Escape);
  imgui.frame(app);
  EXPECT_FALSE(ui_test_anchors::find("profile.range"));
}

TEST_F(ProfilePanel, a_row_chooses_its_slices_columns_sort_and_enter_steps_through_hits) {
  import("t", step_text(40));
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  ASSERT_TRUE(imgui.click(app, "profile.row.1"));
  imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("profile.chosen"));
  ASSERT_TRUE(imgui.click(app, "profile.row.1"));
  imgui.frame(app);
  EXPECT_FALSE(ui_test_anchors::find("profile.chosen")) << "a second click chooses nothing";
  ASSERT_TRUE(imgui.click(app, "profile.sort.1"));
  ASSERT_TRUE(imgui.click(app, "profile.sort.4"));
  ASSERT_TRUE(imgui.click(app, "profile.search"));
  ImGui::GetIO().AddInputCharactersUTF8("addmm");
  imgui.frames(app);
  EXPECT_TRUE(ui_test_anchors::find("profile.hits.5 slices"));
  const auto step = [&](bool back) {
    if (back) ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, true);
    imgui.press(app, ImGuiKey_Enter);
    if (back) ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, false);
    imgui.frame(app);
  };
  step(false);
  EXPECT_TRUE(ui_test_anchors::find("profile.hits.1 of 5"));
  EXPECT_TRUE(ui_test_anchors::find("profile.chosen"));
  step(false);
  EXPECT_TRUE(ui_test_anchors::find("profile.hits.2 of 5"));
  step(true);
  step(true);
  EXPECT_TRUE(ui_test_anchors::find("profile.hits.5 of 5")) << "from the first to the last";
}

TEST_F(ProfilePanel, three_traces_are_beside_each_other) {
  for (const double us : {60.0, 40.0, 20.0}) import("t" + std::to_string(static_cast<int>(us)), step_text(us));
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  ASSERT_TRUE(imgui.click(app, "profile.more"));
  imgui.frame(app);
  ASSERT_TRUE(imgui.click(app, "profile.more.0"));
  ASSERT_TRUE(imgui.click(app, "profile.more.1"));
  const auto& view = app.workspace().profile_state->view;
  ASSERT_TRUE(imgui.frames_until(app, [&] { return view->several_names.size() == 3; }));
  EXPECT_EQ(view->several.step_ms.size(), 3U);
  imgui.press(app, ImGuiKey_Escape);
  ASSERT_TRUE(imgui.frames_until(app, [&] { return ui_test_anchors::find("profile.several").has_value(); }));
}

// A GPU's step of six kernels, four times; `jitter_us` makes its steps differ.
std::string gpu_steps(double kernel_us, double jitter_us) {
  std::vector<std::string> events;
  std::uint32_t call = 1;
  for (int step = 1; step <= 4; ++step) {
    const double start = step * 1000;
    events.push_back(cpu_step(step, start, 900));
    for (int i = 0; i < 6; ++i, ++call) {
      const double at = start + i * 140;
      events.push_back(op("aten::gelu", at, 20));
      events.push_back(launch(static_cast<int>(call), at + 5));
      events.push_back(kernel("gelu_kernel", 7, static_cast<int>(call), at + 10, kernel_us + step * jitter_us));
    }
  }
  return trace_of(events);
}

TEST_F(ProfilePanel, a_chosen_pair_stays_when_other_traces_come_in) {
  import("slow", step_text(60));
  import("fast", step_text(20));
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  const auto& view = app.workspace().profile_state->view;
  ASSERT_TRUE(is_shown(imgui, app));
  const auto drop = [&](const std::vector<std::string>& texts) {
    std::vector<std::string> files;
    for (const std::string& text : texts) {
      const std::filesystem::path file =
          folder_.path() / ("dropped" + std::to_string(std::hash<std::string>()(text)) + ".json");
      std::ofstream(file, std::ios::binary) << text;
      files.push_back(file.string());
    }
    const std::size_t wanted = view->sources.size() + texts.size();
    app.take_dropped(files);
    ASSERT_TRUE(imgui.frames_until(app, [&] { return view->sources.size() == wanted; }));
    for (int i = 0; i < 5; ++i) imgui.frame(app);
    ASSERT_TRUE(imgui.frames_until(app, [&] { return view && view->after; }));
  };
  drop({step_text(40)});
  ASSERT_TRUE(imgui.frames_until(app, [&] { return view->difference.has_value(); }));
  const std::int64_t before = view->before->side.id, after = view->after->side.id;
  drop({step_text(41)});
  drop({step_text(42), step_text(43), step_text(44)});
  drop({step_text(45), step_text(46)});
  EXPECT_EQ(view->before->side.id, before);
  EXPECT_EQ(view->after->side.id, after);
  EXPECT_EQ(view->sources.size(), 9U);
}

TEST_F(ProfilePanel, a_whole_trace_is_not_paired_with_a_step_and_a_chosen_such_pair_says_so) {
  const TraceId step = import("step", step_text(60));
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  const auto& view = app.workspace().profile_state->view;
  ASSERT_TRUE(is_shown(imgui, app));
  const std::filesystem::path file = folder_ / "whole.json";
  std::ofstream(file, std::ios::binary) << trace_of({op("aten::mm", 0, 500), op("aten::gelu", 600, 300)});
  app.take_dropped({file.string()});
  ASSERT_TRUE(imgui.frames_until(app, [&] { return view->after && view->after->name == "whole"; }));
  EXPECT_FALSE(view->before) << "nobody asked for this pair";
  store_.views().save(
      "both", R"({"format": 1, "panels": ["profile"], "states": {"profile": {"before": {"kind": 1, "id": )" +
                  std::to_string(step) + R"(}, "after": {"kind": 1, "id": )" + std::to_string(view->after->side.id) +
                  "}}}}");
  app.open_view("both");
  ASSERT_TRUE(imgui.frames_until(app, [&] { return ui_test_anchors::find("profile.unlike").has_value(); }));
  EXPECT_EQ(view->unlike, "These two aren't alike, so neither is better: whole is a whole trace, step one step.");
  EXPECT_FALSE(view->is_verdict());
}

TEST_F(ProfilePanel, a_difference_says_how_many_rows_are_beyond_noise) {
  import("one", gpu_steps(50, 5));
  import("other", gpu_steps(51, 5));
  import("slow", gpu_steps(100, 0.1));
  import("fast", gpu_steps(50, 0.1));
  const auto told = [&](TraceId before, TraceId after) {
    const ProfileView view = profile_view({.before = {.kind = ProfileSide::Kind::trace, .id = before},
                                           .after = {.kind = ProfileSide::Kind::trace, .id = after}},
                                          store_);
    return std::pair(clear_rows_text(view.difference.value()), view.is_verdict());
  };
  EXPECT_EQ(told(1, 2),
            std::pair(std::string("Nothing differs beyond the noise between the steps of each trace"), false));
  EXPECT_NE(told(3, 4).first.find("beyond the noise between"), std::string::npos);
  EXPECT_FALSE(told(3, 4).first.starts_with("Nothing"));
}

// The operator's column takes what the others leave, whatever the table's width was before.
TEST_F(ProfilePanel, the_column_of_operators_takes_the_rest_of_the_width) {
  import("slow", gpu_steps(100, 0.1));
  const TraceId fast = import("fast", gpu_steps(50, 0.1));
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  store_.views().save(
      "both",
      R"({"format": 1, "panels": ["profile"], "states": {"profile": {"before": {"kind": 1, "id": 1}, "after": {"kind": 1, "id": )" +
          std::to_string(fast) + "}}}}");
  app.open_view("both");
  const auto width_at = [&](float width, float height) {
    ImGui::GetIO().DisplaySize = ImVec2(width, height);
    for (int i = 0; i < 4; ++i) imgui.frame(app);
    const auto head = ui_test_anchors::find("profile.sort.3");
    return head ? head->x1 - head->x0 : 0;
  };
  ASSERT_TRUE(imgui.frames_until(app, [&] { return ui_test_anchors::find("profile.clear_rows").has_value(); }));
  const float wide = width_at(1600, 900);
  EXPECT_GT(wide, 150);
  width_at(1280, 720);
  EXPECT_FLOAT_EQ(width_at(1600, 900), wide);
}

TEST_F(ProfilePanel, a_trace_says_which_run_it_may_be_of_and_one_click_attaches_it) {
  const RunId run = store_.insert_finished({.name = "r",
                                            .source = "import",
                                            .created_at = 1'759'300'000,
                                            .started_at = 1'759'300'000,
                                            .ended_at = 1'759'300'900,
                                            .environment = R"({"host": "node1"})"},
                                           std::vector<StepRecord>{{.step = 1, .loss = 4, .dt_ms = 0.14}});
  const std::string text = step_text(40);
  const TraceId trace = import("t", R"({"baseTimeNanoseconds": 1759300074000000000, )" + text.substr(text.find('"')));
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  ASSERT_TRUE(imgui.click(app, "profile.attach." + std::to_string(run)));
  ASSERT_TRUE(imgui.frames_until(app, [&] { return store_.traces().find(trace)->run == run; }));
  ASSERT_TRUE(imgui.frames_until(app, [&] { return !ui_test_anchors::find("profile.owner"); }));
  imgui.press(app, ImGuiKey_Z, true);
  EXPECT_FALSE(store_.traces().find(trace)->run);
}

TEST_F(ProfilePanel, history_lists_traces_and_opens_one) {
  const TraceId first = import("first", step_text(60));
  import("second", step_text(20));
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"history"}});
  ASSERT_TRUE(imgui.click(app, "history.trace." + std::to_string(first)));
  ASSERT_TRUE(imgui.frames_until(app, [&] {
    const auto& view = app.workspace().profile_state->view;
    return view && view->after && view->after->name == "first";
  }));
}

TEST_F(ProfilePanel, the_example_is_one_click) {
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  ASSERT_TRUE(imgui.click(app, "profile.example"));
  const auto& view = app.workspace().profile_state->view;
  ASSERT_TRUE(imgui.frames_until(app, [&] { return view && view->difference.has_value(); }));
  EXPECT_EQ(view->before->name, "modded-nanogpt-before");
  EXPECT_EQ(view->after->name, "modded-nanogpt-after");
  EXPECT_EQ(view->after->spread.steps, 4);
  // The sums of the whole step are the profile's.
  const ShownProfile& shown = *view->after;
  const std::optional<StoredTrace> trace = store_.traces().find(shown.side.id);
  for (const TracedStep& step : trace->profile.steps) {
    if (step.step != shown.slices->step) continue;
    const KindArray sums = shown.sums->in({0, static_cast<double>(shown.slices->length_ns)});
    for (std::size_t kind = 0; kind < sums.size(); ++kind)
      EXPECT_NEAR(sums[kind], step.ms[kind], 1e-3) << to_string(static_cast<OperatorKind>(kind));
  }
}

TEST_F(ProfilePanel, a_trace_that_cannot_be_read_is_a_message_and_nothing_is_kept) {
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  const std::string good = step_text(40);
  const std::filesystem::path file = folder_ / "cut.json";
  std::ofstream(file, std::ios::binary) << good.substr(0, good.size() - 30);
  app.take_dropped({file.string()});
  ASSERT_TRUE(imgui.frames_until(app, [&] { return !app.messages().empty(); }));
  EXPECT_NE(app.messages().front().text.find("is cut off"), std::string::npos);
  EXPECT_TRUE(store_.traces().list().empty());
}

TEST_F(ProfilePanel, a_factor_opens_the_difference_or_says_what_is_missing) {
  const LadderId ladder = store_.create_ladder({.name = "l", .source = "import", .created_at = 1});
  std::vector<RunId> runs;
  for (int rung = 0; rung < 2; ++rung) {
    std::vector<StepRecord> steps;
    for (int i = 1; i <= 40; ++i) steps.push_back({.step = i, .loss = 4, .dt_ms = 10.0 - 4 * rung, .tokens = 1000});
    runs.push_back(store_.insert_finished(
        {.name = "r" + std::to_string(rung), .ladder = ladder, .rung = rung, .source = "import"}, steps));
  }
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"ladder"}});
  ASSERT_TRUE(imgui.frames_until(app, [&] { return ui_test_anchors::find("ladder.why.1.previous").has_value(); }));
  ASSERT_TRUE(imgui.click(app, "ladder.why.1.previous"));
  ASSERT_TRUE(imgui.frames_until(app, [&] { return ui_test_anchors::find("profile.empty").has_value(); }));
  EXPECT_TRUE(ui_test_anchors::find("profile.message")) << "both rungs are named, with what to do";
  const auto trace_rung = [&](int rung) {
    const std::filesystem::path file = folder_.path() / ("rung" + std::to_string(rung) + ".json");
    std::ofstream(file, std::ios::binary) << step_text(60 - 40 * rung);
    const ReadTrace read = read_traces({.files = {file.string()}, .run = runs[static_cast<std::size_t>(rung)]});
    keep_trace(store_.traces(), read.trace, read.process);
  };
  const auto ask_why = [&] {
    app.show("ladder");
    return imgui.click(app, "ladder.why.1.previous");
  };
  trace_rung(0);
  ASSERT_TRUE(ask_why());
  ASSERT_TRUE(imgui.frames_until(app, [&] {
    const auto& view = app.workspace().profile_state->view;
    return view && view->after.has_value();
  }));
  EXPECT_EQ(app.workspace().profile_state->view->after->name, "rung0") << "the rung that has one is shown alone";
  EXPECT_FALSE(app.workspace().profile_state->view->difference);
  imgui.frame(app);
  EXPECT_TRUE(ui_test_anchors::find("profile.message"));
  trace_rung(1);
  ASSERT_TRUE(ask_why());
  ASSERT_TRUE(imgui.frames_until(app, [&] {
    const auto& view = app.workspace().profile_state->view;
    return view && view->difference.has_value();
  }));
  imgui.frame(app);
  EXPECT_FALSE(ui_test_anchors::find("profile.message"));
  EXPECT_EQ(app.workspace().profile_state->view->before->name, "rung0");
  EXPECT_EQ(app.workspace().profile_state->view->after->name, "rung1");
}

TEST_F(ProfilePanel, a_trace_is_removed_and_brought_back_whole) {
  import("first", step_text(60));
  const TraceId second = import("second", step_text(20));
  const Anatomy anatomy = store_.traces().details().anatomy(second);
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  ASSERT_TRUE(is_shown(imgui, app));
  EXPECT_EQ(app.workspace().profile_state->view->after->name, "second") << "the newest";
  ASSERT_TRUE(imgui.click(app, "profile.after.source"));
  imgui.frame(app);
  ASSERT_TRUE(imgui.click(app, "profile.remove." + std::to_string(second)));
  ASSERT_TRUE(imgui.frames_until(app, [&] {
    const auto& view = app.workspace().profile_state->view;
    return view->sources.size() == 1 && view->after && view->after->name == "first";
  }));
  EXPECT_FALSE(store_.traces().find(second));
  imgui.press(app, ImGuiKey_Escape);
  imgui.press(app, ImGuiKey_Z, true);
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().profile_state->view->sources.size() == 2; }));
  const StoredTrace back = store_.traces().list().back();
  EXPECT_EQ(back.name, "second");
  EXPECT_EQ(store_.traces().details().anatomy(back.id).size(), anatomy.size());
  EXPECT_EQ(store_.traces().details().steps(back.id).size(), 1U);
  EXPECT_NEAR(mean_step_ms(store_.traces().find(back.id)->profile), 0.12, 1e-9);
}

StoredPasses passes_of(const std::string& name, double ms, bool is_synced = true) {
  StoredPasses passes{.name = name,
                      .measured_at = 1,
                      .host = name,
                      .hardware = "H",
                      .device = "cuda",
                      .model = "seed-small",
                      .batch = 2,
                      .seq = 64,
                      .vocab = 10'000,
                      .is_synced = is_synced};
  for (const char* computation : {"backward", "forward", "forward_backward"}) {
    for (const int warmup : {0, 1}) {
      const double cold = warmup == 0 ? 40 : 1;
      passes.rows.push_back({computation, "fp32", warmup, {ms + cold, ms, ms + 0.1, ms + 0.2, ms + 0.1}});
      ms += 1;
    }
  }
  return passes;
}

TEST_F(ProfilePanel, passes_are_shown_compared_copied_and_removed) {
  Headless imgui;
  DesktopApp app(store_, nullptr, {.panels = {"profile"}});
  const std::int64_t first = store_.traces().passes().insert(passes_of("desk", 20));
  const std::int64_t second = store_.traces().passes().insert(passes_of("server", 5));
  store_.traces().passes().insert(passes_of("server unsynced", 0.5, false));
  ASSERT_TRUE(imgui.frames_until(app, [&] { return ui_test_anchors::find("profile.passes.one").has_value(); }))
      << "without traces the passes are shown";
  const auto& view = app.workspace().profile_state->view;
  EXPECT_EQ(view->passes->kept.name, "server unsynced") << "the newest";
  ASSERT_FALSE(view->passes->sentences.empty());
  EXPECT_TRUE(view->passes->sentences.front().starts_with("Flagged no-sync"));
  ASSERT_TRUE(imgui.click(app, "profile.passes.copy"));
  EXPECT_NE(std::string(ImGui::GetClipboardText()).find("| forward | 1 | fp32 | 5 |"), std::string::npos)
      << ImGui::GetClipboardText();
  store_.views().save("both", R"({"format": 1, "panels": ["profile"], "states": {"profile": {"passes": )" +
                                  std::to_string(second) + R"(, "passes_before": )" + std::to_string(first) +
                                  R"(, "shows_passes": true}}})");
  app.open_view("both");
  ASSERT_TRUE(imgui.frames_until(app, [&] { return ui_test_anchors::find("profile.passes.compared").has_value(); }));
  EXPECT_EQ(view->compared_table.rows.size(), 6U);
  EXPECT_TRUE(view->compared_passes->sentences.empty()) << "the same model in both";
  EXPECT_NEAR(view->compared_passes->rows.front().factor(), 21.1 / 6.1, 1e-9);
  ASSERT_TRUE(imgui.click(app, "profile.passes.remove"));
  ASSERT_TRUE(imgui.frames_until(app, [&] { return view->all_passes.size() == 2; }));
  imgui.press(app, ImGuiKey_Z, true);
  ASSERT_TRUE(imgui.frames_until(app, [&] { return view->all_passes.size() == 3; }));
}

TEST(SliceSearch, steps_from_hit_to_hit_and_around) {
  StepSlices step{.length_ns = 100, .names = {"a", "b"}, .lanes = {{"thread 1", false}}};
  for (std::uint32_t depth = 0; depth < 2; ++depth) {
    SliceRow row{.lane = 0, .depth = depth, .slices = {}};
    for (int i = 0; i < 100; ++i)
      row.slices.push_back({.start_ns = i, .duration_ns = 1, .name = i % 50 == 7 ? 1U : 0U});
    step.rows.push_back(std::move(row));
  }
  const SliceIndex index(step);
  const SliceSearch search(step, index, std::vector<std::string>{"b"});
  ASSERT_EQ(search.count(), 4);
  std::optional<SlicePlace> at;
  std::vector<SlicePlace> places;
  for (int i = 0; i < 4; ++i) {
    at = search.next(at);
    places.push_back(*at);
    EXPECT_EQ(search.rank_of(*at), i + 1);
  }
  EXPECT_EQ(places, (std::vector<SlicePlace>{{0, 7}, {0, 57}, {1, 7}, {1, 57}}));
  EXPECT_EQ(search.next(at), places.front());
  for (int i = 4; i-- > 0;) {
    at = search.previous(i == 3 ? std::nullopt : at);
    EXPECT_EQ(*at, places[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(search.previous(at), places.back());
  EXPECT_FALSE(SliceSearch(index, "nothing").next({}));
}

TEST(SliceIndex, a_launch_is_joined_with_its_kernels_and_an_operator_with_those_of_its_launches) {
  const StepSlices step{.length_ns = 100,
                        .names = {"op", "launch", "kernel"},
                        .lanes = {{"stream 7", true}, {"thread 1", false}},
                        .rows = {{.lane = 0,
                                  .depth = 0,
                                  .slices = {{.start_ns = 50, .duration_ns = 9, .name = 2, .correlation = 1},
                                             {.start_ns = 60, .duration_ns = 9, .name = 2, .correlation = 2}}},
                                 {.lane = 1, .depth = 0, .slices = {{.start_ns = 0, .duration_ns = 20, .name = 0}}},
                                 {.lane = 1,
                                  .depth = 1,
                                  .slices = {{.start_ns = 5, .duration_ns = 1, .name = 1, .correlation = 1},
                                             {.start_ns = 10, .duration_ns = 1, .name = 1, .correlation = 2},
                                             {.start_ns = 30, .duration_ns = 1, .name = 1, .correlation = 3}}}}};
  const SliceIndex index(step);
  EXPECT_EQ(index.joined_with(step, {2, 0}, 10), (std::vector<SlicePlace>{{0, 0}}));
  EXPECT_EQ(index.joined_with(step, {0, 1}, 10), (std::vector<SlicePlace>{{2, 1}}));
  EXPECT_EQ(index.joined_with(step, {1, 0}, 10), (std::vector<SlicePlace>{{0, 0}, {0, 1}, {2, 0}, {2, 1}}));
  EXPECT_TRUE(index.joined_with(step, {2, 2}, 10).empty());
}

// A kernel alone, then beside communication, then communication alone, then nothing.
TEST(RangeSums, each_moment_counts_once) {
  const StepSlices step{
      .length_ns = 100,
      .names = {"gemm", "ncclDevKernel", "copy"},
      .lanes = {{"stream 7", true}, {"stream 9", true}},
      .rows = {{.lane = 0,
                .depth = 0,
                .slices = {{.start_ns = 10, .duration_ns = 30, .name = 0, .kind = OperatorKind::products}}},
               {.lane = 1,
                .depth = 0,
                .slices = {{.start_ns = 20, .duration_ns = 40, .name = 1, .kind = OperatorKind::communication}}}}};
  const RangeSums sums(step);
  const auto of = [&](OperatorKind kind, double from, double to) {
    return sums.in({from, to})[static_cast<std::size_t>(kind)] * 1e6;
  };
  EXPECT_NEAR(of(OperatorKind::products, 0, 100), 30, 1e-6);
  EXPECT_NEAR(of(OperatorKind::communication, 0, 100), 20, 1e-6) << "what is hidden costs nothing";
  EXPECT_NEAR(of(OperatorKind::idle, 0, 100), 50, 1e-6);
  EXPECT_NEAR(of(OperatorKind::products, 25, 30), 5, 1e-6);
  EXPECT_NEAR(of(OperatorKind::communication, 35, 55), 15, 1e-6);
  EXPECT_NEAR(of(OperatorKind::idle, -50, 5), 5, 1e-6) << "before the step there is nothing";
}

// A row's pieces cover what its slices cover, however many there are.
TEST(SliceLayout, a_million_slices_cost_as_much_as_the_row_has_pixels) {
  StepSlices step{.length_ns = 1'000'000'000, .names = {"a", "b"}, .lanes = {{"thread 1", false}}};
  SliceRow row{.lane = 0, .depth = 0, .slices = {}};
  for (int i = 0; i < 1'000'000; ++i)
    row.slices.push_back({.start_ns = i * 1000, .duration_ns = 500, .name = i == 777'777 ? 1U : 0U});
  step.rows.push_back(std::move(row));
  const SliceIndex index(step);
  const SliceSearch search(index, "B");
  EXPECT_EQ(search.count(), 1);
  std::vector<DrawnSlice> drawn;
  lay_out_row(step.rows[0], 0, index, search, {0, 1e9}, 1000, drawn);
  EXPECT_LT(drawn.size(), 600U);
  std::size_t slices = 0;
  int matches = 0;
  for (const DrawnSlice& piece : drawn) {
    slices += piece.count;
    matches += piece.is_match;
    EXPECT_FLOAT_EQ(piece.cover, 0.5f);
  }
  EXPECT_EQ(slices, 1'000'000U);
  EXPECT_EQ(matches, 1) << "the one slice that matches can't vanish";
  drawn.clear();
  const SliceSearch frequent(index, "a");
  EXPECT_EQ(frequent.count(), 999'999);
  lay_out_row(step.rows[0], 0, index, frequent, {777'777'000, 777'778'000}, 1000, drawn);
  ASSERT_EQ(drawn.size(), 1U);
  EXPECT_FALSE(drawn[0].is_match);
  drawn.clear();
  lay_out_row(step.rows[0], 0, index, frequent, {777'776'000, 777'777'000}, 1000, drawn);
  ASSERT_EQ(drawn.size(), 1U);
  EXPECT_TRUE(drawn[0].is_match);
  // The kind of most of the time is drawn, however far out.
  for (std::size_t i = 0; i < step.rows[0].slices.size(); ++i)
    step.rows[0].slices[i].kind = i < 600'000 ? OperatorKind::products : OperatorKind::optimizer;
  drawn.clear();
  lay_out_row(step.rows[0], 0, SliceIndex(step), {}, {0, 1e9}, 1000, drawn);
  ASSERT_EQ(drawn.size(), 2U) << "neighbours of one kind are one piece";
  EXPECT_EQ(drawn[0].kind, OperatorKind::products);
  EXPECT_EQ(drawn[1].kind, OperatorKind::optimizer);
  EXPECT_FLOAT_EQ(drawn[1].x0, 600);
  drawn.clear();
  lay_out_row(step.rows[0], 0, index, {}, {500'000'000, 500'010'000}, 1000, drawn);
  ASSERT_EQ(drawn.size(), 10U);
  EXPECT_EQ(drawn[3].first, 500'003U);
  EXPECT_FLOAT_EQ(drawn[3].x0, 300);
  EXPECT_FLOAT_EQ(drawn[3].x1, 350);
  EXPECT_EQ(slice_at(step.rows[0], 5'200, 0)->start_ns, 5'000);
  EXPECT_EQ(slice_at(step.rows[0], 5'700, 0), nullptr);
  EXPECT_EQ(slice_at(step.rows[0], 5'900, 200)->start_ns, 6'000);
}

TEST(TracedRun, AnAnswerWithoutATraceIsSaidInWords) {
  EXPECT_EQ(traced_run({{"id", 3}, {"name", "step"}}, 7).id, 3);
  for (const nlohmann::json& answer : {nlohmann::json::object(), nlohmann::json{{"id", "3"}}}) {
    try {
      traced_run(answer, 7);
      FAIL();
    } catch (const StorageError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("Run 7 was traced, but the answer names no trace"));
    }
  }
}

}  // namespace
}  // namespace stepladder
