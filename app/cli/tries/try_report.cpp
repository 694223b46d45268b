// What `try log`, `show` and `status` print. Answers are stored as the JSON that was printed, and may come from
// somebody else's file, so each field is checked before it is used.
#include "app/cli/tries/try_report.h"

#include <algorithm>

#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/host/git.h"
#include "app/text/format.h"
#include "storage/analysis/means/mean_test.h"
#include "storage/bounded_text.h"
#include "storage/errors.h"
#include "storage/nested_json.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

Json parsed(const std::string& text) {
  Json json = nests_deep(text) ? Json() : Json::parse(text, nullptr, false);
  return json.is_object() ? std::move(json) : Json::object();
}

double number_at(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_number() ? json[key].get<double>() : missing;
}

std::string text_at(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? bounded(json[key].get<std::string>(), longest_line) : "";
}

std::int64_t runs_of(const TryHistory& history, std::int64_t number) {
  return std::count_if(history.runs.begin(), history.runs.end(),
                       [&](const TryRun& run) { return run.during == number; });
}

std::string metric_of(const TryHistory& history) {
  return text_at(parsed(history.tries.front().answer), "metric");
}

// The mean of a state's runs in the metric's unit.
double value_of(const TryHistory& history, std::int64_t state) {
  std::vector<double> values;
  const std::string metric = metric_of(history);
  const Json plan = parsed(history.series.plan);
  const bool by_throughput =
      plan.contains("figure") && plan["figure"].is_object() && text_at(plan["figure"], "by") == "throughput";
  for (const TryRun& run : history.runs)
    if (run.state == state && run.during >= -1 && !is_missing(run.value))
      values.push_back(!by_throughput ? run.value : metric == "dt_ms" ? 1e3 * run.value : 1 / run.value);
  return figures_of(values).mean;
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char letter) { return letter == '\t' || letter == '\n' || letter == '\r'; }, ' ');
  return text;
}

std::string verdict_of(const Try& it) {
  return it.verdict.empty() ? "running" : it.verdict;
}

}  // namespace

TryHistory try_history(RunStore& store) {
  std::string top;
  try {
    top = GitCheckout(std::filesystem::current_path()).top().string();
  } catch (const StorageError& error) {
    throw UsageError("this folder isn't in a git checkout that can be read: " + first_line(error.what()));
  }
  const auto series = store.tries().latest_of(top);
  if (!series)
    throw UsageError("no tries of " + top + " are in this project; `stepladder try begin -- COMMAND` begins");
  TryHistory history{*series, store.tries().tries(series->ladder), store.tries().runs(series->ladder)};
  if (history.tries.empty()) throw StorageError("the series of tries has no first state");
  return history;
}

const Try& try_named(const TryHistory& history, std::int64_t number) {
  for (const Try& it : history.tries)
    if (it.number == number) return it;
  throw UsageError("there is no try " + std::to_string(number) + "; `stepladder try log` lists them");
}

Json logged_try_json(const TryHistory& history, const Try& it) {
  Json json = parsed(it.answer);
  if (!json.contains("try"))
    json = {{"try", it.number},
            {"verdict", text_or_null(it.verdict)},
            {"metric", text_or_null(metric_of(history))},
            {"difference", nullptr},
            {"factor", nullptr},
            {"ci95", nullptr},
            {"e_value", nullptr},
            {"runs", nullptr},
            {"runs_left", nullptr},
            {"needed_runs", nullptr},
            {"reason", nullptr},
            {"commit", text_or_null(it.commit)}};
  json["runs"] = runs_of(history, it.number);
  json["value"] = number(value_of(history, it.number));
  json["message"] = it.message;
  json["parent"] = it.parent;
  json["patch_bytes"] = it.patch_bytes;
  json["begun_at"] = number(it.begun_at);
  json["ended_at"] = number(it.ended_at);
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
  return json;
}

