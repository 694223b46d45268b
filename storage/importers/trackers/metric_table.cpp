// Collects the numbers of a run that is read whole and passes them to LoggedSteps, attempt after attempt. Notes for the
// user what was taken for what, and what was derived.
#include "storage/importers/trackers/metric_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "storage/importers/importer.h"
#include "storage/importers/trackers/metric_names.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_shown_name = 60;

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// Which metric is the loss and so on, and which are kept beside them.
void note_roles(const LoggedSteps& logged, const std::vector<LoggedBatch::Values>& metrics,
                std::vector<std::string>& notes) {
  std::string taken;
  std::vector<std::string> with_role, others;
  for (int index = 0; index < metric_roles; ++index) {
    const auto role = static_cast<MetricRole>(index);
    if (role == MetricRole::none || logged.name_of(role).empty()) continue;
    with_role.push_back(logged.name_of(role));
    taken += (taken.empty() ? "" : ", ") + std::string("\"") + short_list({with_role.back()}) + "\" is the " +
             std::string(to_string(role));
  }
  if (!taken.empty()) notes.push_back(taken);
  // Without any, the one that counts the steps isn't named either.
  if (with_role.empty()) with_role.push_back(logged.name_of(MetricRole::none));
  for (const auto& [metric, points] : metrics)
    if (std::ranges::find(with_role, metric.name) == with_role.end()) others.push_back(metric.name);
  if (!others.empty())
    notes.push_back("kept " + plural(std::ssize(others), "more metric: ", "more metrics: ") + short_list(others));
}

// How the step times were found.
void note_times(const LoggedSteps& logged, const LoggedBatch& batch, const std::vector<StepRecord>& records,
                std::vector<std::string>& notes) {
  const std::string time_name = logged.name_of(MetricRole::step_time);
  if (!time_name.empty() && meaning_of_metric(time_name).scale == 0) {
    const std::string name = "\"" + short_list({time_name}) + "\"";
    if (is_missing(batch.unit_ms))
      notes.push_back(name + " gives no step times: its name has no unit, and the wall clock doesn't show whether " +
                      shown(batch.typical_time) + " are seconds or milliseconds");
    else
      notes.push_back(name + " is in " + (batch.unit_ms == 1 ? "milliseconds" : "seconds") + ": its median is " +
                      shown(batch.typical_time) + ", and the wall clock moved " + shown(batch.wall_ms) + " ms a step");
  }
  if (!batch.dt_is_derived) return;
  std::size_t derived = 0;
  std::vector<double> strides;
  const StepRecord* before = nullptr;
  for (const StepRecord& record : records) {
    if (is_missing(record.dt_ms)) continue;
    ++derived;
    if (before && record.step > before->step) strides.push_back(static_cast<double>(record.step - before->step));
    before = &record;
  }
  if (derived == 0) return;
  std::string note = "the store holds no step times: those of " + plural(derived, "step") +
                     " are differences of the wall times at which values were logged, so they include everything that "
                     "the program did in between";
  if (const double stride = middle_of(strides); stride > 1)
    note += "; one was logged every " + std::to_string(std::llround(stride)) + " steps, dt is their mean";
  notes.push_back(note);
}

void note_tokens(const LoggedBatch& batch, std::int64_t tokens_per_sample, std::vector<std::string>& notes) {
  if (batch.uses_samples)
    notes.push_back("tokens are samples per second x dt x " + std::to_string(tokens_per_sample) +
                    " tokens a sample, the sequence length in the run's configuration");
  if (batch.has_unused_rate)
    notes.push_back(
        "the throughput of some steps isn't used: without a measured step time (or, for samples, a sequence length) it "
        "does not give the tokens per step");
}

}  // namespace

std::string short_list(const std::vector<std::string>& names, std::size_t most) {
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) {
    if (i > 0) list += ", ";
    list += names[i].size() > longest_shown_name ? names[i].substr(0, longest_shown_name) + "..." : names[i];
  }
  if (names.size() > most) list += " and " + std::to_string(names.size() - most) + " more";
  return list;
}

MetricTable::Column& MetricTable::column(std::string_view name) {
  if (last_ && last_->name == name) return *last_;
  auto found = columns_.find(name);
  if (found == columns_.end()) {
    refuse_more_metrics(columns_.size());
    found = columns_.emplace(std::string(name), Column{}).first;
    found->second.name = found->first;
  }
  last_ = &found->second;
  return *last_;
}

void MetricTable::add(std::string_view name, std::int64_t step, double value, double at) {
  Column& target = column(name);
  if (step < 0 || step > highest_logged_step) {
    ++bad_steps_;
    return;
  }
  if (!std::isfinite(at)) at = missing;
  target.points.push_back({step, as_logged(value), at});
  if (is_missing(at)) return;
  if (is_missing(first_at_) || at < first_at_) first_at_ = at;
  if (is_missing(last_at_) || at > last_at_) last_at_ = at;
}

void MetricTable::take_points(const Use& use) {
  for (const auto& [name, target] : columns_)
    if (!target.points.empty()) use(name, target.points);
  *this = MetricTable{};
}

bool MetricTable::empty() const {
  return std::ranges::all_of(columns_, [](const auto& entry) { return entry.second.points.empty(); });
}

