// Draws the Profile view's tables. A trace may have 100,000 rows, so a search is done once per text (FoundRows) and
// only visible rows are drawn.
#include "app/panels/profile/tables.h"

#include <imgui.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/profile/table_parts.h"
#include "app/profile/difference_text.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

SliceChoice choice_of(const TracedOperator& row) {
  return {.names = {row.time.name}, .kind = {}, .title = title_of(row_of(row))};
}

SliceChoice choice_of(const RowDifference& row) {
  SliceChoice choice{.names = {}, .kind = {}, .title = title_of(row, in_print(" -> "))};
  for (const auto* side : {&row.before, &row.after})
    for (const TracedOperator& each : *side) choice.names.push_back(each.time.name);
  return choice;
}

// Scrolls to the first row that is chosen, as far as it isn't in sight.
template <class Rows>
void scroll_to_chosen(const Rows& rows, const TableUse& use, std::size_t rows_above) {
  if (!use.scrolls || use.chosen.title.empty()) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SliceChoice choice = choice_of(*rows[i]);
    if (std::none_of(choice.names.begin(), choice.names.end(), [&](const auto& name) { return use.chosen.has(name); }))
      continue;
    const float height = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
    const float at = static_cast<float>(i + rows_above) * height, room = ImGui::GetWindowHeight();
    if (at < ImGui::GetScrollY() + height * static_cast<float>(rows_above) ||
        at > ImGui::GetScrollY() + room - 2 * height)
      ImGui::SetScrollY(std::max(0.0f, at - room / 2));
    return;
  }
}

TableSortKey operator_key(const TracedOperator& row, int column) {
  switch (column) {
    case 0:
      return {.text = row.time.part};
    case 1:
      return {.text = title_of(row_of(row))};
    case 2:
      return {.text = std::string(to_string(kind_of(row)))};
    case 3:
      return {row.time.calls};
    case 6:
      return {gigaflops_per_s(row.time)};
    default:
      return {row.time.self_ms};
  }
}

TableSortKey difference_key(const RowDifference& row, int column) {
  switch (column) {
    case 0:
      return {.text = std::string(to_string(row.change))};
    case 1:
      return {.text = std::string(to_string(row.kind))};
    case 2:
      return {.text = part_of(row)};
    case 3:
      return {.text = title_of(row)};
    case 4:
      return {row.after_calls - row.before_calls};
    case 5:
      return {row.before_ms};
    case 6:
      return {row.after_ms};
    case 8:
      return {row.noise_ms};
    default:
      return {row.delta_ms()};
  }
}

// Columns: 0 part, 1 operator, 2 mark, then one for each trace.
TableSortKey several_key(const SharedRow& row, int column) {
  if (column == 0) return {.text = row.part};
  if (column == 1) return {.text = row.name};
  if (column == 2) return {.text = row.is_new() ? "new" : row.is_gone() ? "gone" : ""};
  const auto trace = static_cast<std::size_t>(column) - 3;
  return {trace < row.ms.size() ? row.ms[trace] : missing};
}

// In a narrow table the kind is shown by its colour alone.
float kind_width() {
  return ImGui::GetContentRegionAvail().x < px(680) ? 20 : 130;
}

void kind_cell(OperatorKind kind) {
  ImGui::TableNextColumn();
  kind_text(kind);
}

void list_rows(const char* what, const std::vector<TracedOperator>& rows) {
  constexpr std::size_t most = 12;
  if (rows.empty()) return;
  text_quiet(what);
  for (std::size_t i = 0; i < std::min(rows.size(), most); ++i) {
    const TracedOperator& row = rows[i];
    ImGui::TextUnformatted((title_of(row_of(row)) + (row.time.shapes.empty() ? "" : "  " + row.time.shapes) + "   " +
                            calls_text(row.time.calls) + " calls, " + milliseconds_text(row.time.self_ms))
                               .c_str());
  }
  if (rows.size() > most) text_quiet("and " + std::to_string(rows.size() - most) + " more");
}

