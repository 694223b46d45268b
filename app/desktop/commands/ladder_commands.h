// Commands that launch ladders, propose them, and verify their factors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/desktop/command.h"
#include "app/launch/ladder_file.h"
#include "app/launch/sweep_results.h"
#include "app/session/session.h"

namespace stepladder {

struct LaunchLadder {
  LadderRequest request;
  std::string on = {};                  // a machine's alias; empty: here
  std::vector<SweptValue> swept = {};   // of a sweep on a machine
  std::optional<LadderPlan> plan = {};  // the one that was shown; without, one is made
};
struct PlanLadder {  // which rungs it would have
  LadderRequest request;
};
struct SaveLadderPreset {  // as one of the user's own, replacing one of that name
  std::string name;
  LadderDraft draft;
};
struct OpenLadderPreset {  // into the Launch view
  std::string name;
  bool is_shipped = false;  // one of ladder_presets(); else one of the user's own
};
struct ProposeLadder {  // fills the Launch view with this ladder's rungs, in sizes that fit this machine
  LadderId ladder = 0;
};
struct ProposeStage {  // fills the Launch view with a run's recipe as the baseline, and this stage on top
  RunId run = 0;
  std::string stage;
};
struct ContinueLadder {  // its runs that were interrupted or never began
  LadderId ladder = 0;
};
// Measures this machine's peak FLOP/s and bandwidth for some ten seconds, in a process of its own, which keeps them in
// the user's hardware table; and ends that.
struct MeasurePeak {};
struct StopMeasuringPeak {};
struct MeasureNoise {};  // trains equal runs in turns for about a minute
// Trains a sweep's best combination again, against another one (verification_of_best).
struct VerifyBest {
  SweepResults results;
  SweepResult result = SweepResult::loss_last;
  LadderId ladder = 0;
};
// Repeats a rung and the baseline in turns until the verdict on the factor is clear, or until this many repeats.
struct ConfirmSpeedup {
  LadderId ladder = 0;
  int baseline = 0;
  int rung = 0;
  int max_repeats = 6;
};
// Stops the verification at once; once it is over, hides its outcome.
struct StopVerification {};
// The run that waits for a quiet machine, and those behind it, start anyway.
struct StartAnyway {};

// Takes the measured peak into the window's hardware table, once. Call between frames; never blocks.
void take_peak(DesktopState& desktop);

// Shows the session's answer and its new runs, if a factor is being verified. Call between frames.
void show_confirmation(DesktopState& desktop);

}  // namespace stepladder
