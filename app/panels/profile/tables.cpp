// Draws the Profile view's tables. A trace may have 100,000 rows, so a search is done once per text (FoundRows) and
// only visible rows are drawn.
#include "app/panels/profile/tables.h"

#include <imgui.h>

#include <algorithm>
#include <array>
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
  std::string name;
  float width;  // 0: the rest
  bool is_right;
  int column = -1;  // of a TableSort; -1: it isn't sorted by this one
};

// A head that sorts: at first the largest number or the first letter on top, then the other way round, then not at all.
void draw_head(const Head& head, TableSort& sort) {
  ImGui::TableNextColumn();
  const ImVec2 at = ImGui::GetCursorPos(), corner = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  const bool is_sorted = head.column >= 0 && sort.column == head.column;
  const float arrow = is_sorted ? px(11) : 0;
  if (head.column >= 0 && room > 1) {
    if (ImGui::InvisibleButton(("##head" + std::to_string(head.column)).c_str(),
                               ImVec2(room, ImGui::GetTextLineHeight()))) {
      const bool begins_descending = head.is_right;
      if (!is_sorted)
        sort = {head.column, begins_descending};
      else if (sort.descending == begins_descending)
        sort.descending = !sort.descending;
      else
        sort = {};
    }
    mark("profile.sort." + std::to_string(head.column));
    if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    ImGui::SetCursorPos(at);
  }
  const ImVec4& colour = is_sorted ? palette().text : palette().quiet;
  if (head.is_right)
    text_right(head.name, at.x + room - px(4) - arrow, fonts().regular, small_size, &colour);
  else
    text_cut(head.name, room - arrow, colour, fonts().regular, small_size);
  if (!is_sorted) return;
  const float width = ImGui::CalcTextSize(head.name.c_str()).x * small_size / text_size;
  const float x = head.is_right ? corner.x + room - px(9) : corner.x + std::min(width + px(8), room - px(6));
  const float y = corner.y + ImGui::GetTextLineHeight() / 2, up = sort.descending ? -px(2.5f) : px(2.5f);
  ImGui::GetWindowDrawList()->AddTriangleFilled(ImVec2(x - px(4), y + up), ImVec2(x + px(4), y + up), ImVec2(x, y - up),
                                                u32(palette().accent));
}

// ImGui keeps the widths of columns by the table's id and a column's place, so a table with other columns has another.
bool begin_table(const char* name, const std::vector<Head>& heads, TableSort& sort, int frozen_rows = 1) {
  std::string id = name;
  for (const Head& head : heads) id += head.width > 0 ? " " + std::to_string(std::lround(px(head.width))) : " rest";
  if (!ImGui::BeginTable(id.c_str(), static_cast<int>(heads.size()), table_flags, ImGui::GetContentRegionAvail()))
    return false;
  ImGui::TableSetupScrollFreeze(0, frozen_rows);
  for (const Head& head : heads)
    ImGui::TableSetupColumn(head.name.c_str(),
                            head.width > 0 ? ImGuiTableColumnFlags_WidthFixed : ImGuiTableColumnFlags_WidthStretch,
                            px(head.width));
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (const Head& head : heads) draw_head(head, sort);
  return true;
}

void left_text(const std::string& text, const ImVec4& colour, ImFont* font = nullptr) {
  text_cut(text, ImGui::GetContentRegionAvail().x, colour, font ? font : fonts().regular, cell_size);
}

void left_cell(const std::string& text, const ImVec4& colour, ImFont* font = nullptr) {
  ImGui::TableNextColumn();
  left_text(text, colour, font);
}