bool may_be_noise(const RowDifference& row) {
  return !is_missing(row.noise_ms) && !row.is_clear;
}

// "beyond the noise" has a dot besides its colour.
void noise_cells(const RowDifference& row, double whole, bool are_alike) {
  const bool is_known = !is_missing(row.noise_ms);
  const double delta = row.delta_ms();
  const ImVec4& colour = may_be_noise(row) ? palette().quiet : change_colour(delta, whole, are_alike && row.is_clear);
  right_cell(change_text(delta, whole), &colour);
  const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
  if (is_known && row.is_clear)
    ImGui::GetWindowDrawList()->AddCircleFilled(ImVec2(low.x - px(8), (low.y + high.y) / 2), px(2.5f), u32(colour));
  wrapped_tooltip(!is_known      ? "Its noise isn't known: a side has fewer than two steps, or was kept "
                                   "by an earlier version"
                  : row.is_clear ? "Beyond the noise between the steps of each trace, for all rows together"
                                 : "May be noise between the steps of each trace",
                  360);
  right_cell(is_known ? in_print("+/- ") + ms_figure(row.noise_ms, whole) : "-", &palette().quiet);
}

// A row that may be noise is grey.
void difference_row(std::size_t number, const RowDifference& row, double whole, bool is_wide, bool are_alike,
                    TableUse& use) {
  const ImVec4& colour = may_be_noise(row) ? palette().quiet : palette().text;
  begin_row(number, choice_of(row), use);
  left_text(std::string(to_string(row.change)), row.change == RowChange::same ? palette().quiet : colour);
  kind_cell(row.kind);
  if (is_wide) left_cell(part_of(row), palette().quiet);
  left_cell(title_with_shapes(row, in_print(" -> ")), colour);
  if (ImGui::BeginItemTooltip()) {
    if (const std::string part = part_of(row); !part.empty()) text_quiet(part);
    list_rows("before", row.before);
    list_rows("after", row.after);
    ImGui::EndTooltip();
  }
  if (is_wide) right_cell(in_print(calls_text(row)), &colour);
  right_cell(row.before.empty() ? "-" : ms_figure(row.before_ms, whole), &colour);
  right_cell(row.after.empty() ? "-" : ms_figure(row.after_ms, whole), &colour);
  noise_cells(row, whole, are_alike);
}

}  // namespace

bool holds(const std::string& text, const std::string& searched) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return searched.empty() ||
         std::search(text.begin(), text.end(), searched.begin(), searched.end(), same) != text.end();
}

void FoundRows::update(const std::shared_ptr<const ProfileView>& view, const std::string& search,
                       const TableSort& operators_by, const TableSort& differences_by, const TableSort& several_by) {
  if (view == view_ && search == search_ && operators_by == operators_by_ && differences_by == differences_by_ &&
      several_by == several_by_)
    return;
  operators_by_ = operators_by;
  differences_by_ = differences_by;
  several_by_ = several_by;
  view_ = view;
  search_ = search;
  operators.clear();
  differences.clear();
  left_out_ms = 0;
  const auto matches = [&](const TracedOperator& row) { return search.empty() || holds(row_of(row).name, search); };
  if (view->after) {
    for (const TracedOperator& each : view->after->operators) {
      if (matches(each)) operators.push_back(&each);
    }
  }
  sort_rows(operators, operators_by,
            [&](const TracedOperator* row) { return operator_key(*row, operators_by.column); });
  several.clear();
  for (const SharedRow& each : view->several.rows)
    if (search.empty() || holds(each.name, search)) several.push_back(&each);
  sort_rows(several, several_by, [&](const SharedRow* row) { return several_key(*row, several_by.column); });
  if (!view->difference) return;
  for (const RowDifference& each : view->difference->rows) {
    if (std::any_of(each.before.begin(), each.before.end(), matches) ||
        std::any_of(each.after.begin(), each.after.end(), matches))
      differences.push_back(&each);
    else
      left_out_ms += each.delta_ms();
  }
  sort_rows(differences, differences_by,
            [&](const RowDifference* row) { return difference_key(*row, differences_by.column); });
}

