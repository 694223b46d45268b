// Turns batches of logged numbers into step records and metrics. Which metric is the loss, the step time and so on is
// chosen once and kept in `state`, so a restart gives the same records.
#include "storage/importers/trackers/logged_steps.h"

#include <cmath>
#include <utility>

#include "storage/importers/importer.h"
#include "storage/json_values.h"

namespace stepladder {
namespace {

// Rows that were logged closer together were sent in one go, long after their steps.
constexpr double together_s = 1e-3;

std::size_t index_of(MetricRole role) {
  return static_cast<std::size_t>(role);
}

bool ends_with_name(std::string_view logged, std::string_view name) {
  return logged.ends_with(name) && (logged.size() == name.size() || logged[logged.size() - name.size() - 1] == '/');
}

// "train/train_steps_per_second": Hugging Face's Trainer logs it with "train_runtime", of the training so far.
bool sums_up(std::string_view logged) {
  const std::string_view name = logged.substr(logged.find_last_of('/') + 1);
  return name.starts_with("train_") && name.ends_with("_per_second");
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
  sums_up_ = integer_in(from, "sums_up") != 0;
  tokens_ = integer_in(from, "tokens");
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
  if (sums_up_) to["sums_up"] = 1;
  if (tokens_ != 0) to["tokens"] = tokens_;
  to["last_step"] = last_step_;
  put("last_at", last_at_);
  to["seen_step"] = seen_step_;
  put("seen", seen_);
  to["lowest"] = lowest_;
  to["highest"] = highest_;
  return json_text(to);
}

bool LoggedSteps::is_good(std::int64_t step) {
  if (step >= 0 && step <= highest_logged_step) return true;
  ++bad_steps_;
  return false;
}

void LoggedSteps::add(std::string_view name, std::int64_t step, double value, double at) {
  if (!is_good(step)) return;
  auto found = columns_.find(name);
  if (found == columns_.end()) {
    refuse_more_metrics(columns_.size());
    found = columns_.emplace(std::string(name), std::vector<MetricPoint>()).first;
  }
  found->second.push_back({step, as_logged(value), at});
}

void LoggedSteps::add(const std::string& name, std::vector<MetricPoint> points) {
  std::vector<MetricPoint>& column = columns_[name];
  if (column.empty())
    column = std::move(points);
  else
    column.insert(column.end(), points.begin(), points.end());
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
  for (const auto& [name, points] : columns_) sums_up_ = sums_up_ || ends_with_name(name, "train_runtime");
  for (const auto& [name, points] : columns_) {
    MetricMeaning meaning = meaning_of_metric(name);
    if (sums_up_ && sums_up(name)) meaning = {};
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

// One for each step that has a value with a role.
LoggedSteps::Drafts LoggedSteps::empty_drafts() const {
  std::vector<std::int64_t> steps;
  for (const Timed& timed : timed_steps_) steps.push_back(timed.step);
  for (const std::string& name : chosen_)
    if (const auto found = columns_.find(name); !name.empty() && found != columns_.end())
      for (const MetricPoint& point : found->second) steps.push_back(point.step);
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  Drafts drafts(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    drafts[i].record.step = steps[i];
    drafts[i].speed.fill(missing);
  }
  return drafts;
}

LoggedSteps::Drafts LoggedSteps::drafts() {
  Drafts drafts = empty_drafts();
  std::size_t at_hand = 0;  // columns are mostly in the order of their steps
  const auto draft_of = [&](std::int64_t step, double at) -> Draft& {
    if (at_hand + 1 < drafts.size() && drafts[at_hand + 1].record.step == step) {
      ++at_hand;
    } else if (drafts[at_hand].record.step != step) {
      const auto found =
          std::lower_bound(drafts.begin(), drafts.end(), step,
                           [](const Draft& draft, std::int64_t sought) { return draft.record.step < sought; });
      at_hand = static_cast<std::size_t>(found - drafts.begin());
    }
    Draft& draft = drafts[at_hand];
    if (is_missing(draft.record.at)) draft.record.at = at;
    return draft;
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

// The time of each draft's step by the clock: differences of the times at which the steps were logged, over the steps
// between. Rows that were sent together share the time since the row before them. `missing`: not known.
std::vector<double> LoggedSteps::wall_times(const Drafts& drafts) {
  std::vector<double> walls(drafts.size(), missing);
  std::vector<std::size_t> counted;
  for (std::size_t i = 0; i < drafts.size(); ++i)
    if (!is_missing(drafts[i].counted_at)) counted.push_back(i);
  const auto at = [&](std::size_t i) { return drafts[counted[i]].counted_at; };
  const auto is_with_the_last = [&](std::size_t i) { return at(i) - at(i - 1) >= 0 && at(i) - at(i - 1) < together_s; };
  for (std::size_t begin = 0, end = 0; begin < counted.size(); begin = end) {
    for (end = begin + 1; end < counted.size() && is_with_the_last(end);) ++end;
    const std::int64_t step = drafts[counted[end - 1]].record.step;
    const double span = at(end - 1) - last_at_;
    if (last_step_ >= 0 && step > last_step_ && span >= together_s && std::isfinite(span)) {
      const double ms = span * 1000 / static_cast<double>(step - last_step_);
      // Many within a millisecond a step: a program wrote them down afterwards.
      if (end == begin + 1 || ms >= together_s * 1000)
        for (std::size_t i = begin; i < end; ++i) walls[counted[i]] = ms;
    }
    last_step_ = std::max(last_step_, step);
    last_at_ = at(end - 1);
  }
  return walls;
}

void LoggedSteps::set_times(Drafts& drafts, LoggedBatch& batch) {
  const std::string& time_name = chosen_[index_of(MetricRole::step_time)];
  const bool is_logged = !time_name.empty() || !chosen_[index_of(MetricRole::steps_per_s)].empty();
  batch.dt_is_derived = !timed_ && !is_logged;
  const std::vector<double> walls = wall_times(drafts);
  std::vector<double> known_walls, logged_times;
  for (const double wall : walls)
    if (!is_missing(wall)) known_walls.push_back(wall);
  for (const Draft& draft : drafts)
    if (const double time = draft.speed[index_of(MetricRole::step_time)]; !is_missing(time))
      logged_times.push_back(time);
  batch.wall_ms = middle_of(std::move(known_walls));
  batch.typical_time = middle_of(std::move(logged_times));
  if (!time_name.empty() && meaning_of_metric(time_name).scale != 0) unit_ms_ = 1;
  if (is_missing(unit_ms_)) unit_ms_ = unit_near(batch.typical_time, batch.wall_ms);
  batch.unit_ms = unit_ms_;
  if (timed_) return;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    Draft& draft = drafts[i];
    const double time = draft.speed[index_of(MetricRole::step_time)];
    const double rate = draft.speed[index_of(MetricRole::steps_per_s)];
    if (!is_missing(time) && !is_missing(unit_ms_))
      draft.record.dt_ms = as_logged(time * unit_ms_);
    else if (!is_missing(rate) && rate > 0)
      draft.record.dt_ms = as_logged(1000 / rate);
    else if (!is_logged)
      draft.record.dt_ms = walls[i];
  }
}

void LoggedSteps::set_tokens(Drafts& drafts, std::int64_t tokens_per_sample, LoggedBatch& batch) {
  for (Draft& draft : drafts) {
    StepRecord& record = draft.record;
    if (record.tokens > 0) continue;
    double tokens = draft.speed[index_of(MetricRole::tokens_per_step)];
    const double seen = draft.speed[index_of(MetricRole::tokens_seen)];
    if (!is_missing(seen)) {
      if (is_missing(tokens) && record.step > seen_step_) {
        const std::int64_t before = std::max<std::int64_t>(seen_step_, 0);
        if (record.step > before)
          tokens = (seen - (seen_step_ >= 0 ? seen_ : 0)) / static_cast<double>(record.step - before);
      }
      seen_step_ = record.step;
      seen_ = seen;
    }
    const double rate = draft.speed[index_of(MetricRole::tokens_per_s)];
    const double samples = draft.speed[index_of(MetricRole::samples_per_s)];
    if (is_missing(tokens) && !batch.dt_is_derived && !is_missing(record.dt_ms)) {
      if (!is_missing(rate)) {
        tokens = rate * record.dt_ms / 1000;
      } else if (!is_missing(samples) && tokens_per_sample > 0) {
        tokens = samples * record.dt_ms / 1000 * static_cast<double>(tokens_per_sample);
        batch.uses_samples = true;
      }
    }
    batch.has_unused_rate |= is_missing(tokens) && (!is_missing(rate) || !is_missing(samples));
    if (usable_count(tokens)) record.tokens = std::llround(tokens);
  }
  for (const Draft& draft : drafts)
    if (const std::int64_t tokens = draft.record.tokens; tokens > 0)
      tokens_ = tokens_ == 0 || tokens_ == tokens ? tokens : -1;
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
  LoggedBatch batch{.lowest_before = lowest_, .highest_before = highest_};
  set_times(all, batch);
  set_tokens(all, tokens_per_sample, batch);
  batch.steps.reserve(all.size());
  for (const Draft& draft : all) batch.steps.push_back(draft.record);
  batch.repeated = std::exchange(repeated_, {});
  batch.metrics = take_metrics();
  if (!all.empty()) {
    lowest_ = std::min(lowest_, all.front().record.step);
    highest_ = std::max(highest_, all.back().record.step);
  }
  columns_.clear();
  timed_steps_.clear();
  return batch;
}

}  // namespace stepladder
