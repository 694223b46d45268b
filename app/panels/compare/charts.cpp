// Draws Compare's charts in the user's grid. The user may move or remove charts while they are drawn, so changes are
// collected and carried out at the end. A chart that was just added stays empty until its metric has been derived.
#include "app/panels/compare/charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "app/curves/curves.h"
#include "app/desktop/models/run_points.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/compare/numbers.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "storage/analysis/metric_comparison.h"

namespace stepladder {
namespace {

constexpr std::size_t most_in_legend = 12;
constexpr std::size_t most_points = 80'000;  // of all charts that are seen
constexpr std::size_t usually_seen = 12;
constexpr float chart_gap = 16;      // between two charts
constexpr float buttons_width = 70;  // of a chart's metric and menu, right of its title
constexpr const char* dragged_chart = "compare chart";

std::string smoothing_words(const ComparisonOptions& options, const std::vector<Curve>& curves) {
  if (std::ranges::all_of(curves, [](const Curve& curve) { return curve.smoothed.empty(); })) return "";
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "smoothing %.2f, raw values behind", static_cast<double>(options.smoothing));
  return text.data();
}

bool can_be_log(const CompareView& view, Quantity metric) {
  return view.log_x && std::ranges::all_of(view.lines(), [&](const ComparedLine& line) {
           const Points& points = line.of(metric).points;
           return points.empty() || points.x.front() > 0;
         });
}

// Describes the values that a chart doesn't draw.
std::string left_out(const CompareView& view, Quantity metric) {
  std::int64_t behind = 0;
  std::int64_t excerpt = 0;
  for (const ComparedLine& line : view.lines()) {
    behind += line.of(metric).behind;
    excerpt += line.excerpt;
  }
  return excerpt > 0 ? grouped(excerpt) + " evenly spaced steps of long runs" : behind_text(behind);
}

// The line whose difference from the baseline is put into words: the highlighted one, the only other one, else the
// best; null if it isn't known which direction is better.
const ComparedLine* line_to_say(const CompareView& view, Quantity metric) {
  const ComparedLine* best = nullptr;
  const Direction direction = view.metrics.direction_of(metric);
  const double sign = direction == Direction::lower ? -1 : 1;
  std::size_t others = 0;
  for (const ComparedLine& line : view.lines()) {
    const double delta = line.of(metric).last_gap.delta;
    if (is_missing(delta)) continue;
    if (line.id() == view.highlighted) return &line;
    ++others;
    if (!best || sign * delta > sign * best->of(metric).last_gap.delta) best = &line;
  }
  return others > 1 && direction == Direction::unknown ? nullptr : best;
}

// "+0.018 (1.02 x), better at step 400", and which values are better. The losses and speeds of steps have verdicts of
// their own, in the table.
std::string against_baseline(const CompareView& view, Quantity metric) {
  if (is_field(metric)) return "";
  const Direction direction = view.metrics.direction_of(metric);
  std::string text = direction == Direction::lower    ? "lower is better"
                     : direction == Direction::higher ? "higher is better"
                                                      : "";
  const ComparedLine* line = line_to_say(view, metric);
  if (!line) return text;
  const LastGap& gap = line->of(metric).last_gap;
  const MetricVerdict verdict = metric_verdict(gap.delta, direction);
  if (!text.empty()) text += ": ";
  if (view.lines().size() > 2) text += line->label + " ";
  text += in_print(last_gap_text(gap)) +
          (verdict == MetricVerdict::cannot_tell ? "" : ", " + std::string(verdict_word(verdict)));
  if (view.shown.curves.options.axis == Axis::step) text += " at step " + grouped(std::llround(gap.x));
  return text;
}

// The look of a line's curves, which is the same in all charts.
Curve compared_curve(const CompareView& view, const ComparedLine& line, int order) {
  const bool is_base = &line == &view.base_line();
  const bool is_highlighted = view.highlighted == line.id();
  const bool others_are = view.highlighted != 0 && !is_highlighted && !view.hidden.has(view.highlighted);
  const float weight = is_base ? 2.2f : view.lines().size() > 12 ? 1.0f : 1.6f;
  return {.label = line.label + "##" + std::to_string(line.id()),
          .colour = faded(rung_colour(view.colour_of(line)), others_are ? 0.25f : 1.0f),
          .weight = is_highlighted ? weight + 1.4f : weight,
          .in_legend = view.lines().size() <= most_in_legend,
          .order = order,
          .number = view.colour_of(line),
          .hidden = view.hidden.has(line.id()),
          .stands_out = is_base || is_highlighted};
}

Curve metric_curve(const CompareView& view, const ComparedLine& line, Quantity quantity, int order) {
  const ComparedMetric& metric = line.of(quantity);
  const Points& points = metric.values();
  Curve curve = compared_curve(view, line, order);
  curve.x = points.x;
  curve.y = points.y;
  curve.points = !points.is_path || (quantity == Quantity::val_loss && points.x.size() < 200);
  curve.levels = &metric.levels;
  curve.smoothed = metric.smoothed;
  curve.low = metric.low;
  curve.high = metric.high;
  curve.runs = metric.runs;
  curve.not_finite = metric.not_finite;
  curve.steady_from = metric.steady_from;
  return curve;
}

Curve gap_curve(const CompareView& view, const ComparedLine& line, Quantity quantity, int order) {
  const ComparedMetric& metric = line.of(quantity);
  Curve curve = compared_curve(view, line, order);
  curve.x = metric.gap.x;
  curve.y = metric.gap.y;
  curve.levels = &metric.gap_levels;
  curve.smoothed = metric.gap_smoothed;
  return curve;
}

// Every metric, then every difference: the choices for a chart.
const std::vector<GridChart>& all_charts() {
  static const std::vector<GridChart> charts = [] {
    std::vector<GridChart> list;
    for (const bool is_gap : {false, true}) {
      for (const Quantity quantity : step_quantities) list.push_back({quantity, is_gap});
    }
    return list;
  }();
  return charts;
}

// An arrow beside the title: the title names what is chosen.
void choose_chart(CompareView& view, GridChart& chart, std::size_t place) {
  if (ImGui::BeginCombo("##metric", nullptr, ImGuiComboFlags_NoPreview | ImGuiComboFlags_HeightLargest)) {
    for (const GridChart& each : all_charts()) {
      if (ImGui::Selectable(title_of(each).c_str(), each == chart)) chart = each;
    }
    if (!view.metrics.all().empty()) {
      ImGui::Separator();
      view.metrics.draw("compare", [&](const MetricChoice& chosen) { chart.quantity = chosen.metrics.front(); });
    }
    ImGui::EndCombo();
  }
  mark("compare.metric." + std::to_string(place));
  ImGui::SetItemTooltip("Show another metric here");
}

// A change to the arrangement, carried out when all charts are drawn.
struct GridChange {
  std::optional<std::size_t> removed;
  std::optional<std::pair<std::size_t, std::size_t>> moved;  // from, to
};

void draw_chart_menu(ChartGrid& grid, std::size_t place, GridChange& change) {
  if (ImGui::Button("...", ImVec2(px(30), 0))) ImGui::OpenPopup("##chart");
  mark("compare.chart_menu." + std::to_string(place));
  ImGui::SetItemTooltip("Move or remove this chart");
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  if (ImGui::BeginPopup("##chart")) {
    if (ImGui::MenuItem("Move to the left", nullptr, false, place > 0)) change.moved = {place, place - 1};
    mark("compare.chart_left");
    if (ImGui::MenuItem("Move to the right", nullptr, false, place + 1 < grid.charts.size()))
      change.moved = {place, place + 1};
    mark("compare.chart_right");
    GridChart& chart = grid.charts[place];
    if (ImGui::MenuItem("Difference from the baseline", nullptr, chart.is_gap)) chart.is_gap = !chart.is_gap;
    mark("compare.chart_gap");
    if (ImGui::MenuItem("Remove chart")) change.removed = place;
    mark("compare.chart_remove");
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

// The chart's title is what the mouse drags.
void draw_drag_source(const GridChart& chart, std::size_t place, float width) {
  const ImVec2 corner = ImGui::GetCursorPos();
  ImGui::SetNextItemAllowOverlap();
  ImGui::InvisibleButton("##drag", ImVec2(std::max(width, px(40)), px(20)));
  mark("compare.chart." + std::to_string(place));
  if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeAll);
  if (ImGui::BeginDragDropSource()) {
    ImGui::SetDragDropPayload(dragged_chart, &place, sizeof place);
    text_strong(title_of(chart));
    ImGui::EndDragDropSource();
  }
  ImGui::SetCursorPos(corner);
}

void take_dropped_chart(std::size_t place, GridChange& change) {
  if (!ImGui::BeginDragDropTarget()) return;
  if (const ImGuiPayload* payload = ImGui::AcceptDragDropPayload(dragged_chart))
    change.moved = {*static_cast<const std::size_t*>(payload->Data), place};
  ImGui::EndDragDropTarget();
}

void use_legend_input(CompareView& view, const LegendInput& input) {
  const auto line = [&](int order) { return view.lines()[static_cast<std::size_t>(order)].id(); };
  if (input.hovered >= 0) view.hovered = line(input.hovered);
  if (input.clicked >= 0) view.hidden.click(line(input.clicked));
  if (input.double_clicked >= 0) view.hidden.double_click(line(input.double_clicked), view.lines());
  if (input.alt_clicked >= 0) view.hidden.show_only(line(input.alt_clicked), view.lines());
  if (input.right_clicked >= 0) view.open_menu(line(input.right_clicked));
}

// A chart's place in the grid.
struct PlacedChart {
  std::string id;
  Quantity metric;
  bool has_legend = false;    // the first one
  bool is_above_one = false;  // the chart below it labels the x axis
};

Chart compared_chart(CompareView& view, const PlacedChart& placed, LegendInput& input, Commands& commands) {
  return {.id = placed.id.c_str(),
          .x_label = std::string(title_of(view.shown.curves.options.axis)),
          .log_x = can_be_log(view, placed.metric),
          .legend = placed.has_legend,
          .x_labelled = !placed.is_above_one,
          .caption = view.caption,
          .shared = &view.x,
          .legend_input = &input,
          .commands = &commands,
          .most_points = most_points / std::clamp<std::size_t>(view.grid.charts.size(), 1, usually_seen),
          .title_room = px(buttons_width + 8)};
}

// Draws a chart with the curves, the note and the words of the smoothing that `put_together` gives it, or with those
// that are kept.
template <class PutTogether>
void draw_kept(CompareView& view, Chart& chart, PutTogether&& put_together) {
  KeptChart& kept = view.kept_charts[chart.id];
  if (kept.look == view.look) {
    chart.curves = std::move(kept.curves);
    chart.note = kept.note;
    chart.smoothing = kept.smoothing;
  } else {
    put_together(chart);
    kept.look = view.look;
    kept.note = chart.note;
    kept.smoothing = chart.smoothing;
  }
  draw_chart(chart);
  kept.curves = std::move(chart.curves);
}

void put_together_metric(const CompareView& view, Quantity metric, Chart& chart) {
  chart.note = against_baseline(view, metric);
  if (const std::string behind = left_out(view, metric); !behind.empty())
    chart.note += (chart.note.empty() ? "" : "  \xE2\x80\x93  ") + behind;
  int order = 0;
  for (const ComparedLine& line : view.lines()) chart.curves.push_back(metric_curve(view, line, metric, order++));
  chart.smoothing = smoothing_words(view.shown.curves.options, chart.curves);
}

void draw_compared_metric(CompareView& view, const PlacedChart& placed, Commands& commands) {
  const Quantity metric = placed.metric;
  LegendInput input;
  Chart chart = compared_chart(view, placed, input, commands);
  const bool is_logged_rate = metric == view.throughput && !is_field(metric);
  chart.title = is_logged_rate ? "Throughput as logged" : title_of(metric);
  chart.unit = is_logged_rate ? "tokens/s" : view.metrics.unit_of(metric);
  chart.log_y = view.log_y;
  chart.from_zero = !chart.log_y && (metric == view.throughput || metric == Quantity::dt_ms);
  chart.falls = metric == Quantity::loss;
  if (metric == Quantity::loss || metric == Quantity::val_loss) chart.target = &view.target;
  draw_kept(view, chart, [&](Chart& made) { put_together_metric(view, metric, made); });
  if (placed.has_legend) view.is_named_in_chart = input.has_room && view.lines().size() <= most_in_legend;
  use_legend_input(view, input);
}

void put_together_gap(const CompareView& view, Quantity metric, Chart& chart) {
  const ComparisonOptions& options = view.shown.curves.options;
  const ComparedLine& base = view.base_line();
  const bool of_means =
      std::ranges::any_of(view.lines(), [&](const ComparedLine& line) { return line.of(metric).behind > 0; });
  chart.note = (options.gap == Gap::ratio ? "relative to " : "minus ") + base.label + (of_means ? ", means" : "");
  int order = 0;
  for (const ComparedLine& line : view.lines()) {
    if (&line != &base) chart.curves.push_back(gap_curve(view, line, metric, order));
    ++order;
  }
  chart.smoothing = smoothing_words(options, chart.curves);
}

void draw_compared_gap(CompareView& view, const PlacedChart& placed, Commands& commands) {
  const Quantity metric = placed.metric;
  const bool is_ratio = view.shown.curves.options.gap == Gap::ratio;
  LegendInput input;
  Chart chart = compared_chart(view, placed, input, commands);
  chart.title = std::string(title_of(metric)) + (is_ratio ? " ratio" : " difference");
  chart.unit = is_ratio ? "\xC3\x97" : view.metrics.unit_of(metric);
  chart.zero_line = is_ratio ? 1.0 : 0.0;
  if (!view.base_line().of(metric).points.is_path) {
    text_strong(chart.title);
    empty_state("No difference over " + chart.x_label, "Set the x axis to step, tokens, time or FLOPs.");
  } else if (view.base_line().of(metric).points.empty()) {
    text_strong(chart.title);
    empty_state("Not in the baseline", view.base_line().label + " has no such values. Choose another baseline above.");
  } else if (view.lines().size() < 2) {
    text_strong(chart.title);
    empty_state("Select a second run", "Its difference from the baseline appears here.");
  } else {
    draw_kept(view, chart, [&](Chart& made) { put_together_gap(view, metric, made); });
  }
}

// True if this metric's curves have been derived; a chart that was just added waits for its own.
bool is_computed(const CompareView& view, Quantity metric) {
  const std::vector<Quantity>& metrics = view.shown.curves.options.metrics;
  return std::ranges::find(metrics, metric) != metrics.end();
}

// Whether the chart is one of the usual ones and no run has a value of it: it gives its place up.
bool has_nothing(const CompareView& view, const GridChart& chart) {
  const Quantity metric = view.drawn(chart.quantity);
  if ((metric != Quantity::tokens_per_s && metric != Quantity::dt_ms) || !is_computed(view, metric)) return false;
  return std::ranges::all_of(view.lines(), [&](const ComparedLine& line) { return line.of(metric).points.empty(); });
}

void draw_compared_card(CompareView& view, const GridCell& cell, GridChange& change, Commands& commands) {
  ChartGrid& grid = view.grid;
  const std::size_t place = cell.chart;
  GridChart& chart = grid.charts[place];
  if (!ImGui::IsRectVisible(cell.size)) return ImGui::Dummy(cell.size);
  view.seen.see(chart.quantity);
  const Quantity drawn = view.drawn(chart.quantity);
  const auto place_of = grid.charts.begin() + static_cast<std::ptrdiff_t>(place);
  // Equal charts are numbered, so that each keeps its state wherever it is moved.
  const auto before = std::count(grid.charts.begin(), place_of, chart);
  const PlacedChart placed{.id = name_of(chart) + (before > 0 ? "." + std::to_string(before + 1) : ""),
                           .metric = drawn,
                           .has_legend = !chart.is_gap && std::all_of(grid.charts.begin(), place_of,
                                                                      [](const GridChart& o) { return o.is_gap; }),
                           .is_above_one = cell.is_above_one};
  ImGui::PushID(placed.id.c_str());
  begin_card("##card", cell.size);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, px(8)));
  const ImVec2 corner = ImGui::GetCursorPos();
  const float room = ImGui::GetContentRegionAvail().x;
  draw_drag_source(chart, place, room - px(buttons_width + 8));
  if (!is_computed(view, drawn)) {
    text_strong(title_of(chart));
    empty_state("Computing...", "");
  } else if (chart.is_gap) {
    draw_compared_gap(view, placed, commands);
  } else {
    draw_compared_metric(view, placed, commands);
  }
  ImGui::SetCursorPos(ImVec2(corner.x + room - px(buttons_width), corner.y - px(5)));
  choose_chart(view, chart, place);
  same_line(6);
  draw_chart_menu(grid, place, change);
  ImGui::PopStyleVar();
  end_card();
  take_dropped_chart(place, change);
  ImGui::PopID();
}

