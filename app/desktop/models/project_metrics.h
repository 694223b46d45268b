// The metrics of all runs of a project, by which lists of runs show, sort and filter them: their names, and the figures
// that a view wants.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/desktop/models/background.h"
#include "storage/database/metrics/metric_store.h"
#include "storage/records.h"

namespace stepladder {

class RunStore;
class Workspace;

struct ProjectMetrics {
  std::int64_t reading = 0;   // numbers the readings, from 1
  std::vector<Metric> names;  // of all metrics, and of the steps' fields
  FigureTable table;
  std::string problem;  // why nothing could be read; empty: all is well

  const Metric* find(const std::string& name) const;
};

// Reads them on another thread, through a connection of its own; those of a database in memory in the same call. UI
// thread.
class ProjectMetricsReader {
 public:
  // Call in every frame that needs them. Reads again when other figures are wanted (Workspace::wanted_figures) or the
  // runs have changed; while runs log, at most a twentieth of the time. Puts what was read into the workspace.
  void update(RunStore& store, Workspace& workspace);
  bool is_pending() const { return background_.is_pending(); }

 private:
  using Made = std::shared_ptr<const ProjectMetrics>;

  std::vector<MetricFigure> wanted_;
  std::int64_t wanted_number_ = 0;  // counts changes of wanted_
  std::int64_t readings_ = 0;
  Background<Made> background_;
};

}  // namespace stepladder
