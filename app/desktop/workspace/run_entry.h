// A run as the window knows it. Plain values; UI thread.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/curves/min_max_pyramid.h"
#include "app/runs/excerpt.h"
#include "engine/files/run_checkpoints.h"
#include "storage/analysis/step_profile.h"
#include "storage/analysis/summary.h"
#include "storage/database/curation.h"
#include "storage/database/run_store.h"
#include "storage/records.h"

namespace stepladder {

// A run, with the loaded part of its data.
struct RunEntry {
  Run run;
  Summary summary;
  Curation curation;
  bool loaded = false;        // the series has every step
  std::vector<double> steps;  // the series' columns as plots need them
  std::vector<double> tokens_per_s;
  double last_step_at = missing;          // unix seconds
  double paused_seconds = 0;              // between steps, while this window looked on
  std::shared_ptr<const Series> excerpt;  // of a run that is too long to read whole (RunStore::excerpt)
  int rewritten = 0;                      // how often the series changed other than by growing

  const Series& series() const { return *series_; }
  // The same for other threads, once the run is over.
  std::shared_ptr<const Series> shared_series() const { return series_; }
  bool is_active() const { return !is_over(run.status); }
  bool is_long() const { return !loaded && summary.steps > most_steps_read_whole; }
  std::span<const double> values(Quantity quantity) const;
  const MinMaxPyramid& levels(Quantity quantity) const;  // of these values, up to now
  void set_series(Series read);
  void append(const StepRecord& record);
  void replace_steps(const Series& read);  // consecutive steps of it, as they are now

 private:
  std::shared_ptr<Series> series_ = std::make_shared<Series>();
  mutable std::array<MinMaxPyramid, step_quantities.size()> levels_;  // of the quantities that were asked for
};

// Whether its steps have a throughput of their own: each has a time, and its tokens are known.
inline bool has_step_throughput(const RunEntry* entry) {
  const Summary& of = entry->summary;
  return !is_missing(of.dt_ms_median) && (entry->run.tokens_per_step > 0 || !is_missing(of.tokens_per_s_p25));
}

// A run's data besides its steps.
struct RunDetail {
  std::vector<SystemMetrics> metrics;
  std::vector<TextSample> samples;
  std::vector<Checkpoint> checkpoints;
  StepParts parts;
  std::vector<std::string> console;  // lines, without terminal escape sequences
  StepProfile profile;               // of no steps if the run has no profile
  FittedProfile fitted;              // the same beside the run's step
};

}  // namespace stepladder