Json status_json(const TryHistory& history) {
  Json verdicts = Json::object();
  std::int64_t kept = 0;
  for (const Try& it : history.tries) {
    if (it.number == 0) continue;
    verdicts[verdict_of(it)] = verdicts.value(verdict_of(it), 0) + 1;
    if (it.verdict == "kept") kept = it.number;
  }
  const Json plan = parsed(history.series.plan), begun = parsed(history.tries.front().answer);
  const double budget = number_at(plan, "budget_runs");
  return {{"series", history.series.ladder},
          {"checkout", history.series.checkout},
          {"state", !history.series.is_open()               ? "ended"
                    : history.tries.front().verdict.empty() ? "beginning"
                    : history.tries.back().verdict.empty()  ? "running"
                                                            : "waiting"},
          {"metric", text_or_null(metric_of(history))},
          {"mean", number(number_at(begun, "mean"))},
          {"noise_sd", number(number_at(begun, "noise_sd"))},
          {"tries", std::ssize(history.tries) - 1},
          {"verdicts", verdicts},
          {"kept", kept},
          {"value", number(value_of(history, kept))},
          {"runs", history.runs.size()},
          {"runs_left",
           budget > 0 ? Json(std::max<std::int64_t>(0, std::int64_t(budget) - std::ssize(history.runs))) : Json()},
          {"command", plan.contains("command") ? plan["command"] : Json()},
          {"end", history.series.answer.empty() ? Json() : parsed(history.series.answer)}};
}

std::string change_text(const Json& answer) {
  const double difference = number_at(answer, "difference"), factor = number_at(answer, "factor");
  if (is_missing(difference)) return {};
  const std::string metric = text_at(answer, "metric");
  const bool is_time = metric == "tokens_per_s" || metric == "dt_ms" || metric == "wall_s";
  std::string text = is_time ? factor_text(factor) : metric + (difference < 0 ? " " : " +") + metric_text(difference);
  if (answer.contains("ci95") && answer["ci95"].is_array() && answer["ci95"].size() == 2 &&
      answer["ci95"][0].is_number() && answer["ci95"][1].is_number())
    text += ", 95 % interval " + significant(answer["ci95"][0].get<double>(), 4) + " to " +
            significant(answer["ci95"][1].get<double>(), 4);
  return text;
}

std::string log_text(const TryHistory& history) {
  std::vector<std::vector<std::string>> rows{{"try", "verdict", metric_of(history), "change", "runs", "message"}};
  for (const Try& it : history.tries)
    rows.push_back({std::to_string(it.number), it.number == 0 ? "first" : verdict_of(it),
                    metric_text(value_of(history, it.number)), change_text(parsed(it.answer)),
                    std::to_string(runs_of(history, it.number)), it.message});
  return table(rows, {true, false, true, false, true, false});
}

std::string log_tsv(const TryHistory& history) {
  std::string text = "commit\t" + metric_of(history) + "\tmemory_gb\tstatus\tdescription\n";
  for (const Try& it : history.tries) {
    if (it.verdict.empty()) continue;
    const double value = value_of(history, it.number);
    text += (it.commit.empty() ? "-" : it.commit.substr(0, 7)) + "\t" +
            fmt::format("{:.6f}", is_missing(value) ? 0.0 : value) + "\t0.0\t" +
            (it.verdict == "kept"     ? "keep"
             : it.verdict == "failed" ? "crash"
                                      : "discard") +
            "\t" + one_line(it.message) + "\n";
  }
  return text;
}

std::string status_text(const TryHistory& history) {
  const Json status = status_json(history);
  std::string text = "Tries of " + history.series.checkout + ", ladder " + std::to_string(history.series.ladder) +
                     ": " + text_at(status, "state") + "\n";
  text += "  metric   " + text_at(status, "metric") + ", " + metric_text(number_at(status, "mean")) +
          " at first, now " + metric_text(number_at(status, "value")) + "; one run's standard deviation " +
          significant(number_at(status, "noise_sd"), 3) + "\n";
  text += "  tries    " + std::to_string(std::ssize(history.tries) - 1);
  for (const auto& [verdict, count] : status["verdicts"].items())
    text += ", " + std::to_string(count.get<std::int64_t>()) + " " + verdict;
  text += "\n  runs     " + std::to_string(history.runs.size());
  if (status["runs_left"].is_number()) text += ", " + status["runs_left"].dump() + " left";
  return text + "\n";
}

}  // namespace stepladder
