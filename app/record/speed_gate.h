// `stepladder record gate`: judges whether a change made the training slower than a baseline, which is kept in a file
// with the machine that it was measured on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/record/log_figure.h"
#include "app/runs/loaded_runs.h"
#include "app/runs/run_json.h"
#include "storage/analysis/compare.h"
#include "storage/analysis/means/mean_test.h"

namespace stepladder {

// Figures of several runs on one machine.
struct GateSample {
  FigureQuestion question;
  std::string unit;
  std::vector<double> values;
  Json machine;
  double resolution = 0;             // of a value, the coarsest; 0: by the values' digits
  std::int64_t steps = 0;            // the fewest of a run; 0: not known
  std::vector<double> losses = {};   // the last ones of the runs that print one, in nats
  std::int64_t tokens_per_step = 0;  // 0: not known
  std::string hardware = {};         // as the logs say; empty: they don't
  std::vector<LoadedRun> runs = {};  // the first ones, without those of a stored baseline
};

// worse: its loss or metric. invalid: the hardware can't do it. guard: as fast, but the loss or the steps gave way.
enum class GateAnswer { passes, slower, worse, cannot_tell, other_machine, invalid, guard };
const char* to_string(GateAnswer answer);  // "other-machine"

struct GateJudgement {
  GateAnswer answer = GateAnswer::cannot_tell;
  SampleFigures baseline, now;
  // Baseline's mean / mean: below 1 is slower, or a higher loss; the inverse for a metric of which higher is better.
  // Where a metric's values aren't all above 0: 1 / (1 + x) or 1 + x, where it is worse or better by the share x of the
  // baseline's mean.
  double factor = missing;
  Interval ci95;
  std::string reason;  // one sentence
};

// `tolerance`: a factor within 1 - tolerance and 1 + tolerance is no change. `error`: of the interval. Pure.
GateJudgement judge_gate(const GateSample& baseline, const GateSample& now, double tolerance, double error = 0.05);

// Both sides ran in turns, so that figures at one place are a pair, which a drift of the machine moves together.
// passes: a slow-down beyond the tolerance is excluded; slower (worse): all of the interval is beyond half of it. Pure.
GateJudgement judge_turns(const GateSample& base, const GateSample& now, double tolerance, double error);

// The figures of logs (folders of them, or files). Throws StorageError, which names the log that has none.
GateSample sample_of_logs(const std::vector<std::string>& paths, const FigureQuestion& question);

// Adds another run's figure. Throws StorageError.
void add_run(GateSample& sample, const LogFigure& figure, const LoggedRun& logged);

// Withdraws a pass that the runs behind the figures forbid: impossible ones, a loss or steps that gave way, figures
// that are copies.
void check_pass(GateJudgement& judged, const GateSample& baseline, const GateSample& now);

// A baseline's file. Both throw StorageError or DataError.
void write_gate_baseline(const std::filesystem::path& file, const GateSample& sample, const std::string& commit);
GateSample read_gate_baseline(const std::filesystem::path& file);

}  // namespace stepladder
