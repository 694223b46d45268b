// What to try next and why, from what the runs of a project say themselves. Pure; the desktop draws it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/analysis/hardware.h"
#include "storage/analysis/overview.h"
#include "storage/analysis/summary.h"
#include "storage/records.h"

namespace stepladder {

// A run with what is known of it. Runs that are not over take no part. The caller owns what is pointed to.
struct AdviceRun {
  const Run* run = nullptr;
  const Summary* summary = nullptr;
  StepParts parts;                 // means of the steady steps
  const Overview* loss = nullptr;  // for spikes in it; null: not looked at
  double gpu_load = missing;       // mean over the steady steps' lane samples, 0..1
};

// Where an expectation comes from: measured twice or once on this hardware in this project, measured by somebody else
// (the text names it), or what follows from the run's own numbers (a bound, not a promise).
enum class GainSource { unknown, own_measurement, measured_elsewhere, arithmetic };

// Factors of throughput: between `low` and `high`; missing where nothing is known.
struct ExpectedGain {
  double low = missing;
  double high = missing;
  GainSource source = GainSource::unknown;
  std::string from;  // in words: "run 12 over run 11", "Amdahl: the optimiser is 23 % of the step"
  bool known() const { return !is_missing(low) && !is_missing(high); }
};

enum class AdviceKind { trust, stability, speed, certainty };

struct Advice {
  AdviceKind kind = AdviceKind::speed;
  std::string stage;   // its id; empty: no stage does it
  std::string change;  // of the recipe or the program, in words: "--batch 8"
  std::string title;
  std::string why;  // one sentence, with the numbers that led to it
  ExpectedGain gain;
  std::string risk;  // what it may cost; empty: nothing but the try
  std::vector<RunId> evidence;
};

// For one run, most valuable first: what makes its numbers untrue (then nothing is said of speed), what makes it
// unstable, then speed by the gain to be expected (the geometric middle of its range; unknown ones last), then whether
// it should be repeated. Nothing to say is an answer.
//
// Gains are measured on neighbouring rungs of the project's ladders, on the same hardware and a model of a similar
// size, else bounds: a share p of the step that goes away leaves 1 / (1 - p) at most (Amdahl 1967).
std::vector<Advice> advise(std::span<const AdviceRun> project, RunId about, const HardwareTable& hardware);

enum class Held { as_expected, more, less };
std::string_view to_string(Held held);  // "as expected", "more than expected", "less than expected"

// A stage that was advised for a run and measured later, on the rung above it.
struct AdviceOutcome {
  Advice advice;
  RunId before = 0;
  RunId after = 0;
  double factor = missing;  // of throughput
  Held held = Held::as_expected;
  std::string sentence;  // "expected 1.00 x to 1.30 x, came 1.21 x: as expected"
};

// For every rung of the project's ladders whose stage would have been advised for the rung below it, knowing only the
// runs that were there before. Within 1 % of the range counts as inside it; where no gain was known, being faster does.
std::vector<AdviceOutcome> advice_held(std::span<const AdviceRun> project, const HardwareTable& hardware);

}  // namespace stepladder
