// Metrics for `show`, `compare` and `export`. A run may have a million metrics of any length, so the CSV is written in
// pieces and JSON lists aren't searched by name.
#include "app/cli/metric_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "app/cli/report.h"
#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/runs/excerpt.h"
#include "app/runs/loaded_runs.h"
#include "app/text/format.h"
#include "app/text/text_table.h"
#include "app/text/verdict_text.h"
#include "engine/nearest.h"

namespace stepladder {
namespace {

constexpr std::size_t most_names_in_error = 12;

Json value_json(double value) {
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return number(value);
}

std::string value_text(double value) {
  if (is_missing(value)) return "-";
  return std::isfinite(value) ? compact(value) : std::isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf";
}

Json figures_json(const MetricOfRun& compared) {
  const MetricFigures figures = compared.metric ? compared.metric->figures : MetricFigures{};
  return {{"id", compared.run.id},
          {"name", compared.run.name},
          {"values", figures.count},
          {"not_finite", figures.not_finite},
          {"last_step", compared.metric ? Json(figures.last_step) : Json()},
          {"first", value_json(figures.first)},
          {"last", value_json(figures.last)},
          {"min", value_json(figures.lowest)},
          {"max", value_json(figures.highest)},
          {"mean", value_json(figures.mean)},
          {"median", value_json(figures.median)}};
}

// Which values are better, as far as any of the runs knows.
Direction direction_of(std::span<const MetricOfRun> compared) {
  for (const MetricOfRun& each : compared)
    if (each.metric && each.metric->metric.direction != Direction::unknown) return each.metric->metric.direction;
  return Direction::unknown;
}

MetricDelta delta_of(std::span<const MetricOfRun> compared, const MetricOfRun& run) {
  const MetricOfRun& base = compared.front();
  if (!base.metric || !run.metric) return {};
  return metric_delta(base.metric->figures, run.metric->figures, direction_of(compared));
}

std::string signed_text(double value) {
  return (value > 0 ? "+" : "") + value_text(value);
}

std::string run_fields(const Run& run) {
  return fmt::format("{},{},", run.id, csv_field(run.name));
}

void write_tall(RunStore& store, std::span<const Run> runs, const Sink& sink) {
  sink("run_id,name,metric,step,value,at_unix_s\n");
  constexpr std::size_t bytes_at_once = 1 << 16;
  std::string text;
  for (const Run& run : runs) {
    store.metrics().for_all_points(run.id, [&](const Metric& metric, std::span<const MetricPoint> points) {
      const std::string start = run_fields(run) + csv_field(metric.name) + ",";
      for (const MetricPoint& point : points)
        text += fmt::format("{}{},{},{}\n", start, point.step, exact(point.value), exact(point.at));
      if (text.size() >= bytes_at_once) sink(std::exchange(text, {}));
    });
  }
  if (!text.empty()) sink(text);
}

// Writes some thousand steps at a time, so that runs of any length take little memory; ranges of steps without values
// grow.
void write_wide_rows(RunStore& store, const Run& run, const std::vector<std::string>& names, const Sink& sink) {
  constexpr std::int64_t values_at_once = 1 << 22;
  const std::int64_t fewest_at_once = std::clamp<std::int64_t>(values_at_once / std::ssize(names), 1, 8192);
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const std::string& name : names) {
    const auto found = store.metrics().find(run.id, name);
    if (!found) continue;
    first = std::min(first, found->figures.first_step);
    last = std::max(last, found->figures.last_step);
  }
  for (std::int64_t begin = first, at_once = fewest_at_once; begin <= last;) {
    std::map<std::int64_t, std::vector<double>> rows;
    for (std::size_t column = 0; column < names.size(); ++column)
      store.metrics().for_points(run.id, names[column], begin, begin + at_once - 1, [&](auto points) {
        for (const MetricPoint& point : points) {
          std::vector<double>& row = rows[point.step];
          row.resize(names.size(), missing);
          row[column] = point.value;
        }
      });
    std::string text;
    for (const auto& [step, row] : rows) {
      text += run_fields(run) + std::to_string(step);
      for (const double value : row) text += "," + exact(value);
      text += "\n";
    }
    sink(text);
    begin += at_once;
    at_once = rows.empty() ? 2 * at_once : fewest_at_once;
  }
}

void write_wide(RunStore& store, std::span<const Run> runs, const Sink& sink) {
  constexpr std::int64_t most_columns = 16'384;  // of a spreadsheet
  std::set<std::string> all;
  for (const Run& run : runs) {
    if (const std::int64_t count = store.metrics().count(run.id); count > most_columns)
      throw UsageError(
          fmt::format("--metrics: run {} has {} metrics, and a table may have {} columns; `--metrics long` writes a "
                      "row for each value instead",
                      run.id, grouped(count), grouped(most_columns)));
    for (const MetricAndFigures& each : store.metrics().all_of_run(run.id)) all.insert(each.metric.name);
  }
  const std::vector<std::string> names(all.begin(), all.end());
  std::string head = "run_id,name,step";
  for (const std::string& name : names) head += "," + csv_field(name);
  sink(head + "\n");
  if (names.empty()) return;
  for (const Run& run : runs) write_wide_rows(store, run, names, sink);
}

// The last values of the metric in the run and in its rung's other finished runs.
std::vector<double> last_values(RunStore& store, const Run& run, const std::string& name) {
  std::vector<double> values;
  const auto add = [&](RunId id) {
    if (const auto found = store.metrics().find(id, name)) values.push_back(found->figures.last);
  };
  add(run.id);
  for (const Run& other : other_finished_repeats(store, run)) add(other.id);
  return values;
}

}  // namespace

