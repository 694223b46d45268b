// A series of tries as values and as JSON. Answers are stored as the JSON that was printed, and may come from somebody
// else's file, so each field is checked before it is used.
#include "app/runs/try_history.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/host/held_folder.h"
#include "app/text/format.h"
#include "storage/analysis/means/mean_test.h"
#include "storage/bounded_text.h"
#include "storage/json_values.h"
#include "storage/wording.h"

namespace stepladder {

namespace fs = std::filesystem;

fs::path tries_folder(RunStore& store, LadderId ladder) {
  for (const Ladder& each : store.ladders())
    if (each.id == ladder && Uid::allows(each.uid)) return fs::absolute(store.file()).string() + ".tries/" + each.uid;
  return {};
}

TryHistory history_of(RunStore& store, const TrySeries& series) {
  TryHistory history{{series, store.tries().tries(series.ladder), store.tries().runs(series.ladder)}};
  // Only where it matters: a process that works on the folder itself would let go of it by looking.
  if (series.is_open() && !history.tries.empty() && history.tries.back().verdict.empty()) {
    const fs::path folder = tries_folder(store, series.ladder);
    history.is_at_work = !folder.empty() && is_held(folder / ".state");
  }
  return history;
}

std::optional<TrySeries> series_around(RunStore& store, const fs::path& folder) {
  std::error_code error;
  fs::path top = fs::canonical(folder, error);
  while (top.has_relative_path() && !fs::exists(fs::symlink_status(top / ".git", error))) top = top.parent_path();
  return store.tries().latest_of(top.string());
}

Json try_answer(const std::string& text) {
  Json json = nests_deep(text) ? Json() : Json::parse(text, nullptr, false);
  return json.is_object() ? std::move(json) : Json::object();
}

double try_number(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_number() ? json[key].get<double>() : missing;
}

std::string try_text(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? bounded(json[key].get<std::string>(), longest_line) : "";
}

bool try_flag(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_boolean() && json[key].get<bool>();
}

bool is_time_metric(const std::string& metric) {
  return metric == "tokens_per_s" || metric == "dt_ms" || metric == "wall_s";
}

std::int64_t runs_of_try(const TryHistory& history, std::int64_t number) {
  return std::ranges::count(history.runs, number, &TryRun::during);
}

std::string try_metric(const TryHistory& history) {
  return history.tries.empty() ? "" : try_text(try_answer(history.tries.front().answer), "metric");
}

double shown_value(const TryHistory& history, double value) {
  const Json plan = try_answer(history.series.plan);
  const bool by_throughput =
      plan.contains("figure") && plan["figure"].is_object() && try_text(plan["figure"], "by") == "throughput";
  return !by_throughput ? value : try_metric(history) == "dt_ms" ? 1e3 * value : 1 / value;
}

double try_value(const TryHistory& history, std::int64_t state) {
  std::vector<double> values;
  for (const TryRun& run : history.runs)
    if (run.state == state && run.during >= -1 && !is_missing(run.value))
      values.push_back(shown_value(history, run.value));
  return figures_of(values).mean;
}

std::string try_verdict(const TryHistory& history, const Try& it) {
  return !it.verdict.empty() ? it.verdict : history.is_at_work ? "running" : "interrupted";
}

std::string try_reason(const TryHistory& history, const Try& it) {
  const std::string reason = try_text(try_answer(it.answer), "reason");
  if (!reason.empty() || !it.verdict.empty() || history.is_at_work) return reason;
  return it.number == 0 ? "interrupted; `stepladder try begin` continues it"
                        : "interrupted; `stepladder try -m TEXT` continues it if the checkout is still the same";
}

Json logged_try_json(const TryHistory& history, const Try& it) {
  Json json = try_answer(it.answer);
  if (!json.contains("try"))
    json = {{"try", it.number},
            {"verdict", text_or_null(it.verdict)},
            {"metric", text_or_null(try_metric(history))},
            {"difference", nullptr},
            {"factor", nullptr},
            {"ci95", nullptr},
            {"e_value", nullptr},
            {"runs", nullptr},
            {"runs_left", nullptr},
            {"needed_runs", nullptr},
            {"reason", text_or_null(try_reason(history, it))},
            {"commit", text_or_null(it.commit)},
            {"dirty", nullptr}};
  json.erase("parts");
  json["runs"] = runs_of_try(history, it.number);
  json["value"] = number(try_value(history, it.number));
  json["message"] = it.message;
  json["parent"] = it.parent;
  json["patch_bytes"] = it.patch_bytes;
  json["begun_at"] = time_json(it.begun_at);
  json["ended_at"] = time_json(it.ended_at);
  return json;
}

Json shown_try_json(const TryHistory& history, const Try& it) {
  Json json = logged_try_json(history, it);
  json["runs_made"] = Json::array();
  for (const TryRun& run : history.runs)
    if (run.during == it.number)
      json["runs_made"].push_back({{"run", count_or_null(run.run)},
                                   {"state", run.state},
                                   {"value", number(run.value)},
                                   {"wall_s", number(run.wall_s)},
                                   {"exit_status", run.exit_status}});
  json["patch"] = text_or_null(it.patch);
  const Json answer = try_answer(it.answer);
  json["parts"] = answer.contains("parts") ? answer["parts"] : Json();
  return json;
}

Json status_json(const TryHistory& history) {
  Json verdicts = Json::object();
  std::int64_t kept = 0;
  for (const Try& it : history.tries) {
    if (it.number == 0) continue;
    const std::string verdict = try_verdict(history, it);
    verdicts[verdict] = verdicts.value(verdict, 0) + 1;
    if (it.verdict == "kept") kept = it.number;
  }
  const Json plan = try_answer(history.series.plan), begun = try_answer(history.tries.front().answer);
  const double budget = try_number(plan, "budget_runs");
  return {{"series", history.series.ladder},
          {"checkout", history.series.checkout},
          {"machine", text_or_null(try_text(plan, "machine"))},
          {"state", !history.series.is_open()               ? "ended"
                    : !history.tries.back().verdict.empty() ? "waiting"
                    : !history.is_at_work                   ? "interrupted"
                    : history.tries.size() == 1             ? "beginning"
                                                            : "running"},
          {"metric", text_or_null(try_metric(history))},
          // One value "at first" everywhere: of all its runs so far.
          {"mean", begun.contains("mean") ? number(try_value(history, 0)) : Json()},
          {"noise_sd", number(try_number(begun, "noise_sd"))},
          {"tries", std::ssize(history.tries) - 1},
          {"verdicts", verdicts},
          {"kept", kept},
          {"value", number(try_value(history, kept))},
          {"runs", history.runs.size()},
          {"runs_left",
           budget > 0 ? Json(std::max<std::int64_t>(0, std::int64_t(budget) - std::ssize(history.runs))) : Json()},
          {"command", plan.contains("command") ? plan["command"] : Json()},
          {"end", history.series.answer.empty() ? Json() : try_answer(history.series.answer)}};
}

std::string change_text(const Json& answer) {
  const double difference = try_number(answer, "difference"), factor = try_number(answer, "factor");
  if (is_missing(difference)) return {};
  const std::string metric = try_text(answer, "metric");
  const bool is_factor = is_time_metric(metric);
  const auto change = [&](const std::string& text) {
    return is_factor ? factor_text(factor) : metric + (difference < 0 ? " " : " +") + text;
  };
  const Json ci95 = answer.contains("ci95") ? answer["ci95"] : Json();
  if (!ci95.is_array() || ci95.size() != 2 || !ci95[0].is_number() || !ci95[1].is_number())
    return change(metric_text(difference));
  // As many decimals as the interval says something about: two digits of its width.
  const double low = ci95[0], high = ci95[1], width = high - low;
  const int digits = width > 0 ? std::clamp(1 - static_cast<int>(std::floor(std::log10(width))), 0, 8) : 4;
  return change(decimals(difference, digits)) + ", 95 % interval " + decimals(low, digits) + " to " +
         decimals(high, digits);
}

}  // namespace stepladder