// Begins a row that can be clicked, in its first cell. Of a row without slices only the names are marked.
void begin_row(std::size_t number, const SliceChoice& row, TableUse& use) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool is_chosen = !use.chosen.title.empty() &&
                         (row.kind ? use.chosen.kind == row.kind
                                   : std::any_of(row.names.begin(), row.names.end(),
                                                 [&](const std::string& name) { return use.chosen.has(name); }));
  const ImVec2 at = ImGui::GetCursorPos();
  ImGui::PushID(static_cast<int>(number));
  if (ImGui::Selectable("##row", is_chosen, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap,
                        ImVec2(0, ImGui::GetTextLineHeight())))
    use.clicked = is_chosen ? SliceChoice{} : row;
  mark("profile.row." + std::to_string(number));
  ImGui::PopID();
  ImGui::SetCursorPos(at);
}

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

// What a row is sorted by: a number, or a text.
struct SortKey {
  double number = missing;
  std::string text = {};
};

// Unknown numbers are last, either way.
template <class Rows, class KeyOf>
void sort_rows(Rows& rows, const TableSort& sort, const KeyOf& key_of) {
  if (sort.column < 0) return;
  std::vector<std::pair<SortKey, typename Rows::value_type>> keyed;
  keyed.reserve(rows.size());
  for (auto& row : rows) keyed.emplace_back(key_of(row), row);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& one, const auto& other) {
    const SortKey &a = one.first, &b = other.first;
    if (is_missing(a.number) != is_missing(b.number)) return is_missing(b.number);
    if (!is_missing(a.number)) return sort.descending ? a.number > b.number : a.number < b.number;
    return sort.descending ? a.text > b.text : a.text < b.text;
  });
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = keyed[i].second;
}

