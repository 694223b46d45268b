// The details that are kept of a trace besides its sums: its anatomy, and the slices of a few steps. A part of
// TraceStore (trace_store.h), which has its threads, locks and errors.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/database/traces/trace_store.h"
#include "storage/traces/anatomy.h"
#include "storage/traces/step_slices.h"
#include "storage/traces/traced_process.h"

namespace stepladder {

// A step whose slices are kept.
struct KeptStepName {
  int rank = 0;
  std::int64_t step = 0;
  std::int64_t slices = 0;
  bool operator==(const KeptStepName&) const = default;
};

class TraceDetails {
 public:
  explicit TraceDetails(Database& database) : database_(database) {}

  void insert(TraceId trace, const Anatomy& anatomy, const std::vector<KeptStep>& kept);
  Anatomy anatomy(TraceId trace);                                 // empty: imported by a version that had none
  std::vector<KeptStepName> steps(TraceId trace);                 // by rank and step; empty: the same
  StepSlices slices(TraceId trace, int rank, std::int64_t step);  // throws StorageError if they are missing or damaged

  std::vector<KeptStep> kept(TraceId trace);  // all of them as they are stored
  double imported_at(TraceId trace);          // unix seconds; missing: there is no such trace

  // The other runs whose time is known by operator: their operators were timed here. By id, without those in the bin.
  std::vector<RunId> timed_runs();

 private:
  Database& database_;
};

// Keeps a trace with its details in one transaction; returns its number. `trace.profile` is taken from `process`.
TraceId keep_trace(TraceStore& store, StoredTrace trace, const TracedProcess& process);

}  // namespace stepladder
