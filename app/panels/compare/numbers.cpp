#include "app/panels/compare/numbers.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/format.h"
#include "app/verdict_text.h"

namespace stepladder {

enum class Needs { nothing, room, much_room, cursors };

struct NumberColumn {
  const char* title;
  float width;
  Needs needs = Needs::nothing;
  std::string ComparedNumbers::*text = nullptr;  // null: the loss

  bool is_number() const { return text && text != &ComparedNumbers::verdict; }  // the others are pills
};

namespace {

constexpr std::array<NumberColumn, 11> all_columns{{
    {"tokens/s", 76, Needs::nothing, &ComparedNumbers::tokens_per_s},
    {"vs baseline", 84, Needs::nothing, &ComparedNumbers::factor},
    {"95 % interval", 110, Needs::room, &ComparedNumbers::ci95},
    {"verdict", 150, Needs::nothing, &ComparedNumbers::verdict},
    {"loss", 124},
    {"mean", 96, Needs::much_room, &ComparedNumbers::mean},
    {"min", 70, Needs::much_room, &ComparedNumbers::min},
    {"max", 70, Needs::much_room, &ComparedNumbers::max},
    {"last", 70, Needs::room, &ComparedNumbers::last},
    {"at A, B", 130, Needs::cursors, &ComparedNumbers::at_cursors},
    {"B - A", 76, Needs::cursors, &ComparedNumbers::between_them},
}};

std::vector<const NumberColumn*> columns_for(float width, bool has_cursors) {
  std::vector<const NumberColumn*> columns;
  for (const NumberColumn& column : all_columns) {
    const bool fits = column.needs == Needs::nothing || (column.needs == Needs::room && width > px(820)) ||
                      (column.needs == Needs::much_room && width > px(1180)) ||
                      (column.needs == Needs::cursors && has_cursors);
    if (fits) columns.push_back(&column);
  }
  return columns;
}

std::string value_text(Quantity metric, double value) {
  return metric == Quantity::loss || metric == Quantity::val_loss ? loss_text(value) : compact(value);
}

Tone tone_of(const Gain& gain) {
  if (gain.worst() == Trust::impossible) return Tone::bad;
  if (gain.worst() == Trust::doubtful) return Tone::warning;
  switch (gain.verdict) {
    case Verdict::faster:
      return Tone::good;
    case Verdict::slower:
      return Tone::bad;
    case Verdict::same:
      return Tone::neutral;
    case Verdict::cannot_tell:
      break;
  }
  return Tone::warning;
}

void say_verdict(ComparedNumbers& row, const RungJudgement& judged) {
  const Gain& gain = judged.over_baseline;
  if (is_missing(gain.factor)) {
    const bool is_timed = !is_missing(judged.tokens_per_s) || !is_missing(judged.steps_per_s);
    row.verdict = is_timed ? "baseline not timed" : "no step times";
    return;
  }
  const char* sign = gain.is(Verdict::faster) ? "+ " : gain.is(Verdict::slower) ? "- " : "";
  row.verdict = sign + verdict_text(gain);
  row.verdict_tone = tone_of(gain);
}

void say_baseline(ComparedNumbers& row, Trust trust) {
  row.verdict = trust == Trust::trusted ? "baseline" : "baseline, " + std::string(to_string(trust));
  row.verdict_tone = trust == Trust::impossible ? Tone::bad : trust == Trust::doubtful ? Tone::warning : Tone::neutral;
}

void draw_head(const std::vector<const NumberColumn*>& columns, bool zoomed) {
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("run", ImGuiTableColumnFlags_WidthStretch);
  for (const NumberColumn* column : columns)
    ImGui::TableSetupColumn(column->title, ImGuiTableColumnFlags_WidthFixed, px(column->width));
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  ImGui::TableNextColumn();
  text_quiet("run");
  for (const NumberColumn* column : columns) {
    ImGui::TableNextColumn();
    const char* title = zoomed && column->text == &ComparedNumbers::mean ? "mean (visible)" : column->title;
    if (column->is_number()) {
      text_right(title, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, fonts().regular, small_size,
                 &palette().quiet);
      if (column->needs == Needs::cursors) mark("compare.cursors");
    } else {
      text_quiet(title);
    }
  }
}

}  // namespace

ComparedNumbers compared_numbers(const ComparedLine& line, bool is_base, const RungJudgement* judged,
                                 const RangeStatistics& visible, Quantity metric, const SharedX& x) {
  ComparedNumbers row;
  if (is_base) say_baseline(row, judged ? judged->trust : Trust::trusted);
  if (judged) {
    const Gain& gain = judged->over_baseline;
    row.tokens_per_s = tokens_per_s_text(judged->tokens_per_s);
    row.factor = is_base ? "1 x" : factor_text(gain.factor);
    if (!is_base && gain.ci95.known()) row.ci95 = ci95_text(gain.ci95);
    if (!is_base) say_verdict(row, *judged);
    if (!is_base) row.loss = judged->loss;
  } else {
    row.tokens_per_s = row.factor = row.ci95 = "...";
  }
  row.mean = value_text(metric, visible.mean);
  row.min = value_text(metric, visible.low);
  row.max = value_text(metric, visible.high);
  row.last = value_text(metric, visible.last);
  if (is_missing(x.a) && is_missing(x.b)) return row;
  const double a = is_missing(x.a) ? missing : value_at(line.values(0), x.a);
  const double b = is_missing(x.b) ? missing : value_at(line.values(0), x.b);
  row.at_cursors = value_text(metric, a) + ", " + value_text(metric, b);
  row.between_them = is_missing(a) || is_missing(b) ? "-" : (b >= a ? "+" : "-") + value_text(metric, std::fabs(b - a));
  return row;
}

const RangeStatistics& CompareTable::visible(const ComparedLine& line, const SharedX& x) {
  const double low = x.zoomed() ? x.low : -std::numeric_limits<double>::infinity();
  const double high = x.zoomed() ? x.high : std::numeric_limits<double>::infinity();
  Visible& known = visible_[line.runs.front()];
  if (known.low != low || known.high != high) {
    known = {low, high, statistics_between(line.points[0], low, high)};
    if (!line.means[0].empty()) known.statistics.mean = statistics_between(line.means[0], low, high).mean;
  }
  return known.statistics;
}

void CompareTable::draw_row(CompareView& view, std::size_t i, const std::vector<const NumberColumn*>& columns,
                            Commands& commands) {
  const ComparedLine& line = view.lines()[i];
  const bool is_base = &line == &view.base_line();
  const RunId id = line.runs.front();
  const auto judged = view.shown.judged.find(id);
  const ComparedNumbers row =
      compared_numbers(line, is_base, judged == view.shown.judged.end() ? nullptr : &judged->second,
                       visible(line, view.x), view.shown.curves.options.metrics[0], view.x);
  ImGui::PushID(static_cast<int>(i));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const float top = ImGui::GetCursorPosY();
  if (ImGui::Selectable("##row", is_base, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap,
                        ImVec2(0, px(20))))
    view.base = id;
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) commands.push_back(OpenRun{id});
  mark("compare.row." + std::to_string(id));
  ImGui::SetItemTooltip("Click to make it the baseline, double-click to open the run");
  ImGui::SameLine(px(12));
  const float text_top = top + px(2);  // the pills beside it are higher
  ImGui::SetCursorPosY(text_top);
  colour_square(rung_colour(line.colour));
  ImGui::SameLine();
  ImGui::SetCursorPosY(text_top);
  text_cut(line.label, ImGui::GetContentRegionAvail().x, palette().text, is_base ? fonts().semibold : fonts().regular,
           text_size, Cut::middle);
  for (const NumberColumn* column : columns) {
    ImGui::TableNextColumn();
    if (column->is_number()) {
      ImGui::SetCursorPosY(text_top);
      text_right(in_print(row.*column->text), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x);
    } else if (column->text) {
      if (!row.verdict.empty()) pill(row.verdict, row.verdict_tone);
    } else if (row.loss) {
      loss_pill(*row.loss);
    }
  }
  ImGui::PopID();
}

void CompareTable::draw(CompareView& view, Commands& commands) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const auto columns = columns_for(room.x, !is_missing(view.x.a) || !is_missing(view.x.b));
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH |
                                    ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingStretchProp |
                                    ImGuiTableFlags_PadOuterX | ImGuiTableFlags_Resizable;
  // A table for each set of columns, so that each keeps its own widths.
  const std::string id = "##numbers" + std::to_string(columns.size());
  if (!ImGui::BeginTable(id.c_str(), static_cast<int>(columns.size()) + 1, flags, room)) return;
  draw_head(columns, view.x.zoomed());
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(view.lines().size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_row(view, static_cast<std::size_t>(i), columns, commands);
  }
  ImGui::EndTable();
}

}  // namespace stepladder