void draw_operator_table(const ShownProfile& shown, const FoundRows& found, TableUse& use) {
  const std::vector<const TracedOperator*>& rows = found.operators;
  if (!begin_table("##operators",
                   {{"part", 70, false, 0},
                    {"operator", 0, false, 1},
                    {kind_width() > 20 ? "kind" : "", kind_width(), false, 2},
                    {"calls", 54, true, 3},
                    {unit_of(shown), 66, true, 4},
                    {"share", 54, true, 5},
                    {"FLOP/s", 70, true, 6}},
                   use.sort))
    return;
  scroll_to_chosen(rows, use, 1);
  draw_rows(rows.size(), [&](std::size_t i) {
    const TracedOperator& each = *rows[i];
    begin_row(i, choice_of(each), use);
    left_text(each.time.part, palette().quiet);
    left_cell(title_of(row_of(each)), palette().text);
    if (!each.time.shapes.empty()) {  // which of the products it is
      wrapped_tooltip(each.time.shapes, 400);
      same_line(8);
      if (ImGui::GetContentRegionAvail().x > px(30)) left_text(each.time.shapes, palette().quiet);
    }
    kind_cell(kind_of(each));
    right_cell(calls_text(each.time.calls));
    right_cell(ms_figure(each.time.self_ms, shown.step_ms));
    right_cell(percent_text(each.time.self_ms / shown.step_ms), &palette().quiet);
    right_cell(flop_rate_text(each.time), &palette().quiet);
  });
  ImGui::EndTable();
}

void draw_difference_table(const ProfileView& view, const FoundRows& found, TableUse& use) {
  const ProfileDifference& difference = *view.difference;
  const std::vector<const RowDifference*>& rows = found.differences;
  const double whole = std::max(difference.before_ms, difference.after_ms);
  text_cut(clear_rows_text(difference), ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
  mark("profile.clear_rows");
  const bool is_wide = kind_width() > 20;
  std::vector<TableHead> heads{{"change", 84, false, 0}, {"", 20, false, 1}};  // the colours are named beside the table
  if (is_wide) heads.push_back({"part", 66, false, 2});
  heads.push_back({"operator", 0, false, 3});
  if (is_wide) heads.push_back({"calls", 92, true, 4});
  heads.insert(
      heads.end(),
      {{"before", 62, true, 5}, {"after", 62, true, 6}, {"change in ms", 92, true, 7}, {"noise", 66, true, 8}});
  if (!begin_table("##difference", heads, use.sort, 2)) return;
  ImGui::TableNextRow();
  left_cell("A step", palette().text, fonts().semibold);
  left_cell("", palette().quiet);
  if (is_wide) left_cell("", palette().quiet);
  left_cell(found.is_searched() ? "rows that don't match: " + change_text(found.left_out_ms, whole) + " ms"
                                : "all rows add up to this",
            palette().quiet);
  if (is_wide) right_cell("");
  right_cell(ms_figure(difference.before_ms, whole), nullptr, fonts().semibold);
  right_cell(ms_figure(difference.after_ms, whole), nullptr, fonts().semibold);
  const bool is_known = !is_missing(difference.noise_ms), is_noise = is_known && !difference.is_clear();
  right_cell(change_text(difference.delta_ms(), whole),
             is_noise ? &palette().quiet : &change_colour(difference.delta_ms(), whole, view.is_verdict()),
             fonts().semibold);
  wrapped_tooltip(!is_known  ? "Its noise isn't known"
                  : is_noise ? "May be noise between the steps of each trace"
                             : "Beyond the noise between the steps of each trace",
                  360);
  right_cell(is_missing(difference.noise_ms) ? "-" : in_print("+/- ") + ms_figure(difference.noise_ms, whole),
             &palette().quiet);
  scroll_to_chosen(rows, use, 2);
  draw_rows(rows.size(), [&](std::size_t i) { difference_row(i, *rows[i], whole, is_wide, view.unlike.empty(), use); });
  ImGui::EndTable();
}

}  // namespace stepladder
