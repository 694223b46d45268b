// Run: one run in full. Its figures and their plausibility, its recipe and environment (or only the differences from
// another run's), its console, samples and checkpoints, and buttons to run it again.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/desktop/metrics/chart_groups.h"
#include "app/desktop/metrics/metric_charts.h"
#include "app/desktop/metrics/metric_list.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/step_source.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/run/head.h"
#include "app/panels/run/parts.h"
#include "app/text/format.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

enum class Tab { recipe, steps, metrics, operators, environment, machine, console, samples, checkpoints, note };
constexpr auto tab_names = by_enum<Tab>("Recipe", "Steps", "Metrics", "Operators", "Environment", "Machine", "Console",
                                        "Samples", "Checkpoints", "Note");

struct LoggedMetrics {
  MetricList list;
  FoldedGroups folded;
  std::array<char, 128> search{};  // part of a name, or a pattern (is_meant)
};

struct State {
  RunId shown = 0;
  Tab tab = Tab::recipe;
  RunHead head;
  RunFigures figures;
  FactsShown facts;
  RunOperators operators;
  LoggedMetrics logged;
  MachineMetrics metrics;
  RunNote note;
  StepSource steps;
  int sample = -1;  // -1: the newest
  SharedX x;
};

// A small chart of each number that the run logged beside its steps' fields, also while it grows, with the run that it
// is compared with (or null). Reads the metrics that are on the screen.
void draw_metrics(LoggedMetrics& logged, SharedX& shared, const Workspace& workspace, const RunEntry& shown,
                  const RunEntry* against, Commands& commands) {
  auto& [list, folded, search] = logged;
  list.update(workspace, {&shown}, commands.data);
  if (list.all().empty()) {
    if (list.is_complete())
      empty_state("No other metrics", "Numbers that a script or log names appear here: val/acc, reward.");
    return;
  }
  ImGui::SetNextItemWidth(px(260));
  ImGui::InputTextWithHint("##search", "Search, or a pattern: val/*", search.data(), search.size());
  mark("run.metric_search");
  const std::vector<Quantity> found = list.meant_by(search.data());
  same_line(10);
  ImGui::AlignTextToFramePadding();
  text_quiet((found.empty() ? "No matches" : plural(std::ssize(found), "metric")) +
             (list.is_cut() ? " of the first " + grouped(most_listed_metrics) + " by name" : ""));
  std::vector<MetricLine> lines;
  if (against)
    lines.push_back({against, {.label = against->run.name, .colour = faded(palette().quiet, 0.7f), .weight = 1}});
  lines.push_back(
      {&shown,
       {.label = shown.run.name + "##own", .colour = rung_colour(workspace.colour_of(shown.run)), .weight = 1.6f}});
  draw_metric_charts(found, list, {.lines = lines}, folded, shared, workspace, commands);
}

void show_run(State& state, const Workspace& workspace, const RunEntry& entry, Commands& commands) {
  state.shown = entry.run.id;
  state.x = {};
  state.head.renaming = false;
  state.sample = -1;
  state.metrics.made_of = 0;
  state.note.show(entry, commands);
  state.facts.against = compared_with(entry, workspace);
}

// All steps or, of a very long run, those of the excerpt.
void draw_steps(StepSource& steps, const RunEntry& shown, Commands& commands) {
  const StepOrigin origin{.file = shown.run.source == "import" ? shown.run.source_path : "", .text = {}, .options = {}};
  if (shown.is_long() && !shown.excerpt) return commands.data.excerpts.push_back({shown.run.id});
  if (!shown.is_long() && !shown.loaded) return commands.data.series.push_back(shown.run.id);
  if (shown.is_long())
    text_quiet(grouped(std::ssize(shown.excerpt->step)) + " of " + grouped(shown.summary.steps) + " steps");
  steps.draw(shown.run, shown.is_long() ? *shown.excerpt : shown.series(), origin, 0, commands.data);
}

