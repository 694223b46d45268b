// Writes a batch of events as rows in their order, with consecutive steps of one run in one insert. For events left by
// an exited process it skips what is stored already. A launched run that lacks steps can't become `finished` here,
// whatever its last event says.
#include "storage/database/events/event_rows.h"

#include <cmath>

#include "storage/analysis/step_profile.h"
#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/metrics/metric_rows.h"
#include "storage/database/missing_steps.h"
#include "storage/database/run_rows.h"
#include "storage/database/step_rows.h"

namespace stepladder {
namespace {

constexpr double clock_resolution_s = 0.002;  // of a stored step

struct Change {
  bool is_there = false;
  bool is_outdated = false;
  bool ends = false;
  std::int64_t last_step = std::numeric_limits<std::int64_t>::min();  // only of events that were left
};

Change change_of(Database& database, RunId run, const std::optional<ProcessIdentity>& left_by) {
  Change change;
  Statement row(database,
                "SELECT status IN ('queued', 'running'), owner_pid, owner_start, owner_boot FROM runs WHERE id = ? AND "
                "hidden = 0",
                run);
  if (!row.step()) return change;
  change.is_there =
      !left_by || (row.integer(1) == left_by->pid && row.integer(2) == left_by->start && row.text(3) == left_by->boot);
  change.is_outdated = change.is_there && row.integer(0) == 0;  // only what is over is cached
  if (!left_by || !change.is_there) return change;
  Statement last(database, "SELECT max(step) FROM steps WHERE run_id = ?", run);
  if (last.step() && !last.is_null(0)) change.last_step = count_of(last, 0);
  return change;
}

// Whether this record of a step, or a later one, is in the file.
bool is_stored(Database& database, const StepRecord& step) {
  Statement rows(database,
                 "SELECT loss, at FROM steps WHERE run_id = ?1 AND step = ?2 UNION ALL "
                 "SELECT loss, at FROM superseded_steps WHERE run_id = ?1 AND step = ?2",
                 step.run, step.step);
  while (rows.step()) {
    const double loss = rows.real(0);
    const double at = rows.real(1);
    if (!is_missing(step.at) && !is_missing(at)) {
      if (at >= step.at - clock_resolution_s) return true;
    } else if (loss == step.loss || (std::isnan(loss) && std::isnan(step.loss))) {
      return true;
    }
  }
  return false;
}

bool is_stored(Database& database, const ConsoleText& printed) {
  return database.has("SELECT 1 FROM console WHERE run_id = ? AND at IS ? AND text = ?", printed.run, printed.at,
                      Blob{printed.text});
}

// Launched runs take every step from the first, or from the one after that of the checkpoint they started from.
struct PlannedRange {
  std::int64_t first = 1;
  std::int64_t last = 0;  // 0: not known
};
PlannedRange planned_range(Database& database, RunId run) {
  Statement row(database,
                "SELECT coalesce(forked_at_step, 0), coalesce(planned_steps, 0) FROM runs WHERE id = ? AND source = "
                "'launched'",
                run);
  if (!row.step()) return {};
  return {.first = row.integer(0) + 1, .last = row.integer(1)};
}

// No run is finished while one of its steps is missing.
RunEnded as_far_as_stored(Database& database, RunEnded end, const std::map<RunId, CountedSteps>& counted) {
  if (end.status != RunStatus::finished) return end;
  const PlannedRange planned = planned_range(database, end.run);
  if (planned.last == 0) return end;
  if (const auto before = counted.find(end.run); before != counted.end()) {
    const std::int64_t since = count_stored_steps(database, end.run, before->second.last + 1, planned.last);
    if (before->second.count + since == planned.last - planned.first + 1) return end;
  }
  const std::string text = missing_steps_text(missing_steps(database, end.run, planned.first, planned.last));
  if (text.empty()) return end;
  end.status = RunStatus::failed;
  end.reason = text + (end.reason.empty() ? "" : "; ") + end.reason;
  return end;
}

void write(Database& database, const RunEvent& event, const std::optional<ProcessIdentity>& left_by,
           const std::map<RunId, CountedSteps>& counted) {
  if (const auto* started = std::get_if<RunStarted>(&event)) {
    start_run(database, *started, left_by ? *left_by : run_owner());
  } else if (const auto* end = std::get_if<RunEnded>(&event)) {
    end_run(database, as_far_as_stored(database, *end, counted));
  } else if (const auto* sample = std::get_if<SystemMetrics>(&event)) {
    insert_system_metrics(database, *sample);
  } else if (const auto* text = std::get_if<TextSample>(&event)) {
    insert_text_sample(database, *text);
  } else if (const auto* printed = std::get_if<ConsoleText>(&event)) {
    if (!left_by || !is_stored(database, *printed)) insert_console(database, *printed);
  } else if (const auto* profile = std::get_if<StepProfile>(&event)) {
    replace_profile(database, *profile);
  }
}

}  // namespace

std::map<RunId, CountedSteps> count_steps_of_finished(Database& database, std::span<const RunEvent> events) {
  std::map<RunId, CountedSteps> counted;
  for (const RunEvent& event : events) {
    const auto* const end = std::get_if<RunEnded>(&event);
    if (!end || end->status != RunStatus::finished) continue;
    const PlannedRange planned = planned_range(database, end->run);
    if (planned.last == 0) continue;
    const std::int64_t last =
        database.integer("SELECT max(step) FROM steps WHERE run_id = ? AND step <= ?", end->run, planned.last);
    counted[end->run] = {.count = count_stored_steps(database, end->run, planned.first, last), .last = last};
  }
  return counted;
}

WrittenEvents write_events(Database& database, std::span<const RunEvent> events,
                           const std::optional<ProcessIdentity>& left_by,
                           const std::map<RunId, CountedSteps>& counted) {
  std::map<RunId, Change> changes;
  std::vector<StepRecord> steps;  // consecutive ones of one run, and what else it logged meanwhile
  std::vector<MetricValues> values;
  RunId run_of_steps = 0;
  const auto write_steps = [&] {
    if (!steps.empty()) insert_steps(database, run_of_steps, steps);
    if (!values.empty()) insert_metric_values(database, values);
    steps.clear();
    values.clear();
  };
  for (const RunEvent& event : events) {
    const RunId run = run_of(event);
    const auto [found, is_new] = changes.try_emplace(run);
    Change& change = found->second;
    if (is_new) change = change_of(database, run, left_by);
    if (!change.is_there) continue;
    if (const auto* step = std::get_if<StepRecord>(&event)) {
      if (left_by && step->step <= change.last_step && is_stored(database, *step)) continue;
      if (run_of_steps != run) write_steps();
      run_of_steps = run;
      steps.push_back(*step);
      continue;
    }
    if (const auto* logged = std::get_if<MetricValues>(&event)) {
      if (run_of_steps != run) write_steps();
      run_of_steps = run;
      values.push_back(*logged);  // what is there already isn't stored again
      continue;
    }
    write_steps();
    change.is_outdated |= std::holds_alternative<RunStarted>(event) || std::holds_alternative<RunEnded>(event);
    change.ends |= std::holds_alternative<RunEnded>(event);
    write(database, event, left_by, counted);
  }
  write_steps();
  WrittenEvents written;
  for (const auto& [run, change] : changes) {
    if (!change.is_there) written.missing.push_back(run);
    if (change.is_outdated) written.outdated.push_back(run);
    if (change.ends) written.ended.push_back(run);
  }
  return written;
}

// SQL for what is recorded besides steps: machine samples, texts, console output, step profiles. Column order in SELECT
// and INSERT must agree with the reading code below it; unknown values are NULL (column_values.h).

// ", cpu_load, process_cores"
static std::string measured_columns() {
  std::string columns;
  for_each_measurement(SystemMetrics{}, [&](const char* name, const auto&) { columns += std::string(", ") + name; });
  return columns;
}

void insert_system_metrics(Database& database, const SystemMetrics& sample) {
  static const std::string columns = "run_id, at, step" + measured_columns();
  static const std::string sql = "INSERT OR REPLACE INTO lanes (" + columns + ") VALUES (?" + places_of(columns) + ")";
  Statement insert(database, sql, sample.run, sample.at, sample.step);
  for_each_measurement(
      sample, [&]<class Value>(const char*, const Value& value) { bind_value(insert, value, Unknown<Value>{}); });
  insert.run();
}

void insert_text_sample(Database& database, const TextSample& sample) {
  database.insert("OR REPLACE INTO samples", "run_id, step, at, text", sample.run, sample.step, sample.at, sample.text);
}

void insert_console(Database& database, const ConsoleText& printed) {
  database.run(
      "INSERT INTO console (run_id, part, at, text) VALUES (?1, (SELECT coalesce(max(part), 0) + 1 FROM "
      "console WHERE run_id = ?1), ?2, ?3)",
      printed.run, printed.at, Blob{printed.text});
}

void replace_profile(Database& database, const StepProfile& profile) {
  database.run("DELETE FROM operators WHERE run_id = ?", profile.run);
  database.insert("OR REPLACE INTO profiles", "run_id, at, steps", profile.run, profile.at, profile.steps);
  for (const OperatorTime& each : profile.operators) {
    database.insert("INTO operators", "run_id, part, name, shapes, calls, self_ms, flops", profile.run,
                    in_words(each.part), each.name, each.shapes, each.calls, each.self_ms, each.flops);
  }
}

std::vector<SystemMetrics> read_system_metrics(Database& database, RunId run, double after, std::int64_t most) {
  static const std::string sql = "SELECT step, at" + measured_columns() +
                                 " FROM lanes WHERE run_id = ? AND at > ? AND at <= 9e999 ORDER BY at LIMIT ?";
  return read_all(Statement(database, sql, run, after, most), [&](const Statement& row) {
    SystemMetrics sample{.run = run, .step = count_of(row, 0), .at = row.real(1)};
    int column = 2;
    for_each_measurement(
        sample, [&]<class Value>(const char*, Value& value) { read_value(row, column++, value, Unknown<Value>{}); });
    return sample;
  });
}

bool SystemMetricsReader::next(SystemMetrics& sample) {
  if (place_ == samples_.size()) {
    const double after = samples_.empty() ? -std::numeric_limits<double>::infinity() : samples_.back().at;
    samples_ = read_system_metrics(database_, run_, after, 4096);
    place_ = 0;
  }
  if (samples_.empty()) return false;
  sample = samples_[place_++];
  return true;
}

}  // namespace stepladder
