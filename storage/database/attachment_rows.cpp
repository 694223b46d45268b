// SQL for what is recorded besides steps: machine samples, texts, console output, step profiles. Column order in SELECT
// and INSERT must agree with the reading code below it; unknown values are NULL (column_values.h).
#include "storage/database/attachment_rows.h"

#include <limits>

#include "storage/analysis/step_profile.h"
#include "storage/bounded_text.h"
#include "storage/database/column_values.h"

namespace stepladder {

void insert_system_metrics(Database& database, const SystemMetrics& sample) {
  Statement insert(
      database,
      "INSERT OR REPLACE INTO lanes (run_id, at, step, cpu_load, process_cores, resident_bytes, gpu_load, "
      "gpu_clock_mhz, gpu_power_w, gpu_temperature_c, gpu_memory_bytes, throttle_reason, other_cores, "
      "other_gpu_load, cores, needed_cores, program_cores) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "?)");
  insert.bind(sample.run).bind(sample.at).bind(sample.step).bind(sample.cpu_load).bind(sample.process_cores);
  insert.bind(known(sample.resident_bytes)).bind(sample.gpu_load).bind(sample.gpu_clock_mhz);
  insert.bind(sample.gpu_power_w).bind(sample.gpu_temperature_c).bind(known(sample.gpu_memory_bytes));
  insert.bind(known(sample.throttle_reason));
  insert.bind(sample.contention.other_cores).bind(sample.contention.other_gpu_load);
  insert.bind(known(sample.contention.cores)).bind(known(sample.contention.needed_cores));
  insert.bind(sample.contention.program_cores).run();
}

void insert_text_sample(Database& database, const TextSample& sample) {
  Statement insert(database, "INSERT OR REPLACE INTO samples (run_id, step, at, text) VALUES (?, ?, ?, ?)");
  insert.bind(sample.run).bind(sample.step).bind(sample.at).bind(sample.text).run();
}

void insert_console(Database& database, const ConsoleText& printed) {
  Statement insert(database,
                   "INSERT INTO console (run_id, part, at, text) VALUES (?1, (SELECT coalesce(max(part), 0) + 1 FROM "
                   "console WHERE run_id = ?1), ?2, ?3)");
  insert.bind(printed.run).bind(printed.at).bind_blob(printed.text).run();
}

void replace_profile(Database& database, const StepProfile& profile) {
  Statement(database, "DELETE FROM operators WHERE run_id = ?").bind(profile.run).run();
  Statement insert(database, "INSERT OR REPLACE INTO profiles (run_id, at, steps) VALUES (?, ?, ?)");
  insert.bind(profile.run).bind(profile.at).bind(profile.steps).run();
  for (const OperatorTime& each : profile.operators) {
    Statement row(
        database,
        "INSERT INTO operators (run_id, part, name, shapes, calls, self_ms, flops) VALUES (?, ?, ?, ?, ?, ?, ?)");
    row.bind(profile.run)
        .bind(in_words(each.part))
        .bind(each.name)
        .bind(each.shapes)
        .bind(each.calls)
        .bind(each.self_ms);
    row.bind(each.flops).run();
  }
}

std::vector<SystemMetrics> read_system_metrics(Database& database, RunId run, double after, std::int64_t most) {
  Statement rows(
      database,
      "SELECT step, at, cpu_load, process_cores, resident_bytes, gpu_load, gpu_clock_mhz, gpu_power_w, "
      "gpu_temperature_c, gpu_memory_bytes, throttle_reason, other_cores, other_gpu_load, cores, "
      "needed_cores, program_cores FROM lanes WHERE run_id = ? AND at > ? AND at <= 9e999 ORDER BY at LIMIT ?");
  rows.bind(run).bind(after).bind(most);
  std::vector<SystemMetrics> samples;
  while (rows.step()) {
    samples.push_back({.run = run,
                       .step = count_of(rows, 0),
                       .at = rows.real(1),
                       .cpu_load = rows.real(2),
                       .process_cores = rows.real(3),
                       .resident_bytes = count_of(rows, 4),
                       .gpu_load = rows.real(5),
                       .gpu_clock_mhz = rows.real(6),
                       .gpu_power_w = rows.real(7),
                       .gpu_temperature_c = rows.real(8),
                       .gpu_memory_bytes = count_of(rows, 9),
                       .throttle_reason = rows.text(10),
                       .contention = {.other_cores = rows.real(11),
                                      .program_cores = rows.real(15),
                                      .other_gpu_load = rows.real(12),
                                      .cores = static_cast<int>(rows.integer(13)),
                                      .needed_cores = static_cast<int>(rows.integer(14))}});
  }
  return samples;
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

std::vector<TextSample> read_text_samples(Database& database, RunId run) {
  Statement rows(database, "SELECT step, at, text FROM samples WHERE run_id = ? ORDER BY step");
  rows.bind(run);
  std::vector<TextSample> samples;
  while (rows.step()) {
    samples.push_back({.run = run, .step = count_of(rows, 0), .at = rows.real(1), .text = rows.text(2)});
  }
  return samples;
}

std::string read_console(Database& database, RunId run, std::size_t most) {
  Statement rows(database, "SELECT text FROM console WHERE run_id = ? ORDER BY part DESC");
  rows.bind(run);
  std::vector<std::string> parts;
  std::size_t size = 0;
  while (size < most && rows.step()) {
    parts.emplace_back(rows.blob(0));
    size += parts.back().size();
  }
  std::string text;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) text += *part;
  return text;
}

StepProfile read_profile(Database& database, RunId run) {
  StepProfile profile{.run = run};
  Statement taken(database, "SELECT at, steps FROM profiles WHERE run_id = ?");
  if (!taken.bind(run).step()) return profile;
  profile.at = taken.real(0);
  profile.steps = static_cast<int>(taken.integer(1));
  Statement rows(
      database,
      "SELECT part, name, shapes, calls, self_ms, flops FROM operators WHERE run_id = ? ORDER BY self_ms DESC");
  rows.bind(run);
  while (rows.step()) {
    profile.operators.push_back({.part = bounded(std::string(in_words(rows.text(0))), longest_name),
                                 .name = bounded(rows.text(1), longest_name),
                                 .shapes = bounded(rows.text(2), longest_name),
                                 .calls = measure_of(rows, 3),
                                 .self_ms = measure_of(rows, 4),
                                 .flops = rows.real(5)});
  }
  return profile;
}

}  // namespace stepladder
