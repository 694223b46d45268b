// Shows a ladder as a sweep: its combinations in a table, and one result as lines. Results are derived again when runs
// change; the steps to a target are searched for 4 ms per frame, since runs may be long.
#include "app/panels/ladder/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <span>

#include "app/desktop/charts/charts.h"
#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/ladder/parts.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr float one_line = 26, two_lines = 36;  // of a row
constexpr float cell_padding = 8;
constexpr std::size_t most_named_ticks = 12;
constexpr std::size_t most_bands = 4;  // more would cover each other
constexpr std::size_t most_lines_in_legend = 12;
constexpr auto most_search = std::chrono::milliseconds(4);  // for targets, in one frame

// Text at the right edge of the table's cell.
void right_in_cell(const std::string& text, ImFont* font, float size, const ImVec4& colour) {
  text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, font, size, &colour);
}

// Draws the mean, and beneath it the range over several runs or how many never reached the target.
void draw_figure(const SweptFigure& figure, const SweepResultKind& kind, bool is_best, bool is_quiet, float height) {
  const ImVec2 corner = ImGui::GetCursorPos();
  const ImVec4& ink = is_quiet ? palette().quiet : is_best ? palette().good : palette().text;
  const std::string never =
      kind.needs_target() && figure.left_out > 0 ? std::to_string(figure.left_out) + " never" : std::string();
  const bool has_range = figure.low < figure.high;
  const bool has_more = has_range || (!never.empty() && figure.runs > 0);
  ImGui::SetCursorPosY(corner.y + (has_more ? px(1) : (height - px(18)) / 2));
  right_in_cell(figure.runs == 0 && !never.empty() ? never : kind.text(figure.mean),
                is_best ? fonts().semibold : fonts().regular, text_size, ink);
  if (!has_more) return;
  ImGui::SetCursorPos(ImVec2(corner.x, corner.y + px(18)));
  right_in_cell(never.empty() ? kind.text(figure.low) + " \xE2\x80\x93 " + kind.text(figure.high) : never,
                fonts().regular, small_size, palette().quiet);
}

// The swept value with the most different ones, so that a result against it has the fewest lines; empty without any.
std::string finest_of(const SweepResults& results) {
  std::string finest;
  std::size_t most = 0;
  for (std::size_t i = 0; i < results.names.size(); ++i) {
    std::set<std::string> values;
    for (const SweptRung& rung : results.rungs) values.insert(value_text(rung.values[i]));
    if (values.size() > most) most = values.size(), finest = results.names[i];
  }
  return finest;
}

std::vector<ChartTick> ticks_of(const SweepLines& lines) {
  std::vector<ChartTick> ticks;
  if (lines.ticks.size() > most_named_ticks) return ticks;
  for (const auto& [place, words] : lines.ticks) ticks.push_back({place, words});
  return ticks;
}

}  // namespace

// A column of the table: a swept value, the number of runs, a result, or the plausibility.
struct SweepView::Column {
  enum class Kind { value, runs, result, truth } kind = Kind::value;
  std::size_t value = 0;  // of results_.names
  SweepResult result = SweepResult::loss_last;
  std::string title = {};
  float width = 80;
};

std::string SweepView::result_id() const {
  return result_ < 0 ? "" : sweep_result_kinds()[static_cast<std::size_t>(result_)].id;
}

int SweepView::best_rung() const {
  const int best = results_.best(shown_result());
  return best < 0 ? -1 : results_.rungs[static_cast<std::size_t>(best)].rung;
}

void SweepView::choose(const std::string& result_id) {
  for (const SweepResultKind& kind : sweep_result_kinds()) {
    if (kind.id == result_id) result_ = static_cast<int>(kind.result);
  }
}

