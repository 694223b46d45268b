// The Profile view's model: the project's profiles and passes, the one or two that are shown, and their difference.
// Read on another thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/desktop/models/background.h"
#include "app/desktop/profile/profile_question.h"
#include "app/profile/pass_report.h"
#include "app/profile/range_sums.h"
#include "app/profile/slice_layout.h"
#include "app/profile/trace_owner.h"
#include "storage/database/run_store.h"
#include "storage/database/traces/trace_details.h"
#include "storage/traces/difference.h"
#include "storage/traces/kind_roofline.h"
#include "storage/traces/several.h"
#include "storage/traces/step_prediction.h"

namespace stepladder {

// A trace, or a run whose operators were timed.
struct ProfileSource {
  ProfileSide side;
  std::string name;
  std::string detail;  // "trace of PyTorch's profiler, GPU, 3 steps"
  std::optional<RunId> run;
  bool has_slices = false;
  bool is_doubtful = false;  // it may not explain its run's speed (app/profile/trace_owner.h)
  ProfileFacts facts;
};

// What a stage that has a predicted gain would buy of the shown step, in words.
struct ShownStage {
  std::string id, title, step, gain, why;
};

// What would make the shown step shorter.
struct ShownNext {
  std::string largest;             // sentences about the largest part of the step; empty: it has no work
  std::vector<ShownStage> stages;  // that the step doesn't have, the largest gain first
  std::string rest;                // sentences: of what nothing is predicted, and what makes predictions doubtful
  std::string order;               // a sentence about the first stages and the floor
  RunId run = 0;                   // trained here, whose recipe can be launched with a stage more; 0: none
};

// One of the two that are shown.
struct ShownProfile {
  ProfileSide side;   // with the rank and the step that are shown
  ProfileSide asked;  // as the question named it
  double imported_at = missing;
  std::string name;
  ProfileFacts facts;
  bool on_gpu = false;
  bool has_steps = true;     // false: the trace marks none, so all of it counts as one
  std::string note;          // about facts that its format lacks
  std::string doubt;         // why it may not explain its run's speed
  std::string fit;           // of a run: how its times were scaled, and where its own steps waited for another share
  double step_ms = missing;  // the mean step; of a run the median one, if its profile is scaled to that
  bool is_scaled = false;
  std::vector<TracedOperator> operators;
  KindTimes kinds{StepProfile{}};  // of the same
  Anatomy anatomy;
  bool has_graphs = false;              // of torch.compile
  std::vector<KindRoofline> rooflines;  // of a trace
  std::vector<double> gain_at_best;     // by OperatorKind: the step's, at its ceiling; missing: not played
  ShownNext next;
  std::string ceiling;                       // sentences about what these are compared with
  Ceiling peak;                              // of a rank, for single slices
  RankReport ranks;                          // of a trace of several
  std::optional<RunId> run;                  // that a trace is attached to
  TraceOwner owner;                          // of a trace that isn't attached to a run: which it may be of
  StepSpread spread;                         // of the steps whose mean the operators are
  std::vector<KeptStepName> steps;           // those whose slices are kept
  std::shared_ptr<const StepSlices> slices;  // of the shown step; null: none are kept
  std::shared_ptr<const SliceIndex> index;   // of the same
  std::shared_ptr<const RangeSums> sums;     // of the same
};

// Kept passes with their table and sentences.
struct ShownPasses {
  StoredPasses kept;
  std::vector<CallRow> rows;
  TextTable table;
  std::vector<std::string> sentences;
};

struct ProfileView {
  ProfileQuestion asked;
  std::vector<ProfileSource> sources;
  std::optional<ShownProfile> before, after;
  std::optional<ProfileDifference> difference;
  std::string unlike;        // why the difference isn't a verdict (unlike_text); empty: nothing known speaks against it
  bool is_verdict() const {  // whether a change of the step may be called better or worse
    return unlike.empty() && difference && difference->is_clear();
  }
  std::vector<std::string> several_names;  // of the traces beside each other; empty: fewer than three are chosen
  SeveralTraces several;
  std::vector<StoredPasses> all_passes;  // newest first, without rows
  std::optional<ShownPasses> passes, passes_before;
  std::optional<PassComparison> compared_passes;
  TextTable compared_table;
  std::string problem;  // why something couldn't be read
};

// Reads the database; blocks. Steps that `last` shows aren't read again, since a trace never changes.
ProfileView profile_view(const ProfileQuestion& question, RunStore& store, const ProfileView* last = nullptr);

// UI thread.
class ProfileReader {
 public:
  void ask(ProfileQuestion question) {
    wanted_ = question;
    ++asked_;
  }
  // Reads the last question again, if there was one: the file may have changed.
  void read_again() {
    if (asked_ > 0) ++asked_;
  }
  bool is_pending() const { return asked_ != started_ || background_.is_pending(); }

  // Call in every frame. Starts what is wanted, and returns whether `into` was replaced. `store` is read through a
  // connection of its own, or directly if it is in memory.
  bool update(std::shared_ptr<const ProfileView>& into, RunStore& store, std::chrono::milliseconds patience);

 private:
  ProfileQuestion wanted_;
  std::int64_t asked_ = 0, started_ = 0;
  Background<std::shared_ptr<const ProfileView>> background_;
};

}  // namespace stepladder
