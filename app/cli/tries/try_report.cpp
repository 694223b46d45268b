// What `try log`, `show` and `status` print.
#include "app/cli/tries/try_report.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <span>

#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/text/verdict_text.h"
#include "storage/errors.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char letter) { return letter == '\t' || letter == '\n' || letter == '\r'; }, ' ');
  return text;
}

std::span<const Try> newest(const TryHistory& history, std::size_t limit) {
  const std::span<const Try> all = history.tries;
  return all.subspan(all.size() - std::min(limit, all.size()));
}

}  // namespace

TryHistory try_history(RunStore& store) {
  const auto series = series_around(store, std::filesystem::current_path());
  if (!series)
    throw UsageError(
        "this folder's git checkout has no series of tries in this project; `stepladder try begin -- COMMAND` begins "
        "one");
  TryHistory history = history_of(store, *series);
  if (history.tries.empty()) throw StorageError("the series of tries has no first state");
  for (const TrySeries& later : store.tries().all())
    if (later.checkout == series->checkout && later.ladder > series->ladder)
      std::cerr << "stepladder: a later `try begin` failed (ladder " << later.ladder << "), so this is ladder "
                << series->ladder << ", the series before\n";
  return history;
}

const Try& try_named(const TryHistory& history, std::int64_t number) {
  for (const Try& it : history.tries)
    if (it.number == number) return it;
  throw UsageError("there is no try " + std::to_string(number) + "; `stepladder try log` lists them");
}

// `parts` of an answer, which may come from somebody else's file.
std::string parts_text(const Json& parts) {
  const auto list = [&](const char* key) { return parts.contains(key) && parts[key].is_array() ? parts[key] : Json(); };
  const auto number_text = [](const Json& json, const char* key) {
    return json.contains(key) && json[key].is_number_integer() ? json[key].dump() : "";
  };
  std::vector<std::vector<std::string>> rows{{"part", "what", "lines", "change", "verdict"}};
  const auto change = [&](Json effect) {
    if (effect.is_object()) effect["metric"] = try_text(parts, "metric");
    return change_text(effect);
  };
  const auto lines = [&](const Json& part) {
    const std::string added = number_text(part, "added");
    return added.empty() ? "" : "+" + added + " -" + number_text(part, "removed");
  };
  for (const Json& part : list("parts"))
    rows.push_back(
        {number_text(part, "part"), try_text(part, "what"), lines(part), change(part), try_text(part, "verdict")});
  std::string text = table(rows, {true, false, false, false, false});
  for (const Json& part : list("parts"))
    if (const std::string why = try_text(part, "reason"); !why.empty())
      text += "Part " + number_text(part, "part") + " is no gain yet: " + why + "\n";
  const auto pair_text = [](const Json& pair) {
    return pair.is_array() && pair.size() == 2 ? pair[0].dump() + " and " + pair[1].dump() : "";
  };
  for (const Json& pair : list("pairs")) {
    std::string which = pair.contains("parts") ? pair_text(pair["parts"]) : "";
    if (which.empty()) continue;
    if (const Json others = pair.value("or", Json()); others.is_array() && !others.empty()) {
      for (const Json& other : others) which += ", or " + pair_text(other);
      which += ',';
    }
    text += "Parts " + which + " act on each other; both have beyond the sum: " + change(pair) + "\n";
  }
  std::string droppable;
  for (const Json& part : list("droppable")) droppable += (droppable.empty() ? "" : ", ") + part.dump();
  if (!droppable.empty()) text += "Without loss you can drop: " + droppable + "\n";
  const std::string failed = number_text(parts, "failed_runs");
  if (!failed.empty() && failed != "0") text += failed + " of the runs failed and don't count\n";
  return text;
}

std::string log_text(const TryHistory& history, std::size_t limit) {
  std::vector<std::vector<std::string>> rows{{"try", "verdict", try_metric(history), "change", "runs", "message"}};
  for (const Try& it : newest(history, limit))
    rows.push_back({std::to_string(it.number), it.number == 0 ? "first" : try_verdict_word(try_verdict(history, it)),
                    metric_text(try_value(history, it.number)), change_text(try_answer(it.answer)),
                    std::to_string(runs_of_try(history, it.number)), it.message});
  return table(rows, {true, false, true, false, true, false});
}

std::string show_text(const TryHistory& history, const Try& it) {
  const Json answer = try_answer(it.answer);
  const std::string change = change_text(answer), reason = try_reason(history, it);
  const double value = try_value(history, it.number);
  std::string text =
      (it.number == 0 ? std::string("The state that the series began with")
                      : "Try " + std::to_string(it.number) + ": " + try_verdict_word(try_verdict(history, it))) +
      (it.number == 0 || it.message.empty() ? "" : ", " + it.message) + "\n";
  if (!change.empty()) text += "  change   " + change + "\n";
  if (!is_missing(value)) text += "  value    " + try_metric(history) + " " + metric_text(value) + "\n";
  if (!reason.empty()) text += "  reason   " + reason + "\n";
  if (!it.commit.empty())
    text += "  commit   " + it.commit.substr(0, 12) +
            (try_flag(answer, "dirty") ? ", with changes that aren't in it" : "") + "\n";
  text += "  patch    " +
          (it.patch_bytes > 0
               ? bytes_text(double(it.patch_bytes)) + " against the state of try " + std::to_string(it.parent) +
                     "; `stepladder try diff " + std::to_string(it.number) + "` prints it"
               : std::string("none")) +
          "\n";
  std::vector<std::vector<std::string>> rows{{"run", "state", "value", "time", "exit"}};
  for (const TryRun& run : history.runs)
    if (run.during == it.number)
      rows.push_back({run.run == 0 ? "deleted" : std::to_string(run.run),
                      run.state == 0 ? std::string("first") : "try " + std::to_string(run.state),
                      metric_text(shown_value(history, run.value)), duration_text(run.wall_s),
                      std::to_string(run.exit_status)});
  text += table(rows, {true, false, true, true, true});
  return answer.contains("parts") ? text + parts_text(answer["parts"]) : text;
}

std::string log_tsv(const TryHistory& history, std::size_t limit) {
  std::string text = "commit\t" + try_metric(history) + "\tmemory_gb\tstatus\tdescription\n";
  for (const Try& it : newest(history, limit)) {
    if (it.verdict.empty()) continue;
    const double value = try_value(history, it.number);
    // A state that isn't that of its commit has none of its own.
    const bool is_of_commit = !it.commit.empty() && !try_flag(try_answer(it.answer), "dirty");
    text += (is_of_commit ? it.commit.substr(0, 7) : "-") + "\t" +
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
  const std::string machine = try_text(status, "machine");
  std::string text = "Tries of " + history.series.checkout + (machine.empty() ? "" : " at " + machine) + ", ladder " +
                     std::to_string(history.series.ladder) + ": " + try_text(status, "state") + "\n";
  text += "  metric   " + try_text(status, "metric") + ", " + metric_text(try_number(status, "mean")) +
          " in the first state, " + metric_text(try_number(status, "value")) +
          " in the kept one; one run's standard deviation " + significant(try_number(status, "noise_sd"), 3) + "\n";
  text += "  tries    " + std::to_string(std::ssize(history.tries) - 1);
  for (const auto& [verdict, count] : status["verdicts"].items())
    text += ", " + std::to_string(count.get<std::int64_t>()) + " " + try_verdict_word(verdict);
  text += "\n  runs     " + std::to_string(history.runs.size());
  if (status["runs_left"].is_number()) text += ", " + status["runs_left"].dump() + " left";
  return text + "\n";
}

}  // namespace stepladder
