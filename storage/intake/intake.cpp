// Stores the pieces of every source: journals, stores, logs and tables, here or copied from another machine.
#include "storage/intake/intake.h"

#include <cmath>
#include <utility>

#include "storage/importers/trackers/metric_names.h"

namespace stepladder {

std::optional<PrintedUnits> keep_logged_rate(RunStore& store, RunId id) {
  if (store.run(id).value_or(Run{}).tokens_per_step > 0) return std::nullopt;
  for (const Metric& metric : store.metrics().names(id)) {
    const MetricMeaning meaning = meaning_of_metric(metric.name);
    if (meaning.role != MetricRole::tokens_per_s) continue;
    Run run = store.existing_run(id);
    if (!is_missing(store.summary(run).tokens_per_s)) return std::nullopt;
    std::vector<double> rates;
    store.metrics().for_points(id, metric.name, [&](std::span<const MetricPoint> points) {
      for (const MetricPoint& point : points)
        if (point.value > 0 && std::isfinite(point.value)) rates.push_back(point.value);
    });
    if (rates.empty()) continue;
    run.printed.tokens_per_s = middle_of(std::move(rates)) * (meaning.scale == 0 ? 1 : meaning.scale);
    run.printed.unit = "tokens/s, logged as " + metric.name;
    store.update_run(run);
    return run.printed;
  }
  return std::nullopt;
}

FollowedSource Intake::position(const std::string& source) {
  return store_.following().position(source).value_or(FollowedSource{});
}

FollowedSource Intake::take(const std::string& source, const FollowedSource& from,
                            const std::function<FollowedSource()>& write) {
  FollowedSource end;
  ending_.emplace();
  try {
    store_.in_one_transaction([&] {
      if (position(source) != from) throw PositionConflict();
      end = write();
      if (end.run == 0)
        end = from;
      else
        store_.following().set_position(source, end);
    });
  } catch (...) {
    ending_.reset();
    throw;
  }
  const std::vector<RunId> ended = std::move(*ending_);
  ending_.reset();
  for (const RunId run : ended) finish(run);
  return end;
}

RunId Intake::begin(Run run, const std::filesystem::path& source) {
  run.status = RunStatus::running;
  run.source = "import";
  run.source_path = source.string();
  return store_.create_run(run);
}

void Intake::resume(Run& run) {
  run.status = RunStatus::running;
  run.reason.clear();
  run.ended_at = missing;
}

void Intake::add(RunId run, const LoggedBatch& batch, Merge merge, bool all_are_parts) {
  FollowStore& following = store_.following();
  if (merge == Merge::own) {
    std::vector<StepRecord> fresh, parts = batch.repeated;
    for (const StepRecord& record : batch.steps)
      (all_are_parts || !batch.repeated.empty() || batch.may_have(record.step) ? parts : fresh).push_back(record);
    if (!fresh.empty()) store_.append_steps(run, fresh);
    if (!parts.empty()) following.complete_steps(run, parts, Completion::keep_repeated);
  } else if (batch.dt_is_derived) {
    // A step time that is only the difference of two times of logging counts less than a measured one.
    std::vector<StepRecord> logged = batch.steps;
    for (StepRecord& record : logged) record.dt_ms = missing;
    following.complete_steps(run, logged);
    following.complete_steps(run, batch.steps, Completion::fill);
  } else {
    following.complete_steps(run, batch.steps);
  }
}

void Intake::add(RunId run, std::span<const LoggedStep> steps, Merge merge) {
  std::vector<StepRecord> fresh, parts;
  for (const LoggedStep& step : steps) (merge != Merge::own || step.is_part ? parts : fresh).push_back(step.record);
  const Completion how = merge == Merge::printed     ? Completion::fill
                         : merge == Merge::joined    ? Completion::replace
                         : merge == Merge::withdrawn ? Completion::withdraw_loss
                                                     : Completion::keep_repeated;
  if (!parts.empty()) store_.following().complete_steps(run, parts, how);
  if (!fresh.empty()) store_.append_steps(run, fresh);
}

void Intake::add(RunId run, const Metric& metric, std::span<const MetricPoint> points) {
  store_.metrics().describe(run, metric);
  if (!points.empty()) store_.metrics().append(run, metric.name, points);
}

void Intake::end(RunId id, RunStatus status, const std::string& reason, double at) {
  auto run = store_.run(id);
  const bool was_only_silent = run && run->status == RunStatus::interrupted && status != RunStatus::interrupted;
  if (!run || (is_over(run->status) && !was_only_silent)) return;
  run->status = status;
  run->reason = reason;
  run->ended_at = at;
  store_.update_run(*run);
  if (ending_)
    ending_->push_back(id);
  else
    finish(id);
}

void Intake::finish(RunId id) {
  keep_logged_rate(store_, id);
  const Run run = store_.existing_run(id);
  store_.summary(run);  // computes and keeps it
  store_.metrics().of_run(id);
  report_("run " + std::to_string(id) + (run.status == RunStatus::interrupted ? " is " : " has ") +
          std::string(to_string(run.status)) + (run.reason.empty() ? "" : ": " + run.reason));
}

}  // namespace stepladder
