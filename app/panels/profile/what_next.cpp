// Draws Profile's What next: why the step takes its time, what each stage would buy, and the button that measures it.
// The sentences are made with the view (app/profile/predict.h), as for the command line.
#include <imgui.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"
#include "app/panels/profile/parts.h"
#include "app/panels/profile/table_parts.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

void draw_stages(const ShownNext& next, const Workspace& workspace, Commands& commands) {
  const bool is_wide = ImGui::GetContentRegionAvail().x > px(760);
  constexpr const char* launch_label = "Measure it";
  const float button = next.run == 0 ? 0 : button_width(launch_label) + px(8);
  const int columns = 3 + (is_wide ? 1 : 0) + (button > 0 ? 1 : 0);
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(6), px(5)));
  if (ImGui::BeginTable(table_id("##next", columns).c_str(), columns,
                        ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_NoSavedSettings)) {
    ImGui::TableSetupColumn("stage", ImGuiTableColumnFlags_WidthFixed, px(128));
    ImGui::TableSetupColumn("gain", ImGuiTableColumnFlags_WidthFixed, px(150));
    if (is_wide) ImGui::TableSetupColumn("step", ImGuiTableColumnFlags_WidthFixed, px(200));
    ImGui::TableSetupColumn("why", ImGuiTableColumnFlags_WidthStretch);
    if (button > 0) ImGui::TableSetupColumn("button", ImGuiTableColumnFlags_WidthFixed, button);
    for (std::size_t i = 0; i < next.stages.size(); ++i) {
      const ShownStage& each = next.stages[i];
      ImGui::PushID(static_cast<int>(i));
      ImGui::TableNextRow();
      left_cell(each.title, palette().text, fonts().semibold);
      left_cell(in_print(each.gain), palette().text);
      if (is_wide) left_cell("a step " + in_print(each.step), palette().quiet);
      left_cell(each.why, palette().quiet);
      if (button > 0) {
        ImGui::TableNextColumn();
        if (change_button(workspace, launch_label, "profile.launch." + each.id,
                          "Fills Launch with a ladder of the run's recipe without and with this stage"))
          commands.push_back(ProposeStage{next.run, each.id});
      }
      ImGui::PopID();
      mark("profile.next." + each.id);
    }
    ImGui::EndTable();
  }
  ImGui::PopStyleVar();
}

}  // namespace

void draw_what_next(const ShownNext& next, const Workspace& workspace, Commands& commands) {
  ImGui::BeginChild("##next", ImVec2(0, 0), ImGuiChildFlags_NavFlattened);
  text_sentence(in_print(next.largest));
  mark("profile.next");
  gap(8);
  if (!next.stages.empty()) {
    draw_stages(next, workspace, commands);
    gap(8);
  }
  for (const std::string* text : {&next.order, &next.rest})
    if (!text->empty()) text_quiet_wrapped(in_print(*text));
  const RunEntry* run = workspace.find(next.run);
  if (run && next.stages.empty() && next.rest.empty()) {
    text_quiet_wrapped("A trace of this run predicts what each stage would buy.");
    gap(4);
    ImGui::Dummy(ImVec2(ImGui::GetContentRegionAvail().x, 0));  // so that the button begins a line
    trace_button(workspace, run->run, "profile.trace", commands);
  }
  ImGui::EndChild();
}

}  // namespace stepladder
