// The one way of numbers from elsewhere into the database: a piece of a source and the source's new position are
// stored in one transaction, so that each value is stored exactly once, whoever is restarted. Intake alone decides how
// a run from elsewhere begins, continues, merges and ends.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/database/run_store.h"
#include "storage/importers/growing_source.h"
#include "storage/importers/trackers/logged_steps.h"

namespace stepladder {

// A run whose steps give no throughput keeps the median of the tokens/s that it logged, if it logged them; returns it
// then. Call once all of its numbers are stored, and it isn't hidden.
std::optional<PrintedUnits> keep_logged_rate(RunStore& store, RunId run);

// Another reader has taken in the same source meanwhile: read its position again.
struct PositionConflict {};

// How the numbers of a source meet those that its run has.
enum class Merge {
  own,        // the run is the source's
  joined,     // the source completes a run that has a name, an owner and an end of its own; its numbers count
  printed,    // the same, but its numbers only fill in what nothing else knows; so do its facts
  withdrawn,  // its losses are none of the run's, where they are stored as such
};

// Used by one thread, as its store. Throws StorageError; then nothing of the piece is stored.
class Intake {
 public:
  // `report` gets a sentence for a person.
  Intake(RunStore& store, std::function<void(const std::string&)> report) : store_(store), report_(std::move(report)) {}

  // What is stored of a source; run 0: nothing.
  FollowedSource position(const std::string& source);

  // Calls `write` in a transaction, which returns the new position; run 0: there is nothing to store yet. Throws
  // PositionConflict if the stored position isn't `from`.
  FollowedSource take(const std::string& source, const FollowedSource& from,
                      const std::function<FollowedSource()>& write);

  // These are called within `take`, or within a transaction of the caller's for values that have no position.

  // A new run, which is running. Fill in its name, uid and times.
  RunId begin(Run run, const std::filesystem::path& source);
  // A run that was taken for interrupted or finished continues. The caller stores it.
  static void resume(Run& run);
  // Parts of a step may come in several batches: they make one record. `all_are_parts`: of steps that may be stored.
  void add(RunId run, const LoggedBatch& batch, Merge merge, bool all_are_parts = false);
  void add(RunId run, std::span<const LoggedStep> steps, Merge merge);
  void add(RunId run, const Metric& metric, std::span<const MetricPoint> points);

  // Within it or not: stores how a run ended, keeps its summary, and reports it, the last two when the transaction is
  // committed. Does nothing if the run is over, except that one that was taken for interrupted may have another end.
  void end(RunId run, RunStatus status, const std::string& reason, double at = unix_now());

  // These aren't.

  // Keeps the summary of a run whose end is stored, and reports it.
  void finish(RunId run);

  void report(const std::string& text) const { report_(text); }

 private:
  RunStore& store_;
  std::optional<std::vector<RunId>> ending_;  // within `take`: to be finished behind it
  const std::function<void(const std::string&)> report_;
};

}  // namespace stepladder
