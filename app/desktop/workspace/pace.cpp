// Estimates how long the runs under way will still take.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/desktop/workspace.h"
#include "app/launch/step_estimate.h"

namespace stepladder {
namespace {

// The pace by which the rest of a run is predicted: that of its later half, which is most like the steps to come, and
// the run's mean time between steps (validation, checkpoints), without pauses.
struct StepPace {
  double seconds = missing;  // a step's
  double off = missing;      // the prediction's uncertainty
};

StepPace pace_of(const RunEntry& entry) {
  const std::vector<double>& dt = entry.series().dt_ms;
  if (dt.size() < 3 || is_missing(entry.last_step_at) || is_missing(entry.run.started_at)) return {};
  constexpr std::size_t most_looked_at = 20'000;
  std::vector<double> known;
  double sum = 0;
  std::size_t timed = 0;
  for (std::size_t i = 0; i < dt.size(); ++i) {
    if (!std::isfinite(dt[i])) continue;
    sum += dt[i] / 1000;
    ++timed;
    if (i + most_looked_at >= dt.size()) known.push_back(dt[i] / 1000);
  }
  if (dt.size() < 10) {  // the first steps are slower: the median
    if (known.size() < 3) return {};
    std::nth_element(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2), known.end());
    return {.seconds = known[known.size() / 2]};
  }
  const auto steps = static_cast<double>(dt.size());
  const double wall = entry.last_step_at - entry.run.started_at - entry.paused_seconds;
  if (known.size() < 10) return {.seconds = std::max(wall, 0.0) / steps};
  const std::size_t blocks = std::min<std::size_t>(10, known.size() / 2);
  const std::size_t each = known.size() / 2 / blocks;
  double mean = 0;
  double squares = 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto end = known.end() - static_cast<std::ptrdiff_t>(each * block);
    const double of_block =
        std::accumulate(end - static_cast<std::ptrdiff_t>(each), end, 0.0) / static_cast<double>(each);
    mean += of_block / static_cast<double>(blocks);
    squares += of_block * of_block / static_cast<double>(blocks);
  }
  const double error = std::sqrt(std::max(0.0, squares - mean * mean) / static_cast<double>(blocks - 1));
  const double drift = std::fabs(mean - sum / static_cast<double>(timed));
  const double between = std::max(0.0, wall - sum) / steps;
  return {.seconds = mean + between, .off = std::max(2.3 * error, drift)};  // Student's t of ten blocks
}

}  // namespace

std::vector<MeasuredRun> Workspace::measured_runs() const {
  std::vector<MeasuredRun> measured;
  for (const RunEntry& entry : runs_)
    if (entry.run.status == RunStatus::finished) measured.push_back({&entry.run, &entry.summary, nullptr});
  return measured;
}

double Workspace::expected_step_seconds(const RunEntry& run) const {
  if (expected_at_ != version) expected_steps_.clear();
  expected_at_ = version;
  const auto [known, is_new] = expected_steps_.try_emplace(run.run.id, missing);
  if (is_new && !run.run.recipe.empty()) known->second = measured_step(run.run, measured_runs()).seconds;
  return known->second;
}

bool Workspace::has_pace(const RunEntry& run) const {
  return !is_missing(pace_of(run).seconds);
}

double Workspace::seconds_left(const RunEntry& run) const {
  if (run.run.planned_steps <= 0) return missing;  // a script's: nobody knows
  const auto steps = static_cast<double>(run.run.planned_steps - static_cast<std::int64_t>(run.series().size()));
  const double own = pace_of(run).seconds;
  const double each = is_missing(own) ? expected_step_seconds(run) : own;
  return is_missing(each) ? missing : each * steps;
}

double Workspace::seconds_off(const RunEntry& run) const {
  const auto steps = static_cast<double>(run.run.planned_steps - static_cast<std::int64_t>(run.series().size()));
  const double each = pace_of(run).off;
  return is_missing(each) ? missing : each * steps;
}

double Workspace::seconds_left_of_all() const {
  const RunEntry* now_running = running();
  if (!now_running) return missing;
  double left = seconds_left(*now_running);
  if (is_missing(left)) return missing;
  const double own = pace_of(*now_running).seconds;
  const double running_pace = is_missing(own) ? expected_step_seconds(*now_running) : own;
  for (const RunEntry* queued : waiting()) {
    const double expected = expected_step_seconds(*queued);
    left += (is_missing(expected) ? running_pace : expected) * static_cast<double>(queued->run.planned_steps);
  }
  return left;
}

}  // namespace stepladder
