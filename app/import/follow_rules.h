// What the followers of journals, stores and texts share.
#pragma once

#include <chrono>
#include <vector>

#include "storage/database/run_store.h"
#include "storage/importers/trackers/logged_steps.h"

namespace stepladder {

// A bad piece is "not yet" for so long; and a writer that no process is known to be is gone after so long a silence.
inline constexpr std::chrono::seconds give_up_after(60);

// After a known writer has exited, what it left behind is read for so long.
inline constexpr std::chrono::seconds after_the_writer(2);

inline constexpr std::chrono::seconds between_writer_looks(2);

inline constexpr int deepest_followed_folder = 4;  // below a path that was named

// What a store or a journal logs counts over what the run that it has joined has of the same steps; only a step time
// that is no more than the difference of two times of logging doesn't.
inline void complete_joined(RunStore& store, RunId run, const LoggedBatch& batch) {
  if (!batch.dt_is_derived) return store.following().complete_steps(run, batch.steps);
  std::vector<StepRecord> logged = batch.steps;
  for (StepRecord& record : logged) record.dt_ms = missing;
  store.following().complete_steps(run, logged);
  store.following().complete_steps(run, batch.steps, Completion::fill);
}

// Parts of a step may come in several batches: they make one record. `all_are_parts`: of what is stored already.
inline void store_steps(RunStore& store, RunId run, const LoggedBatch& batch, bool all_are_parts = false) {
  std::vector<StepRecord> fresh, parts = batch.repeated;
  for (const StepRecord& record : batch.steps)
    (all_are_parts || !batch.repeated.empty() || batch.may_have(record.step) ? parts : fresh).push_back(record);
  if (!fresh.empty()) store.append_steps(run, fresh);
  if (!parts.empty()) store.following().complete_steps(run, parts, Completion::keep_repeated);
}

// Somebody else has taken in the same source meanwhile; its position has to be read again.
struct MovedOn {};

}  // namespace stepladder