bool SweepView::follow(const Workspace& workspace, LadderId ladder, Commands& commands) {
  const std::size_t known_targets = reached_.size();
  if (ladder_ == ladder) find_targets(workspace, commands);
  if (ladder_ == ladder && version_ == workspace.version && reached_.size() == known_targets)
    return !results_.names.empty();
  if (ladder_ != ladder) reached_.clear();
  ladder_ = ladder;
  version_ = workspace.version;
  std::vector<const Run*> runs;
  std::vector<SweptRun> swept;
  is_ours_ = true;
  for (const RunEntry* entry : workspace.runs_of(ladder)) {
    runs.push_back(&entry->run);
    is_ours_ = is_ours_ && entry->run.source == "launched" && is_over(entry->run.status);
    swept.push_back({.run = &entry->run, .summary = &entry->summary});
    if (const auto found = reached_.find(entry->run.id); found != reached_.end()) swept.back().target = found->second;
  }
  const std::vector<std::string> names = swept_names(runs);
  results_ = names.empty() ? SweepResults{} : sweep_results(swept, names, workspace.hardware);
  if (std::ranges::find(names, against_) == names.end()) against_ = finest_of(results_);
  return !names.empty();
}

// Searches the runs that are in memory for the target, some in each frame. A run that is too long to be in memory has
// none.
void SweepView::find_targets(const Workspace& workspace, Commands& commands) {
  if (is_missing(target_) || results_.names.empty()) return;
  const auto end = std::chrono::steady_clock::now() + most_search;
  for (const RunEntry* entry : workspace.runs_of(ladder_)) {
    if (!entry->loaded || entry->run.status != RunStatus::finished || reached_.contains(entry->run.id)) continue;
    if (std::chrono::steady_clock::now() > end) {
      commands.data.next_frame = true;
      return;
    }
    reached_[entry->run.id] = reach(entry->run, entry->series(), target_);
  }
}

SweepResult SweepView::shown_result() const {
  if (result_ >= 0) return static_cast<SweepResult>(result_);
  for (const SweepResult usual : {SweepResult::val_loss_last, SweepResult::loss_last}) {
    if (results_.has(usual)) return usual;
  }
  return SweepResult::loss_last;
}

// The chosen result comes first.
std::vector<SweepView::Column> SweepView::columns(const LadderModel& model, SweepResult result) const {
  using Kind = Column::Kind;
  std::vector<Column> list;
  for (std::size_t i = 0; i < results_.names.size(); ++i) {
    std::size_t letters = results_.names[i].size();
    for (const SweptRung& rung : results_.rungs) letters = std::max(letters, value_text(rung.values[i]).size());
    list.push_back({.kind = Kind::value,
                    .value = i,
                    .title = results_.names[i],
                    .width = std::clamp(18 + 7 * static_cast<float>(letters), 52.0f, 220.0f)});
  }
  const bool has_trouble =
      std::ranges::any_of(results_.rungs, [](const SweptRung& rung) { return !rung.trouble.empty(); });
  list.push_back({.kind = Kind::runs, .title = "runs", .width = has_trouble ? 62.0f : 44.0f});
  std::vector<SweepResult> shown{result};
  for (const SweepResult usual : {SweepResult::val_loss_last, SweepResult::loss_last, SweepResult::tokens_per_s}) {
    if (usual != result && results_.has(usual)) shown.push_back(usual);
  }
  for (const SweepResult each : shown) {
    const SweepResultKind& kind = kind_of(each);
    const std::string unit = kind.unit;
    const std::string title = each == SweepResult::tokens_per_s ? unit
                              : unit.empty() || unit == "B"     ? kind.title
                                                                : std::string(kind.title) + ", " + unit;
    list.push_back({.kind = Kind::result, .result = each, .title = title, .width = 92});
  }
  const bool has_doubts = std::ranges::any_of(results_.rungs, [&](const SweptRung& rung) {
    const LadderRung* judged = model.rung(rung.rung);
    return rung.trouble.empty() && judged && !judged->trusted();
  });
  if (has_doubts) list.push_back({.kind = Kind::truth, .title = "plausible?", .width = 112});
  return list;
}

