// What `try log`, `show` and `status` print.
#include "app/cli/tries/try_report.h"

#include <algorithm>

#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/host/git.h"
#include "storage/errors.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char letter) { return letter == '\t' || letter == '\n' || letter == '\r'; }, ' ');
  return text;
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

std::string log_text(const TryHistory& history) {
  std::vector<std::vector<std::string>> rows{{"try", "verdict", try_metric(history), "change", "runs", "message"}};
  for (const Try& it : history.tries)
    rows.push_back({std::to_string(it.number), it.number == 0 ? "first" : try_verdict(it),
                    metric_text(try_value(history, it.number)), change_text(try_answer(it.answer)),
                    std::to_string(runs_of_try(history, it.number)), it.message});
  return table(rows, {true, false, true, false, true, false});
}

std::string log_tsv(const TryHistory& history) {
  std::string text = "commit\t" + try_metric(history) + "\tmemory_gb\tstatus\tdescription\n";
  for (const Try& it : history.tries) {
    if (it.verdict.empty()) continue;
    const double value = try_value(history, it.number);
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
                     ": " + try_text(status, "state") + "\n";
  text += "  metric   " + try_text(status, "metric") + ", " + metric_text(try_number(status, "mean")) +
          " at first, now " + metric_text(try_number(status, "value")) + "; one run's standard deviation " +
          significant(try_number(status, "noise_sd"), 3) + "\n";
  text += "  tries    " + std::to_string(std::ssize(history.tries) - 1);
  for (const auto& [verdict, count] : status["verdicts"].items())
    text += ", " + std::to_string(count.get<std::int64_t>()) + " " + verdict;
  text += "\n  runs     " + std::to_string(history.runs.size());
  if (status["runs_left"].is_number()) text += ", " + status["runs_left"].dump() + " left";
  return text + "\n";
}

}  // namespace stepladder