// The space below a row. Dragging it makes all rows higher or lower.
void draw_row_splitter(ChartGrid& grid, std::size_t row, float row_height, float gap) {
  ImGui::PushID(static_cast<int>(row));
  ImGui::InvisibleButton("##rows", ImVec2(ImGui::GetContentRegionAvail().x, gap));
  mark("compare.rows." + std::to_string(row));
  ImGui::PopID();
  if (ImGui::IsItemHovered() || ImGui::IsItemActive()) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNS);
  if (ImGui::IsItemHovered())
    ImGui::SetItemTooltip("Drag to change the height of all rows; double-click fits them to the window");
  if (item_is_dragged() && ImGui::GetIO().MouseDelta.y != 0) {
    const float moved = ImGui::GetIO().MouseDelta.y / static_cast<float>(row + 1);  // the rows above grow too
    grid.row_height = std::clamp((row_height + moved) / px(1), least_row_height, most_row_height);
  }
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) grid.row_height = 0;
}

}  // namespace

std::string title_of(const GridChart& chart) {
  return std::string(title_of(chart.quantity)) + (chart.is_gap ? " difference" : "");
}

float grid_height(const CompareView& view, float row_height) {
  const auto charts =
      std::ranges::count_if(view.grid.charts, [&](const GridChart& c) { return !has_nothing(view, c); });
  return px(row_height + chart_gap) * (charts > view.grid.columns ? 2 : 1);
}

