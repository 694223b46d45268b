// What an export is about: a ladder, or several runs that are read like one, the first being the baseline. Everything
// that figures, tables and reports say of it is computed once, here.
#pragma once

#include <string>
#include <vector>

#include "app/cli/report.h"
#include "storage/analysis/plausibility.h"

namespace stepladder {

// plausible: under the physical limit, and the clock waited for the device. not_checked: nothing speaks against it, but
// one of the two is not known. doubtful and impossible: a flag says why.
enum class Trust { plausible, not_checked, doubtful, impossible };

struct StudyRung {
  RungSummary sum;
  const LoadedRun* first = nullptr;  // its first repeat, owned by the study
  std::string label;                 // the stage in words
  std::string changed;
  bool is_baseline = false;  // the first: all factors are over it
  double rate = missing;     // tokens/s or, where no run tells its tokens, steps/s (Study::rate_unit)
  Interval rate_ci95;
  double limit = missing;   // tokens/s at the hardware's peak
  double tflops = missing;  // 6 N x tokens/s
  double peak_tflops = missing;
  std::vector<Flag> flags;  // of its first repeat; what concerns all its runs (no peak, no repeats) too
  Trust trust = Trust::not_checked;

  bool is_measured() const { return !is_missing(rate); }
  bool is_trusted() const { return trust == Trust::plausible || trust == Trust::not_checked; }
};

struct Study {
  std::string title;
  std::string origin;  // "measured here, 2026-11-21 13:20"; "import, from seeds/a.txt"
  bool is_ladder = false;
  std::string rate_unit = "tokens/s";
  std::vector<LoadedRun> runs;  // where they are no ladder, their rungs are places in this list
  std::vector<Run> kept;        // the same as the database has them
  std::vector<StudyRung> rungs;

  Study() = default;
  Study(Study&&) = default;
  Study& operator=(Study&&) = default;
  Study(const Study&) = delete;  // rungs point into runs
  Study& operator=(const Study&) = delete;

  // The rung that bought most among those that can be believed, are faster than the baseline beyond doubt, and did not
  // lose their loss (one that cannot be compared stands, and the headline says so). Null where there is none.
  const StudyRung* best() const;
  const StudyRung& rung_of(const Run& run) const;
};

// Several runs of one ladder keep their rungs; others become a rung each, in the order given. Not to be called without
// runs.
Study make_study(std::string title, std::string origin, std::vector<LoadedRun> runs, const PlausibilityContext& judge);

// What the headline says: the best rung and its interval, or why there is none.
std::string headline(const Study& study);

// What stands beneath every figure, a sentence each.
std::string hardware_line(const Study& study);  // and precision, model, tokens per step
std::string sample_line(const Study& study);    // "n = 3 rungs x 1 run x 50 steps, the first 5 left out ..."
std::string timing_line(const Study& study);    // how the clock was read
std::string version_line(const Study& study);

// "8.6 of 29.8 TFLOP/s", "impossible: 997 of 59.5 TFLOP/s"
std::string trust_text(const StudyRung& rung);
// The verdict on its speed, unless its number cannot be believed: then that.
std::string verdict_text(const StudyRung& rung);
// As loss_text, and which rung the loss is held against where that is not the baseline.
std::string loss_verdict_text(const StudyRung& rung);
std::string factor_interval_text(const StudyRung& rung);  // "1.38 - 1.46"

}  // namespace stepladder
