// Draws Compare's head and controls, which change the options in CompareView. The model derives its curves again when
// they have changed; nothing is computed here.
#include "app/panels/compare/controls.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/compare/charts.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

void draw_picker(CompareFields& fields, const Workspace& workspace, Commands& commands) {
  popup_at_item();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  ImGui::SetNextWindowSize(ImVec2(px(460), px(420)));
  if (ImGui::BeginPopup("##pick")) {
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    ImGui::InputTextWithHint("##search", "Search runs", fields.search.data(), fields.search.size());
    ImGui::BeginChild("##list");
    std::vector<const RunEntry*> found;
    for (auto entry = workspace.runs().rbegin(); entry != workspace.runs().rend(); ++entry) {
      if (holds(entry->run.name, fields.search.data())) found.push_back(&*entry);
    }
    if (found.empty()) text_quiet("No matches");
    draw_rows(found.size(), [&](std::size_t i) {
      const RunEntry& entry = *found[i];
      bool on = workspace.selection.runs.contains(entry.run.id);
      ImGui::PushID(static_cast<int>(entry.run.id));
      if (ImGui::Checkbox(entry.run.name.c_str(), &on)) commands.push_back(SelectRun{entry.run.id, on});
      ImGui::PopID();
    });
    ImGui::EndChild();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void draw_chart_list(CompareView& view) {
  popup_at_item();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  if (ImGui::BeginPopup("##add")) {
    ChartGrid& grid = view.grid;
    for (const bool is_gap : {false, true}) {
      for (const Quantity quantity : step_quantities) {
        const GridChart chart{quantity, is_gap};
        if (ImGui::MenuItem(title_of(chart).c_str(), nullptr, false, grid.charts.size() < most_charts))
          grid.charts.push_back(chart);
        mark("compare.add." + name_of(chart));
      }
      if (!is_gap) ImGui::Separator();
    }
    if (!view.metrics.all().empty()) {
      ImGui::Separator();
      view.metrics.draw("compare", [&](const MetricChoice& chosen) {
        for (const Quantity metric : chosen.metrics)
          if (grid.charts.size() < most_charts) grid.charts.push_back({metric});
      });
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void draw_layout(ChartGrid& grid) {
  popup_at_item();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  if (ImGui::BeginPopup("##layout")) {
    ImGui::AlignTextToFramePadding();
    text_quiet("columns");
    for (int columns = 1; columns <= most_columns; ++columns) {
      same_line(columns == 1 ? 12 : 4);
      if (chip(std::to_string(columns).c_str(), grid.columns == columns)) grid.columns = columns;
      mark("compare.columns." + std::to_string(columns));
    }
    same_line(12);
    if (chip("fit height", grid.row_height == 0)) grid.row_height = 0;
    ImGui::SetItemTooltip("The rows share the window's height. Drag the space below a row to set their height.");
    if (ImGui::Selectable("Default layout", grid == ChartGrid{}, ImGuiSelectableFlags_NoAutoClosePopups)) grid = {};
    mark("compare.layout_default");
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void draw_group_choice(CompareView& view, const std::vector<const RunEntry*>& runs, float width) {
  std::string& group_by = view.options.group_by;
  const std::string prefix = group_by_recipe;
  const std::string shown = group_by.empty()            ? "none"
                            : group_by == group_by_rung ? "repeats of a rung"
                                                        : group_by.substr(prefix.size());
  field_name("group by", 6);
  ImGui::SetNextItemWidth(width);
  if (ImGui::BeginCombo("##group", shown.c_str())) {
    const auto offer = [&](const std::string& words, const std::string& value) {
      if (ImGui::Selectable(words.c_str(), group_by == value)) group_by = value;
      mark("compare.group." + (value.empty() ? "none" : value));
    };
    offer("none", "");
    offer("repeats of a rung", group_by_rung);
    for (const std::string& name : values_to_group_by(runs)) offer(name, prefix + name);
    ImGui::EndCombo();
  }
  mark("compare.group");
  ImGui::SetItemTooltip(
      "Runs with the same value in their recipe become one curve: their mean, in a band from the lowest to the "
      "highest");
}

// The baseline's last loss: validation loss if there is any.
double first_target(const CompareView& view, const Workspace& workspace) {
  const RunEntry* base = workspace.find(view.base_line().id());
  if (!base) return 3;
  const double validation = base->summary.val_loss_last;
  const double loss = std::isfinite(validation) ? validation : base->summary.loss_last;
  return std::isfinite(loss) && loss > 0 ? loss : 3;
}

void draw_target_field(CompareFields& fields, CompareView& view, const Workspace& workspace) {
  const bool is_on = !is_missing(view.target.value);
  if (chip("target loss", is_on)) {
    view.target.value = is_on ? missing : first_target(view, workspace);
    fields.target.show(view.target.value);
  }
  mark("compare.target");
  ImGui::SetItemTooltip("When did each run reach this loss? Drag the line in the loss chart, or type a value.");
  if (!is_on) return;
  same_line(6);
  ImGui::SetNextItemWidth(px(84));
  if (view.target.is_held) fields.target.show(view.target.value);
  if (fields.target.text().empty() && !ImGui::IsAnyItemActive()) fields.target.show(view.target.value);
  double typed = view.target.value;
  if (fields.target.draw("##target", "loss", typed, NumberField::Kind::any)) view.target.value = typed;
  mark("compare.target_loss");
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

void draw_compare_head(CompareFields& fields, CompareView& view, const Workspace& workspace, std::size_t runs,
                       Commands& commands) {
  const float right = ImGui::GetContentRegionMax().x;
  const float top = ImGui::GetCursorPosY();
  text_title("Compare");
  const Ladder* ladder = workspace.shown_ladder();
  std::string chosen = plural(runs, "run") + " selected";
  if (workspace.selection.runs.empty() && runs > 0)
    chosen = "No run selected: showing the " + (ladder ? plural(runs, "run") + " of ladder " + ladder->name
                                                       : "newest " + plural(runs, "run") + " with steps");
  text_cut(chosen + "  \xE2\x80\x93  scroll to zoom, drag to pan, A and B set cursors", right - px(380),
           palette().quiet, fonts().regular, small_size);
  const float below = ImGui::GetCursorPosY();
  float left = right;
  // From the right edge to the left.
  const auto button = [&](const char* words) {
    left -= button_width(words);
    ImGui::SetCursorPos(ImVec2(left, top));
    left -= px(8);
    return ImGui::Button(words);
  };
  if (button("Choose runs")) ImGui::OpenPopup("##pick");
  mark("compare.pick");
  draw_picker(fields, workspace, commands);
  if (button("Views")) ImGui::OpenPopup("##views");
  mark("compare.views");
  fields.views.draw_list(workspace, commands);
  if (runs > 0) {
    if (button("Layout")) ImGui::OpenPopup("##layout");
    mark("compare.layout");
    draw_layout(view.grid);
    if (button("Add chart")) ImGui::OpenPopup("##add");
    mark("compare.add");
    draw_chart_list(view);
  }
  ImGui::SetCursorPosY(below);
}

void draw_compare_controls(CompareFields& fields, CompareView& view, const Workspace& workspace,
                           const std::vector<const RunEntry*>& runs) {
  ComparisonOptions& options = view.options;
  // Continues on the next line if `width` more doesn't fit.
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  const auto next = [&](float width) {
    same_line(12);
    if (ImGui::GetCursorScreenPos().x + px(width) > right) ImGui::NewLine();
  };
  const bool is_narrow = ImGui::GetContentRegionAvail().x < px(1120);  // so that all of them stay on one line
  int axis = static_cast<int>(options.axis);
  if (choice("##axis", "x axis", axis, axis_names(), px(is_narrow ? 112 : 140))) {
    options.axis = static_cast<Axis>(axis);
    view.x = {};
  }
  mark("compare.axis");
  next(130);
  if (chip("log x", view.log_x)) view.log_x = !view.log_x, view.x = {};
  mark("compare.log_x");
  same_line(4);
  if (chip("log y", view.log_y)) view.log_y = !view.log_y;
  mark("compare.log_y");
  next(is_narrow ? 200 : 240);
  field_name("smoothing", 6);
  ImGui::SetNextItemWidth(px(is_narrow ? 76 : 110));
  ImGui::SliderFloat("##smoothing", &options.smoothing, 0, 0.99f, "");  // its handle would cover a number inside
  mark("compare.smoothing");
  same_line(6);
  text_quiet(options.smoothing > 0 ? decimals(options.smoothing, 2) : "none");
  next(is_narrow ? 280 : 310);
  std::vector<std::string> names;
  for (const ComparedLine& line : view.lines()) names.push_back(line.label);
  int base = static_cast<int>(view.shown.curves.base);
  if (choice("##base", "baseline", base, names, px(is_narrow ? 150 : 180)))
    view.base = view.lines()[static_cast<std::size_t>(base)].id();
  mark("compare.base");
  same_line(4);
  if (chip("ratio", options.gap == Gap::ratio)) options.gap = options.gap == Gap::ratio ? Gap::difference : Gap::ratio;
  mark("compare.ratio");
  ImGui::SetItemTooltip("Ratio to the baseline instead of the difference from it");
  // The two wrap together: one alone on a line looks lost.
  const float group = is_narrow ? 122 : 150;
  next(58 + group + (is_missing(view.target.value) ? 92 : 182));
  draw_group_choice(view, runs, px(group));
  same_line(12);
  draw_target_field(fields, view, workspace);
  if (view.hidden.any_of(view.lines())) {
    next(100);
    if (quiet_button("Show all", "compare.show_all")) view.hidden.show_all();
  }
}

void draw_line_menu(CompareView& view, const Workspace& workspace, Commands& commands) {
  if (std::exchange(view.opens_menu, false)) ImGui::OpenPopup("##line");
  const auto line = std::ranges::find(view.lines(), view.menu_of, &ComparedLine::id);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(12), px(10)));
  if (line != view.lines().end() && ImGui::BeginPopup("##line")) {
    const RunId id = line->id();
    text_strong(cut_to(line->label, px(300), Cut::middle));
    for (int colour = 0; colour < rung_colour_count; ++colour) {
      if (colour % 5 != 0) same_line(6);
      ImGui::PushID(colour);
      const bool is_now = colour == view.colour_of(*line);
      ImGui::PushStyleColor(ImGuiCol_Border, is_now ? palette().text : ImVec4(0, 0, 0, 0));
      ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, px(2));
      if (ImGui::ColorButton("##colour", rung_colour(colour), ImGuiColorEditFlags_NoTooltip, ImVec2(px(24), px(24)))) {
        commands.push_back(ColourRun{id, colour});
        ImGui::CloseCurrentPopup();
      }
      ImGui::PopStyleVar();
      ImGui::PopStyleColor();
      mark("compare.colour." + std::to_string(colour));
      ImGui::PopID();
    }
    if (ImGui::MenuItem("Default colour", nullptr, false, workspace.selection.colours.contains(id)))
      commands.push_back(ColourRun{id, -1});
    mark("compare.colour_default");
    ImGui::Separator();
    if (ImGui::MenuItem(view.hidden.has(id) ? "Show" : "Hide", "click")) view.hidden.click(id);
    if (ImGui::MenuItem("Show only this", "double click")) view.hidden.show_only(id, view.lines());
    mark("compare.only");
    if (ImGui::MenuItem("Show all", nullptr, false, view.hidden.any_of(view.lines()))) view.hidden.show_all();
    ImGui::Separator();
    if (ImGui::MenuItem("Use as baseline", nullptr, false, id != view.base_line().id())) view.base = id;
    mark("compare.use_as_baseline");
    if (ImGui::MenuItem("Run details", nullptr, false, line->runs.size() == 1)) commands.push_back(OpenRun{id});
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace stepladder
