// What would it buy: a traced step with some of its work changed, by stages, kinds of work or parts of the model; and
// what is left at all. The one answer for the command line, Profile and Launch. Reads the database; any
// thread with a store of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/runs/run_json.h"
#include "app/text/text_table.h"
#include "engine/device.h"
#include "engine/recipe.h"
#include "storage/analysis/prediction/prediction.h"
#include "storage/analysis/prediction/step_floor.h"
#include "storage/database/run_store.h"
#include "storage/database/traces/trace_store.h"
#include "storage/traces/kind_roofline.h"
#include "storage/traces/step_prediction.h"

namespace stepladder {

inline constexpr double least_predicted_gain = 1.005;  // a stage with less is no rung

// Everything that predictions of one traced step need. Loading it replays nothing yet.
struct PredictionSubject {
  StoredTrace trace;
  std::optional<Run> run;        // whose step the trace is of
  std::optional<Recipe> recipe;  // of the run, or of a recipe that was traced without one
  std::string device;            // "cpu", "cuda"
  LawFacts facts;                // of the step as it is
  Ceiling ceiling;
  double traced_ms = missing;  // a mean step
  double step_ms = missing;    // of the run; of the trace, if it has no run
  Interval step_ci95;
  bool step_is_of_run = false;
  PredictedSteps steps;
  std::vector<PastPrediction> past;  // shipped, and of this project
  std::vector<std::string> notes;    // sentences that make it doubtful
};

// Those that ship, and those of this project whose stage was measured since. Throws StorageError.
std::vector<PastPrediction> past_predictions(RunStore& store);

// Throws UsageError if the trace keeps no slices.
PredictionSubject load_subject(RunStore& store, StoredTrace trace);

// Slices of the steps that a trace keeps. Beyond most_slices_to_wait_for the window predicts nothing by itself: it
// would wait.
std::int64_t kept_slices(RunStore& store, TraceId trace);
inline constexpr std::int64_t most_slices_to_wait_for = 100'000;

// By a run (its newest trace) or a trace: "12" is run 12, else trace 12; "profile:3", "run:12", or a name. Throws
// NotFound, UsageError with the way to get a trace.
PredictionSubject find_subject(RunStore& store, const std::string& word);

// A change to try. Each empty: none.
struct WhatIf {
  std::vector<std::string> stages;
  std::vector<WorkChange> scales;  // of kinds of work and parts of the model, as asked for
};

// Reads "attention=0.4,optimizer=0" and "mlp/gelu=fused". Throw UsageError, which names the option.
std::vector<WorkChange> parse_scales(const std::vector<std::string>& texts);
std::vector<WorkChange> parse_parts(const std::vector<std::string>& texts);
std::string kind_key(OperatorKind kind);  // "optimizer": the word for --scale

struct PredictionRow {
  std::string title;  // "matrix products", "GELU of MLP"
  double before_ms = 0, after_ms = 0;
  std::string why;
  bool at_most = false;
};

struct PredictionAnswer {
  std::string stage;  // "bf16+compile"; empty: only scales
  PredictedStep step;
  std::vector<PredictionRow> rows;
  LawRecord record;              // of the stage; of several or none unknown
  std::optional<Recipe> recipe;  // after the stages
  std::vector<std::string> notes;
};

bool changes_nothing(const PredictionAnswer& answer);  // by the stage's law the step takes as long

// Throws RecipeError for an unknown stage, UsageError for one that the run has already or that it can't have.
// `report`: of this machine; null: whether a stage is available here isn't asked.
PredictionAnswer predict(const PredictionSubject& subject, const WhatIf& what_if, const DeviceReport* report);

// Which kind of work takes the largest part of a step, which of these stages (ids) may shorten it, and else what people
// do about it: sentences. Empty if the step has no work.
std::string largest_part_text(const KindTimes& kinds, double step_ms, const std::string& device,
                              const std::vector<std::string>& stages);

// What is left: the floor, and each stage that the step doesn't have: the largest gain first, then those of which
// nothing is known, then those that buy nothing. Without a stage whose gain isn't known and that changes next to
// nothing of what the trace holds.
struct PredictionOverview {
  StepFloor floor;  // scaled to the subject's step
  std::vector<PredictionAnswer> stages;
  std::vector<PredictionAnswer> order;  // one after the other on top of those before: those with a predicted gain
  std::string largest;                  // largest_part_text of the traced step
  std::string sentence;                 // "after these two you are at 83 % of the floor"
  std::string why_no_floor;             // a sentence; empty: there is one
};
PredictionOverview predict_all(const PredictionSubject& subject, const DeviceReport* report);

// Keeps predictions of stages, so that they are compared with what is measured later.
void keep_prediction(RunStore& store, const PredictionSubject& subject, const PredictionAnswer& answer);

std::string step_text(const PredictedStep& step);  // "at best 41.2 ms", "about 41.2 ms (39.0 - 43.5)", "-"
std::string gain_text(const PredictedStep& step);  // "at most 1.42 x", "1.31 x (1.25 - 1.36)", "unknown"

Json prediction_json(const PredictionSubject& subject, const PredictionAnswer& answer, const WhatIf& what_if);
Json overview_json(const PredictionSubject& subject, const PredictionOverview& overview);
std::string subject_text(const PredictionSubject& subject);  // "run 12, nano: a step of 51.0 ms; traced 52.3 ms ..."

}  // namespace stepladder
