// The Compare view's model, derived on other threads when the runs or the options have changed. UI thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/curves/curves.h"
#include "app/desktop/charts/charts.h"
#include "app/desktop/models/background.h"
#include "app/desktop/models/run_snapshot.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/judgement.h"

namespace stepladder {

enum class Gap { difference, ratio };

struct ComparisonOptions {
  Axis axis = Axis::step;
  std::array<Quantity, 3> metrics{Quantity::loss, Quantity::tokens_per_s, Quantity::dt_ms};
  Gap gap = Gap::difference;  // of the first metric
  bool mean = false;          // repeats of a rung as one curve with a band
  float smoothing = 0;
};

// One line in every chart: a run, or the mean over a rung's repeats.
struct ComparedLine {
  std::vector<RunId> runs;
  std::string label;
  int colour = 0;
  std::array<Points, 3> points;
  std::array<Points, 3> means;  // if the points are lowest and highest values of buckets: what is drawn, with a band
  std::array<MinMaxPyramid, 3> levels;  // of values()
  std::array<std::vector<double>, 3> smoothed, low, high;
  std::array<std::int64_t, 3> behind{};  // values that are drawn as means and range of their neighbours
  std::int64_t excerpt = 0;              // steps that the points were chosen from; 0: all
  Points gap;                            // of means if either side is coarse
  MinMaxPyramid gap_levels;
  std::vector<double> gap_smoothed;

  // The values that are drawn and that the numbers are computed from.
  const Points& values(std::size_t metric) const { return means[metric].empty() ? points[metric] : means[metric]; }
};

struct ComparedCurves {
  ComparisonOptions options;
  std::vector<ComparedLine> lines;
  std::size_t base = 0;            // its index among them
  std::map<RunId, Points> places;  // of the steps of long runs, unless x is the step (places_of)
};

class ComparisonViewModel {
 public:
  ComparedCurves curves;                  // the newest ready ones
  std::map<RunId, RungJudgement> judged;  // by a line's first run; those of earlier runs while new ones are computed

  // Returns whether the curves were replaced. Pushes commands that read data, and KeepDrawing while another thread
  // works. If `base` isn't one of `runs`, the first is used; `zoom` is along the axis.
  bool update(const Workspace& workspace, const std::vector<const RunEntry*>& runs, RunId base,
              const ComparisonOptions& options, const SharedX& zoom, Commands& commands);

 private:
  Background<ComparedCurves> drawing_;
  Background<std::map<RunId, RungJudgement>> judging_;
  SnapshotCache drawing_snapshots_;
  SnapshotCache judging_snapshots_;
};

}  // namespace stepladder
