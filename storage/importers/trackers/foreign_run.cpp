// Turns a tracker's run into calls of the sink and its configuration into a flat recipe. fill_from knows the names that
// people use for batch, sequence length, parameters, precision. Runs of equal recipes but the seed share a rung.
#include "storage/importers/trackers/foreign_run.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>

#include "storage/analysis/file_grouping.h"
#include "storage/importers/constant_values.h"

namespace stepladder {
namespace {

constexpr int deepest = 8;

std::string folded(std::string_view name) {
  std::string key;
  for (const char c : name.substr(name.find_last_of("./") + 1))
    if (c != '_' && c != '-' && c != ' ') key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return key;
}

// {"model": {"n_layer": 12}} -> {"model.n_layer": 12}
void flatten(const Json& value, const std::string& name, int depth, Json& flat) {
  if (flat.size() >= most_settings) return;
  if (value.is_object() && depth < deepest) {
    for (const auto& [key, inner] : value.items())
      flatten(inner, name.empty() ? key : name + "." + key, depth + 1, flat);
  } else if (!name.empty()) {
    flat[name] = value;
  }
}

// Parameters are often kept as text ("0.001", "12").
std::optional<double> number_in(const Json& value) {
  double number = 0;
  if (value.is_number()) return value.get<double>();
  if (value.is_string() && read_number(value.get_ref<const std::string&>(), number)) return number;
  return std::nullopt;
}

std::int64_t count_in(const Json& value, double most) {
  const auto number = number_in(value);
  return number && *number >= 1 && *number <= most ? std::llround(*number) : 0;
}

std::string precision_named(const Json& value) {
  if (!value.is_string()) return {};
  const std::string text = folded(value.get_ref<const std::string&>());
  if (text.find("bf16") != std::string::npos || text.find("bfloat16") != std::string::npos) return "bf16";
  if (text == "fp16" || text == "float16" || text == "half" || text == "16mixed") return "fp16";
  if (text == "tf32") return "tf32";
  if (text == "fp32" || text == "float32" || text == "float" || text == "32" || text == "32true") return "fp32";
  return {};
}

bool is_one_of(const std::string& key, std::initializer_list<std::string_view> keys) {
  return std::ranges::find(keys, key) != keys.end();
}

// Returns the tokens of one sample; 0 if the configuration doesn't give them.
std::int64_t fill_from(const Json& recipe, Run& run) {
  std::int64_t sequence = 0;
  for (const auto& [name, value] : recipe.items()) {
    const std::string key = folded(name);
    if (is_one_of(key,
                  {"blocksize", "seqlen", "seqlength", "sequencelength", "maxseqlen", "contextlength", "blocklen"}))
      sequence = sequence == 0 ? count_in(value, 1e8) : sequence;
    else if (is_one_of(key, {"tokensperstep", "tokensperiter"}))
      run.tokens_per_step = count_in(value, 1e15);
    else if (is_one_of(key, {"nparams", "numparams", "params", "parameters", "numparameters", "nparameters"}))
      run.params = std::max(run.params, count_in(value, 1e15) >= 1000 ? count_in(value, 1e15) : 0);
    else if (is_one_of(key, {"dtype", "precision", "mixedprecision", "amp"}) && run.precision.empty())
      run.precision = precision_named(value);
    else if (is_one_of(key, {"gpuname", "gputype", "gpu"}) && run.hardware.empty() && value.is_string())
      run.hardware = value.get<std::string>();
  }
  return sequence;
}

// Of what all steps have in common: other settings are in the configuration, and other numbers are metrics.
void add_constants(const MetricTable::Steps& steps, Run& run) {
  Json recipe = object_in(run.recipe);
  const std::size_t known = recipe.size();
  ConstantNumber lr;
  for (const StepRecord& record : steps.records) lr.add(record.lr);
  add_constant(recipe, "lr", lr, std::ssize(steps.records));
  if (recipe.size() > known) run.recipe = json_text(recipe);
}

// What repeats have in common (storage/analysis/file_grouping.h).
std::string configuration_of(const Run& run) {
  Json kept = Json::object();
  const Json recipe = run.recipe.empty() ? Json::object() : Json::parse(run.recipe);
  for (const auto& [name, value] : recipe.items())
    if (!differs_between_repeats(name)) kept[name] = value;
  if (kept.empty()) return "";
  return json_text(kept) + "\n" + run.hardware + "\n" + run.device;
}

}  // namespace

std::int64_t fill_from_config(const Json& config, Run& run) {
  Json recipe = Json::object();
  flatten(config, "", 0, recipe);
  const std::int64_t tokens_per_sample = fill_from(recipe, run);
  if (!recipe.empty()) run.recipe = json_text(recipe);
  return tokens_per_sample;
}

std::string pass_on(ForeignRun foreign, ImportSink& sink) {
  Run& run = foreign.run;
  const std::int64_t tokens_per_sample = fill_from_config(foreign.config, run);
  if (is_missing(run.started_at)) run.started_at = foreign.metrics.first_at();
  if (is_missing(run.ended_at)) run.ended_at = foreign.metrics.last_at();
  if (is_missing(run.created_at)) run.created_at = run.started_at;

  const MetricTable::Steps steps = foreign.metrics.take_steps(tokens_per_sample);
  if (run.tokens_per_step == 0) run.tokens_per_step = steps.tokens_per_step;
  if (run.planned_steps == 0 && !steps.records.empty()) run.planned_steps = steps.records.back().step;
  add_constants(steps, run);
  sink.begin_run(run);
  for (const StepRecord& record : steps.records) sink.step(record);
  for (const auto& [metric, points] : steps.metrics) sink.metric(metric, points);
  sink.end_run(run);
  const std::string who = run.title.empty() ? "" : "run \"" + short_list({run.title}) + "\": ";
  for (const std::string& note : foreign.notes) sink.note(0, who + note);
  for (const std::string& note : steps.notes) sink.note(0, who + note);
  return configuration_of(run);
}

void LadderOfRuns::add(ForeignRun run) {
  if (rungs_.empty()) created_at_ = run.run.created_at;
  std::string recipe = pass_on(std::move(run), sink_);
  int rung = next_rung_;
  if (!recipe.empty()) rung = rung_of_.try_emplace(std::move(recipe), next_rung_).first->second;
  if (rung == next_rung_) ++next_rung_;
  rungs_.push_back(rung);
}

void LadderOfRuns::finish() {
  if (rungs_.size() < 2) return;
  sink_.ladder({.name = name_, .created_at = created_at_}, rungs_);
}

std::string import_name(const std::filesystem::path& path, std::string_view name) {
  std::string stem = path.stem().string();
  if (stem.empty()) return std::string(name);
  return name.empty() ? stem : stem + " " + std::string(name);
}

Json json_or_text(std::string_view text) {
  if (nests_deep(text)) return std::string(text);
  Json value = Json::parse(text.begin(), text.end(), nullptr, false);
  return value.is_discarded() ? Json(std::string(text)) : value;
}

bool read_number(std::string_view text, double& value) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) return false;
  if (error == std::errc::result_out_of_range) {
    const bool small = text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
    value = small ? 0 : std::numeric_limits<double>::infinity();
    if (text.starts_with('-')) value = -value;
    return true;
  }
  return error == std::errc();
}

double unix_from_iso(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, used = 0;
  double second = 0;
  const std::string copy(text.substr(0, 64));
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2d%*1[T ]%2d:%2d:%lf%n", &year, &month, &day, &hour, &minute, &second,
                  &used) < 6 ||
      used == 0)
    return missing;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour < 0 || hour > 24 || minute < 0 || minute > 59 || !(second >= 0 && second < 61)) return missing;
  int zone_hour = 0, zone_minute = 0;
  double zone = 0;
  const char* rest = copy.c_str() + used;
  if ((*rest == '+' || *rest == '-') && std::sscanf(rest + 1, "%2d:%2d", &zone_hour, &zone_minute) >= 1)
    zone = (zone_hour * 3600 + zone_minute * 60) * (*rest == '-' ? -1.0 : 1.0);
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86400.0 + hour * 3600.0 + minute * 60.0 + second - zone;
}

}  // namespace stepladder
