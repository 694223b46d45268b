// Compare's table. Rows are text that a pure function derives (`compared_numbers`), so that tests read them without a
// window. Where the width isn't enough, columns disappear by their rank in `all_columns`.
#include "app/panels/compare/numbers.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "app/desktop/metrics/metric_list.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {

struct NumberColumn {
  enum class Shown { always, with_cursors, with_target };

  const char* title;
  float width;
  int rank;                                      // the highest is hidden first if there isn't room for all
  std::string ComparedNumbers::*text = nullptr;  // null: the loss
  Shown shown = Shown::always;

  bool is_doubted_in(const ComparedNumbers& row) const {
    if (text == &ComparedNumbers::tokens_per_s) return row.rate_is_doubted;
    return row.factor_is_doubted && (text == &ComparedNumbers::factor || text == &ComparedNumbers::ci95);
  }
  bool is_number() const { return text && text != &ComparedNumbers::verdict; }  // the others are pills
};

namespace {

using Shown = NumberColumn::Shown;

constexpr std::array<NumberColumn, 15> all_columns{{
    {"tokens/s", 76, 0, &ComparedNumbers::tokens_per_s},
    {"vs baseline", 84, 1, &ComparedNumbers::factor},
    {"95 % interval", 110, 3, &ComparedNumbers::ci95},
    {"verdict", 150, 2, &ComparedNumbers::verdict},
    {"loss vs baseline", 124, 4},
    {"steps to target", 150, 5, &ComparedNumbers::target_steps, Shown::with_target},
    {"time", 96, 6, &ComparedNumbers::target_time, Shown::with_target},
    {"tokens", 76, 7, &ComparedNumbers::target_tokens, Shown::with_target},
    {"mean", 110, 11, &ComparedNumbers::mean},
    {"min", 70, 12, &ComparedNumbers::min},
    {"max", 70, 13, &ComparedNumbers::max},
    {"last", 70, 10, &ComparedNumbers::last},
    {"last vs baseline", 130, 14, &ComparedNumbers::last_gap},
    {"at A, B", 130, 8, &ComparedNumbers::at_cursors, Shown::with_cursors},
    {"B - A", 76, 9, &ComparedNumbers::between_them, Shown::with_cursors},
}};

// The columns that fit beside the runs' names, chosen by rank, and the titles of the others.
struct FittingColumns {
  std::vector<const NumberColumn*> shown;
  std::vector<std::string> hidden;
};

FittingColumns columns_for(float width, bool has_cursors, bool has_target) {
  std::vector<const NumberColumn*> by_rank;
  for (const NumberColumn& column : all_columns) {
    if (column.shown == Shown::with_cursors ? has_cursors : column.shown == Shown::always || has_target)
      by_rank.push_back(&column);
  }
  std::sort(by_rank.begin(), by_rank.end(),
            [](const NumberColumn* a, const NumberColumn* b) { return a->rank < b->rank; });
  float room = width - px(190);
  FittingColumns columns;
  for (const NumberColumn* column : by_rank) {
    room -= px(column->width) + 2 * ImGui::GetStyle().CellPadding.x;
    if (room >= 0) {
      columns.shown.push_back(column);
    } else {
      columns.hidden.push_back(column->title);
    }
  }
  std::sort(columns.shown.begin(), columns.shown.end());  // as in all_columns
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

// Whether it holds together with the others depends on lines that aren't judged.
constexpr const char* open_verdict = "open";

void set_verdict(ComparedNumbers& row, const RungJudgement& judged) {
  const Gain& gain = judged.over_baseline;
  if (is_missing(gain.factor)) {
    row.verdict = judged.why_no_factor;
    return;
  }
  if (gain.is_open) {
    row.verdict = open_verdict;
    row.verdict_tone = Tone::warning;
    return;
  }
  const char* sign = gain.is(Verdict::faster) ? "+ " : gain.is(Verdict::slower) ? "- " : "";
  row.verdict = sign + verdict_text(gain);
  row.verdict_tone = tone_of(gain);
}

void set_baseline(ComparedNumbers& row, Trust trust) {
  row.verdict = trust == Trust::trusted ? "baseline" : "baseline, " + std::string(to_string(trust));
  row.verdict_tone = trust == Trust::impossible ? Tone::bad : trust == Trust::doubtful ? Tone::warning : Tone::neutral;
}

// Above the rows: how many of very many lines are judged, and a button that judges the others.
void draw_unjudged(CompareView& view) {
  if (view.shown.unjudged == 0) {
    view.options.judges_all = false;
    return;
  }
  const std::size_t all = view.lines().size();
  text_quiet(grouped(all - view.shown.unjudged) + " of " + grouped(all) + " rows judged" +
             (view.options.judges_all ? "..." : ": those seen so far"));
  mark("compare.judged");
  wrapped_tooltip("Verdicts of all rows hold together. One that is \"" + std::string(open_verdict) +
                      "\" may hold with the others or not.",
                  320);
  if (view.options.judges_all) return;
  same_line(10);
  ImGui::PushFont(fonts().regular, small_size);
  if (ImGui::SmallButton("Judge all")) view.options.judges_all = true;
  ImGui::PopFont();
  mark("compare.judge_all");
  ImGui::SetItemTooltip("Reads the steps of all runs");
}

// "Loss: mean": it says which metric the columns from here on are of.
std::string mean_title(const CompareView& view, float room) {
  return cut_to(std::string(title_of(view.first_metric())) + (view.x.zoomed() ? ": visible mean" : ": mean"), room,
                Cut::middle);
}

void draw_head(const FittingColumns& fitting, const CompareView& view, float spread) {
  const std::vector<const NumberColumn*>& columns = fitting.shown;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("run", ImGuiTableColumnFlags_WidthStretch);
  for (const NumberColumn* column : columns)
    ImGui::TableSetupColumn(column->title, ImGuiTableColumnFlags_WidthFixed, px(column->width) * spread);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  ImGui::TableNextColumn();
  text_quiet("run");
  if (!fitting.hidden.empty()) {
    same_line(12);
    text_quiet(plural(fitting.hidden.size(), "column") + " hidden");
    mark("compare.hidden_columns");
    wrapped_tooltip(fmt::format("No room for {}. A wider window shows them.", fmt::join(fitting.hidden, ", ")), 320);
  }
  for (const NumberColumn* column : columns) {
    ImGui::TableNextColumn();
    std::string title = column->title;
    if (column->text == &ComparedNumbers::mean) title = mean_title(view, ImGui::GetContentRegionAvail().x);
    if (column->text == &ComparedNumbers::target_steps) title = target_title(view.shown.targets);
    if (column->is_number()) {
      text_right(title, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, fonts().regular, small_size,
                 &palette().quiet);
      if (column->shown == Shown::with_cursors) mark("compare.cursors");
      if (column->shown == Shown::with_target) {
        mark("compare.reached");
        wrapped_tooltip(target_explanation(view.shown.targets), 320);
      }
    } else {
      text_quiet(title);
    }
  }
}

}  // namespace

ComparedNumbers compared_numbers(const ComparedLine& line, bool is_base, const RungJudgement* judged,
                                 const RangeStatistics& visible, Quantity metric, const SharedX& x) {
  ComparedNumbers row;
  if (is_base) set_baseline(row, judged ? judged->trust : Trust::trusted);
  if (judged) {
    const Gain& gain = judged->over_baseline;
    row.rate_is_doubted = !judged->is_trusted();
    row.factor_is_doubted = !is_base && gain.worst() != Trust::trusted;
    row.tokens_per_s = tokens_per_s_text(judged->tokens_per_s);
    row.factor = is_base ? "1 x" : factor_text(gain.factor);
    if (!is_base && gain.ci95.known()) row.ci95 = ci95_text(gain.ci95);
    if (!is_base) set_verdict(row, *judged);
    const bool is_to_come = judged->is_under_way && judged->loss.verdict == LossVerdict::not_comparable;
    if (!is_base && !is_to_come) row.loss = judged->loss;
  } else {
    row.tokens_per_s = row.factor = row.ci95 = "...";
  }
  row.mean = value_text(metric, visible.mean);
  row.min = value_text(metric, visible.low);
  row.max = value_text(metric, visible.high);
  const bool sees_end = !line.of(metric).points.empty() && (!x.zoomed() || x.high >= line.of(metric).points.x.back());
  row.last = sees_end && line.of(metric).ends_not_finite ? "NaN or inf" : value_text(metric, visible.last);
  if (!is_base) row.last_gap = last_gap_text(line.of(metric).last_gap);
  if (is_missing(x.a) && is_missing(x.b)) return row;
  const double a = is_missing(x.a) ? missing : value_at(line.of(metric).values(), x.a);
  const double b = is_missing(x.b) ? missing : value_at(line.of(metric).values(), x.b);
  row.at_cursors = value_text(metric, a) + ", " + value_text(metric, b);
  row.between_them = is_missing(a) || is_missing(b) ? "-" : (b >= a ? "+" : "-") + value_text(metric, std::fabs(b - a));
  return row;
}

std::string last_gap_text(const LastGap& gap) {
  if (is_missing(gap.delta)) return "-";
  const std::string factor = is_missing(gap.factor) ? "" : " (" + factor_text(gap.factor) + ")";
  return (gap.is_estimate ? "~ " : "") + std::string(gap.delta > 0 ? "+" : "") + metric_value_text(gap.delta) + factor;
}

void set_target(ComparedNumbers& row, const TargetOfRuns& target, bool is_estimate) {
  if (target.reached == 0) {
    row.target_steps = "not reached";
    return;
  }
  const std::string about = is_estimate ? "~ " : "";
  row.target_steps = about + grouped(std::llround(target.steps));
  if (target.runs > 1)
    row.target_steps += " (" + std::to_string(target.reached) + " of " + std::to_string(target.runs) + ")";
  if (target.once > 0) row.target_steps += ", once";
  row.target_time = is_missing(target.seconds) ? "-" : about + duration_text(target.seconds);
  row.target_tokens = is_missing(target.tokens) ? "-" : about + compact(target.tokens);
}

namespace {

// The numbers of runs that are judged by validation losses and by training losses.
struct JudgedBy {
  int validation = 0;
  int training = 0;
};

JudgedBy judged_by(const ComparedTargets& targets) {
  JudgedBy by;
  for (const auto& [line, target] : targets.lines) {
    by.validation += target.by_validation;
    by.training += target.runs - target.by_validation;
  }
  return by;
}

// Cut to its column, since a reason why there is no verdict may be long.
void verdict_pill(const ComparedNumbers& row) {
  ImGui::PushFont(fonts().regular, small_size);
  const std::string fits = cut_to(row.verdict, ImGui::GetContentRegionAvail().x - px(16));
  ImGui::PopFont();
  pill(fits, row.verdict_tone);
  if (fits != row.verdict) wrapped_tooltip(capitalised(row.verdict), 360);
}

}  // namespace

std::string target_title(const ComparedTargets& targets) {
  return std::string("steps to ") + (judged_by(targets).training == 0 ? "val loss " : "loss ") +
         loss_text(targets.loss);
}

std::string target_explanation(const ComparedTargets& targets) {
  const JudgedBy by = judged_by(targets);
  std::string text = "The first step at which ";
  text += by.training == 0 ? "the validation loss"
          : by.validation == 0
              ? "the median of the last five training losses"
              : "the validation loss (of a run without one: the median of its last five training losses)";
  text += " was at most " + loss_text(targets.loss) + ", the time of the steps up to it, and their tokens.";
  if (std::any_of(targets.lines.begin(), targets.lines.end(), [](const auto& line) { return line.second.runs > 1; }))
    text += " Of several runs: the medians over those that reached it.";
  if (targets.is_estimate) text += " ~: of a long run, from an excerpt of its steps.";
  return text;
}

const RangeStatistics& CompareTable::visible(const ComparedLine& line, Quantity metric, const SharedX& x) {
  const double low = x.zoomed() ? x.low : -std::numeric_limits<double>::infinity();
  const double high = x.zoomed() ? x.high : std::numeric_limits<double>::infinity();
  Visible& known = visible_[line.id()];
  if (known.low != low || known.high != high || known.metric != metric) {
    const ComparedMetric& values = line.of(metric);
    known = {metric, low, high, statistics_between(values.points, low, high)};
    if (!values.means.empty()) known.statistics.mean = statistics_between(values.means, low, high).mean;
    const bool sees_end = !values.points.empty() && values.points.x.back() <= high;
    if (sees_end && !is_missing(values.last)) known.statistics.last = values.last;  // the points are lows and highs
  }
  return known.statistics;
}

void CompareTable::draw_row(CompareView& view, std::size_t i, const std::vector<const NumberColumn*>& columns) {
  const ComparedLine& line = view.lines()[i];
  const bool is_base = &line == &view.base_line();
  const RunId id = line.id();
  view.rows_drawn.push_back(id);
  const bool is_hidden = view.hidden.has(id);
  const auto judged = view.shown.judged.find(id);
  const Quantity metric = view.first_metric();
  ComparedNumbers row = compared_numbers(line, is_base, judged == view.shown.judged.end() ? nullptr : &judged->second,
                                         visible(line, metric, view.x), metric, view.x);
  const auto target = view.shown.targets.lines.find(id);
  if (target != view.shown.targets.lines.end()) set_target(row, target->second, view.shown.targets.is_estimate);
  ImGui::PushID(static_cast<int>(i));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const float top = ImGui::GetCursorPosY();
  if (ImGui::Selectable("##row", view.highlighted == id,
                        ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap |
                            ImGuiSelectableFlags_AllowDoubleClick,
                        ImVec2(0, px(20)))) {
    if (ImGui::GetIO().KeyAlt) {
      view.hidden.show_only(id, view.lines());
    } else if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
      view.hidden.double_click(id, view.lines());
    } else {
      view.hidden.click(id);
    }
  }
  if (ImGui::IsItemHovered()) view.hovered = id;
  if (ImGui::IsItemClicked(ImGuiMouseButton_Right)) view.open_menu(id);
  mark("compare.row." + std::to_string(id));
  if (is_hidden) mark("compare.hidden." + std::to_string(id));
  ImGui::SetItemTooltip("%s\nClick: hide or show. Double-click: only this one. Right button: colour, baseline, details",
                        line.name.c_str());
  ImGui::SameLine(px(12));
  const float text_top = top + px(2);  // the pills beside it are higher
  ImGui::SetCursorPosY(text_top);
  look_square(view.colour_of(line), is_hidden ? 0.25f : 1.0f);
  ImGui::SameLine();
  ImGui::SetCursorPosY(text_top);
  text_cut(is_hidden ? "hidden: " + line.label : line.label, ImGui::GetContentRegionAvail().x,
           is_hidden ? palette().quiet : palette().text, is_base ? fonts().semibold : fonts().regular, text_size,
           Cut::middle);
  for (const NumberColumn* column : columns) {
    ImGui::TableNextColumn();
    if (column->is_number()) {
      ImGui::SetCursorPosY(text_top);
      text_right(in_print(row.*column->text), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, nullptr, 0,
                 column->is_doubted_in(row) ? &palette().quiet : &palette().text);
    } else if (column->text) {
      if (!row.verdict.empty()) verdict_pill(row);
    } else if (row.loss) {
      loss_pill(*row.loss);
    } else if (is_base) {
      pill(loss_text({}, true), Tone::neutral);
    }
  }
  ImGui::PopID();
}

void CompareTable::draw(CompareView& view) {
  draw_unjudged(view);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool has_cursors = !is_missing(view.x.a) || !is_missing(view.x.b);
  const FittingColumns fitting = columns_for(room.x, has_cursors, !is_missing(view.shown.targets.loss));
  const std::vector<const NumberColumn*>& columns = fitting.shown;
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH |
                                    ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingStretchProp |
                                    ImGuiTableFlags_PadOuterX | ImGuiTableFlags_Resizable;
  // A table for each set of columns, so that each keeps its own widths.
  std::string id = "##numbers";
  for (const NumberColumn* column : columns) id += std::to_string(column->rank) + ".";
  if (!ImGui::BeginTable(id.c_str(), static_cast<int>(columns.size()) + 1, flags, room)) return;
  // In a wide window all columns are wider, else the names would be far from their numbers.
  draw_head(fitting, view, std::max(1.0f, room.x / px(1600)));
  draw_rows(view.lines().size(), [&](std::size_t i) { draw_row(view, i, columns); });
  ImGui::EndTable();
}

}  // namespace stepladder
