// Draws the Profile view's tables. A trace may have 100,000 rows, so a search is done once per text (FoundRows) and
// only visible rows are drawn.
#include "app/panels/profile/tables.h"

#include <imgui.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/profile/icicle.h"
#include "app/profile/difference_text.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr float cell_size = 13.5f;
constexpr ImGuiTableFlags table_flags =
    ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchProp;

struct Head {
  const char* name;
  float width;  // 0: the rest
  bool is_right;
};

bool begin_table(const char* id, const std::vector<Head>& heads, int frozen_rows = 1) {
  if (!ImGui::BeginTable(id, static_cast<int>(heads.size()), table_flags, ImGui::GetContentRegionAvail())) return false;
  ImGui::TableSetupScrollFreeze(0, frozen_rows);
  for (const Head& head : heads)
    ImGui::TableSetupColumn(head.name,
                            head.width > 0 ? ImGuiTableColumnFlags_WidthFixed : ImGuiTableColumnFlags_WidthStretch,
                            px(head.width));
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (const Head& head : heads) {
    ImGui::TableNextColumn();
    if (head.is_right)
      text_right(head.name, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - px(4), fonts().regular,
                 small_size, &palette().quiet);
    else
      text_quiet(head.name);
  }
  return true;
}

void left_cell(const std::string& text, const ImVec4& colour, ImFont* font = nullptr) {
  ImGui::TableNextColumn();
  text_cut(text, ImGui::GetContentRegionAvail().x, colour, font ? font : fonts().regular, cell_size);
}

void right_cell(const std::string& text, const ImVec4* colour = nullptr, ImFont* font = nullptr) {
  ImGui::TableNextColumn();
  text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - px(4), font ? font : fonts().regular,
             cell_size, colour);
}

// In a narrow table the kind is shown by its colour alone.
float kind_width() {
  return ImGui::GetContentRegionAvail().x < px(680) ? 20 : 130;
}

void kind_cell(OperatorKind kind) {
  ImGui::TableNextColumn();
  const bool is_named = ImGui::GetContentRegionAvail().x > px(60);
  colour_square(kind_colour(kind));
  if (!is_named) {
    ImGui::SetItemTooltip("%s", std::string(to_string(kind)).c_str());
    return;
  }
  same_line(6);
  text_cut(std::string(to_string(kind)), ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, cell_size);
}

std::string change_text(double ms, double whole_ms) {
  if (std::fabs(ms) < 0.0005 * whole_ms) return "=";
  return (ms < 0 ? "- " : "+ ") + ms_figure(std::fabs(ms), whole_ms);
}

// Less time is good; a small change has no colour.
const ImVec4& change_colour(double ms, double whole_ms) {
  if (std::fabs(ms) < 0.002 * whole_ms) return palette().quiet;
  return ms < 0 ? palette().good : palette().bad;
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

void difference_row(const RowDifference& row, double whole, bool is_wide) {
  ImGui::TableNextRow();
  left_cell(std::string(to_string(row.change)), row.change == RowChange::same ? palette().quiet : palette().text);
  kind_cell(row.kind);
  if (is_wide) left_cell(part_of(row), palette().quiet);
  left_cell(title_with_shapes(row, in_print(" -> ")), palette().text);
  if (ImGui::BeginItemTooltip()) {
    if (const std::string part = part_of(row); !part.empty()) text_quiet(part);
    list_rows("before", row.before);
    list_rows("after", row.after);
    ImGui::EndTooltip();
  }
  if (is_wide) right_cell(in_print(calls_text(row)));
  right_cell(row.before.empty() ? "-" : ms_figure(row.before_ms, whole));
  right_cell(row.after.empty() ? "-" : ms_figure(row.after_ms, whole));
  right_cell(change_text(row.delta_ms(), whole), &change_colour(row.delta_ms(), whole));
}

// The share of the ceiling as a bar and a number.
void ceiling_cell(const KindRoofline& each) {
  ImGui::TableNextColumn();
  const float room = ImGui::GetContentRegionAvail().x - px(4), number = px(52);
  const float right = ImGui::GetCursorPosX() + room, top = ImGui::GetCursorPosY();
  if (is_missing(each.share())) return text_right("-", right, fonts().regular, cell_size, &palette().quiet);
  if (room > number + px(24)) {
    ImGui::SetCursorPosY(top + ImGui::GetTextLineHeight() / 2 - px(3));
    progress_bar(each.share(), room - number);
    ImGui::SetCursorPos(ImVec2(right - number, top));
  }
  text_right(percent_text(each.share()), right, fonts().regular, cell_size);
}

}  // namespace

bool holds(const std::string& text, const std::string& searched) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return searched.empty() ||
         std::search(text.begin(), text.end(), searched.begin(), searched.end(), same) != text.end();
}

void FoundRows::update(const std::shared_ptr<const ProfileView>& view, const std::string& search) {
  if (view == view_ && search == search_) return;
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
  if (!view->difference) return;
  for (const RowDifference& each : view->difference->rows) {
    if (std::any_of(each.before.begin(), each.before.end(), matches) ||
        std::any_of(each.after.begin(), each.after.end(), matches))
      differences.push_back(&each);
    else
      left_out_ms += each.delta_ms();
  }
}