std::vector<std::size_t> SweepView::sorted_rungs(const std::vector<Column>& columns, SweepResult result) const {
  std::vector<std::size_t> order = results_.ranked(result);
  const ImGuiTableSortSpecs* sorting = ImGui::TableGetSortSpecs();
  if (!sorting || sorting->SpecsCount == 0) return order;
  const Column& column = columns[static_cast<std::size_t>(sorting->Specs[0].ColumnIndex)];
  const bool is_down = sorting->Specs[0].SortDirection == ImGuiSortDirection_Descending;
  const auto number = [&](std::size_t place) {
    const SweptRung& rung = results_.rungs[place];
    return column.kind == Column::Kind::result ? rung.of(column.result).mean : static_cast<double>(rung.finished);
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (column.kind == Column::Kind::value) {
      const auto& left = results_.rungs[a].values[column.value];
      const auto& right = results_.rungs[b].values[column.value];
      return is_down ? right < left : left < right;
    }
    const double left = number(a), right = number(b);
    if (is_missing(left) || is_missing(right)) return !is_missing(left) && is_missing(right);  // always at the end
    return is_down ? right < left : left < right;
  });
  return order;
}

void SweepView::draw_choices(SweepResult result) {
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::SetNextItemWidth(px(180));
  if (ImGui::BeginCombo("##result", kind_of(result).title, ImGuiComboFlags_HeightLargest)) {
    for (const SweepResultKind& kind : sweep_result_kinds()) {
      const bool is_there = results_.has(kind.result) || kind.needs_target();
      ImGui::BeginDisabled(!is_there);
      if (ImGui::Selectable(kind.title, kind.result == result)) result_ = static_cast<int>(kind.result);
      ImGui::EndDisabled();
      mark("ladder.sweep.result." + std::string(kind.id));
      if (!is_there) ImGui::SetItemTooltip("No finished run has one");
    }
    ImGui::EndCombo();
  }
  mark("ladder.sweep.result");
  if (results_.names.size() > 1) {
    same_line(8);
    const auto named = std::ranges::find(results_.names, against_);
    int at = static_cast<int>(named - results_.names.begin());
    if (choice("##against", "against", at, results_.names, px(120)))
      against_ = results_.names[static_cast<std::size_t>(at)];
    mark("ladder.sweep.against");
  }
  if (kind_of(result).needs_target()) {
    same_line(12);
    field_name("target loss", 6);
    ImGui::SetNextItemWidth(px(80));
    if (target_field_.draw("##target", "3.28", target_, NumberField::Kind::any)) {
      reached_.clear();
      version_ = 0;
    }
    mark("ladder.sweep.target");
  }
  ImGui::PopFont();
}

void SweepView::draw_row(const LadderModel& model, const SweptRung& rung, const std::vector<Column>& columns,
                         bool is_selected, bool is_best, float height, Commands& commands) {
  const LadderRung* judged = model.rung(rung.rung);
  const bool is_trusted = !judged || judged->trusted();
  ImGui::PushID(rung.rung);
  ImGui::TableNextRow(ImGuiTableRowFlags_None, height);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!ImGui::TableNextColumn() && i > 0) continue;
    const Column& column = columns[i];
    const ImVec2 corner = ImGui::GetCursorPos();
    if (i == 0) {
      if (ImGui::Selectable("##row", is_selected,
                            ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowDoubleClick,
                            ImVec2(0, height))) {
        commands.push_back(SelectRung{rung.rung});
        if (judged && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) commands.push_back(OpenRun{judged->first.id});
      }
      mark("ladder.sweep.row." + std::to_string(rung.rung));
      ImGui::SetCursorPos(corner);
    }
    if (column.kind == Column::Kind::result) {
      draw_figure(rung.of(column.result), kind_of(column.result), is_best && i == results_.names.size() + 1,
                  !rung.trouble.empty() || (!is_trusted && kind_of(column.result).is_timed()), height);
      continue;
    }
    const bool is_text = column.kind == Column::Kind::value;
    ImGui::SetCursorPosY(corner.y + (height - (is_text ? px(18) : px(15))) / 2);
    if (is_text) {
      text_cut(value_text(rung.values[column.value]), ImGui::GetContentRegionAvail().x, palette().text, fonts().regular,
               text_size, Cut::middle);
    } else if (column.kind == Column::Kind::truth) {
      ImGui::SetCursorPosY(corner.y + (height - pill_size("x").y) / 2);
      if (judged && rung.finished > 0) truth_pill(*judged);
    } else if (!rung.trouble.empty()) {
      text_cut(rung.trouble, ImGui::GetContentRegionAvail().x, palette().bad, fonts().regular, small_size);
      mark("ladder.sweep.trouble." + std::to_string(rung.rung));
    } else {
      text_quiet(rung.finished == rung.runs ? std::to_string(rung.runs)
                                            : std::to_string(rung.finished) + " of " + std::to_string(rung.runs));
    }
  }
  ImGui::PopID();
}

