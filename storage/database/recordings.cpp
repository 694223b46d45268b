#include "storage/database/recordings.h"

#include "storage/database/attachment_rows.h"
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

std::vector<TextSample> Recordings::samples(RunId id) {
  return read_text_samples(database_, id);
}

StepParts Recordings::mean_parts(const Run& run, std::int64_t warmup_steps) {
  return read_mean_parts(database_, run.id, warmup_steps);
}

}  // namespace stepladder
