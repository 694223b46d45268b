// The Ladder view's model, derived from the runs when they change rather than in every frame. UI thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/curves/curves.h"
#include "app/desktop/data_requests.h"
#include "app/desktop/models/background.h"
#include "app/desktop/models/run_snapshot.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/energy.h"
#include "storage/analysis/judgement.h"
#include "storage/by_enum.h"

namespace stepladder {

// The x axis of the loss curves: the quantity at which losses are compared.
enum class ComparisonAxis { steps, tokens, time, flops, energy };
inline constexpr auto comparison_axes = enumerators<ComparisonAxis>();
std::string_view title_of(ComparisonAxis comparison_axis);       // "equal tokens"
std::string_view axis_title_of(ComparisonAxis comparison_axis);  // "tokens"

// The share of a run's steady steps that took at most x ms.
struct Ecdf {
  std::vector<double> dt_ms;
  std::vector<double> share;
};

// A rung's name: its title, its stage, else its number.
std::string title_of(const Run& rung);

// One rung as a row: its judgement, and further facts about its first repeat.
struct LadderRung {
  RungJudgement judged;  // its `runs` are empty here
  Run first;             // reference_of() its repeats that count
  std::string name;      // title_of() it; where one is long, without the words with which most begin
  bool has_finished_run = false;
  std::string progress;   // of the running repeat: "step 12 of 60"; empty: none runs
  std::string under_way;  // a sentence about the repeats that are running or queued; empty: none is
  std::string stage;      // known_stage() of it
  Summary summary;
  Energy energy;
  double setup_pays_back_after = missing;  // steps
  int colour = 0;                          // of its first repeat (Workspace::colour_of)

  bool trusted() const { return judged.is_trusted(); }
};

struct LossCurve {
  RunId run = 0;
  int rung = 0;
  int repeat = 0;
  std::string title;
  Points points;                  // of a long run the means of its buckets
  std::vector<double> low, high;  // of a long run's buckets; else empty
  Points gap;                     // minus the baseline's; of means if either is coarse
  Points places;                  // of a long run's steps along the comparison axis, unless that axis is the step
  std::int64_t behind = 0;        // values that a coarse curve represents
  MinMaxPyramid levels;
  MinMaxPyramid gap_levels;
};

struct LadderModel {
  LadderId ladder = 0;
  int baseline = 0;
  ComparisonAxis comparison_axis = ComparisonAxis::steps;
  std::vector<LadderRung> rungs;
  std::vector<LossCurve> losses;
  std::map<RunId, Ecdf> ecdf;
  double band = loss_tolerance_nats;  // that is "same"
  double loss_floor = missing;
  bool is_over = false;        // no run is running or queued
  std::size_t impossible = 0;  // rungs
  std::string answer;          // answer_text() of the rungs

  const LadderRung* rung(int number) const;
  int colour_of(int number) const;
  int fastest() const;  // of those that are measured and can be trusted, else of all
};

// A ladder's model, rebuilt on another thread when its runs, the baseline or the comparison axis have changed.
class LadderViewModel {
 public:
  LadderModel model;  // the newest ready one; another ladder's, or empty, while the first is being made

  // Returns whether the model was replaced. Asks for data that is missing, and for the next frame while another thread
  // works.
  // `zoom` is that of the loss curves, along the comparison axis; null: none.
  bool update(const Workspace& workspace, LadderId ladder, int baseline, ComparisonAxis comparison_axis,
              const SharedX* zoom, DataRequests& requests);

 private:
  Background<LadderModel> job_;
  SnapshotCache snapshots_;
  std::size_t unread_ = 0;  // runs whose steps were missing in the last call
};

}  // namespace stepladder
