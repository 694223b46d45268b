// Reads a finished log into memory and stores it at once, so that a killed program leaves all of a run or nothing.
#include "app/record/try_log.h"

#include <algorithm>
#include <utility>

#include "app/import/file_input.h"
#include "engine/stage.h"
#include "storage/bounded_text.h"
#include "storage/database/machine_store.h"
#include "storage/importers/importer.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_console_bytes = 256 << 10;  // of a run: its last words

class CollectingSink : public ImportSink {
 public:
  explicit CollectingSink(LoggedRun& logged) : logged_(logged) {}

  void begin_run(const Run& run) override { logged_ = {.run = run, .steps = {}, .metrics = {}}; }
  void step(const StepRecord& record) override { logged_.steps.push_back(record); }
  void metric(const Metric& metric, std::span<const MetricPoint> points) override {
    auto& [known, all] = logged_.metrics[metric.name];
    known = metric;
    all.insert(all.end(), points.begin(), points.end());
  }
  void end_run(const Run& run) override { logged_.run = run; }
  void ladder(const Ladder&, std::span<const int>) override {}
  void note(std::int64_t, std::string) override {}

 private:
  LoggedRun& logged_;
};

std::string end_of_text(const fs::path& log) {
  const RegularFile file(log);
  if (!file.why().empty()) return {};
  const std::int64_t size = file.size();
  const auto most = static_cast<std::int64_t>(most_console_bytes);
  return file.read_at(std::max<std::int64_t>(0, size - most), most_console_bytes);
}

}  // namespace

LoggedRun read_logged_run(const fs::path& log) {
  LoggedRun logged;
  CollectingSink sink(logged);
  try {
    FileInput input{log};
    ImportOptions options;
    options.known_stages = &known_stages();
    importer_for(input, options).read(input, options, sink);
  } catch (const ImportError&) {  // no steps: a script that only prints its result
    logged = {};
  }
  return logged;
}

RunId store_logged_run(RunStore& store, LoggedRun logged, const Run& run, const fs::path& log,
                       const std::map<std::string, double>& printed, const std::function<void(RunId)>& with) {
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
