// The columns of History and of Compare's table: title, width, text and number of each. Measured columns are rows of
// `numbers` and `measured_columns`; settings and saved views store a column's id, so ids stay.
#include "app/desktop/models/run_columns.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "storage/analysis/compare.h"
#include "storage/analysis/judgement.h"
#include "storage/analysis/metric_comparison.h"
#include "storage/analysis/recipe_facts.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

constexpr const char* recipe_prefix = "recipe.";

struct NumberColumn {
  const char* id;
  double (*value)(const RunEntry&);
  std::string (*text)(double);
};

std::string count_text(double value) {
  return is_missing(value) ? "-" : grouped(std::llround(value));
}
std::string memory_text(double value) {
  return is_missing(value) ? "-" : bytes_text(value);
}
std::string time_text(double value) {
  return is_missing(value) ? "-" : local_time_text(value);
}

const NumberColumn numbers[] = {
    {"id", [](const RunEntry& e) { return static_cast<double>(e.run.id); }, count_text},
    {"rung", [](const RunEntry& e) { return e.run.ladder ? e.run.rung : missing; }, count_text},
    {"repeat", [](const RunEntry& e) { return e.run.ladder ? e.run.repeat + 1.0 : missing; }, count_text},
    {"steps",
     [](const RunEntry& e) {
       const bool live = e.run.status == RunStatus::running;
       return live ? static_cast<double>(e.series().size()) : static_cast<double>(e.summary.steps);
     },
     count_text},
    {"loss_first", [](const RunEntry& e) { return e.summary.loss_first; }, loss_text},
    {"loss_last",
     [](const RunEntry& e) {
       const bool live = e.run.status == RunStatus::running && !e.series().empty();
       return live ? e.series().loss.back() : e.summary.loss_last;
     },
     loss_text},
    {"loss_min", [](const RunEntry& e) { return e.summary.loss_min; }, loss_text},
    {"val_loss_last", [](const RunEntry& e) { return e.summary.val_loss_last; }, loss_text},
    {"val_loss_min", [](const RunEntry& e) { return e.summary.val_loss_min; }, loss_text},
    {"dt_ms_median", [](const RunEntry& e) { return e.summary.dt_ms_median; }, compact_in_unit},
    {"dt_ms_p5", [](const RunEntry& e) { return e.summary.dt_ms_p5; }, compact_in_unit},
    {"dt_ms_p95", [](const RunEntry& e) { return e.summary.dt_ms_p95; }, compact_in_unit},
    {"tokens_per_s", [](const RunEntry& e) { return e.summary.tokens_per_s; }, tokens_per_s_text},
    {"warmup_steps", [](const RunEntry& e) { return static_cast<double>(e.summary.warmup_steps); }, count_text},
    {"params", [](const RunEntry& e) { return e.run.params > 0 ? static_cast<double>(e.run.params) : missing; },
     compact},
    {"memory",
     [](const RunEntry& e) {
       return e.run.peak_memory_bytes > 0 ? static_cast<double>(e.run.peak_memory_bytes) : missing;
     },
     memory_text},
    {"created", [](const RunEntry& e) { return e.run.created_at; }, time_text},
};

std::string signed_loss(double gap) {
  if (is_missing(gap)) return "-";
  return (gap < 0 ? "-" : "+") + loss_text(std::fabs(gap));
}

constexpr std::string_view difference_ending = " - baseline";
constexpr std::string_view factor_ending = " / baseline";

std::string signed_metric(double gap) {
  return is_missing(gap) ? "" : (gap > 0 ? "+" : "") + metric_text(gap);
}

// "3e-4", with no more digits than the number needs.
std::string exponent_text(double value) {
  std::array<char, 32> text{};
  const char* end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific).ptr;
  const std::string_view digits(text.data(), end), exponent = digits.substr(digits.find('e') + 1);
  return std::string(digits.substr(0, digits.find('e') + 1)) +
         std::to_string(parse_number<int>(exponent.substr(exponent.front() == '+' ? 1 : 0)).value_or(0));
}