void draw_tabs(State& state, const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(6), ImGui::GetStyle().FramePadding.y));  // one line at 1280
  for (const Tab tab : enumerators<Tab>()) {
    if (tab != Tab::recipe) flow_to(tab_names[tab], 4);
    const bool on = state.tab == tab;
    ImGui::PushStyleColor(ImGuiCol_Button, on ? faded(palette().accent, 0.2f) : ImVec4(0, 0, 0, 0));
    ImGui::PushStyleColor(ImGuiCol_Border, ImVec4(0, 0, 0, 0));
    if (ImGui::Button(tab_names[tab])) state.tab = tab;
    ImGui::PopStyleColor(2);
    mark(std::string("run.tab.") + tab_names[tab]);
  }
  ImGui::PopStyleVar();
  spacing(2);
  const RunDetail* detail = workspace.detail(shown.run.id);
  static const RunDetail none;
  switch (state.tab) {
    case Tab::recipe:
      return state.facts.draw_recipe(workspace, shown);
    case Tab::steps:
      return draw_steps(state.steps, shown, commands);
    case Tab::metrics:
      return draw_metrics(state.logged, state.x, workspace, shown, workspace.find(state.facts.against), commands);
    case Tab::operators:
      return draw_run_operators(state.operators, workspace, shown, workspace.find(state.facts.against), commands);
    case Tab::environment:
      return state.facts.draw_environment(workspace, shown);
    case Tab::machine:
      return draw_run_machine(state.metrics, state.x, detail ? *detail : none, commands);
    case Tab::console:
      return draw_run_console(detail ? *detail : none);
    case Tab::samples:
      return draw_run_samples(state.sample, detail ? *detail : none);
    case Tab::checkpoints:
      return draw_run_checkpoints(workspace, shown, detail ? *detail : none, commands);
    case Tab::note:
      return state.note.draw(workspace, shown, commands);
  }
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  const RunEntry* shown = workspace.current_run();
  if (!shown) {
    text_title("Run");
    start_here(workspace, commands, "No run yet. A run's details appear here.");
    return;
  }
  if (shown->run.id != state.shown) show_run(state, workspace, *shown, commands);
  if (!workspace.detail(shown->run.id)) commands.data.details.push_back(shown->run.id);
  state.x.begin_frame();
  state.head.draw(workspace, *shown, commands);
  spacing(2);
  draw_run_actions(workspace, *shown, commands);
  const RunDetail* detail = workspace.detail(shown->run.id);
  static const RunDetail none;
  if (draw_run_end(workspace, *shown, detail ? *detail : none, commands)) state.tab = Tab::console;
  spacing(4);
  state.figures.draw(workspace, *shown, commands);
  spacing(4);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const float side = std::clamp(room.x * 0.29f, px(240), px(460));
  const float left = room.x - side - gap;
  const float top = room.y;
  const float charts = (top - gap) * 0.5f;
  ImGui::BeginGroup();
  draw_run_charts(state.x, workspace, *shown, workspace.find(state.facts.against), ImVec2(left, charts), commands);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + gap - ImGui::GetStyle().ItemSpacing.y);
  begin_card("##tabs", ImVec2(left, 0), true);
  draw_tabs(state, workspace, *shown, commands);
  end_card();
  ImGui::EndGroup();
  ImGui::SameLine(0, gap);
  begin_card("##belief", ImVec2(0, top), true);
  draw_run_belief(workspace, *shown, detail);
  end_card();
}

void show_tab(State& state, const std::string& name) {
  state.tab = tab_names.find(name).value_or(state.tab);
}

std::string remember(const State& state) {
  const nlohmann::json json{{"tab", tab_names[state.tab]}, {"folded", to_json(state.logged.folded)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void recall(State& state, const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) json = {{"tab", text}};  // as older versions wrote it
  const auto tab = json.find("tab");
  if (tab != json.end() && tab->is_string()) show_tab(state, tab->get<std::string>());
  if (const auto folded = json.find("folded"); folded != json.end()) state.logged.folded = folded_from(*folded);
}

nlohmann::json view_of(const State& state) {
  return {{"tab", tab_names[state.tab]}, {"metrics", state.logged.search.data()}};
}

void show_view(State& state, const nlohmann::json& json) {
  try {
    show_tab(state, json.value("tab", std::string()));
    const std::string search = json.value("metrics", std::string(state.logged.search.data()));
    std::snprintf(state.logged.search.data(), state.logged.search.size(), "%s", search.c_str());
  } catch (const nlohmann::json::exception&) {  // from another version: the rest stays
  }
}

}  // namespace

Panel panels::run() {
  const auto state = std::make_shared<State>();
  return {.id = "run",
          .title = "Run",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .leave = [state](Commands& commands) { state->note.keep(commands); },
          .remember = [state] { return remember(*state); },
          .recall = [state](const std::string& text) { recall(*state, text); },
          .view = [state](const Workspace&) { return view_of(*state); },
          .show_view = [state](const nlohmann::json& json, const Workspace&) { show_view(*state, json); },
          .least_width = 660,
          .least_height = 580};
}

}  // namespace stepladder
