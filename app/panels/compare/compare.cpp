// Compare: any runs in one chart, over any x axis; their differences from one of them; and figures of the visible part.
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/charts/chart_export.h"
#include "app/desktop/models/run_columns.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/views/shared_x.h"
#include "app/desktop/views/view_commands.h"
#include "app/desktop/widgets.h"
#include "app/panels/compare/charts.h"
#include "app/panels/compare/controls.h"
#include "app/panels/compare/numbers.h"
#include "app/panels/compare/view.h"
#include "app/runs/saved_view.h"

namespace stepladder {
namespace {

// What the charts were put together of, besides curves and colours of lines.
struct DrawnLook {
  RunId highlighted = 0;
  std::set<RunId> hidden;
  bool is_dark = false;
  std::uint64_t metrics = 0;  // MetricList::version
  friend bool operator==(const DrawnLook&, const DrawnLook&) = default;
};

struct State {
  CompareView view;
  CompareTable table;
  CompareFields fields;
  DrawnLook drawn;
  bool list_was_open = false;                            // a list or a menu, in the last frame
  std::optional<std::string> project;                    // the database that the hidden lines are of
  std::map<std::string, std::set<RunId>> hidden_before;  // by project, as last saved
};

// Runs are numbered by project, so the hidden lines are kept for each.
void take_project(State& state, const std::string& database) {
  if (state.project == database) return;
  state.project = database;
  state.view.hidden.hide_only(state.hidden_before[database]);
}

nlohmann::json state_of(const CompareView& view) {
  const ComparisonOptions& o = view.options;
  nlohmann::json json{{"axis", static_cast<int>(o.axis)},
                      {"ratio", o.gap == Gap::ratio},
                      {"log_x", view.log_x},
                      {"log_y", view.log_y},
                      {"group_by", o.group_by},
                      {"smoothing", o.smoothing},
                      {"zoom", zoom_of(view.x)},
                      {"charts", to_json(view.grid)},
                      {"folded", to_json(view.folded)},
                      {"target", nullptr}};
  if (!is_missing(view.target.value)) json["target"] = view.target.value;
  return json;
}

std::string remember(const State& state) {
  auto hidden = state.hidden_before;
  if (state.project) hidden[*state.project] = state.view.hidden.lines();
  std::erase_if(hidden, [](const auto& of_project) { return of_project.second.empty(); });
  nlohmann::json json = state_of(state.view);
  json["base"] = state.view.base;
  json["hidden"] = hidden;
  for (const char* none : {"zoom", "target"})
    if (json[none].is_null()) json.erase(none);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Fields that `json` doesn't mention stay.
void show_state(CompareView& view, const nlohmann::json& json) {
  ComparisonOptions& o = view.options;
  const int axis = json.value("axis", static_cast<int>(o.axis));
  if (axis >= 0 && axis < static_cast<int>(all_axes.size())) o.axis = static_cast<Axis>(axis);
  o.gap = json.value("ratio", o.gap == Gap::ratio) ? Gap::ratio : Gap::difference;
  view.log_x = json.value("log_x", view.log_x);
  view.log_y = json.value("log_y", view.log_y);
  const std::string group_by = json.value("group_by", o.group_by);
  if (group_by.empty() || group_by == group_by_rung || group_by.starts_with(group_by_recipe)) o.group_by = group_by;
  o.smoothing = std::clamp(json.value("smoothing", o.smoothing), 0.0f, 0.99f);
  if (json.contains("zoom")) view.x = shared_x_from(json["zoom"]);
  if (json.contains("target")) view.target.value = json["target"].is_number() ? json["target"].get<double>() : missing;
  if (json.contains("charts")) view.grid = grid_from(json["charts"]);
  if (json.contains("folded")) view.folded = folded_from(json["folded"]);
}

void recall(State& state, const std::string& text) {
  CompareView& view = state.view;
  try {
    nlohmann::json json = nlohmann::json::parse(text);
    // Earlier versions kept several arrangements by name.
    if (auto& charts = json["charts"]; charts.is_object() && charts.contains("now")) {
      const nlohmann::json saved = charts.value("saved", nlohmann::json::object());
      for (const auto& [name, grid] : saved.items()) view.old_layouts[name] = grid_from(grid);
      charts = nlohmann::json(charts["now"]);
    }
    show_state(view, json);
    view.base = json.value("base", RunId{0});
    state.hidden_before = json.value("hidden", state.hidden_before);
  } catch (const nlohmann::json::exception&) {  // from another version: the defaults remain
  }
}

nlohmann::json view_of(const CompareView& view) {
  nlohmann::json json = state_of(view);
  json["base"] = run_reference(view.base);
  json["hidden"] = nlohmann::json::array();
  for (const RunId line : view.hidden.lines()) json["hidden"].push_back(run_reference(line));
  return json;
}

void show_view(State& state, const nlohmann::json& json) {
  try {
    show_state(state.view, json);
    if (json.contains("base")) state.view.base = run_in(json["base"]);
    if (const auto hidden = json.find("hidden"); hidden != json.end() && hidden->is_array()) {
      std::set<RunId> lines;
      for (const nlohmann::json& line : *hidden)
        if (run_in(line) != 0) lines.insert(run_in(line));
      state.view.hidden.hide_only(std::move(lines));
    }
  } catch (const nlohmann::json::exception&) {  // from another version: the rest stays
  }
}

// Turns arrangements of earlier versions into saved views with these charts alone.
void save_old_layouts(CompareView& view, Commands& commands) {
  for (const auto& [name, grid] : std::exchange(view.old_layouts, {})) {
    const nlohmann::json charts{{"charts", to_json(grid)}};
    const SavedView saved{.panels = {"compare"}, .states = {{"compare", charts}}, .selects = false, .runs = {}};
    commands.push_back(SaveViewAs{name, text_of(saved)});
  }
}

// The charts, and the table beneath them.
void draw_cards(State& state, Commands& commands) {
  CompareView& view = state.view;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float head = px(view.shown.unjudged > 0 ? 76 : 56), row = px(33);  // of the table, with its card's padding
  const float wanted = head + row * static_cast<float>(view.lines().size());
  // Five rows and readable charts, then the view scrolls.
  constexpr float readable_row = 190;
  const float between = ImGui::GetStyle().ItemSpacing.y;
  const float least = head + row * static_cast<float>(std::min<std::size_t>(view.lines().size(), 5));
  const float grid = grid_height(view, readable_row);
  const float most = std::max(least, std::min(room.y * 0.45f, room.y - grid - between));
  const float table = head + row * std::floor((std::clamp(wanted, least, most) - head) / row);  // whole rows
  draw_chart_grid(view, ImVec2(room.x, std::max(grid, room.y - table - between)), commands);
  begin_card("##table", ImVec2(0, table));
  state.table.draw(view);
  end_card();
}

// The metrics to compute, those of the arrangement, and the target.
void ask_for_curves(CompareView& view, const std::vector<const RunEntry*>& runs) {
  view.seen.begin_frame();
  view.throughput = std::ranges::any_of(runs, has_step_throughput) ? Quantity::tokens_per_s : view.metrics.throughput();
  view.options.metrics = view.seen.of(view.grid.metrics());
  for (Quantity& metric : view.options.metrics) metric = view.drawn(metric);
  view.options.on_screen = view.seen.on_screen();
  if (view.options.metrics.empty()) view.options.metrics = {Quantity::loss};
  view.options.target_loss = view.target.value;
  view.options.rows_on_screen = std::exchange(view.rows_drawn, {});
}

// Has the charts put together again what they draw, unless of very many lines nothing has changed since the last frame.
void renew_charts(State& state, const Workspace& workspace, bool has_new_curves) {
  CompareView& view = state.view;
  std::vector<RunId> lines;
  for (const ComparedLine& line : view.lines()) lines.push_back(line.id());
  std::vector<int> colours = workspace.colours_of(lines);
  DrawnLook now{.highlighted = view.highlighted,
                .hidden = view.hidden.lines(),
                .is_dark = theme_is_dark(),
                .metrics = view.metrics.version()};
  const bool is_same =
      lines.size() > most_judged_together && !has_new_curves && colours == view.colours && now == state.drawn;
  if (is_same) return;
  ++view.look;
  view.colours = std::move(colours);
  state.drawn = std::move(now);
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  CompareView& view = state.view;
  take_project(state, workspace.database);
  save_old_layouts(view, commands);
  const std::vector<const RunEntry*> runs = workspace.compared();
  draw_compare_head(state.fields, view, workspace, runs.size(), commands);
  if (runs.empty()) {
    if (workspace.runs().empty()) {
      start_here(workspace, commands, "No runs yet. Curves of several runs appear here.");
    } else {
      empty_state("No run selected", "Click Choose runs at the top right, or select runs in History.");
    }
    return;
  }
  view.x.begin_frame();
  view.target.begin_frame();
  view.highlighted = std::exchange(view.hovered, 0);
  // The key that closes a list doesn't remove the cursors too; ImGui has closed the list before this frame.
  const bool had_list = std::exchange(state.list_was_open, ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopup));
  if (ImGui::IsKeyPressed(ImGuiKey_Escape) && !had_list && !ImGui::GetIO().WantTextInput) view.x.a = view.x.b = missing;
  view.metrics.update(workspace, runs, commands.data);
  ask_for_curves(view, runs);
  const bool is_new = view.shown.update(workspace, runs, baseline_among(runs, view.base, workspace), view.options,
                                        view.x, commands.data);
  if (is_new) {
    view.caption = caption_of(runs);
    state.table.forget();
  }
  if (view.lines().empty()) {
    empty_state("Computing...", "The curves of these runs appear here in a moment.");
    return;
  }
  renew_charts(state, workspace, is_new);
  spacing(2);
  draw_compare_controls(state.fields, view, workspace, runs);
  spacing(4);
  draw_compare_legend(view);
  draw_cards(state, commands);
  draw_line_menu(view, workspace, commands);
}

}  // namespace

Panel panels::compare() {
  const auto state = std::make_shared<State>();
  return {.id = "compare",
          .title = "Compare",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .remember = [state] { return remember(*state); },
          .recall = [state](const std::string& text) { recall(*state, text); },
          .view =
              [state](const Workspace& workspace) {
                take_project(*state, workspace.database);
                return view_of(state->view);
              },
          .show_view =
              [state](const nlohmann::json& json, const Workspace& workspace) {
                take_project(*state, workspace.database);
                show_view(*state, json);
              },
          .least_width = 640,
          .least_height = 680};
}

}  // namespace stepladder
