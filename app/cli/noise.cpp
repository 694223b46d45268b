// Trains the baseline against itself, round after round until the time is over, and reports the noise. The runs stay in
// the project, where later verdicts learn from them.
#include <cmath>
#include <iostream>

#include "app/cli/commands.h"
#include "app/cli/progress.h"
#include "app/cli/report.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/launch/noise_runs.h"
#include "app/runs/loaded_runs.h"
#include "app/text/format.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// A minute has eight rounds or so, of two runs each and the time between them.
constexpr double runs_in_the_time = 16;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

double between_runs(const MachineNoise& noise) {
  return noise.between.known() ? std::sqrt(noise.between.variance()) : missing;
}

std::string share_text(double share, const Interval& ci95 = {}) {
  if (is_missing(share)) return "not known";
  const std::string text = fine_percent_text(share);
  return ci95.known()
             ? text + " (95 % interval " + fine_percent_text(ci95.low) + " to " + fine_percent_text(ci95.high) + ")"
             : text;
}

Json noise_json(const MachineNoise& noise, const Run& first) {
  Json visible = Json::object();
  for (const std::size_t runs : {1, 2, 3, 5, 10})
    visible[std::to_string(runs)] = number(smallest_gain(noise.between, runs));
  return {{"hardware", text_or_null(first.hardware)},
          {"ladder", first.ladder ? Json(*first.ladder) : Json()},
          {"runs", noise.runs},
          {"disturbed", noise.disturbed},
          {"seconds", number(noise.seconds)},
          {"within", number(noise.within)},
          {"between", number(between_runs(noise))},
          {"between_ci95", interval_json(noise.between_ci95)},
          {"drift", number(noise.drift)},
          {"drift_ci95", interval_json(noise.drift_ci95)},
          {"visible_gain", visible}};
}

std::string noise_text(const MachineNoise& noise, const Run& first) {
  std::string text = plural(noise.runs, "run") + " of " + first.name.substr(0, first.name.find(':')) + " on " +
                     harmless(first.hardware.empty() ? "unknown hardware" : first.hardware) + ", in " +
                     duration_text(noise.seconds) + "\n";
  text += "  within a run   " + share_text(noise.within) + " from step to step\n";
  text += "  between runs   " + share_text(between_runs(noise), noise.between_ci95) + "\n";
  text += "  drift          " + share_text(noise.drift, noise.drift_ci95) + " from the first run to the last\n";
  for (const std::size_t runs : {3, 10})
    if (const std::string line = smallest_gain_text(noise.between, runs); !line.empty()) text += line + ".\n";
  if (noise.disturbed > 0)
    text +=
        fmt::format("Other programs disturbed {} of them: on a quiet machine the noise is smaller.\n", noise.disturbed);
  return text;
}

}  // namespace

int measure_noise(double seconds, const CommonOptions& common) {
  Session session(common.database);
  const auto begun = Clock::now();
  const DeviceReport report = session.probe().get();
  const HardwareTable table = HardwareTable::load(assets_folder());
  const LaunchedLadder launched =
      session.launch_ladder(noise_request(seconds / runs_in_the_time, report, table), report);
  std::vector<RunId> runs = launched.runs;
  std::cerr << "stepladder: equal runs in turns for about " << duration_text(seconds) << "\n";
  const auto ladder_begun = Clock::now();
  follow(session, runs);
  const double round_seconds = 2 * seconds_since(ladder_begun) / static_cast<double>(runs.size());
  const std::vector<Run> sides = session.store().runs_of(launched.ladder);  // by rung, then repeat
  while (!interrupted() && seconds_since(begun) + round_seconds <= seconds) {
    const std::vector<RunId> round = session.repeat({sides.front().id, sides.back().id}, 1);
    follow(session, round);
    runs.insert(runs.end(), round.begin(), round.end());
  }
  const MachineNoise noise = noise_of(session.store(), runs);
  const Run first = session.store().existing_run(runs.front());
  if (common.json)
    print({{"noise", noise_json(noise, first)}});
  else
    std::cout << notes_text(noise_text(noise, first));
  return exit_status(load_runs(session.store(), session.store().runs_of(launched.ladder)), true);
}

}  // namespace stepladder
