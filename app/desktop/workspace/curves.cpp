// Keeps curves and metrics that were read, and decides which of them have to be read again.
#include <algorithm>
#include <chrono>

#include "app/desktop/models/project_metrics.h"
#include "app/desktop/workspace.h"

namespace stepladder {

CurveWanted Workspace::wanted(RunId id, Quantity quantity, std::optional<Steps> zoom) const {
  const auto logged = logged_.find(id);
  return {.run = id,
          .quantity = quantity,
          .zoom = zoom,
          .asked_at = curves_forgotten_,
          .logged = logged == logged_.end() ? 0 : logged->second};
}

void Workspace::keep(const CurveRead& read) {
  const CurveWanted& of = read.wanted;
  if (!find(of.run) || !read.problem.empty() || of.asked_at != curves_forgotten_) return;
  if (of.is_steps) {
    steps_read_at_[of.run] = {.logged = of.logged, .at = read.at, .took = read.took};
    entry(of.run)->replace_steps(*read.steps);
    return;
  }
  (of.zoom ? zoomed_overviews_ : overviews_)[{of.run, of.quantity}] = read.curve;
  const Extent extent = of.zoom ? Extent::zoomed : Extent::whole;
  if (!is_field(of.quantity))
    metrics_loaded_at_[{of.run, of.quantity, extent}] = {.logged = of.logged, .at = read.at, .took = read.took};
}

bool Workspace::is_due(const LoadedAt& loaded, RunId id) const {
  constexpr int share = 20;  // of the time, at most one part is spent on reading again what grows
  const auto logged = logged_.find(id);
  return logged != logged_.end() && logged->second != loaded.logged &&
         std::chrono::steady_clock::now() - loaded.at > share * loaded.took;
}

bool Workspace::is_outdated(RunId id, Quantity metric, Extent extent) const {
  const auto loaded = metrics_loaded_at_.find({id, metric, extent});
  return loaded != metrics_loaded_at_.end() && is_due(loaded->second, id);
}

std::vector<CurveWanted> Workspace::late_steps() const {
  std::vector<CurveWanted> late;
  for (const RunId id : others_) {
    const RunEntry* found = find(id);
    if (!found || found->run.status != RunStatus::running || found->run.source != "import" || found->steps.empty())
      continue;
    const auto loaded = steps_read_at_.find(id);
    if (!is_due(loaded == steps_read_at_.end() ? LoadedAt{} : loaded->second, id)) continue;
    const std::vector<std::int64_t>& steps = found->series().step;
    const std::size_t most = std::min<std::size_t>(steps.size(), most_steps_read_whole);
    late.push_back(wanted(id, Quantity::loss, Steps(steps[steps.size() - most], steps.back())));
    late.back().is_steps = true;
  }
  return late;
}

std::int64_t Workspace::logged_so_far() const {
  std::int64_t sum = 0;
  for (const auto& [run, times] : logged_) sum += static_cast<std::int64_t>(times);
  if (const RunEntry* entry = running()) sum += static_cast<std::int64_t>(entry->series().size());
  return sum;
}

std::optional<double> Workspace::figure(RunId run, const MetricFigure& figure) const {
  if (!project_metrics || !project_metrics->table.has(figure)) return std::nullopt;
  return project_metrics->table.value(run, figure);
}

const std::vector<Metric>* Workspace::metrics(RunId id) const {
  const auto found = metrics_.find(id);
  return found == metrics_.end() ? nullptr : &found->second;
}

void Workspace::forget_curves(RunId id) {
  ++curves_forgotten_;
  for (auto* const curves : {&overviews_, &zoomed_overviews_})
    std::erase_if(*curves, [&](const auto& kept) { return kept.first.first == id; });
  std::erase_if(metrics_loaded_at_, [&](const auto& kept) { return std::get<RunId>(kept.first) == id; });
  steps_read_at_.erase(id);
  metrics_.erase(id);
  logged_.erase(id);
}

std::shared_ptr<const OverviewCurve> Workspace::overview(RunId id, Quantity quantity) const {
  const auto found = overviews_.find({id, quantity});
  return found == overviews_.end() ? nullptr : found->second;
}

std::shared_ptr<const OverviewCurve> Workspace::zoomed_overview(RunId id, Quantity quantity) const {
  const auto found = zoomed_overviews_.find({id, quantity});
  return found == zoomed_overviews_.end() ? nullptr : found->second;
}

}  // namespace stepladder
