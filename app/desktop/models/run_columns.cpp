#include "app/desktop/models/run_columns.h"

#include <charconv>
#include <cmath>
#include <set>

#include "app/format.h"
#include "storage/analysis/compare.h"
#include "storage/analysis/plausibility.h"
#include "storage/analysis/recipe_facts.h"

namespace stepladder {
namespace {

constexpr const char* recipe_prefix = "recipe.";

const RunEntry* baseline_of(const RunEntry& entry, const ColumnContext& context) {
  if (const RunEntry* chosen = context.workspace->find(context.baseline)) return chosen;
  if (!entry.run.ladder) return nullptr;
  const std::vector<const RunEntry*> runs = context.workspace->runs_of(*entry.run.ladder);
  return runs.empty() ? nullptr : runs.front();
}

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
    {"dt_ms_median", [](const RunEntry& e) { return e.summary.dt_ms_median; }, compact},
    {"dt_ms_p5", [](const RunEntry& e) { return e.summary.dt_ms_p5; }, compact},
    {"dt_ms_p95", [](const RunEntry& e) { return e.summary.dt_ms_p95; }, compact},
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

std::string percent_text(double share) {
  if (is_missing(share)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

}  // namespace

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
  std::set<std::string> names;
  for (const RunEntry& entry : workspace.runs()) {
    for (const auto& [name, value] : parsed_recipe(entry)) names.insert(name);
  }
  std::vector<RunColumn> columns;
  columns.reserve(names.size());
  for (const std::string& name : names)
    columns.push_back({.id = recipe_prefix + name, .title = name, .kind = ColumnKind::number, .width = 84});
  return columns;
}

double cell_value(const std::string& column, const RunEntry& entry, const ColumnContext& context) {
  for (const NumberColumn& number : numbers) {
    if (column == number.id) return number.value(entry);
  }
  if (column == "factor" || column == "loss_gap") {
    const RunEntry* base = baseline_of(entry, context);
    if (!base) return missing;
    if (column == "factor") return speedup(base->summary, entry.summary);
    const double gap = entry.summary.loss_last - base->summary.loss_last;
    return is_missing(entry.summary.loss_last) || is_missing(base->summary.loss_last) ? missing : gap;
  }
  if (column == "mfu") return assumed_utilisation_of(entry.run, entry.summary, context.workspace->hardware).mfu;
  if (column.starts_with(recipe_prefix)) {
    const std::string text = cell_text(column, entry, context);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? value : missing;
  }
  return missing;
}

std::string cell_text(const std::string& column, const RunEntry& entry, const ColumnContext& context) {
  const Run& run = entry.run;
  for (const NumberColumn& number : numbers) {
    if (column == number.id) return number.text(number.value(entry));
  }
  if (column == "name") return run.name;
  if (column == "factor")
    return baseline_of(entry, context) == &entry ? "1 x" : factor_text(cell_value(column, entry, context));
  if (column == "loss_gap") return signed_loss(cell_value(column, entry, context));
  if (column == "mfu") {
    const RunUtilisation use = assumed_utilisation_of(run, entry.summary, context.workspace->hardware);
    return (use.assumed.empty() ? "" : "~") + percent_text(use.mfu);
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

}  // namespace stepladder
