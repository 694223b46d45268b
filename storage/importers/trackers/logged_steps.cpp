// Turns batches of logged numbers into step records and metrics. Which metric is the loss, the step time and so on is
// chosen once and kept in `state`, so a restart gives the same records. MetricTable does the same for runs that are
// read whole; both use metric_values.h.
#include "storage/importers/trackers/logged_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "storage/importers/trackers/metric_values.h"

namespace stepladder {
namespace {

using Json = nlohmann::ordered_json;

std::size_t index_of(MetricRole role) {
  return static_cast<std::size_t>(role);
}

}  // namespace

LoggedSteps::LoggedSteps(const std::string& state, RepeatedLoss repeated) : repeated_loss_(repeated) {
  const Json from = Json::parse(state, nullptr, false);
  if (!from.is_object()) return;
  if (const auto names = from.find("chosen"); names != from.end() && names->is_object())
    for (std::size_t role = 0; role < chosen_.size(); ++role)
      chosen_[role] = text_in(*names, std::string(to_string(static_cast<MetricRole>(role))).c_str());
  const auto step_in = [&](const char* name) {
    return std::clamp<std::int64_t>(integer_in(from, name, -1), -1, highest_logged_step);
  };
  unit_ms_ = number_in(from, "unit_ms");
  timed_ = integer_in(from, "timed") != 0;
  last_step_ = step_in("last_step");
  last_at_ = number_in(from, "last_at");
  seen_step_ = step_in("seen_step");
  seen_ = number_in(from, "seen");
  lowest_ = integer_in(from, "lowest", INT64_MAX);
  highest_ = integer_in(from, "highest", -1);
}

std::string LoggedSteps::state() const {
  Json to = Json::object();
  for (std::size_t role = 0; role < chosen_.size(); ++role)
    if (!chosen_[role].empty()) to["chosen"][std::string(to_string(static_cast<MetricRole>(role)))] = chosen_[role];
  const auto put = [&](const char* name, double value) {
    if (std::isfinite(value)) to[name] = value;
  };
  put("unit_ms", unit_ms_);
  to["timed"] = timed_ ? 1 : 0;
  to["last_step"] = last_step_;
  put("last_at", last_at_);
  to["seen_step"] = seen_step_;
  put("seen", seen_);
  to["lowest"] = lowest_;
  to["highest"] = highest_;
  return to.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool LoggedSteps::is_good(std::int64_t step) {
  if (step >= 0 && step <= highest_logged_step) return true;
  ++bad_steps_;
  return false;
}

void LoggedSteps::add(std::string_view name, std::int64_t step, double value, double at) {
  if (!is_good(step)) return;
  auto found = columns_.find(name);
  if (found == columns_.end()) found = columns_.emplace(std::string(name), std::vector<MetricPoint>()).first;
  found->second.push_back({step, as_logged(value), at});
}

void LoggedSteps::add_timed(std::int64_t step, double ms, std::int64_t tokens, double at) {
  if (!is_good(step)) return;
  timed_ = true;
  timed_steps_.push_back({step, ms, tokens, at});
}

// Chooses among several metrics with a role the one with the most values; epochs' means and test sets only if there is
// no other.
void LoggedSteps::choose() {
  struct Best {
    const std::string* name = nullptr;
    RoleCandidate candidate;
  };
  std::array<Best, metric_roles> best;
  for (const auto& [name, points] : columns_) {
    const MetricMeaning meaning = meaning_of_metric(name);
    Best& place = best[index_of(meaning.role)];
    const RoleCandidate candidate{points.size(), meaning.second_rate};
    if (!place.name || is_better(candidate, place.candidate)) place = {&name, candidate};
  }
  bool any = timed_;
  for (std::size_t role = 0; role < chosen_.size(); ++role) {
    if (role == index_of(MetricRole::none)) continue;
    if (chosen_[role].empty() && best[role].name) chosen_[role] = *best[role].name;
    any = any || !chosen_[role].empty();
  }
  std::string& counter = chosen_[index_of(MetricRole::none)];
  if (any)
    counter.clear();
  else if (counter.empty() && best[index_of(MetricRole::none)].name)
    counter = *best[index_of(MetricRole::none)].name;
}

void LoggedSteps::begin_attempt() {
  lowest_ = INT64_MAX;
  highest_ = -1;
  last_step_ = -1;
  last_at_ = missing;
  seen_step_ = -1;
}

void LoggedSteps::set_field(Draft& draft, double& place, MetricRole role, double value) {
  const bool differs = place != value && !(std::isnan(place) && std::isnan(value));
  const bool is_loss = role == MetricRole::loss || role == MetricRole::val_loss;
  if (is_loss && repeated_loss_ == RepeatedLoss::is_kept && !is_missing(place) && differs)
    repeated_.push_back(draft.record);
  place = value;
}

LoggedSteps::Drafts LoggedSteps::drafts() {
  Drafts drafts;
  const auto draft_of = [&](std::int64_t step, double at) -> Draft& {
    auto [found, is_new] = drafts.try_emplace(step);
    if (is_new) {
      found->second.record.step = step;
      found->second.speed.fill(missing);
    }
    if (is_missing(found->second.record.at)) found->second.record.at = at;
    return found->second;
  };
  for (const Timed& timed : timed_steps_) {
    StepRecord& record = draft_of(timed.step, timed.at).record;
    record.dt_ms = timed.ms;
    record.tokens = timed.tokens;
    record.at = timed.at;
  }
  for (std::size_t role = 0; role < chosen_.size(); ++role) {
    const auto found = columns_.find(chosen_[role]);
    if (chosen_[role].empty() || found == columns_.end()) continue;
    const auto meant = static_cast<MetricRole>(role);
    const double scale = meaning_of_metric(chosen_[role]).scale;
    for (const MetricPoint& point : found->second) {
      Draft& draft = draft_of(point.step, point.at);
      if (double* place = field_of(draft.record, meant))
        set_field(draft, *place, meant, point.value);
      else
        draft.speed[role] = point.value * (scale == 0 ? 1 : scale);
      if (meant == MetricRole::loss || meant == MetricRole::none) draft.counted_at = point.at;
    }
  }
  return drafts;
}

void LoggedSteps::set_times(Drafts& drafts) {
  const std::string& time_name = chosen_[index_of(MetricRole::step_time)];
  const bool is_logged = !time_name.empty() || !chosen_[index_of(MetricRole::steps_per_s)].empty();
  std::map<std::int64_t, double> walls;
  std::vector<double> wall_times, logged_times;
  for (const auto& [step, draft] : drafts) {
    if (!is_missing(draft.counted_at)) {
      const double wall = (draft.counted_at - last_at_) * 1000 / static_cast<double>(step - last_step_);
      if (last_step_ >= 0 && step > last_step_ && wall > 0 && std::isfinite(wall)) {
        walls[step] = wall;
        wall_times.push_back(wall);
      }
      last_step_ = std::max(last_step_, step);
      last_at_ = draft.counted_at;
    }
    if (const double time = draft.speed[index_of(MetricRole::step_time)]; !is_missing(time))
      logged_times.push_back(time);
  }
  if (!time_name.empty() && meaning_of_metric(time_name).scale != 0) unit_ms_ = 1;
  if (is_missing(unit_ms_)) unit_ms_ = unit_near(middle_of(logged_times), middle_of(wall_times));
  for (auto& [step, draft] : drafts) {
    const double time = draft.speed[index_of(MetricRole::step_time)];
    const double rate = draft.speed[index_of(MetricRole::steps_per_s)];
    if (timed_) continue;
    if (!is_missing(time) && !is_missing(unit_ms_))
      draft.record.dt_ms = as_logged(time * unit_ms_);
    else if (!is_missing(rate) && rate > 0)
      draft.record.dt_ms = 1000 / rate;
    else if (const auto wall = walls.find(step); wall != walls.end() && !is_logged)
      draft.record.dt_ms = wall->second;
  }
}

void LoggedSteps::set_tokens(Drafts& drafts, std::int64_t tokens_per_sample) {
  const bool dt_is_measured = timed_ || !chosen_[index_of(MetricRole::step_time)].empty() ||
                              !chosen_[index_of(MetricRole::steps_per_s)].empty();
  for (auto& [step, draft] : drafts) {
    if (draft.record.tokens > 0) continue;
    double tokens = draft.speed[index_of(MetricRole::tokens_per_step)];
    const double seen = draft.speed[index_of(MetricRole::tokens_seen)];
    if (!is_missing(seen)) {
      if (is_missing(tokens) && seen_step_ >= 0 && step > seen_step_)
        tokens = (seen - seen_) / static_cast<double>(step - seen_step_);
      seen_step_ = step;
      seen_ = seen;
    }
    const double rate = draft.speed[index_of(MetricRole::tokens_per_s)];
    const double samples = draft.speed[index_of(MetricRole::samples_per_s)];
    if (is_missing(tokens) && dt_is_measured && !is_missing(draft.record.dt_ms)) {
      if (!is_missing(rate))
        tokens = rate * draft.record.dt_ms / 1000;
      else if (!is_missing(samples) && tokens_per_sample > 0)
        tokens = samples * draft.record.dt_ms / 1000 * static_cast<double>(tokens_per_sample);
    }
    if (usable_count(tokens)) draft.record.tokens = std::llround(tokens);
  }
}

std::vector<LoggedBatch::Values> LoggedSteps::take_metrics() {
  std::vector<LoggedBatch::Values> metrics;
  for (auto& [name, points] : columns_) {
    LoggedBatch::Values& values = metrics.emplace_back();
    const MetricRole role = meaning_of_metric(name).role;
    values.metric = logged_metric(name, role, chosen_[index_of(role)] == name);
    if (values.metric.field.empty()) values.points = std::move(points);
  }
  return metrics;
}

LoggedBatch LoggedSteps::take(std::int64_t tokens_per_sample) {
  choose();
  Drafts all = drafts();
  set_times(all);
  set_tokens(all, tokens_per_sample);
  LoggedBatch batch{.lowest_before = lowest_, .highest_before = highest_};
  batch.steps.reserve(all.size());
  for (const auto& [step, draft] : all) batch.steps.push_back(draft.record);
  batch.repeated = std::exchange(repeated_, {});
  batch.dt_is_derived =
      !timed_ && chosen_[index_of(MetricRole::step_time)].empty() && chosen_[index_of(MetricRole::steps_per_s)].empty();
  batch.metrics = take_metrics();
  if (!all.empty()) {
    lowest_ = std::min(lowest_, all.begin()->first);
    highest_ = std::max(highest_, all.rbegin()->first);
  }
  columns_.clear();
  timed_steps_.clear();
  return batch;
}

}  // namespace stepladder
