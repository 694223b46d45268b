// Draws the selected runs' curves beneath History's table: every step of a few runs that aren't long, overviews of
// more. The zoomed part of an overview is read finely for up to eight runs only.
#include "app/panels/history/overlay.h"

#include <imgui.h>

#include <algorithm>
#include <array>

#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/models/run_points.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

struct OverlayMetric {
  const char* title;
  Quantity quantity;
  const char* unit;
};
constexpr std::array<OverlayMetric, history_metrics> metrics{{{"Loss", Quantity::loss, ""},
                                                              {"Throughput", Quantity::tokens_per_s, "tokens/s"},
                                                              {"Step time", Quantity::dt_ms, "ms"}}};

constexpr std::size_t few = 8;
constexpr std::int64_t most_steps_drawn = 20'000;  // of a run whose steps are read: a click shows them at once

void draw_selection_bar(HistoryOverlay& overlay, const HistoryRows& list, TagPopup& tags, const Workspace& workspace,
                        Commands& commands) {
  const auto [entries, hidden] = selection_of(workspace, list);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (i > 0) same_line(4);
    ImGui::PushStyleColor(ImGuiCol_Button, i == overlay.metric ? faded(palette().accent, 0.2f) : ImVec4(0, 0, 0, 0));
    ImGui::PushStyleColor(ImGuiCol_Border, ImVec4(0, 0, 0, 0));
    if (ImGui::Button(metrics[i].title)) overlay.metric = i;
    ImGui::PopStyleColor(2);
    mark("history.metric." + std::to_string(i));
  }
  same_line(20);
  ImGui::AlignTextToFramePadding();
  text_quiet(plural(entries.size() + hidden, "run") + " selected" +
             (hidden > 0 ? ", " + grouped(hidden) + " hidden" : ""));
  if (hidden > 0) {
    mark("history.hidden");
    wrapped_tooltip("The filter hides them, or they are archived. Tag, Pin, Archive and Delete don't change them.",
                    px(320));
  }
  flow_to("Compare");
  if (quiet_button("Compare", "history.compare")) commands.push_back(ShowPanel{"compare"});
  ImGui::BeginDisabled(entries.empty());
  flow_to("Tag");
  if (change_button(workspace, "Tag", "history.tag")) tags.open = true;
  tags.draw(entries, commands);
  flow_to("Pin");
  if (change_button(workspace, "Pin", "history.pin")) pin_runs(entries, commands);
  flow_to("Archive");
  if (change_button(workspace, "Archive", "history.archive")) archive_runs(entries, commands);
  flow_to("Delete");
  if (change_button(workspace, "Delete", "history.delete", "Moves to the bin; recoverable for 30 days"))
    delete_runs(entries, commands);
  ImGui::EndDisabled();
  flow_to("Clear selection");
  if (quiet_button("Clear selection", "history.clear")) commands.push_back(ClearSelection{});
}

}  // namespace

void draw_history_overlay(HistoryOverlay& overlay, const HistoryRows& list, TagPopup& tags, const Workspace& workspace,
                          Commands& commands) {
  draw_selection_bar(overlay, list, tags, workspace, commands);
  OverlayMetric metric = metrics[overlay.metric];
  std::string title = metric.title;
  if (metric.quantity == Quantity::tokens_per_s) {
    const std::vector<const RunEntry*> entries = selection_of(workspace, list).listed;
    overlay.logged.update(workspace, entries, commands.data);
    if (std::ranges::none_of(entries, has_step_throughput)) metric.quantity = overlay.logged.throughput();
    if (!is_field(metric.quantity)) title = "Throughput as logged";
  }
  const std::vector<int> colours =
      workspace.colours_of({workspace.selection.runs.begin(), workspace.selection.runs.end()});
  std::size_t place = 0;
  Chart chart{.id = "overlay",
              .title = title,
              .x_label = "step",
              .unit = metric.unit,
              .from_zero = metric.quantity != Quantity::loss,
              .falls = metric.quantity == Quantity::loss,
              .shared = &overlay.x,
              .commands = &commands};
  const std::size_t count = workspace.selection.runs.size();
  std::int64_t behind = 0;  // values that are drawn as means and range of their neighbours
  for (const RunId id : workspace.selection.runs) {
    const int colour = colours[place++];
    const RunEntry* entry = workspace.find(id);
    if (!entry) continue;
    const bool in_legend = count <= few;
    const bool has_namesake = in_legend && std::ranges::any_of(workspace.selection.runs, [&](RunId other) {
                                const RunEntry* same = workspace.find(other);
                                return other != id && same && same->run.name == entry->run.name;
                              });
    Curve curve{
        .label = entry->run.name + (has_namesake ? ", run " + std::to_string(id) : "") + "##" + std::to_string(id),
        .colour = rung_colour(colour),
        .weight = count > 12 ? 1.0f : 1.7f,
        .in_legend = in_legend,
        .order = static_cast<int>(place),
        .number = colour,
        .stands_out = id == workspace.selection.shown_run};
    const bool shows_steps = count <= few && !entry->is_active() && entry->summary.steps <= most_steps_drawn;
    const RunPoints points = run_points(workspace, *entry, metric.quantity, count <= few ? &overlay.x : nullptr,
                                        commands.data, shows_steps ? Reads::steps : Reads::overview);
    if (!points.levels) continue;
    points.draw_as(curve);
    behind += points.behind;
    chart.curves.push_back(std::move(curve));
  }
  chart.note = behind_text(behind);
  draw_chart(chart);
}

}  // namespace stepladder
