#include "app/desktop/models/project_metrics.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "app/desktop/workspace.h"

namespace stepladder {
namespace {

ProjectMetrics read_metrics(RunStore& store, std::vector<MetricFigure> figures, const JobControl& job) {
  ProjectMetrics read;
  read.names = store.metrics().all_names(most_listed_metrics);
  std::ranges::sort(read.names, {}, &Metric::name);
  read.table = store.metrics().table(std::move(figures), [&] { return job.is_interrupted(); });
  return read;
}

}  // namespace

const Metric* ProjectMetrics::find(const std::string& name) const {
  const auto found =
      std::lower_bound(names.begin(), names.end(), name,
                       [](const Metric& metric, const std::string& wanted) { return metric.name < wanted; });
  return found != names.end() && found->name == name ? &*found : nullptr;
}

void ProjectMetricsReader::update(RunStore& store, Workspace& workspace) {
  if (workspace.wanted_figures != wanted_) {
    wanted_ = workspace.wanted_figures;
    ++wanted_number_;
  }
  const Basis basis{.asked = {wanted_number_},
                    .data = {static_cast<std::int64_t>(workspace.version), workspace.logged_so_far()}};
  const bool is_new = !workspace.project_metrics && !is_pending();
  if (is_new || background_.is_stale(basis, workspace.running() != nullptr)) {
    background_.start(basis,
                      [file = store.file(), in_memory = store.file().empty() ? &store : nullptr,
                       mode = store.read_only() ? RunStore::Mode::read_only : RunStore::Mode::read_write,
                       wanted = wanted_, reading = ++readings_](const JobControl& job) -> Made {
                        const auto read = std::make_shared<ProjectMetrics>();
                        try {
                          std::optional<RunStore> own;
                          if (!in_memory) own.emplace(RunStore::open(file, mode));
                          *read = read_metrics(in_memory ? *in_memory : *own, wanted, job);
                        } catch (const StorageError& error) {
                          read->problem = error.what();
                        }
                        read->reading = reading;
                        return read;
                      });
  }
  const bool is_in_memory = store.file().empty();  // the other thread uses this store
  background_.take(workspace.project_metrics, is_in_memory ? std::chrono::hours(1) : workspace.patience);
}

}  // namespace stepladder
