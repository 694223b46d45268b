// The advisor: what to try next and why, from the numbers of a project's own runs. Pure; the desktop draws it.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/analysis/hardware.h"
#include "storage/analysis/judgement.h"
#include "storage/analysis/known_stage.h"
#include "storage/analysis/overview.h"
#include "storage/analysis/prediction/prediction.h"
#include "storage/analysis/step_profile.h"
#include "storage/analysis/summary.h"
#include "storage/records.h"

namespace stepladder {

// What a stage would buy by a trace of the run (storage/analysis/prediction).
struct StagePrediction {
  std::string stage;
  PredictedStep step;
};

// What a kind of work that took `factor` times as long would buy, by the same trace.
struct KindPrediction {
  OperatorKind kind = OperatorKind::between;
  double factor = 0;
  PredictedStep step;
};

// The changes that the Advisor asks a trace about: no waiting for data, and a quarter of the communication.
inline constexpr std::array advised_kinds{std::pair(OperatorKind::data, 0.0),
                                          std::pair(OperatorKind::communication, 0.25)};

// A run and its figures. Runs that are not over are ignored. The caller owns what the pointers refer to.
struct AdviceRun {
  const Run* run = nullptr;
  const Summary* summary = nullptr;
  StepParts parts;                         // means of the steady steps
  StepProfile timed;                       // operators of a few further steps; of no steps: not timed, or not read
  const Series* series = nullptr;          // steps or an excerpt; its ladder is judged if it is known of all its runs
  const Overview* loss = nullptr;          // for spikes; null: not known
  std::vector<StagePrediction> predicted;  // empty: no trace of it, or not read
  std::vector<KindPrediction> kinds;       // of advised_kinds; empty as above
  bool has_trace = false;
  double gpu_load = missing;  // mean of the system metrics over the steady steps, 0..1
};

// The source of an expectation: measured in this project on this hardware, predicted from a trace of the run, measured
// by somebody else (the text names them), or calculated from the run's own numbers (a bound, not a promise).
enum class GainSource { unknown, own_measurement, prediction, measured_elsewhere, arithmetic };

// A factor of throughput between `low` and `high`; both are missing if nothing is known.
struct ExpectedGain {
  double low = missing;
  double high = missing;
  GainSource source = GainSource::unknown;
  std::string from;          // in words: "run 12 over run 11", "Amdahl, if the update took no time"
  bool needs_trace = false;  // unknown, but a trace of the run would predict it
  // Of own_measurement: the word that the Ladder view has for it, if all ladders have the same. Unless it is clear,
  // nothing is known.
  std::optional<RungAnswer> answer = {};
  RunId measured = 0;  // a run of that rung, 0: not of own_measurement; and the rung that it is relative to
  int over = 0;
  bool known() const { return !is_missing(low) && !is_missing(high); }
};
std::string source_text(const ExpectedGain& gain);  // "measured in this project: run 12 over run 11"

// open: a stage that the run is known not to use, of which no gain is known, or that paid nothing here.
enum class AdviceKind { trust, stability, speed, open, certainty };

// A remedy that isn't a stage. A value: each front end words it.
enum class Change {
  none,             // the stage is the change
  set_values,       // in the recipe: `Advice::values`
  wait_for_device,  // before the clock is read
  check_peak,       // of the hardware, and the number of parameters: the clock did wait
  lower_learning_rate,
  load_ahead,      // read the next batch while this one trains
  larger_kernels,  // fewer and larger ones, or work that the CPU prepares ahead
  repeat,          // the run, in turns with the others
};

struct Advice {
  AdviceKind kind = AdviceKind::speed;
  std::string stage;  // its id; empty: no stage does it
  Change change = Change::none;
  std::vector<std::pair<std::string, std::string>> values;  // of the recipe, by name: "batch" and "16"
  std::string title;
  std::string why;  // one sentence, with the numbers that led to it
  ExpectedGain gain;
  std::string risk;  // its possible cost; empty: only the time to try it
  std::vector<RunId> evidence;
};

// Whether a term of the law makes rows of this kind faster on this device.
bool shortens(const StageLaw& law, std::string_view device, OperatorKind kind);

// Returns advice for one run, most valuable first: problems with its numbers (without synchronisation the list has
// nothing else), causes of unstable training, then stages by their expected gain (the geometric middle of the range;
// unknown gains last), with `also_open` the stages without a case, then a repeat. The list may be empty. `stages` are
// all stages, in ladder order. Of an imported run the later rungs of its own log are advice too.
//
// A stage's gain is the ladder's own answer about its rung (RungJudgement::answer), on the same hardware and a model of
// a similar size; else it is predicted from a trace of the run. What no stage does has a bound: removing a share p of
// the step is a factor of at most 1 / (1 - p) (Amdahl 1967).
std::vector<Advice> advise(std::span<const AdviceRun> project, RunId about, const HardwareTable& hardware,
                           std::span<const KnownStage> stages, bool also_open = false);

}  // namespace stepladder