void draw_chart_grid(CompareView& view, ImVec2 room, Commands& commands) {
  ChartGrid& grid = view.grid;
  ImGui::BeginChild("##grid", room);
  if (grid.charts.empty()) {
    empty_state("No chart", "Add chart, at the top, puts the metrics of these runs here.");
    ImGui::EndChild();
    return;
  }
  const GridLook look{.columns = grid.columns,
                      .row_height = px(grid.row_height),
                      .least_row_height = px(least_row_height),
                      .gap = px(chart_gap),
                      .fills_rows = true};
  std::vector<std::string> groups;
  std::vector<std::size_t> places;  // of the charts that are drawn
  for (std::size_t i = 0; i < grid.charts.size(); ++i)
    if (!has_nothing(view, grid.charts[i])) places.push_back(i);
  for (const std::size_t place : places) groups.push_back(view.metrics.group_of(grid.charts[place].quantity));
  GridChange change;
  draw_grouped_grid(
      in_groups(groups), view.folded, look,
      [&](GridCell cell) {
        cell.chart = places[cell.chart];
        draw_compared_card(view, cell, change, commands);
      },
      [&](std::size_t row, float height) { draw_row_splitter(grid, row, height, px(chart_gap)); });
  ImGui::EndChild();
  if (change.moved) grid.move(change.moved->first, change.moved->second);
  if (change.removed) grid.charts.erase(grid.charts.begin() + static_cast<std::ptrdiff_t>(*change.removed));
}

