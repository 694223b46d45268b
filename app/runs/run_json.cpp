#include "app/runs/run_json.h"

#include <cmath>
#include <ctime>

#include "engine/stage.h"
#include "storage/analysis/run_place.h"

namespace stepladder {

Json number(double value) {
  if (is_missing(value)) return nullptr;
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}
Json count_or_null(std::int64_t count) {
  return count > 0 ? Json(count) : Json();
}

Json interval_json(const Interval& interval) {
  return interval.known() ? Json::array({number(interval.low), number(interval.high)}) : Json();
}

Json time_json(double unix_seconds) {
  if (is_missing(unix_seconds)) return nullptr;
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  char text[32];
  if (!::gmtime_r(&seconds, &parts) || std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
    return nullptr;
  return text;
}

const Curation& RunContext::curation(RunId run) const {
  static const Curation none;
  const auto found = curations.find(run);
  return found == curations.end() ? none : found->second;
}

namespace {

// The ids of the stages that a launched run's recipe has, in ladder order; null for other runs.
Json stages_json(const Run& run) {
  if (run.source != "launched" || run.recipe.empty()) return nullptr;
  try {
    const Recipe recipe = recipe_from_json(run.recipe);
    Json ids = Json::array();
    for (const Stage& stage : all_stages())
      if (stage.id != "baseline" && stage.is_on(recipe)) ids.push_back(stage.id);
    return ids;
  } catch (const RecipeError&) {  // of another version
    return nullptr;
  }
}

// The status with which a watched program exited; null if it was none, or still runs.
Json exit_status_of(const Run& run) {
  if (run.environment.find("\"exit_status\"") == std::string::npos) return nullptr;
  const Json environment = Json::parse(run.environment, nullptr, false);
  if (!environment.is_object()) return nullptr;
  const auto status = environment.find("exit_status");
  return status != environment.end() && status->is_number_integer() ? *status : Json();
}

}  // namespace

Json run_json(const Run& run, const Summary& summary, const RunContext& context) {
  const bool measured = summary.steps > 0;
  const RunUtilisation used = utilisation_of(run, summary, context.hardware);
  const Plausibility plausibility = plausibility_of(run, summary, context);
  const RunPlace place = place_of(run);
  const Curation& curation = context.curation(run.id);
  return {{"id", run.id},
          {"name", run.name},
          {"ladder", run.ladder ? Json(*run.ladder) : Json()},
          {"stage", text_or_null(run.stage)},
          {"repeat", run.repeat},
          {"status", to_string(run.status)},
          {"source", run.source},
          {"source_path", text_or_null(run.source_path)},
          {"steps", summary.steps},
          {"first_step", measured ? Json(summary.first_step) : Json()},
          {"last_step", measured ? Json(summary.last_step) : Json()},
          {"loss_first", number(summary.loss_first)},
          {"loss_last", number(summary.loss_last)},
          {"loss_min", number(summary.loss_min)},
          {"val_loss_last", number(summary.val_loss_last)},
          {"val_loss_min", number(summary.val_loss_min)},
          {"dt_ms_median", number(summary.dt_ms_median)},
          {"tokens_per_step", count_or_null(run.tokens_per_step)},
          {"tokens_per_s", number(summary.tokens_per_s)},
          {"warmup_steps", measured ? Json(summary.warmup_steps) : Json()},
          {"params", count_or_null(run.params)},
          {"model_flops_per_token",
           number(is_missing(run.model_flops_per_token) ? used.flops_per_token : run.model_flops_per_token)},
          {"mfu", number(used.mfu)},
          {"mfu_convention", text_or_null(used.convention)},
          {"device", text_or_null(run.device)},
          {"hardware", text_or_null(run.hardware)},
          {"precision", text_or_null(run.precision)},
          {"sync", to_string(run.sync)},
          {"flags", json_list(plausibility.flags, [](const Flag& flag) { return to_string(flag.id); })},
          {"trust", to_string(plausibility.trust)},
          {"rung", run.rung},
          {"title", text_or_null(run.title)},
          {"reason", text_or_null(run.reason)},
          {"parent", run.parent ? Json(*run.parent) : Json()},
          {"forked_at_step", count_or_null(run.forked_at_step)},
          {"attention", text_or_null(run.attention)},
          {"peak_memory_bytes", count_or_null(run.peak_memory_bytes)},
          {"setup_ms", number(run.setup_ms)},
          {"machine", text_or_null(machine_of(run))},
          {"host", place.hosts.empty() ? Json() : Json(place.hosts.back())},
          {"watched_steps", count_or_null(summary.watched_steps)},
          {"disturbed_steps", summary.watched_steps > 0 ? Json(summary.disturbed_steps) : Json()},
          {"stages", stages_json(run)},
          {"fell_back", text_or_null(recipe_facts(run).fell_back)},
          {"paused", context.paused.contains(run.id)},
          {"created_at", time_json(run.created_at)},
          {"ended_at", time_json(run.ended_at)},
          {"exit_status", exit_status_of(run)},
          {"tags", curation.tags},
          {"note", text_or_null(curation.note)},
          {"pinned", curation.pinned},
          {"archived", curation.archived}};
}

}  // namespace stepladder
