// Runs with all data for reports, exports and comparisons, read in bounded memory. Any thread, with a RunStore of its
// own. Throws StorageError.
#pragma once

#include <vector>

#include "app/runs/run_json.h"
#include "storage/analysis/judgement.h"
#include "storage/analysis/overview.h"
#include "storage/database/run_store.h"

namespace stepladder {

struct LoadedRun {
  Run run;
  Summary summary;
  Series series;                    // all steps, or an excerpt of a long run
  StepProfile profile;              // of no steps if the run has no profile
  StepParts parts;                  // means of the steady steps
  std::vector<Overview> overviews;  // of an excerpt: loss, validation loss and step time of all its steps, for curves

  bool is_excerpt() const { return std::ssize(series.step) < summary.steps; }
  MeasuredRun measured() const { return {&run, &summary, &series, &profile}; }
};

// Reads runs as excerpts, with overviews for their curves, if they are longer than app/runs/excerpt.h allows for this
// many.
std::vector<LoadedRun> load_runs(RunStore& store, const std::vector<Run>& runs);

// One of them, without profile, parts and overviews. `most_steps`: of app/runs/excerpt.h.
LoadedRun load_run(RunStore& store, const Run& run, std::int64_t most_steps);

std::vector<MeasuredRun> measured(const std::vector<LoadedRun>& runs);

// The hardware table, the number of repeats of each rung in the store, and what users and processes say about its runs.
// Null: no runs yet.
RunContext load_run_context(RunStore* store);

// The other finished runs of the run's rung; empty if it is in no ladder.
std::vector<Run> other_finished_repeats(RunStore& store, const Run& run);

}  // namespace stepladder
