// Imported traces of profilers (docs/profiling.md), with their steps' time by operator. A part of RunStore, which has
// its threads, locks and errors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/analysis/pass_times.h"
#include "storage/records.h"
#include "storage/traces/attribution.h"
#include "storage/traces/trace.h"

namespace stepladder {

class Database;
class PassStore;        // pass_store.h
class PredictionStore;  // prediction_store.h
class TraceDetails;     // trace_details.h

using TraceId = std::int64_t;

struct StoredTrace {
  TraceId id = 0;
  std::optional<RunId> run;  // that it was attached to
  std::string name;
  std::string source_path;  // the first rank's file
  std::string format;       // as Trace::format, or "stepladder": traced here
  std::string hardware;     // whose ceiling its rooflines have; empty: not known
  std::string precision;    // of most of its products, "bf16"; empty: not known
  std::string recipe;       // JSON, of one that was traced here; empty: its run's, or not known
  double imported_at = missing;
  TraceOrigin origin;
  TraceProfile profile;  // without notes; in lists without steps and operators
};

class TraceStore {
 public:
  explicit TraceStore(Database& database) : database_(database) {}

  // Returns the number: trace.id if that isn't 0 and no other trace has it, as when a removal is undone; else a new
  // one. In one transaction.
  TraceId insert(const StoredTrace& trace);
  std::vector<StoredTrace> list();  // oldest first; without those of runs in the bin
  std::optional<StoredTrace> find(TraceId id);
  // One of the same run and name with the same steps: the same file, imported before.
  std::optional<StoredTrace> find_same(const StoredTrace& trace, const TraceProfile& profile);
  double step_ms(TraceId id);                         // the mean of all steps; missing: there is no such trace
  void attach(TraceId id, std::optional<RunId> run);  // none: of no run
  void remove(TraceId id);

  TraceDetails details();
  PassStore passes();  // other profiles: the times of single passes
  PredictionStore predictions();
  void in_one_transaction(const std::function<void()>& work);

  // The profile of the newest trace attached to the run, as a profile of operators; of no steps if it has none.
  StepProfile profile_of_run(RunId run);

 private:
  Database& database_;
};

// A trace as a profile of operators.
StepProfile step_profile(const StoredTrace& trace);

// Kept results of `stepladder profile`: how long each call of a model's passes took. A part of RunStore, which has its
// threads, locks and errors.

class PassStore {
 public:
  explicit PassStore(Database& database) : database_(database) {}

  std::int64_t insert(const StoredPasses& passes);  // ignores the id and returns the new one
  std::vector<StoredPasses> list();                 // oldest first
  std::optional<StoredPasses> find(std::int64_t id);
  void remove(std::int64_t id);

 private:
  Database& database_;
};

}  // namespace stepladder