void draw_operator_table(const ShownProfile& shown, const FoundRows& found) {
  const std::vector<const TracedOperator*>& rows = found.operators;
  if (!begin_table("##operators", {{"part", 70, false},
                                   {"operator", 0, false},
                                   {kind_width() > 20 ? "kind" : "", kind_width(), false},
                                   {"calls", 54, true},
                                   {"ms/step", 66, true},
                                   {"share", 54, true},
                                   {"GFLOP/s", 62, true}}))
    return;
  draw_rows(rows.size(), [&](std::size_t i) {
    const TracedOperator& each = *rows[i];
    ImGui::TableNextRow();
    left_cell(each.time.part, palette().quiet);
    left_cell(title_of(row_of(each)), palette().text);
    if (!each.time.shapes.empty()) wrapped_tooltip(each.time.shapes, 400);
    kind_cell(kind_of(each));
    right_cell(calls_text(each.time.calls));
    right_cell(ms_figure(each.time.self_ms, shown.step_ms));
    right_cell(percent_text(each.time.self_ms / shown.step_ms), &palette().quiet);
    right_cell(compact(gigaflops_per_s(each.time)), &palette().quiet);
  });
  ImGui::EndTable();
}

void draw_difference_table(const ProfileDifference& difference, const FoundRows& found) {
  const std::vector<const RowDifference*>& rows = found.differences;
  const double whole = std::max(difference.before_ms, difference.after_ms);
  const bool is_wide = kind_width() > 20;
  std::vector<Head> heads{{"change", 84, false}, {"", 20, false}};  // the colours are named beside the table
  if (is_wide) heads.push_back({"part", 66, false});
  heads.push_back({"operator", 0, false});
  if (is_wide) heads.push_back({"calls", 92, true});
  heads.insert(heads.end(), {{"before", 60, true}, {"after", 60, true}, {"change in ms", 84, true}});
  if (!begin_table("##difference", heads, 2)) return;
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
  const double delta = difference.after_ms - difference.before_ms;
  right_cell(change_text(delta, whole), &change_colour(delta, whole), fonts().semibold);
  draw_rows(rows.size(), [&](std::size_t i) { difference_row(*rows[i], whole, is_wide); });
  ImGui::EndTable();
}

void draw_anatomy_table(const ShownProfile* before, const ShownProfile& after) {
  using Key = std::tuple<StepPhase, ModelPart, KnownBy>;
  const bool compares = before && !before->anatomy.empty();
  std::vector<AnatomyRow> rows = by_part(after.anatomy);
  std::map<Key, double> earlier;
  if (compares) {
    for (const AnatomyRow& row : by_part(before->anatomy)) {
      earlier[{row.phase, row.part, row.known_by}] = row.ms;
      const auto is_same = [&](const AnatomyRow& each) {
        return each.phase == row.phase && each.part == row.part && each.known_by == row.known_by;
      };
      if (std::none_of(rows.begin(), rows.end(), is_same)) {
        rows.push_back(row);
        rows.back().ms = 0;
      }
    }
  }
  const float foot = ImGui::GetTextLineHeight() * 2 + px(10);
  ImGui::BeginChild("##anatomy", ImVec2(0, -foot));
  const double whole = std::max(after.step_ms, compares ? before->step_ms : 0);
  if (begin_table("##parts", {{"part of the step", 0, false},
                              {"known by", 76, false},
                              {compares ? "before" : "", 66, true},
                              {compares ? "after" : "ms/step", 66, true},
                              {compares ? "change in ms" : "share", 84, true}})) {
    for (const AnatomyRow& row : rows) {
      ImGui::TableNextRow();
      left_cell(title_of(row, after.anatomy), palette().text);
      left_cell(row.known_by == KnownBy::nothing ? "" : std::string(to_string(row.known_by)), palette().quiet);
      const double was = compares ? earlier[{row.phase, row.part, row.known_by}] : 0;
      right_cell(compares ? ms_figure(was, whole) : "");
      right_cell(ms_figure(row.ms, whole));
      if (compares)
        right_cell(change_text(row.ms - was, whole), &change_colour(row.ms - was, whole));
      else
        right_cell(percent_text(row.ms / after.step_ms), &palette().quiet);
    }
    ImGui::EndTable();
  }
  ImGui::EndChild();
  text_quiet_wrapped(certainty_of(after.anatomy, after.has_graphs));
}

// In a narrow room the rates are in the row's tooltip alone.
void draw_roofline_table(const ShownProfile& shown) {
  const auto figure = [](double value) { return is_missing(value) ? std::string("-") : compact(value); };
  const float width = ImGui::GetContentRegionAvail().x;
  const bool has_rates = width > px(700);
  const float foot = ImGui::CalcTextSize(shown.ceiling.c_str(), nullptr, false, width).y + px(14);
  std::vector<Head> heads{{"kind of work", 124, false}, {"ms/step", 60, true}};
  if (has_rates) heads.insert(heads.end(), {{"known", 54, true}, {"TFLOP/s", 62, true}, {"GB/s", 54, true}});
  heads.insert(heads.end(), {{"at best", 56, true}, {"of the ceiling", 0, true}, {"bound by", 70, false}});
  ImGui::BeginChild("##rooflines", ImVec2(0, -foot));
  if (begin_table("##kinds", heads)) {
    for (const KindRoofline& each : shown.rooflines) {
      const std::string known = percent_text(each.known_ms / each.ms);
      ImGui::TableNextRow();
      kind_cell(each.kind);
      const std::string rates = figure(each.tflops()) + " TFLOP/s, " + figure(each.gb_s()) + " GB/s";
      wrapped_tooltip(known + " of its time known, " + rates, 400);
      right_cell(ms_figure(each.ms, shown.step_ms));
      if (has_rates) {
        right_cell(known, &palette().quiet);
        right_cell(figure(each.tflops()), &palette().quiet);
        right_cell(figure(each.gb_s()), &palette().quiet);
      }
      right_cell(is_missing(each.share()) ? "-" : ms_figure(each.least_ms, shown.step_ms));
      ceiling_cell(each);
      left_cell(std::string(bound_of(each)), palette().quiet);
    }
    ImGui::EndTable();
  }
  ImGui::EndChild();
  text_quiet_wrapped(shown.ceiling);
}

}  // namespace stepladder
