// Draws the Profile view's tables of a step as a whole: parts of the model, ranks, several traces and roofline.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/profile/table_parts.h"
#include "app/panels/profile/tables.h"
#include "app/profile/difference_text.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

// The share of the ceiling as a bar and a number.
void ceiling_cell(const KindRoofline& each) {
  ImGui::TableNextColumn();
  const float room = ImGui::GetContentRegionAvail().x - px(4), number = px(52);
  const float right = ImGui::GetCursorPosX() + room, top = ImGui::GetCursorPosY();
  if (is_missing(each.share())) return text_right("-", right, fonts().regular, table_cell_size, &palette().quiet);
  if (room > number + px(24)) {
    ImGui::SetCursorPosY(top + ImGui::GetTextLineHeight() / 2 - px(3));
    progress_bar(each.share(), room - number);
    ImGui::SetCursorPos(ImVec2(right - number, top));
  }
  text_right(percent_text(each.share()), right, fonts().regular, table_cell_size);
}

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
  sort_rows(rows, use.sort, [&](const PartRow& each) -> TableSortKey {
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
  std::vector<TableHead> heads{{"part of the step", 0, false, 0}, {"known by", 76, false, 1}};
  if (compares) heads.push_back({"before", 66, true, 2});
  heads.push_back({compares ? "after" : unit_of(after), 66, true, 3});
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
  sort_rows(rows, use.sort, [&](const RankRow& row) -> TableSortKey {
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
  std::vector<TableHead> heads{{"part", 66, false, 0}, {"operator", 0, false, 1}, {"", 42, false, 2}};
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
  // Of a GPU a kernel's whole time, which its rate needs; Kinds of work counts each moment once.
  std::vector<TableHead> heads{{"kind of work", 124, false, 0},
                               {(shown.on_gpu ? "busy " : "") + std::string(unit_of(shown)), 88, true, 1}};
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
  sort_rows(rows, use.sort, [&](const KindRoofline& each) -> TableSortKey {
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
      wrapped_tooltip("The step's gain if this kind of work ran at best, and everything else waited as in this step",
                      360);
    }
    ImGui::EndTable();
  }
  ImGui::EndChild();
  text_quiet_wrapped(shown.ceiling);
}

}  // namespace stepladder
