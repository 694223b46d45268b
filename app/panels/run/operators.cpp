// Draws a run's step profile: bars by kind of operator beside those of the compared run, and a table by name. Rows are
// summed when the profile or the step that it is scaled to has changed.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "app/desktop/operator_bars.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/run/parts.h"
#include "app/profile/difference_text.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {
namespace {

// The shapes that a matrix product multiplied, and the speed of each.
void draw_shapes(const StepProfile& profile, const OperatorTime& row) {
  if (is_missing(row.flops) || !ImGui::BeginItemTooltip()) return;
  for (const OperatorTime& each : profile.operators) {
    if (each.part != row.part || each.name != row.name || each.shapes.empty()) continue;
    ImGui::TextUnformatted((each.shapes + "   " + calls_text(each.calls) + " calls, " +
                            milliseconds_text(each.self_ms) + ", " + flop_rate_text(each) + "FLOP/s")
                               .c_str());
  }
  ImGui::EndTooltip();
}

struct Column {
  const char* name;
  float width;
  bool is_optional;  // hidden if there is little room
  std::string (*text)(const OperatorTime& row, double whole_ms);
};
constexpr std::array<Column, 4> figures{{
    {"calls", 50, true, [](const OperatorTime& row, double) { return calls_text(row.calls); }},
    {"ms/step", 62, false, [](const OperatorTime& row, double whole_ms) { return ms_figure(row.self_ms, whole_ms); }},
    {"share", 50, true,
     [](const OperatorTime& row, double whole_ms) {
       std::array<char, 32> text{};
       std::snprintf(text.data(), text.size(), "%.1f %%", 100 * row.self_ms / whole_ms);
       return std::string(text.data());
     }},
    {"FLOP/s", 56, false, [](const OperatorTime& row, double) { return flop_rate_text(row); }},
}};

void draw_table(const StepProfile& profile, const std::vector<OperatorTime>& rows) {
  const bool is_narrow = ImGui::GetContentRegionAvail().x < px(420);
  std::vector<const Column*> shown;
  for (const Column& column : figures) {
    if (!is_narrow || !column.is_optional) shown.push_back(&column);
  }
  constexpr ImGuiTableFlags flags =
      ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchProp;
  const int count = 2 + static_cast<int>(shown.size());
  if (!ImGui::BeginTable(table_id("##operators", count).c_str(), count, flags, ImGui::GetContentRegionAvail())) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("part", ImGuiTableColumnFlags_WidthFixed, px(66));
  ImGui::TableSetupColumn("operator", ImGuiTableColumnFlags_WidthStretch);
  for (const Column* column : shown)
    ImGui::TableSetupColumn(column->name, ImGuiTableColumnFlags_WidthFixed, px(column->width));
  const auto right = [] { return ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - px(4); };
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (const char* name : {"part", "operator"}) {
    ImGui::TableNextColumn();
    text_quiet(name);
  }
  for (const Column* column : shown) {
    ImGui::TableNextColumn();
    text_right(column->name, right(), fonts().regular, small_size, &palette().quiet);
  }
  const double whole = step_ms(profile);
  draw_rows(rows.size(), [&](std::size_t i) {
    const OperatorTime& row = rows[i];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text_cut(row.part, ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, 13.5f);
    ImGui::TableNextColumn();
    text_cut(title_of(row), ImGui::GetContentRegionAvail().x, palette().text, fonts().regular, 13.5f);
    draw_shapes(profile, row);
    for (const Column* column : shown) {
      ImGui::TableNextColumn();
      text_right(column->text(row, whole), right(), fonts().regular, 13.5f);
    }
  });
  ImGui::EndTable();
}

}  // namespace

void draw_run_operators(RunOperators& operators, const Workspace& workspace, const RunEntry& shown,
                        const RunEntry* against, Commands& commands) {
  const FittedProfile* fitted = workspace.profile(shown.run.id);
  if (!fitted) return text_quiet_wrapped("No profile: " + why_no_profile(shown.run) + ".");
  const StepProfile& profile = fitted->profile;
  if (against && !against->is_active() && !workspace.detail(against->run.id))
    commands.data.details.push_back(against->run.id);
  if (operators.made_of != shown.run.id || operators.made_at != profile.at ||
      operators.made_for_ms != fitted->measured_ms) {
    operators = {
        .rows = by_name(profile), .made_of = shown.run.id, .made_at = profile.at, .made_for_ms = fitted->measured_ms};
  }
  const FittedProfile* before = against ? workspace.profile(against->run.id) : nullptr;
  if (before && !(before->is_comparable && fitted->is_comparable)) before = nullptr;
  const float gap = px(20);
  const float room = ImGui::GetContentRegionAvail().x;
  ImGui::BeginChild("##kinds", ImVec2(std::min((room - gap) * 0.4f, px(420)), 0));
  draw_operator_bars(*fitted, rung_colour(workspace.colour_of(shown.run)), before, false);
  spacing(4);
  if (const std::string text = fit_text(*fitted); !text.empty()) text_quiet_wrapped(text);
  text_quiet_wrapped((before ? "Grey bars and change: " + against->run.name + ". " : "") + "Mean of " +
                     plural(profile.steps, "step") + " profiled after the last training step.");
  ImGui::EndChild();
  ImGui::SameLine(0, gap);
  ImGui::BeginChild("##rows", ImVec2(0, 0));
  draw_table(profile, operators.rows);
  ImGui::EndChild();
  mark("run.operators");
}

}  // namespace stepladder
