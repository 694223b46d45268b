// A copy of a run that another thread may read while the UI thread continues: values, and columns that never change.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "app/curves/curves.h"
#include "app/desktop/charts/charts.h"
#include "app/desktop/data_requests.h"
#include "app/desktop/models/run_points.h"
#include "app/desktop/workspace.h"
#include "storage/thread_safety.h"

namespace stepladder {

struct RunSnapshot {
  Run run;
  Summary known;  // empty until the run is over: see summary()
  bool is_active = false;
  bool is_excerpt = false;               // the series is one (RunStore::excerpt); curves are those of overviews
  std::shared_ptr<const Series> series;  // empty until it has been read
  // The metrics that are drawn. Of an excerpt, the fields too, and the step times of the whole run if time was asked
  // for.
  std::vector<std::shared_ptr<const OverviewCurve>> overviews;
  std::shared_ptr<const OverviewCurve> step_times;

  Summary summary() const;

  // Null if it hasn't been loaded.
  const OverviewCurve* overview(Quantity quantity) const;

  // The places of an excerpt's steps along an axis that isn't a metric; empty for the step axis.
  Points places(Axis axis) const;
};

// A number that changes when a snapshot of the run would hold different steps.
std::int64_t fingerprint(const RunEntry& entry);

// Makes snapshots of runs, and asks for steps that haven't been read. Used by the thread that made it, the UI thread.
class SnapshotCache {
 public:
  // Sets how many runs will be asked for: the more runs, the fewer steps of each are read. With `excerpts_only` even
  // short runs that are over are drawn from overviews, and their steps are kept apart from them.
  void expect(std::size_t runs, bool excerpts_only = false);

  bool is_coarse(const RunEntry& entry) const;

  // The snapshot of a live run shares its columns with this cache: nobody may read it while the next call grows them.
  RunSnapshot of(const RunEntry& entry);

  // Asks for the steps that are missing.
  void ask(const RunEntry& entry, DataRequests& requests) const;

 private:
  struct Copy {
    std::shared_ptr<Series> series;
    int rewritten = 0;
  };
  OwnerThread owner_;
  std::map<RunId, Copy> live_ GUARDED_BY(owner_);  // of running runs; grow with them
  std::int64_t most_steps_ GUARDED_BY(owner_) = most_steps_read_whole;
  bool excerpts_only_ GUARDED_BY(owner_) = false;
};

// A number that changes with the points.
std::int64_t fingerprint(const RunPoints& points);

}  // namespace stepladder
