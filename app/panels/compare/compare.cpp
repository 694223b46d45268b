// Compare: any runs in one chart, over any x axis; their differences from one of them; and figures of the visible part.
#include <imgui.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/charts/chart_export.h"
#include "app/desktop/panel.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/compare/charts.h"
#include "app/panels/compare/controls.h"
#include "app/panels/compare/numbers.h"
#include "app/panels/compare/view.h"

namespace stepladder {
namespace {

struct State {
  CompareView view;
  CompareTable table;
  RunSearch search{};
  bool list_was_open = false;  // a list or a menu, in the last frame
};

std::string remember(const CompareView& view) {
  const ComparisonOptions& o = view.options;
  nlohmann::json json{{"axis", static_cast<int>(o.axis)},
                      {"ratio", o.gap == Gap::ratio},
                      {"log_x", view.log_x},
                      {"log_y", view.log_y},
                      {"mean", o.mean},
                      {"smoothing", o.smoothing},
                      {"base", view.base}};
  for (const Quantity metric : o.metrics) json["metrics"].push_back(static_cast<int>(metric));
  if (view.x.zoomed()) json["zoom"] = {view.x.low, view.x.high};
  return json.dump();
}

void recall(CompareView& view, const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    ComparisonOptions& o = view.options;
    const auto known = [](int value, std::size_t count) { return value >= 0 && value < static_cast<int>(count); };
    if (const int axis = json.value("axis", 0); known(axis, all_axes.size())) o.axis = static_cast<Axis>(axis);
    o.gap = json.value("ratio", false) ? Gap::ratio : Gap::difference;
    view.log_x = json.value("log_x", false);
    view.log_y = json.value("log_y", false);
    o.mean = json.value("mean", false);
    o.smoothing = std::clamp(json.value("smoothing", 0.0f), 0.0f, 0.99f);
    view.base = json.value("base", RunId{0});
    const std::vector<int> metrics = json.value("metrics", std::vector<int>{});
    for (std::size_t i = 0; i < std::min(metrics.size(), o.metrics.size()); ++i) {
      if (known(metrics[i], all_quantities.size())) o.metrics[i] = static_cast<Quantity>(metrics[i]);
    }
    if (const auto zoom = json.value("zoom", std::vector<double>{}); zoom.size() == 2 && zoom[0] < zoom[1]) {
      view.x.low = zoom[0];
      view.x.high = zoom[1];
    }
  } catch (const nlohmann::json::exception&) {  // from another version: the defaults remain
  }
}

// Four charts in two rows, and the table beneath them.
void draw_cards(State& state, Commands& commands) {
  CompareView& view = state.view;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const float down = gap - ImGui::GetStyle().ItemSpacing.y;
  const float wanted = px(62) + px(33) * static_cast<float>(view.lines().size());
  const float table = std::clamp(wanted, px(100), room.y * 0.3f);
  const float charts = room.y - table - gap;
  const float left = (room.x - gap) * 0.5f;
  const float upper = (charts - gap) * 0.56f;
  const float lower = charts - gap - upper;
  draw_compared_metric(view, 0, "##first", ImVec2(left, upper), commands);
  ImGui::SameLine(0, gap);
  draw_compared_gap(view, ImVec2(0, upper), commands);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + down);
  draw_compared_metric(view, 1, "##second", ImVec2(left, lower), commands);
  ImGui::SameLine(0, gap);
  draw_compared_metric(view, 2, "##third", ImVec2(0, lower), commands);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + down);
  begin_card("##table", ImVec2(0, 0));
  state.table.draw(view, commands);
  end_card();
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  CompareView& view = state.view;
  const std::vector<const RunEntry*> runs = workspace.compared();
  draw_compare_head(state.search, workspace, runs.size(), commands);
  if (runs.empty()) {
    if (workspace.runs().empty()) {
      empty_state("No runs yet", "Curves of several runs appear here. Launch a ladder, or drop a log on the window.");
    } else {
      empty_state("No run selected", "Click Choose runs at the top right, or select runs in History.");
    }
    return;
  }
  view.x.begin_frame();
  // The key that closes a list doesn't remove the cursors too; ImGui has closed the list before this frame.
  const bool had_list = std::exchange(state.list_was_open, ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopup));
  if (ImGui::IsKeyPressed(ImGuiKey_Escape) && !had_list && !ImGui::GetIO().WantTextInput) view.x.a = view.x.b = missing;
  if (view.shown.update(workspace, runs, view.base, view.options, view.x, commands)) {
    view.caption = caption_of(runs);
    state.table.forget();
  }
  if (view.lines().empty()) {
    empty_state("Computing...", "The curves of these runs appear here in a moment.");
    return;
  }
  ImGui::Dummy(ImVec2(0, px(2)));
  draw_compare_controls(view);
  ImGui::Dummy(ImVec2(0, px(4)));
  draw_cards(state, commands);
}

}  // namespace

Panel panels::compare() {
  const auto state = std::make_shared<State>();
  return {.id = "compare",
          .title = "Compare",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .remember = [state] { return remember(state->view); },
          .recall = [state](const std::string& text) { recall(state->view, text); },
          .least_width = 640,
          .least_height = 680};
}

}  // namespace stepladder