SortKey operator_key(const TracedOperator& row, int column) {
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

SortKey difference_key(const RowDifference& row, int column) {
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
SortKey several_key(const SharedRow& row, int column) {
  if (column == 0) return {.text = row.part};
  if (column == 1) return {.text = row.name};
  if (column == 2) return {.text = row.is_new() ? "new" : row.is_gone() ? "gone" : ""};
  const auto trace = static_cast<std::size_t>(column) - 3;
  return {trace < row.ms.size() ? row.ms[trace] : missing};
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

void kind_text(OperatorKind kind) {
  const bool is_named = ImGui::GetContentRegionAvail().x > px(60);
  colour_square(kind_colour(kind));
  if (!is_named) {
    ImGui::SetItemTooltip("%s", std::string(to_string(kind)).c_str());
    return;
  }
  same_line(6);
  text_cut(std::string(to_string(kind)), ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, cell_size);
}

void kind_cell(OperatorKind kind) {
  ImGui::TableNextColumn();
  kind_text(kind);
}

std::string change_text(double ms, double whole_ms) {
  if (std::fabs(ms) < 0.0005 * whole_ms) return "=";
  return (ms < 0 ? "-" : "+") + ms_figure(std::fabs(ms), whole_ms);
}

// Less time is good; a small change has no colour, nor has one that is no verdict.
const ImVec4& change_colour(double ms, double whole_ms, bool is_verdict) {
  if (std::fabs(ms) < 0.002 * whole_ms) return palette().quiet;
  return !is_verdict ? palette().text : ms < 0 ? palette().good : palette().bad;
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
  ImGui::SetItemTooltip("%s", !is_known      ? "Its noise isn't known: a side has fewer than two steps, or was kept "
                                               "by an earlier version"
                              : row.is_clear ? "Beyond the noise between the steps of each trace, for all rows together"
                                             : "May be noise between the steps of each trace");
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
                    {"ms/step", 66, true, 4},
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
    if (!each.time.shapes.empty()) wrapped_tooltip(each.time.shapes, 400);
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
  std::vector<Head> heads{{"change", 84, false, 0}, {"", 20, false, 1}};  // the colours are named beside the table
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
  ImGui::SetItemTooltip("%s", !is_known  ? "Its noise isn't known"
                              : is_noise ? "May be noise between the steps of each trace"
                                         : "Beyond the noise between the steps of each trace");
  right_cell(is_missing(difference.noise_ms) ? "-" : in_print("+/- ") + ms_figure(difference.noise_ms, whole),
             &palette().quiet);
  scroll_to_chosen(rows, use, 2);
  draw_rows(rows.size(), [&](std::size_t i) { difference_row(i, *rows[i], whole, is_wide, view.unlike.empty(), use); });
  ImGui::EndTable();
}

namespace {

// A part of the model in one step or two; one that only the step before has takes no time after.
struct PartRow {
  AnatomyRow row;
  double before_ms = 0;
};

std::vector<PartRow> parts_of(const ShownProfile* before, const ShownProfile& after, bool by_block) {
  using Key = std::tuple<StepPhase, ModelPart, int, KnownBy>;
  const auto rows_of = [&](const Anatomy& anatomy) { return by_block ? anatomy : by_part(anatomy); };
  const auto key = [](const AnatomyRow& row) { return Key{row.phase, row.part, row.block, row.known_by}; };
  std::vector<PartRow> rows;
  std::map<Key, std::size_t> places;
  for (const AnatomyRow& row : rows_of(after.anatomy)) {
    places[key(row)] = rows.size();
    rows.push_back({row, 0});
  }
  if (!before) return rows;
  for (const AnatomyRow& row : rows_of(before->anatomy)) {
    const auto [place, is_new] = places.try_emplace(key(row), rows.size());
    if (is_new) {
      rows.push_back({row, 0});
      rows.back().row.ms = 0;
    }
    rows[place->second].before_ms += row.ms;
  }
  return rows;
}

}  // namespace

void draw_anatomy_table(const ProfileView& view, bool& by_block, TableUse& use) {
  const ShownProfile* const before = view.before ? &*view.before : nullptr;
  const ShownProfile& after = *view.after;
  const bool compares = before && !before->anatomy.empty();
  std::vector<PartRow> rows = parts_of(compares ? before : nullptr, after, by_block);
  sort_rows(rows, use.sort, [&](const PartRow& each) -> SortKey {
    switch (use.sort.column) {
      case 0:
        return {.text = title_of(each.row)};
      case 1:
        return {.text = std::string(to_string(each.row.known_by))};
      case 2:
        return {each.before_ms};
      case 4:
        return {compares ? each.row.ms - each.before_ms : each.row.ms};
      default:
        return {each.row.ms};
    }
  });
  if (block_count(after.anatomy) > 1) {
    if (chip("Block by block", by_block)) by_block = !by_block;
    mark("profile.blocks");
    gap(6);
  }
  const float foot = ImGui::GetTextLineHeight() * 2 + px(10);
  ImGui::BeginChild("##anatomy", ImVec2(0, -foot));
  const double whole = std::max(after.step_ms, compares ? before->step_ms : 0);
  std::vector<Head> heads{{"part of the step", 0, false, 0}, {"known by", 76, false, 1}};
  if (compares) heads.push_back({"before", 66, true, 2});
  heads.push_back({compares ? "after" : "ms/step", 66, true, 3});
  heads.push_back({compares ? "change in ms" : "share", 92, true, 4});
  if (begin_table("##parts", heads, use.sort)) {
    draw_rows(rows.size(), [&](std::size_t i) {
      const AnatomyRow& row = rows[i].row;
      ImGui::TableNextRow();
      left_cell(title_of(row, after.anatomy), palette().text);
      left_cell(row.known_by == KnownBy::nothing ? "" : std::string(to_string(row.known_by)), palette().quiet);
      if (compares) right_cell(ms_figure(rows[i].before_ms, whole));
      right_cell(ms_figure(row.ms, whole));
      const double delta = row.ms - rows[i].before_ms;
      if (compares)
        right_cell(change_text(delta, whole), &change_colour(delta, whole, view.is_verdict()));
      else
        right_cell(percent_text(row.ms / after.step_ms), &palette().quiet);
    });
    ImGui::EndTable();
  }
  ImGui::EndChild();
  text_quiet_wrapped(certainty_of(after.anatomy, after.has_graphs));
}

void draw_rank_table(const RankReport& report, TableUse& use) {
  std::vector<RankRow> rows = report.rows;
  sort_rows(rows, use.sort, [&](const RankRow& row) -> SortKey {
    const std::array keys{static_cast<double>(row.rank), row.step_ms, row.own_ms(), row.idle_ms, row.communication_ms};
    return {keys[std::min<std::size_t>(static_cast<std::size_t>(use.sort.column), keys.size() - 1)]};
  });
  text_sentence(in_print(report.sentence), report.straggler ? Tone::warning : Tone::neutral);
  mark("profile.straggler");
  gap(6);
  double whole = 0;
  for (const RankRow& row : rows) whole = std::max(whole, row.step_ms);
  if (!begin_table("##ranks",
                   {{"rank", 0, false, 0},
                    {"ms/step", 80, true, 1},
                    {"until it can exchange", 150, true, 2},
                    {"of it idle", 90, true, 3},
                    {"exposed communication", 160, true, 4}},
                   use.sort))
    return;
  draw_rows(rows.size(), [&](std::size_t i) {
    const RankRow& row = rows[i];
    const bool is_late = report.straggler == row.rank;
    ImFont* const font = is_late ? fonts().semibold : nullptr;
    ImGui::TableNextRow();
    left_cell("rank " + std::to_string(row.rank) + (is_late ? ", the others wait for it" : ""),
              is_late ? palette().warning : palette().text, font);
    right_cell(ms_figure(row.step_ms, whole));
    right_cell(ms_figure(row.own_ms(), whole), nullptr, font);
    right_cell(ms_figure(row.idle_ms, whole), &palette().quiet);
    right_cell(ms_figure(row.communication_ms, whole), &palette().quiet);
  });
  ImGui::EndTable();
}

void draw_several_table(const ProfileView& view, const FoundRows& found, TableUse& use) {
  const SeveralTraces& several = view.several;
  const double whole = *std::max_element(several.step_ms.begin(), several.step_ms.end());
  std::vector<Head> heads{{"part", 66, false, 0}, {"operator", 0, false, 1}, {"", 42, false, 2}};
  for (std::size_t i = 0; i < several.step_ms.size(); ++i)
    heads.push_back({std::to_string(i + 1), 66, true, static_cast<int>(i) + 3});
  std::string names = "ms a step of";
  for (std::size_t i = 0; i < view.several_names.size(); ++i)
    names += (i > 0 ? ",  " : "  ") + std::to_string(i + 1) + " " + view.several_names[i];
  text_cut(names + "; two traces show what differs beyond noise", ImGui::GetContentRegionAvail().x, palette().quiet,
           fonts().regular, small_size);
  mark("profile.several");
  if (!begin_table("##several", heads, use.sort, 2)) return;
  ImGui::TableNextRow();
  left_cell("", palette().quiet);
  left_cell("A step", palette().text, fonts().semibold);
  left_cell("", palette().quiet);
  for (std::size_t i = 0; i < several.step_ms.size(); ++i)
    right_cell(ms_figure(several.step_ms[i], whole), nullptr, fonts().semibold);
  draw_rows(found.several.size(), [&](std::size_t number) {
    const SharedRow& row = *found.several[number];
    const std::string kernel = row.name.find(launches) == std::string::npos
                                   ? row.name
                                   : row.name.substr(row.name.find(launches) + launches.size());
    const std::string title = title_of(OperatorTime{.part = row.part, .name = row.name});
    begin_row(number, {.names = {kernel}, .kind = {}, .title = title}, use);
    left_text(row.part, palette().quiet);
    left_cell(title, palette().text);
    left_cell(row.is_new() ? "new" : row.is_gone() ? "gone" : "", row.is_new() ? palette().accent : palette().quiet);
    for (const double ms : row.ms) right_cell(is_missing(ms) ? "-" : ms_figure(ms, whole));
  });
  ImGui::EndTable();
}

// In a narrow room the rates are in the row's tooltip alone.
void draw_roofline_table(const ShownProfile& shown, TableUse& use) {
  const auto figure = [](double value) { return is_missing(value) ? std::string("-") : compact(value); };
  const float width = ImGui::GetContentRegionAvail().x;
  const bool has_rates = width > px(700);
  const float foot = ImGui::CalcTextSize(shown.ceiling.c_str(), nullptr, false, width).y + px(14);
  std::vector<Head> heads{{"kind of work", 124, false, 0}, {"ms/step", 66, true, 1}};
  if (has_rates) heads.insert(heads.end(), {{"known", 54, true, 2}, {"TFLOP/s", 68, true, 3}, {"GB/s", 60, true, 4}});
  heads.insert(heads.end(), {{"at best", 62, true, 5},
                             {"of the ceiling", 0, true, 6},
                             {"bound by", 70, false, 7},
                             {"gain then", 72, true, 8}});
  const auto gain_at_best = [&](OperatorKind kind) {
    const auto number = static_cast<std::size_t>(kind);
    return number < shown.gain_at_best.size() ? shown.gain_at_best[number] : missing;
  };
  std::vector<KindRoofline> rows = shown.rooflines;
  sort_rows(rows, use.sort, [&](const KindRoofline& each) -> SortKey {
    const std::array keys{missing,      each.ms, each.known_ms / each.ms, each.tflops(), each.gb_s(), each.least_ms,
                          each.share(), missing, gain_at_best(each.kind)};
    if (use.sort.column == 0) return {.text = std::string(to_string(each.kind))};
    if (use.sort.column == 7) return {.text = std::string(bound_of(each))};
    return {keys[static_cast<std::size_t>(use.sort.column)]};
  });
  ImGui::BeginChild("##rooflines", ImVec2(0, -foot));
  if (begin_table("##kinds", heads, use.sort)) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const KindRoofline& each = rows[i];
      const std::string known = percent_text(each.known_ms / each.ms);
      begin_row(i, {.names = {}, .kind = each.kind, .title = std::string(to_string(each.kind))}, use);
      kind_text(each.kind);
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
      right_cell(is_missing(gain_at_best(each.kind)) ? "-" : in_print(factor_text(gain_at_best(each.kind))));
      ImGui::SetItemTooltip(
          "The step's gain if this kind of work ran at best, and everything else waited as in this step");
    }
    ImGui::EndTable();
  }
  ImGui::EndChild();
  text_quiet_wrapped(shown.ceiling);
}

void draw_stage_table(const ShownProfile& shown, TableUse& use) {
  const float width = ImGui::GetContentRegionAvail().x;
  const float foot =
      shown.best_order.empty() ? 0 : ImGui::CalcTextSize(shown.best_order.c_str(), nullptr, false, width).y + px(14);
  ImGui::BeginChild("##stages", ImVec2(0, -foot));
  if (begin_table("##stages", {{"stage", 130, false}, {"gain", 150, false}, {"step", 0, false}}, use.sort)) {
    for (std::size_t i = 0; i < shown.stages.size(); ++i) {
      const ShownStage& each = shown.stages[i];
      const bool is_known = each.why_unknown.empty();
      begin_row(i, {.names = {}, .kind = {}, .title = each.title}, use);
      left_text(each.title, is_known ? palette().text : palette().quiet);
      left_cell(is_known ? in_print(each.gain) : "-", palette().text);
      left_cell(is_known ? in_print(each.step) : each.why_unknown, palette().quiet);
    }
    ImGui::EndTable();
  }
  ImGui::EndChild();
  if (!shown.best_order.empty()) text_quiet_wrapped(in_print(shown.best_order));
}

}  // namespace stepladder