Json metrics_json(RunStore& store, RunId run) {
  Json::object_t all;  // a list: looking up each name would take forever for a million
  store.metrics().for_all_points(run, [&](const Metric& metric, std::span<const MetricPoint> points) {
    if (all.empty() || all.back().first != metric.name) all.emplace_back(metric.name, Json::array());
    for (const MetricPoint& point : points)
      all.back().second.push_back(Json::array({point.step, value_json(point.value)}));
  });
  return all;
}

std::string metrics_text(RunStore& store, RunId run) {
  constexpr std::size_t most = 1000;
  std::vector<std::vector<std::string>> rows = {
      {"metric", "unit", "values", "last", "at step", "min", "max", "median"}};
  for (const auto& [metric, figures] : store.metrics().all_of_run(run, most))
    rows.push_back({metric.name, metric.unit.empty() ? "-" : metric.unit, grouped(figures.count),
                    value_text(figures.last), grouped(figures.last_step), value_text(figures.lowest),
                    value_text(figures.highest), value_text(figures.median)});
  if (rows.size() == 1) return "This run has no metrics.\n";
  const std::int64_t more = store.metrics().count(run) - static_cast<std::int64_t>(most);
  return table(rows, {false, false, true, true, true, true, true, true}) +
         (more > 0 ? notes_text("and " + grouped(more) + " more metrics; --json lists all, with their values") : "");
}