std::string mfu_percent(double share) {
  if (is_missing(share)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

}  // namespace

namespace {

std::vector<RunWithSummary> ladder_of(const RunEntry& entry, const Workspace& workspace) {
  std::vector<RunWithSummary> ladder;
  if (!entry.run.ladder) return ladder;
  for (const RunEntry* run : workspace.runs_of(*entry.run.ladder)) ladder.emplace_back(&run->run, &run->summary);
  return ladder;
}

double factor_of(const RunEntry& entry, const ColumnContext& context) {
  if (const RunEntry* chosen = context.workspace->find(context.baseline))
    return speedup(chosen->summary, entry.summary);
  const std::vector<RunWithSummary> ladder = ladder_of(entry, *context.workspace);
  return ladder.empty() ? missing : speedup(baseline_speed(ladder), entry.summary);
}

}  // namespace

const RunEntry* baseline_of(const RunEntry& entry, const ColumnContext& context) {
  if (const RunEntry* chosen = context.workspace->find(context.baseline)) return chosen;
  const std::vector<RunWithSummary> ladder = ladder_of(entry, *context.workspace);
  return ladder.empty() ? nullptr : context.workspace->find(baseline_of(ladder).id);
}

RunId baseline_among(const std::vector<const RunEntry*>& runs, RunId chosen, const Workspace& workspace) {
  const auto has = [&](RunId id) {
    return std::ranges::any_of(runs, [&](const RunEntry* entry) { return entry->run.id == id; });
  };
  if (runs.empty() || has(chosen)) return chosen;
  const RunEntry* base = baseline_of(*runs.front(), {&workspace, 0});
  if (base && has(base->run.id)) return base->run.id;
  // The first of those with most of what is compared.
  const auto answers = [](const RunEntry* entry) {
    return 2 * !is_missing(entry->summary.loss_last) + !is_missing(entry->summary.dt_ms_median) +
           (entry->run.status == RunStatus::finished);
  };
  return (*std::ranges::max_element(runs, {}, answers))->run.id;
}

SpeedDoubt speed_doubt(const RunEntry& entry, const HardwareTable& hardware) {
  const Plausibility found = plausibility_of(entry.run, entry.summary, 1, hardware);
  return {found.trust, doubt_text(found)};
}

const std::vector<RunColumn>& measured_columns() {
  using enum ColumnKind;
  static const std::vector<RunColumn> columns{
      {"stage", "stage", text, 1.2f, true},
      {"status", "status", status, 100, true},
      {"spark_loss", "loss curve", spark, 96, true},
      {"steps", "steps", number, 66, true},
      {"loss_last", "loss", number, 70, true},
      {"val_loss_last", "val loss", number, 72, true},
      {"dt_ms_median", "dt, ms", number, 66, true},
      {"tokens_per_s", "tokens/s", number, 76, true},
      {"factor", "factor", number, 70, true},
      {"tags", "tags", tags, 1.0f, true},
      {"hardware", "hardware", text, 1.4f, true},
      {"created", "created", number, 126, true},
      {"loss_gap", "loss vs baseline", number, 90},
      {"spark_dt", "dt curve", spark, 96},
      {"loss_first", "first loss", number, 82},
      {"loss_min", "min loss", number, 76},
      {"val_loss_min", "min val loss", number, 94},
      {"dt_ms_p5", "dt p5, ms", number, 76},
      {"dt_ms_p95", "dt p95, ms", number, 80},
      {"mfu", "MFU", number, 66},
      {"memory", "memory", number, 76},
      {"params", "parameters", number, 82},
      {"warmup_steps", "warm-up", number, 66},
      {"precision", "precision", text, 0.7f},
      {"device", "device", text, 0.6f},
      {"sync", "timing sync", text, 0.7f},
      {"attention", "attention", text, 0.8f},
      {"ladder", "ladder", text, 1.4f},
      {"rung", "rung", number, 52},
      {"repeat", "repeat", number, 60},
      {"source", "source", text, 0.8f},
      {"note", "note", text, 1.6f},
      {"changed", "change", text, 1.8f},
      {"id", "id", number, 52},
  };
  return columns;
}

const std::map<std::string, std::string>& parsed_recipe(const RunEntry& entry) {
  static std::map<RunId, std::pair<std::string, std::map<std::string, std::string>>> parsed;
  auto& [text, values] = parsed[entry.run.id];
  if (text != entry.run.recipe) {
    text = entry.run.recipe;
    values = recipe_values(entry.run);
  }
  return values;
}

std::vector<RunColumn> recipe_columns(const Workspace& workspace) {
  constexpr double small = 1e-3;
  std::map<std::string, bool> in_exponents;  // by name
  for (const RunEntry& entry : workspace.runs())
    for (const auto& [name, value] : parsed_recipe(entry)) {
      const double number = parse_number<double>(value).value_or(1);
      in_exponents[name] |= number != 0 && std::fabs(number) < small;
    }
  std::vector<RunColumn> columns;
  columns.reserve(in_exponents.size());
  for (const auto& [name, has_small] : in_exponents)
    columns.push_back({.id = recipe_prefix + name, .title = name, .width = 84, .in_exponents = has_small});
  return columns;
}

double cell_value(const std::string& column, const RunEntry& entry, const ColumnContext& context) {
  for (const NumberColumn& number : numbers)
    if (column == number.id) return number.value(entry);
  if (column == "factor") return factor_of(entry, context);
  if (column == "loss_gap") {
    const RunEntry* base = baseline_of(entry, context);
    if (!base) return missing;
    const double gap = entry.summary.loss_last - base->summary.loss_last;
    return is_missing(entry.summary.loss_last) || is_missing(base->summary.loss_last) ? missing : gap;
  }
  if (column == "mfu") return assumed_utilisation_of(entry.run, entry.summary, context.workspace->hardware).mfu;
  if (column.starts_with(recipe_prefix))
    return parse_number<double>(cell_text(column, entry, context)).value_or(missing);
  return missing;
}

std::string cell_text(const std::string& column, const RunEntry& entry, const ColumnContext& context) {
  const Run& run = entry.run;
  for (const NumberColumn& number : numbers)
    if (column == number.id) return number.text(number.value(entry));
  if (column == "name") return run.name;
  if (column == "factor") {
    const double factor = factor_of(entry, context);
    return factor == 1 ? "1 x" : factor_text(factor);
  }
  if (column == "loss_gap") return signed_loss(cell_value(column, entry, context));
  if (column == "mfu") {
    const RunUtilisation use = assumed_utilisation_of(run, entry.summary, context.workspace->hardware);
    return (use.assumed.empty() ? "" : "~") + mfu_percent(use.mfu);
  }
  if (column == "stage") return run.stage;
  if (column == "status") return std::string(to_string(run.status));
  if (column == "tags") return tags_text(entry.curation.tags);
  if (column == "note") return entry.curation.note;
  if (column == "hardware") return run.hardware;
  if (column == "precision") return run.precision;
  if (column == "device") return run.device;
  if (column == "sync") return std::string(to_string(run.sync));
  if (column == "attention") return run.attention;
  if (column == "source") return run.source;
  if (column == "changed") return run.changed;
  if (column == "ladder") {
    const Ladder* ladder = run.ladder ? context.workspace->ladder(*run.ladder) : nullptr;
    return ladder ? ladder->name : "";
  }
  if (column.starts_with(recipe_prefix)) {
    const auto& values = parsed_recipe(entry);
    const auto found = values.find(column.substr(std::string(recipe_prefix).size()));
    return found == values.end() ? "-" : found->second;
  }
  return "";
}

std::string id_of(const MetricColumn& column) {
  const std::string figure = to_string(column.figure);
  if (column.shows == MetricColumn::Shows::difference) return figure + std::string(difference_ending);
  return column.shows == MetricColumn::Shows::factor ? figure + std::string(factor_ending) : figure;
}

std::string title_of(const MetricColumn& column) {
  using Kind = MetricFigure::Kind;
  const MetricFigure& figure = column.figure;
  std::string title = figure.metric;
  if (figure.kind == Kind::at) title += " at " + grouped(figure.step);
  if (figure.kind != Kind::at && figure.kind != Kind::last) title = std::string(to_string(figure.kind)) + " " + title;
  if (column.shows == MetricColumn::Shows::difference) title += " vs baseline";
  if (column.shows == MetricColumn::Shows::factor) title += " factor";
  return title;
}

std::optional<RunColumn> metric_column(const std::string& id, const std::string& unit) {
  MetricColumn column;
  std::string_view figure = id;
  for (const auto& [ending, shows] : {std::pair(difference_ending, MetricColumn::Shows::difference),
                                      std::pair(factor_ending, MetricColumn::Shows::factor)}) {
    if (!figure.ends_with(ending)) continue;
    figure.remove_suffix(ending.size());
    column.shows = shows;
    break;
  }
  const std::optional<MetricFigure> read = metric_figure_from(figure);
  if (!read) return std::nullopt;
  column.figure = *read;
  const bool has_unit = !unit.empty() && column.shows != MetricColumn::Shows::factor;
  RunColumn made{.id = id_of(column), .title = title_of(column) + (has_unit ? ", " + unit : "")};
  constexpr float narrow = 76, wide = 190, letter = 7, around = 20;
  made.width = std::clamp(letter * static_cast<float>(made.title.size()) + around, narrow, wide);
  made.metric = column;
  return made;
}

double cell_value(const RunColumn& column, const RunEntry& entry, const ColumnContext& context) {
  if (!column.metric) return cell_value(column.id, entry, context);
  const auto of = [&](const RunEntry& run) {
    return context.workspace->figure(run.run.id, column.metric->figure).value_or(missing);
  };
  if (column.metric->shows == MetricColumn::Shows::value) return of(entry);
  const RunEntry* base = baseline_of(entry, context);
  if (!base) return missing;
  return column.metric->shows == MetricColumn::Shows::difference ? delta_from(of(*base), of(entry))
                                                                 : factor_from(of(*base), of(entry));
}

std::string cell_text(const RunColumn& column, const RunEntry& entry, const ColumnContext& context) {
  if (!column.metric) {
    std::string text = cell_text(column.id, entry, context);
    const std::optional<double> number = column.in_exponents ? parse_number<double>(text) : std::nullopt;
    return number && *number != 0 ? exponent_text(*number) : text;
  }
  if (!context.workspace->figure(entry.run.id, column.metric->figure)) return "...";
  const double value = cell_value(column, entry, context);
  if (is_missing(value)) return "";
  switch (column.metric->shows) {
    case MetricColumn::Shows::difference:
      return signed_metric(value);
    case MetricColumn::Shows::factor:
      return baseline_of(entry, context) == &entry ? "1 x" : factor_text(value);
    case MetricColumn::Shows::value:
      break;
  }
  return metric_text(value);
}

}  // namespace stepladder
