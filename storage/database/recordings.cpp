#include "storage/database/recordings.h"

#include <nlohmann/json.hpp>

#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"
#include "storage/database/events/event_rows.h"
#include "storage/database/step_rows.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {

std::vector<SystemMetrics> Recordings::system_metrics(RunId id) {
  return read_system_metrics(database_, id);
}

std::string Recordings::console(RunId id, std::size_t most) {
  return read_console(database_, id, most);
}

StepProfile Recordings::profile(RunId id) {
  StepProfile profile = read_profile(database_, id);
  return profile.steps > 0 ? profile : traces_.profile_of_run(id);
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
  Statement put(database_,
                "INSERT OR REPLACE INTO patches (run_id, commit_hash, patch, patch_bytes, left_out) VALUES (?, ?, ?, "
                "?, ?)",
                id, patch.commit, patch.text, patch.bytes);
  using Json = nlohmann::json;
  put.bind(Json(patch.left_out).dump(-1, ' ', false, Json::error_handler_t::replace)).run();
}

std::vector<TextSample> Recordings::samples(RunId id) {
  return read_text_samples(database_, id);
}

StepParts Recordings::mean_parts(const Run& run, std::int64_t warmup_steps) {
  return read_mean_parts(database_, run.id, warmup_steps);
}

}  // namespace stepladder