std::vector<MetricOfRun> compared_metrics(RunStore& store, std::span<const Run> runs, const std::string& name,
                                          bool lower, double noise_floor) {
  std::vector<MetricOfRun> compared;
  for (const Run& run : runs) compared.push_back({run, store.metrics().find(run.id, name), {}});
  const auto lacking = std::ranges::find_if(compared, [](const MetricOfRun& each) { return !each.metric; });
  if (lacking == compared.end()) {
    const MetricRules rules{.direction = lower ? Direction::lower : direction_of(compared), .noise_floor = noise_floor};
    const std::vector<double> base = last_values(store, runs.front(), name);
    const auto load = [&](const Run& run) { return load_run(store, run, most_steps_of_each(runs.size())); };
    const std::optional<LoadedRun> first = loss_name(name).is_loss ? std::optional(load(runs.front())) : std::nullopt;
    for (MetricOfRun& each : std::span(compared).subspan(1)) {
      if (each.run.ladder && each.run.ladder == runs.front().ladder && each.run.rung == runs.front().rung) continue;
      each.judged = judge_metric(base, last_values(store, each.run, name), rules);
      if (!first) continue;
      const LoadedRun other = load(each.run);
      each.doubt = metric_doubt(name, {&first->run, &first->series}, {&other.run, &other.series});
      if (!each.doubt.empty()) each.judged.verdict = MetricVerdict::cannot_tell, each.judged.needed_runs = 0;
    }
    return compared;
  }
  std::set<std::string> known;
  for (const Run& run : runs) {
    for (const MetricAndFigures& each : store.metrics().all_of_run(run.id, 1)) known.insert(each.metric.name);
    for (const Metric& metric : store.metrics().names(run.id)) known.insert(metric.name);
  }
  std::string names = nearest_name(name, std::vector(known.begin(), known.end()));
  if (!names.empty())
    throw UsageError(
        "--metric: '" + name + "' is unknown",
        {.code = "invalid-value", .argument = "--metric", .value = name, .hint = "did you mean " + names + "?"});
  std::size_t left = most_names_in_error;
  for (const std::string& each : known) {
    if (left-- == 0) {
      names += fmt::format(" and {} more", known.size() - most_names_in_error);
      break;
    }
    names += (names.empty() ? "" : ", ") + each;
  }
  const bool any = std::ranges::any_of(compared, [](const MetricOfRun& each) { return each.metric.has_value(); });
  const std::string who = any ? fmt::format("run {} hasn't", lacking->run.id) : "none of these runs has";
  throw UsageError("--metric: " + who + " '" + name + "'; they have " + (names.empty() ? "none" : names));
}

Json compared_metrics_json(std::span<const MetricOfRun> compared, const std::string& name) {
  Json runs = Json::array();
  for (const MetricOfRun& each : compared) {
    Json row = figures_json(each);
    const bool is_base = &each == &compared.front();
    const MetricDelta delta = is_base ? MetricDelta{} : delta_of(compared, each);
    row["delta"] = number(delta.last);
    row["factor"] = number(delta.last_factor);
    row["best_delta"] = number(delta.best);
    row["best_factor"] = number(delta.best_factor);
    row["difference"] = number(each.judged.difference);
    row["ci95"] = interval_json(each.judged.ci95);
    row["verdict"] = is_base ? Json() : Json(to_string(each.judged.verdict));
    row["repeats"] = is_base ? Json() : Json(each.judged.runs);
    row["needed_runs"] = count_or_null(each.judged.needed_runs);
    row["doubt"] = text_or_null(each.doubt);
    runs.push_back(std::move(row));
  }
  std::string unit;
  for (const MetricOfRun& each : compared)
    if (each.metric && unit.empty()) unit = each.metric->metric.unit;
  return {{"name", name},
          {"unit", text_or_null(unit)},
          {"direction", text_or_null(std::string(to_string(direction_of(compared))))},
          {"runs", std::move(runs)}};
}

std::string compared_metrics_text(std::span<const MetricOfRun> compared) {
  std::vector<std::vector<std::string>> rows = {
      {"run", "name", "values", "last", "vs baseline", "factor", "verdict", "min", "max", "median"}};
  for (const MetricOfRun& each : compared) {
    const MetricFigures figures = each.metric ? each.metric->figures : MetricFigures{};
    const bool is_base = &each == &compared.front();
    const MetricDelta delta = delta_of(compared, each);
    rows.push_back({std::to_string(each.run.id), each.run.name, grouped(figures.count), value_text(figures.last),
                    is_base ? "baseline" : signed_text(delta.last), is_base ? "-" : factor_text(delta.last_factor),
                    is_base ? "-" : std::string(verdict_word(each.judged.verdict)), value_text(figures.lowest),
                    value_text(figures.highest), value_text(figures.median)});
  }
  std::string doubts;
  for (const MetricOfRun& each : compared)
    if (!each.doubt.empty()) doubts += fmt::format("run {}: nothing follows from it: {}\n", each.run.id, each.doubt);
  return table(rows, {true, false, true, true, true, true, false, true, true, true}) + notes_text(doubts);
}

void write_metrics_csv(RunStore& store, std::span<const Run> runs, MetricRows rows, const Sink& sink) {
  if (rows == MetricRows::tall)
    write_tall(store, runs, sink);
  else
    write_wide(store, runs, sink);
}

}  // namespace stepladder