void SweepView::draw_heads(const std::vector<Column>& columns) {
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
    const Column& column = columns[static_cast<std::size_t>(i)];
    if (ImGui::TableSetColumnIndex(i)) column_head(column.title, column.kind == Column::Kind::result);
  }
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

void SweepView::draw_table(const LadderModel& model, int selected, SweepResult result, Commands& commands) {
  const std::vector<Column> list = columns(model, result);
  const auto count = static_cast<int>(list.size());
  const bool has_ranges = std::ranges::any_of(list, [&](const Column& column) {
    return column.kind == Column::Kind::result && std::ranges::any_of(results_.rungs, [&](const SweptRung& rung) {
             return rung.of(column.result).low < rung.of(column.result).high;
           });
  });
  const float height = px(has_ranges ? two_lines : one_line);
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(cell_padding), px(2)));
  if (!ImGui::BeginTable(table_id("##sweep", count).c_str(), count,
                         ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate | ImGuiTableFlags_ScrollY |
                             ImGuiTableFlags_ScrollX | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_PadOuterX))
    return ImGui::PopStyleVar();
  ImGui::TableSetupScrollFreeze(1, 1);
  for (const Column& column : list) {
    const bool sorts = column.kind != Column::Kind::truth;
    ImGui::TableSetupColumn(
        column.title.c_str(),
        ImGuiTableColumnFlags_WidthFixed | (sorts ? ImGuiTableColumnFlags_None : ImGuiTableColumnFlags_NoSort),
        px(column.width));
  }
  draw_heads(list);
  const int best = best_text(results_, result).empty() ? -1 : results_.best(result);  // one alone isn't the best
  std::vector<int> order;
  for (const std::size_t place : sorted_rungs(list, result)) {
    const SweptRung& rung = results_.rungs[place];
    draw_row(model, rung, list, rung.rung == selected, static_cast<int>(place) == best, height, commands);
    order.push_back(rung.rung);
  }
  mark("ladder.sweep.order." + fmt::format("{}", fmt::join(order, ",")));
  ImGui::EndTable();
  ImGui::PopStyleVar();
}

namespace {

// The lines by name, above the chart: within it they would cover it.
void draw_legend(const SweepLines& lines) {
  if (lines.lines.size() < 2 || lines.lines.size() > most_lines_in_legend) return;
  for (std::size_t i = 0; i < lines.lines.size(); ++i) {
    const std::string& label = lines.lines[i].label;
    if (i > 0) flow_for(ImGui::CalcTextSize(label.c_str()).x + px(16), 12);
    colour_square(rung_colour(static_cast<int>(i)));
    same_line(6);
    text_quiet(label);
    mark("ladder.sweep.legend." + std::to_string(i));
  }
}

}  // namespace

