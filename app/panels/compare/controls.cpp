#include "app/panels/compare/controls.h"

#include <imgui.h>

#include <string>
#include <vector>

#include "app/desktop/fields.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"

namespace stepladder {
namespace {

void draw_picker(RunSearch& search, const Workspace& workspace, Commands& commands) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  ImGui::SetNextWindowSize(ImVec2(px(460), px(420)));
  if (ImGui::BeginPopup("##pick")) {
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    ImGui::InputTextWithHint("##search", "Search runs", search.data(), search.size());
    ImGui::BeginChild("##list");
    std::vector<const RunEntry*> found;
    for (auto entry = workspace.runs().rbegin(); entry != workspace.runs().rend(); ++entry) {
      if (holds(entry->run.name, search.data())) found.push_back(&*entry);
    }
    if (found.empty()) text_quiet("No matches");
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(found.size()));
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const RunEntry& entry = *found[static_cast<std::size_t>(i)];
        bool on = workspace.selected_runs.contains(entry.run.id);
        ImGui::PushID(static_cast<int>(entry.run.id));
        if (ImGui::Checkbox(entry.run.name.c_str(), &on)) commands.push_back(SelectRun{entry.run.id, on});
        ImGui::PopID();
      }
    }
    ImGui::EndChild();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

const std::vector<std::string>& axis_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> titles;
    for (const Axis axis : all_axes) titles.emplace_back(title_of(axis));
    return titles;
  }();
  return names;
}

}  // namespace

void draw_compare_head(RunSearch& search, const Workspace& workspace, std::size_t runs, Commands& commands) {
  const float right = ImGui::GetContentRegionMax().x;
  const float top = ImGui::GetCursorPosY();
  text_title("Compare");
  const std::string chosen = workspace.selected_runs.empty() && workspace.shown_ladder()
                                 ? "No run selected: showing all of " + workspace.shown_ladder()->name
                                 : runs_text(runs) + " selected";
  text_cut(chosen + "  \xE2\x80\x93  scroll to zoom, drag to pan, A and B set cursors", right - px(220),
           palette().quiet, fonts().regular, small_size);
  const float below = ImGui::GetCursorPosY();
  const float width = ImGui::CalcTextSize("Choose runs").x + 2 * ImGui::GetStyle().FramePadding.x;
  ImGui::SetCursorPos(ImVec2(right - width, top));
  if (ImGui::Button("Choose runs")) ImGui::OpenPopup("##pick");
  mark("compare.pick");
  draw_picker(search, workspace, commands);
  ImGui::SetCursorPosY(below);
}

void draw_compare_controls(CompareView& view) {
  ComparisonOptions& options = view.options;
  // Continues on the next line if `width` more doesn't fit.
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  const auto next = [&](float width) {
    ImGui::SameLine(0, px(12));
    if (ImGui::GetCursorScreenPos().x + width > right) ImGui::NewLine();
  };
  int axis = static_cast<int>(options.axis);
  if (choice("##axis", "x axis", axis, axis_names(), px(150))) {
    options.axis = static_cast<Axis>(axis);
    view.x = {};
  }
  mark("compare.axis");
  next(px(60));
  if (chip("log x", view.log_x)) view.log_x = !view.log_x, view.x = {};
  mark("compare.log_x");
  ImGui::SameLine(0, px(4));
  if (chip("log y", view.log_y)) view.log_y = !view.log_y;
  mark("compare.log_y");
  next(px(230));
  ImGui::AlignTextToFramePadding();
  text_quiet("smoothing");
  ImGui::SameLine(0, px(6));
  ImGui::SetNextItemWidth(px(130));
  ImGui::SliderFloat("##smoothing", &options.smoothing, 0, 0.99f, options.smoothing > 0 ? "%.2f" : "none");
  mark("compare.smoothing");
  next(px(320));
  std::vector<std::string> names;
  for (const ComparedLine& line : view.lines()) names.push_back(line.label);
  int base = static_cast<int>(view.shown.curves.base);
  if (choice("##base", "baseline", base, names, px(200)))
    view.base = view.lines()[static_cast<std::size_t>(base)].runs.front();
  mark("compare.base");
  ImGui::SameLine(0, px(4));
  if (chip("ratio", options.gap == Gap::ratio)) options.gap = options.gap == Gap::ratio ? Gap::difference : Gap::ratio;
  mark("compare.ratio");
  ImGui::SetItemTooltip("Ratio to the baseline instead of the difference from it");
  next(px(150));
  if (chip("mean over repeats", options.mean)) options.mean = !options.mean;
  mark("compare.mean");
  ImGui::SetItemTooltip("One curve for each rung: the mean of its repeats, with a band from the lowest to the highest");
}

}  // namespace stepladder
