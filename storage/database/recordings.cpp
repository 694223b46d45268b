#include "storage/database/recordings.h"

#include <nlohmann/json.hpp>

#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"
#include "storage/database/events/event_rows.h"
#include "storage/database/step_rows.h"
#include "storage/database/traces/trace_store.h"
#include "storage/json_values.h"

namespace stepladder {

std::vector<SystemMetrics> Recordings::system_metrics(RunId id) {
  return read_system_metrics(database_, id);
}

void Recordings::keep_system_metrics(std::span<const SystemMetrics> samples) {
  for (const SystemMetrics& sample : samples) insert_system_metrics(database_, sample);
}

std::string Recordings::console(RunId id, std::size_t most) {
  Statement rows(database_, "SELECT text FROM console WHERE run_id = ? ORDER BY part DESC", id);
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

StepProfile Recordings::profile(RunId id) {
  StepProfile profile{.run = id};
  Statement taken(database_, "SELECT at, steps FROM profiles WHERE run_id = ?", id);
  if (!taken.step() || taken.integer(1) <= 0) return traces_.profile_of_run(id);
  profile.at = taken.real(0);
  profile.steps = static_cast<int>(taken.integer(1));
  Statement rows(
      database_,
      "SELECT part, name, shapes, calls, self_ms, flops FROM operators WHERE run_id = ? ORDER BY self_ms DESC", id);
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

RunPatch Recordings::patch(RunId id) {
  RunPatch patch;
  Statement row(database_, "SELECT commit_hash, patch, patch_bytes, left_out FROM patches WHERE run_id = ?", id);
  if (!row.step()) return patch;
  patch = {.commit = bounded(row.text(0), longest_name), .text = row.text(1), .bytes = count_of(row, 2)};
  const auto names = nlohmann::json::parse(row.text(3), nullptr, false);
  for (const auto& name : names)
    if (name.is_string()) patch.left_out.push_back(bounded(name.get<std::string>(), longest_line));
  return patch;
}

void Recordings::keep_patch(RunId id, const RunPatch& patch) {
  if (patch.bytes == 0 && patch.left_out.empty()) return;
  database_.insert("OR REPLACE INTO patches", "run_id, commit_hash, patch, patch_bytes, left_out", id, patch.commit,
                   patch.text, patch.bytes, json_text(nlohmann::json(patch.left_out)));
}

std::vector<TextSample> Recordings::samples(RunId id) {
  return read_all(Statement(database_, "SELECT step, at, text FROM samples WHERE run_id = ? ORDER BY step", id),
                  [id](const Statement& row) {
                    return TextSample{.run = id, .step = count_of(row, 0), .at = row.real(1), .text = row.text(2)};
                  });
}

StepParts Recordings::mean_parts(const Run& run, std::int64_t warmup_steps) {
  return read_mean_parts(database_, run.id, warmup_steps);
}

}  // namespace stepladder
