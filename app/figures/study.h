// The subject of an export: a ladder, or several runs that are treated as one, with the first as the baseline. Computes
// once what figures, tables and reports show.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/runs/loaded_runs.h"

namespace stepladder {

struct StudyRung {
  RungJudgement judged;
  const LoadedRun* first = nullptr;  // its first repeat, owned by the study
  std::string label;                 // the stage in words
  std::string changed;
  bool is_baseline = false;  // the first: all factors are relative to it
  double rate = missing;     // tokens/s or, if no run has its tokens, steps/s (Study::rate_unit)
  Interval rate_ci95;
  double limit = missing;  // tokens/s at the hardware's peak

  bool is_measured() const { return !is_missing(rate); }
  bool is_trusted() const { return judged.is_trusted(); }
};

struct StepPair;  // app/figures/step_pair.h

struct Study {
  std::string title;
  std::string origin;  // "measured here, 2026-11-21 13:20"; "import, from seeds/a.txt"
  bool is_ladder = false;
  std::int64_t binned_runs = 0;  // of its ladder, set by who reads it from a project
  std::string rate_unit = "tokens/s";
  std::vector<LoadedRun> runs;  // if they aren't a ladder, their rungs are indices of this list
  std::vector<Run> kept;        // the same as stored in the database
  std::vector<StudyRung> rungs;
  std::shared_ptr<const StepPair> steps;  // app/figures/step_pair.h; null: none are shown

  Study() = default;
  Study(Study&&) = default;
  Study& operator=(Study&&) = default;
  Study(const Study&) = delete;  // rungs point into runs
  Study& operator=(const Study&) = delete;

  // The rung with the largest factor among those that are trusted and clearly faster than the baseline, and whose loss
  // is neither worse nor diverged (one that cannot be compared is allowed, and the headline says so). Null if no rung
  // qualifies.
  const StudyRung* best() const;
  const StudyRung& rung_of(const Run& run) const;
};

// Several runs of one ladder keep their rungs; others become one rung each, in the order given. Needs at least one run.
Study make_study(std::string title, std::string origin, std::vector<LoadedRun> runs, const HardwareTable& hardware);

// The best rung and its interval, or why no rung qualifies; of a ladder the answer of all rungs too (answer_text).
std::string headline(const Study& study);

// The sentences beneath every figure.
std::string hardware_line(const Study& study);  // and precision, model, tokens per step
std::string sample_line(const Study& study);    // "n = 3 rungs x 1 run x 50 steps, 5 warm-up steps excluded ..."
std::string excerpt_line(const Study& study);   // empty unless long runs were read as excerpts
std::string timing_line(const Study& study);    // how the clock was read
std::string version_line(const Study& study);

// "8.6 of 29.8 TFLOP/s", "impossible: 997 of 59.5 TFLOP/s"
std::string trust_text(const StudyRung& rung);
std::string verdict_text(const StudyRung& rung);  // "baseline", else the verdict on its factor
// As loss_text, plus the rung that the loss is compared with if that isn't the baseline.
std::string loss_verdict_text(const StudyRung& rung);
std::string factor_interval_text(const StudyRung& rung);  // "1.38 - 1.46"

}  // namespace stepladder