void SweepView::draw_chart(SweepResult result, int selected, const std::vector<std::string>& caption,
                           Commands& commands) {
  const SweepResultKind& kind = kind_of(result);
  const SweepLines lines = sweep_lines(results_, result, against_);
  const auto shown = std::ranges::find(results_.rungs, selected, &SweptRung::rung);
  const std::string own = shown == results_.rungs.end() ? "" : values_text(results_, *shown, against_);
  draw_legend(lines);
  Chart chart{.id = "sweep",
              .title = std::string(kind.title),
              .x_label = against_ + (lines.log_x ? ", log scale" : ""),
              .unit = kind.unit,
              .log_x = lines.log_x,
              .log_y = lines.log_y,
              .x_ticks = ticks_of(lines),
              .legend = false,
              .caption = caption,
              .commands = &commands};
  const bool has_bands = lines.lines.size() <= most_bands;
  bool has_range = false;
  int order = 0;
  for (const SweepLine& line : lines.lines) {
    has_range = has_range || line.low != line.high;
    chart.curves.push_back({.label = line.label.empty() ? kind.title : line.label,
                            .x = line.x,
                            .y = line.y,
                            .colour = rung_colour(order),
                            .weight = line.label == own ? 2.4f : 1.6f,
                            .in_legend = false,
                            .has_dots = true,
                            .order = order,
                            .number = order,
                            .low = has_bands ? std::span<const double>(line.low) : std::span<const double>(),
                            .high = has_bands ? std::span<const double>(line.high) : std::span<const double>(),
                            .runs = line.runs});
    ++order;
  }
  if (has_range) chart.note = has_bands ? "mean, and range over the runs" : "means; the table has the ranges";
  if (lines.log_y) chart.note += (chart.note.empty() ? "" : ", ") + std::string("log scale");
  stepladder::draw_chart(chart);
}

// As wide as its columns, so that the chart has the rest.
float SweepView::table_width(const LadderModel& model, float room) const {
  float wanted = px(32) + ImGui::GetStyle().ScrollbarSize;  // the card's padding
  for (const Column& column : columns(model, shown_result())) wanted += px(column.width + 2 * cell_padding);
  return std::clamp(wanted, px(320), std::max(px(320), room * 0.6f));
}

void SweepView::draw(const LadderModel& model, int selected, const std::vector<std::string>& caption, ImVec2 size,
                     Commands& commands) {
  const SweepResult result = shown_result();
  constexpr float between = 16;
  begin_card("##combinations", ImVec2(table_width(model, size.x), size.y));
  draw_table(model, selected, result, commands);
  end_card();
  ImGui::SameLine(0, px(between));
  begin_card("##results", ImVec2(0, size.y));
  draw_choices(result);
  std::string best = in_print(best_text(results_, result));
  if (!best.empty()) {
    const SweptRung& swept = results_.rungs[static_cast<std::size_t>(results_.best(result))];
    const LadderRung* rung = model.rung(swept.rung);
    if (kind_of(result).is_timed() && swept.trust == Trust::trusted && rung && !rung->trusted())
      best += " Its times cannot be trusted.";
    text_quiet_wrapped(best);
    mark("ladder.sweep.best");
    if (is_ours_) {
      if (quiet_button("Verify the best", "ladder.sweep.verify"))
        commands.push_back(VerifyBest{results_, result, ladder_});
      ImGui::SetItemTooltip(
          "Trains it and another combination in turns, with five new seeds each: only the fresh runs count");
    }
  }
  if (results_.has(result)) {
    draw_chart(result, selected, caption, commands);
  } else {
    empty_state(kind_of(result).needs_target() && is_missing(target_) ? "Type a target loss"
                                                                      : "No finished run has this result",
                kind_of(result).needs_target() ? "What each run needed to reach it appears here."
                                               : "It appears here as soon as a run has finished.");
  }
  end_card();
}

}  // namespace stepladder