void draw_compare_legend(CompareView& view) {
  constexpr std::size_t most = 40;
  constexpr float widest = 150, square = 10, line_height = 20;
  if (view.is_named_in_chart || view.lines().size() < 2 || view.lines().size() > most) return;
  ImGui::PushFont(fonts().regular, small_size);
  for (const ComparedLine& line : view.lines()) {
    const std::string label = cut_to(line.label, px(widest), Cut::middle);
    const ImVec2 size(px(square + 6) + ImGui::CalcTextSize(label.c_str()).x, px(line_height));
    if (&line != &view.lines().front()) flow_for(size.x, 14);
    const bool is_hidden = view.hidden.has(line.id());
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushID(static_cast<int>(line.id()));
    if (ImGui::InvisibleButton("##line", size)) view.hidden.click(line.id());
    ImGui::PopID();
    if (ImGui::IsItemHovered()) view.hovered = line.id();
    mark("compare.legend." + std::to_string(line.id()));
    const float top = at.y + px((line_height - square) / 2);
    fill_look(ImVec2(at.x, top), ImVec2(at.x + px(square), top + px(square)), view.colour_of(line),
              is_hidden ? 0.25f : 1.0f);
    ImGui::GetWindowDrawList()->AddText(ImVec2(at.x + px(square + 6), at.y + (size.y - ImGui::GetTextLineHeight()) / 2),
                                        u32(is_hidden ? palette().quiet : palette().text), label.c_str());
  }
  ImGui::PopFont();
}

}  // namespace stepladder