double MetricTable::first_at() const {
  return first_at_;
}

double MetricTable::last_at() const {
  return last_at_;
}

// The loss with the most values, else the longest column; null if there is none.
const MetricTable::Column* MetricTable::counter() const {
  const Column* best = nullptr;
  const auto rank = [](const Column& column) {
    return std::pair(meaning_of_metric(column.name).role == MetricRole::loss, column.points.size());
  };
  for (const auto& [name, column] : columns_)
    if (!column.points.empty() && (!best || rank(column) > rank(*best))) best = &column;
  return best;
}

void MetricTable::number_calls(CallCount& count) {
  for (const auto& [name, column] : columns_)
    for (const MetricPoint& point : column.points) count.has_steps |= point.step != 0;
  if (count.has_steps || empty()) return;
  const auto is_loss = [](const std::string& name) { return meaning_of_metric(name).role == MetricRole::loss; };
  // What is logged once before the training counts nothing.
  if (const Column* const longest = counter();
      count.leading.empty() || (!is_loss(count.leading) && (is_loss(longest->name) || count.calls < 2)))
    if (longest->name != std::exchange(count.leading, longest->name)) count.calls = 0;
  std::vector<double> times;
  const std::int64_t before = count.calls;
  if (const auto leading = columns_.find(count.leading); leading != columns_.end()) {
    for (MetricPoint& point : leading->second.points) {
      point.step = count.calls++;
      times.push_back(point.at);
    }
  }
  std::ranges::sort(times);
  for (auto& [name, column] : columns_) {
    if (name == count.leading) continue;
    for (MetricPoint& point : column.points) {
      const std::int64_t calls = before + (std::ranges::upper_bound(times, point.at) - times.begin());
      point.step = std::max<std::int64_t>(calls - 1, 0);
    }
  }
}

// The times at which the run went back to an earlier step: later numbers belong to another attempt, and the time that
// passed in between to none. Empty if the numbers have no times.
std::vector<double> MetricTable::restarts() const {
  const Column* const counting = counter();
  std::vector<double> times;
  if (!counting) return times;
  for (std::size_t i = 1; i < counting->points.size(); ++i) {
    const MetricPoint& point = counting->points[i];
    if (point.step < counting->points[i - 1].step && !is_missing(point.at) &&
        (times.empty() || point.at > times.back()))
      times.push_back(point.at);
  }
  return times;
}

MetricTable::Steps MetricTable::take_steps(std::int64_t tokens_per_sample) {
  Steps steps;
  LoggedSteps logged(RepeatedLoss::is_kept);
  LoggedBatch batch;
  std::map<std::string, std::size_t> places;  // of the metrics in `steps`
  const std::vector<double> begins = restarts();
  std::vector<std::map<std::string, std::vector<MetricPoint>>> attempts(begins.size() + 1);
  for (auto& [name, column] : columns_) {
    if (begins.empty() && !column.points.empty()) attempts.front()[name] = std::exchange(column.points, {});
    for (const MetricPoint& point : column.points) {
      const auto later = std::ranges::upper_bound(begins, point.at);
      attempts[is_missing(point.at) ? 0 : static_cast<std::size_t>(later - begins.begin())][name].push_back(point);
    }
  }
  for (auto& attempt : attempts) {
    if (&attempt != &attempts.front()) logged.begin_attempt();
    for (auto& [name, points] : attempt) logged.add(name, std::move(points));
    LoggedBatch part = logged.take(tokens_per_sample);
    steps.records.insert(steps.records.end(), part.repeated.begin(), part.repeated.end());
    steps.records.insert(steps.records.end(), part.steps.begin(), part.steps.end());
    for (LoggedBatch::Values& values : part.metrics) {
      const auto [place, is_new] = places.try_emplace(values.metric.name, steps.metrics.size());
      if (is_new)
        steps.metrics.push_back(std::move(values));
      else
        std::copy(values.points.begin(), values.points.end(), std::back_inserter(steps.metrics[place->second].points));
    }
    part.uses_samples |= batch.uses_samples;
    part.has_unused_rate |= batch.has_unused_rate;
    batch = std::move(part);
  }
  const auto by_step = [](const StepRecord& a, const StepRecord& b) { return a.step < b.step; };
  if (!std::ranges::is_sorted(steps.records, by_step)) std::ranges::stable_sort(steps.records, by_step);

  note_roles(logged, steps.metrics, steps.notes);
  if (bad_steps_ > 0)
    steps.notes.push_back(plural(bad_steps_, "point was", "points were") +
                          " left out: the step is negative or too large");
  note_times(logged, batch, steps.records, steps.notes);
  note_tokens(batch, tokens_per_sample, steps.notes);
  std::size_t twice = 0;
  for (std::size_t i = 1; i < steps.records.size(); ++i)
    twice += steps.records[i].step == steps.records[i - 1].step ? 1 : 0;
  if (twice > 0)
    steps.notes.push_back(plural(twice, "step was", "steps were") + " logged more than once; the newer count");
  steps.tokens_per_step = logged.tokens_per_step();
  *this = MetricTable{};
  return steps;
}

}  // namespace stepladder
