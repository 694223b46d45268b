// SQL for what is recorded besides steps: machine samples, texts, console output, step profiles. Column order in SELECT
// and INSERT must agree with the reading code below it; unknown values are NULL (column_values.h).
#include "storage/database/attachment_rows.h"

#include <limits>

#include "storage/analysis/step_profile.h"
#include "storage/bounded_text.h"
#include "storage/database/column_values.h"

namespace stepladder {

void insert_system_metrics(Database& database, const SystemMetrics& sample) {
  database.insert("OR REPLACE INTO lanes",
                  "run_id, at, step, cpu_load, process_cores, resident_bytes, gpu_load, gpu_clock_mhz, "
                  "gpu_power_w, gpu_temperature_c, gpu_memory_bytes, throttle_reason, other_cores, other_gpu_load, "
                  "cores, needed_cores, program_cores",
                  sample.run, sample.at, sample.step, sample.cpu_load, sample.process_cores,
                  known(sample.resident_bytes), sample.gpu_load, sample.gpu_clock_mhz, sample.gpu_power_w,
                  sample.gpu_temperature_c, known(sample.gpu_memory_bytes), known(sample.throttle_reason),
                  sample.contention.other_cores, sample.contention.other_gpu_load, known(sample.contention.cores),
                  known(sample.contention.needed_cores), sample.contention.program_cores);
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
  return read_all(
      Statement(
          database,
          "SELECT step, at, cpu_load, process_cores, resident_bytes, gpu_load, gpu_clock_mhz, gpu_power_w, "
          "gpu_temperature_c, gpu_memory_bytes, throttle_reason, other_cores, other_gpu_load, cores, "
          "needed_cores, program_cores FROM lanes WHERE run_id = ? AND at > ? AND at <= 9e999 ORDER BY at LIMIT ?",
          run, after, most),
      [&](const Statement& row) {
        return SystemMetrics{.run = run,
                             .step = count_of(row, 0),
                             .at = row.real(1),
                             .cpu_load = row.real(2),
                             .process_cores = row.real(3),
                             .resident_bytes = count_of(row, 4),
                             .gpu_load = row.real(5),
                             .gpu_clock_mhz = row.real(6),
                             .gpu_power_w = row.real(7),
                             .gpu_temperature_c = row.real(8),
                             .gpu_memory_bytes = count_of(row, 9),
                             .throttle_reason = row.text(10),
                             .contention = {.other_cores = row.real(11),
                                            .program_cores = row.real(15),
                                            .other_gpu_load = row.real(12),
                                            .cores = static_cast<int>(row.integer(13)),
                                            .needed_cores = static_cast<int>(row.integer(14))}};
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

std::vector<TextSample> read_text_samples(Database& database, RunId run) {
  return read_all(Statement(database, "SELECT step, at, text FROM samples WHERE run_id = ? ORDER BY step", run),
                  [&](const Statement& row) {
                    return TextSample{.run = run, .step = count_of(row, 0), .at = row.real(1), .text = row.text(2)};
                  });
}

std::string read_console(Database& database, RunId run, std::size_t most) {
  Statement rows(database, "SELECT text FROM console WHERE run_id = ? ORDER BY part DESC", run);
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
  Statement taken(database, "SELECT at, steps FROM profiles WHERE run_id = ?", run);
  if (!taken.step()) return profile;
  profile.at = taken.real(0);
  profile.steps = static_cast<int>(taken.integer(1));
  Statement rows(
      database,
      "SELECT part, name, shapes, calls, self_ms, flops FROM operators WHERE run_id = ? ORDER BY self_ms DESC", run);
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
