// Stores a finished log at once, so that a killed program leaves all of a run or nothing.
#include "app/record/try_log.h"

#include <algorithm>
#include <utility>

#include "storage/database/machine_store.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_console_bytes = 256 << 10;  // of a run: its last words

std::string end_of_text(const fs::path& log) {
  const RegularFile file(log);
  if (!file.why().empty()) return {};
  const std::int64_t size = file.size();
  const auto most = static_cast<std::int64_t>(most_console_bytes);
  return file.read_at(std::max<std::int64_t>(0, size - most), most_console_bytes);
}

}  // namespace

RunId store_logged_run(RunStore& store, LoggedRun logged, const Run& run, const fs::path& log,
                       const std::map<std::string, double>& printed, const std::function<void(RunId)>& with) {
  if (!logged.problem.empty()) logged = {};  // no steps: a script that only prints its result
  Run row = std::move(logged.run);
  row.name = run.name;
  row.uid = new_uid().text();
  row.ladder = run.ladder;
  row.rung = run.rung;
  row.repeat = run.repeat;
  row.stage = run.stage;
  row.title = run.title;
  row.changed = run.changed;
  row.status = run.status;
  row.reason = run.reason;
  row.source = "import";
  row.source_path = log.string();
  row.created_at = row.started_at = run.started_at;
  row.ended_at = run.ended_at;
  row.environment = run.environment;
  const std::int64_t last = logged.steps.empty() ? 1 : logged.steps.back().step;
  RunId id = 0;
  store.in_one_transaction([&] {
    id = store.insert_finished(row, logged.steps);
    for (const auto& [name, metric] : logged.metrics) {
      store.metrics().describe(id, metric.first);
      store.metrics().append(id, name, metric.second);
    }
    for (const auto& [name, value] : printed) {
      if (logged.metrics.count(name) != 0) continue;
      const MetricPoint point{.step = last, .value = value, .at = run.ended_at};
      store.metrics().append(id, name, {&point, 1});
    }
    const RunEvent console = ConsoleText{.run = id, .at = run.ended_at, .text = end_of_text(log)};
    store.apply({&console, 1});
    with(id);
  });
  store.metrics().refresh(id);
  return id;
}

}  // namespace stepladder
