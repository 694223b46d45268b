// `stepladder record gate`: judges whether a change made the training slower than a baseline, which is kept in a file
// with the machine that it was measured on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/record/log_figure.h"
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
  double resolution = 0;  // of a value, the coarsest; 0: by the values' digits
};

enum class GateAnswer { passes, slower, worse, cannot_tell, other_machine };  // worse: its loss or metric
const char* to_string(GateAnswer answer);                                     // "other-machine"

struct GateJudgement {
  GateAnswer answer = GateAnswer::cannot_tell;
  SampleFigures baseline, now;
  // Baseline's mean / mean: below 1 is slower, or a higher loss. For a metric: 1 / (1 + x), where its mean is worse by
  // the share x of the baseline's.
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

// Adds another log's figure. Throws StorageError.
void add_figure(GateSample& sample, const LogFigure& figure, const std::filesystem::path& log);

// A baseline's file. Both throw StorageError or DataError.
void write_gate_baseline(const std::filesystem::path& file, const GateSample& sample, const std::string& commit);
GateSample read_gate_baseline(const std::filesystem::path& file);

}  // namespace stepladder
