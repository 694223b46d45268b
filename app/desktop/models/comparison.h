// The Compare view's model, derived on other threads when the runs or the options have changed. UI thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/curves/curves.h"
#include "app/desktop/charts/charts.h"
#include "app/desktop/data_requests.h"
#include "app/desktop/models/background.h"
#include "app/desktop/models/run_snapshot.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/judgement.h"
#include "storage/analysis/target_search.h"

namespace stepladder {

enum class Gap { difference, ratio };

// Which runs are one line: "" each run alone, `group_by_rung` the repeats of a rung, else the runs with the same value
// of this name in their recipes; a run without it is alone.
inline const std::string group_by_rung = "rung";
inline constexpr const char* group_by_recipe = "recipe.";  // before the name, as in RunColumn::id

struct ComparisonOptions {
  Axis axis = Axis::step;
  std::vector<Quantity> metrics{Quantity::loss, Quantity::tokens_per_s, Quantity::dt_ms};
  std::vector<Quantity> on_screen = {};  // of these: the zoomed part of others isn't read; empty: all are
  Gap gap = Gap::difference;
  std::string group_by;
  float smoothing = 0;
  double target_loss = missing;  // whose times, tokens and steps are wanted
  // The lines whose judgements are on the screen. Of more than `most_judged_together` runs only theirs are made, unless
  // all are asked for: the steps of a thousand runs take seconds to read and to resample.
  std::vector<RunId> rows_on_screen = {};
  bool judges_all = false;
};

inline constexpr std::size_t most_judged_together = 200;

// A line's value against the baseline's, at the last x at which both have one; none if either is NaN or infinite there.
struct LastGap {
  double x = missing;  // missing: there is none
  double delta = missing;
  double factor = missing;   // missing also if the baseline's value is 0 or of another sign
  bool is_estimate = false;  // from the means of neighbouring values
};

// One metric of a line.
struct ComparedMetric {
  Points points;
  Points means;          // if the points are lowest and highest values of buckets: what is drawn, with a band
  MinMaxPyramid levels;  // of values()
  std::vector<double> smoothed, low, high;
  std::vector<int> runs;         // of a line of several: how many have a value at each point
  std::int64_t behind = 0;       // values that are drawn as means and range of their neighbours
  double steady_from = missing;  // x, of a field of the steps: where no run is warming up any more
  Points gap;                    // from the baseline; of means if either side is coarse
  MinMaxPyramid gap_levels;
  std::vector<double> gap_smoothed;
  double last = missing;         // of a line of one run that an overview shows: its last value, if it is known
  bool ends_not_finite = false;  // such a line's last value is NaN or infinite, and isn't among the points
  std::size_t not_finite = 0;    // NaN or infinite values behind the points, besides those among them
  LastGap last_gap;              // none of the baseline

  // The values that are drawn and that the numbers are computed from.
  const Points& values() const { return means.empty() ? points : means; }
};

// One line in every chart: a run, or the mean of several.
struct ComparedLine {
  std::vector<RunId> runs;
  std::string label;                           // short: the difference between the names
  std::string name;                            // of its first run, or of its group
  int rung = 0;                                // of its first run
  std::map<Quantity, ComparedMetric> metrics;  // those that were asked for
  std::int64_t excerpt = 0;                    // steps that the points were chosen from; 0: all

  RunId id() const { return runs.front(); }
  const ComparedMetric& of(Quantity quantity) const;  // empty if it wasn't asked for
};

struct ComparedCurves {
  ComparisonOptions options;
  std::vector<ComparedLine> lines;
  std::size_t base = 0;            // its index among them
  std::map<RunId, Points> places;  // of the steps of long runs and of runs with metrics, unless x is the step
};

// The cost of reaching a loss for each line, by the line's first run.
struct ComparedTargets {
  double loss = missing;
  std::map<RunId, TargetOfRuns> lines;
  bool is_estimate = false;  // a run was too long to be read whole
};

// The names of recipe values that differ among these runs, for `group_by`.
std::vector<std::string> values_to_group_by(const std::vector<const RunEntry*>& runs);

class ComparisonViewModel {
 public:
  ComparedCurves curves;                  // the newest ready ones
  std::map<RunId, RungJudgement> judged;  // by a line's first run; those of earlier runs while new ones are computed
  std::size_t unjudged = 0;               // of the lines: those of very many that weren't on the screen yet
  ComparedTargets targets;                // of `target_loss`, or of an earlier one while it is being computed

  // Returns whether the curves were replaced. Asks for data that is missing, and for the next frame while another
  // thread works. If `base` isn't one of `runs`, the first is used; `zoom` is along the axis.
  bool update(const Workspace& workspace, const std::vector<const RunEntry*>& runs, RunId base,
              const ComparisonOptions& options, const SharedX& zoom, DataRequests& requests);

 private:
  bool may_rest(const Workspace& workspace, const std::vector<const RunEntry*>& runs,
                const std::vector<std::int64_t>& asked) const;
  void judge_all(const Workspace& workspace, const std::vector<const RunEntry*>& runs, RunId base,
                 const ComparisonOptions& options, const Basis& basis, bool is_growing);
  std::map<RunId, std::int64_t> lines_to_judge(const Workspace& workspace, const ComparisonOptions& options,
                                               DataRequests& requests);
  void judge_some(const Workspace& workspace, const std::vector<const RunEntry*>& runs, RunId base,
                  const std::vector<const RunEntry*>& base_repeats, const ComparisonOptions& options, bool is_growing,
                  DataRequests& requests);
  void find_targets(const Workspace& workspace, const std::vector<const RunEntry*>& runs,
                    const ComparisonOptions& options, const Basis& data, bool is_growing, DataRequests& requests);

  // Lines of very many, judged some at a time: not held together yet. Empty if all are judged together.
  struct Apart {
    std::vector<std::int64_t> of;  // what they have in common: baseline, grouping and all runs
    std::map<RunId, RungJudgement> lines;
    std::map<RunId, std::int64_t> from;  // by line: a number that changes with its steps
  };

  Apart apart_;
  std::int64_t round_ = 0;                      // counts changes of what `apart_` is of; a result of another is dropped
  std::int64_t pending_round_ = 0;              // of what is being judged and arrives in `made_`
  std::map<RunId, std::int64_t> pending_from_;  // Apart::from of its lines
  std::map<RunId, RungJudgement> made_;
  Background<ComparedCurves> drawing_;
  Background<std::map<RunId, RungJudgement>> judging_;
  Background<ComparedTargets> reaching_;
  SnapshotCache drawing_snapshots_;
  SnapshotCache judging_snapshots_;
  SnapshotCache reaching_snapshots_;
  std::vector<const RunEntry*> last_runs_;  // of the last call, and what else it was asked
  std::vector<std::int64_t> last_asked_;
  std::uint64_t last_version_ = 0;
  std::vector<std::int64_t> last_drawn_;  // what the last derivation of curves was asked
  std::chrono::steady_clock::time_point next_part_;
  bool is_settled_ = false;  // it had no data to ask for, and nothing is being derived
  std::chrono::steady_clock::time_point next_look_;
};

}  // namespace stepladder
