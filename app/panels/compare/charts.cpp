#include "app/panels/compare/charts.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "app/curves/curves.h"
#include "app/desktop/models/run_points.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"

namespace stepladder {
namespace {

constexpr std::size_t most_in_legend = 8;
constexpr std::size_t most_points = 20'000;  // per chart: there are four

std::string smoothing_words(const ComparisonOptions& options, const std::vector<Curve>& curves) {
  if (std::all_of(curves.begin(), curves.end(), [](const Curve& curve) { return curve.smoothed.empty(); })) return "";
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "smoothing %.2f, raw values behind", static_cast<double>(options.smoothing));
  return text.data();
}

bool can_be_log(const CompareView& view, std::size_t metric) {
  return view.log_x && std::all_of(view.lines().begin(), view.lines().end(), [&](const ComparedLine& line) {
           return line.points[metric].empty() || line.points[metric].x.front() > 0;
         });
}

// The values that a chart leaves out, in words.
std::string left_out(const CompareView& view, std::size_t metric) {
  std::int64_t behind = 0;
  std::int64_t excerpt = 0;
  for (const ComparedLine& line : view.lines()) {
    behind += line.behind[metric];
    excerpt += line.excerpt;
  }
  return excerpt > 0 ? grouped(excerpt) + " evenly spaced steps of long runs" : behind_text(behind);
}

std::string label_of(const ComparedLine& line) {
  return line.label + "##" + std::to_string(line.runs.front());
}

Curve metric_curve(const CompareView& view, const ComparedLine& line, std::size_t m, int order) {
  const Points& points = line.values(m);
  const bool is_base = &line == &view.base_line();
  const bool is_val_loss = view.shown.curves.options.metrics[m] == Quantity::val_loss;
  return {.label = label_of(line),
          .x = points.x,
          .y = points.y,
          .colour = rung_colour(line.colour),
          .weight = is_base                    ? 2.2f
                    : view.lines().size() > 12 ? 1.0f
                                               : 1.6f,
          .in_legend = view.lines().size() <= most_in_legend,
          .points = !points.is_path || (is_val_loss && points.x.size() < 200),
          .order = order,
          .dash = order,
          .levels = &line.levels[m],
          .smoothed = line.smoothed[m],
          .low = line.low[m],
          .high = line.high[m]};
}

Curve gap_curve(const ComparedLine& line, int order) {
  return {.label = label_of(line),
          .x = line.gap.x,
          .y = line.gap.y,
          .colour = rung_colour(line.colour),
          .weight = 1.5f,
          .order = order,
          .dash = order,
          .levels = &line.gap_levels,
          .smoothed = line.gap_smoothed};
}

void draw_metric_choice(CompareView& view, std::size_t m) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> titles;
    for (const Quantity each : all_quantities) titles.emplace_back(title_of(each));
    return titles;
  }();
  int chosen = static_cast<int>(view.options.metrics[m]);
  ImGui::PushFont(fonts().regular, small_size);
  if (choice("##metric", "", chosen, names, px(130))) view.options.metrics[m] = static_cast<Quantity>(chosen);
  ImGui::PopFont();
  mark("compare.metric." + std::to_string(m));
}

}  // namespace

void draw_compared_metric(CompareView& view, std::size_t m, const char* id, ImVec2 size, Commands& commands) {
  begin_card(id, size);
  const ComparisonOptions& options = view.shown.curves.options;
  const Quantity metric = options.metrics[m];
  Chart chart{.id = id,
              .title = std::string(title_of(metric)),
              .note = left_out(view, m),
              .x_label = std::string(title_of(options.axis)),
              .unit = std::string(unit_of(metric)),
              .log_x = can_be_log(view, m),
              .log_y = view.log_y,
              .legend = m == 0,
              .caption = view.caption,
              .shared = &view.x,
              .commands = &commands,
              .most_points = most_points,
              .title_room = px(140)};
  chart.from_zero = !chart.log_y && (metric == Quantity::tokens_per_s || metric == Quantity::dt_ms);
  int order = 0;
  for (const ComparedLine& line : view.lines()) chart.curves.push_back(metric_curve(view, line, m, order++));
  chart.smoothing = smoothing_words(options, chart.curves);
  const ImVec2 corner = ImGui::GetCursorPos();
  const float right = corner.x + ImGui::GetContentRegionAvail().x;
  draw_chart(chart);
  ImGui::SetCursorPos(ImVec2(right - px(130), corner.y - px(5)));
  draw_metric_choice(view, m);
  end_card();
}

void draw_compared_gap(CompareView& view, ImVec2 size, Commands& commands) {
  begin_card("##gap", size);
  const ComparisonOptions& options = view.shown.curves.options;
  const bool is_ratio = options.gap == Gap::ratio;
  const ComparedLine& base = view.base_line();
  const std::string metric(title_of(options.metrics[0]));
  const bool of_means = std::any_of(view.lines().begin(), view.lines().end(),
                                    [](const ComparedLine& line) { return line.behind[0] > 0; });
  Chart chart{.id = "gap",
              .title = is_ratio ? metric + " ratio" : metric + " difference",
              .note = (is_ratio ? "relative to " : "minus ") + base.label + (of_means ? ", means" : ""),
              .x_label = std::string(title_of(options.axis)),
              .unit = is_ratio ? "\xC3\x97" : std::string(unit_of(options.metrics[0])),
              .log_x = can_be_log(view, 0),
              .zero_line = is_ratio ? 1.0 : 0.0,
              .legend = false,
              .caption = view.caption,
              .shared = &view.x,
              .commands = &commands,
              .most_points = most_points};
  int order = 0;
  for (const ComparedLine& line : view.lines()) {
    if (&line != &base) chart.curves.push_back(gap_curve(line, order));
    ++order;
  }
  chart.smoothing = smoothing_words(options, chart.curves);
  if (!base.points[0].is_path) {
    text_strong(chart.title);
    empty_state("No difference over " + chart.x_label, "Set the x axis to step, tokens, time or FLOPs.");
  } else if (chart.curves.empty()) {
    text_strong(chart.title);
    empty_state("Select a second run", "Its difference from the baseline appears here.");
  } else {
    draw_chart(chart);
  }
  end_card();
}

}  // namespace stepladder
