// A trace isn't a run: it has no loss, and its step is slowed by the profiler. So traces have rows of their own.
#include "app/panels/history/traces.h"

#include <imgui.h>

#include <algorithm>
#include <vector>

#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/profile/difference_text.h"
#include "app/text/format.h"
#include "storage/name_pattern.h"

namespace stepladder {
namespace {

constexpr float row_height = 24, cell_size = 13.5f;
constexpr std::size_t most_in_sight = 4;

// The newest first.
std::vector<const StoredTrace*> found(const Workspace& workspace, const std::string& filter) {
  const bool has_conditions = filter.find_first_of("=<>~") != std::string::npos;
  const std::string wanted = has_conditions ? "" : lower_case(filter);
  std::vector<const StoredTrace*> traces;
  for (auto trace = workspace.traces.rbegin(); trace != workspace.traces.rend(); ++trace)
    if (lower_case(trace->name).find(wanted) != std::string::npos) traces.push_back(&*trace);
  return traces;
}

std::string device_text(const StoredTrace& trace) {
  const std::string device = !trace.hardware.empty() ? trace.hardware : trace.profile.on_gpu ? "GPU" : "CPU";
  return device + (trace.profile.ranks > 1 ? ", " + std::to_string(trace.profile.ranks) + " ranks" : "");
}

void draw_trace(const StoredTrace& trace, const Workspace& workspace, Commands& commands) {
  ImGui::TableNextRow(0, px(row_height));
  ImGui::TableNextColumn();
  const ImVec2 at = ImGui::GetCursorPos();
  ImGui::PushID(static_cast<int>(trace.id));
  if (ImGui::Selectable("##trace", false, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap,
                        ImVec2(0, px(row_height) - ImGui::GetStyle().CellPadding.y * 2)))
    commands.push_back(ShowTrace{trace.id});
  mark("history.trace." + std::to_string(trace.id));
  ImGui::PopID();
  ImGui::SetCursorPos(at);
  const auto cell = [](const std::string& text, const ImVec4& colour) {
    text_cut(text, ImGui::GetContentRegionAvail().x, colour, fonts().regular, cell_size, Cut::middle);
    ImGui::TableNextColumn();
  };
  cell(trace.name, palette().text);
  const RunEntry* run = trace.run ? workspace.find(*trace.run) : nullptr;
  cell(run ? "run " + std::to_string(run->run.id) + ", " + run->run.name : "of no run here", palette().quiet);
  cell(device_text(trace), palette().quiet);
  cell(traced_calls_text(trace.profile), palette().quiet);
  const bool is_dated = !is_missing(trace.origin.began_at);
  text_cut(local_time_text(is_dated ? trace.origin.began_at : trace.imported_at), ImGui::GetContentRegionAvail().x,
           palette().quiet, fonts().regular, cell_size);
  ImGui::SetItemTooltip(is_dated ? "When it was taken"
                                 : "When it was imported; the trace doesn't say when it was taken");
}

}  // namespace

float least_height_of_traces() {
  return px(28) + ImGui::GetFrameHeight();
}

float height_of(const HistoryTraces& traces, const Workspace& workspace) {
  if (workspace.traces.empty()) return 0;
  const auto rows = static_cast<float>(std::min(workspace.traces.size(), most_in_sight));
  return least_height_of_traces() + (traces.are_shown ? rows * px(row_height) + px(8) : 0);
}

void draw_history_traces(HistoryTraces& traces, float height, const std::string& filter, const Workspace& workspace,
                         Commands& commands) {
  const std::vector<const StoredTrace*> rows = found(workspace, filter);
  const bool has_room = !traces.are_shown || height >= least_height_of_traces() + px(row_height);
  begin_card("##traces", ImVec2(0, height), has_room);
  if (!has_room) {
    ImGui::AlignTextToFramePadding();
    text_quiet(plural(std::ssize(workspace.traces), "trace") + ": clear the selection to list them");
    return end_card();
  }
  const std::string label = (traces.are_shown ? "Hide " : "Show ") + plural(std::ssize(workspace.traces), "trace");
  if (quiet_button(label.c_str(), "history.traces")) traces.are_shown = !traces.are_shown;
  if (traces.are_shown) {
    same_line(12);
    text_quiet(rows.empty() ? "No trace's name has the filter's words"
                            : "Traces of profilers; a click opens one in Profile");
    const ImVec2 size(std::min(ImGui::GetContentRegionAvail().x, px(1600)), 0);
    if (ImGui::BeginTable("##rows", 5, ImGuiTableFlags_SizingStretchProp, size)) {
      for (const float width : {3.0f, 2.8f, 2.0f, 1.7f, 1.4f})
        ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch, width);
      draw_rows(rows.size(), px(row_height), [&](std::size_t i) { draw_trace(*rows[i], workspace, commands); });
      ImGui::EndTable();
    }
  }
  end_card();
}

}  // namespace stepladder
