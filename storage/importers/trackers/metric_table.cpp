// Builds step records from whole columns of a run's metrics: choose one column for each role, join by step, derive step
// times and tokens. Derived values are noted for the user. LoggedSteps is the incremental counterpart and must choose
// by the same rules.
#include "storage/importers/trackers/metric_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "storage/importers/trackers/metric_values.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_shown_name = 60;

// A step's values, before its speed is derived.
struct Draft {
  StepRecord record;
  double loss_at = missing;                  // without any loss: of the metric that counts the steps
  std::array<double, metric_roles> speed{};  // by role, in the role's unit
};

// Differences of wall times between steps that have a loss, each divided by the steps between.
struct WallTimes {
  std::vector<std::optional<double>> dt_ms;  // one for each draft
  bool plausible = false;
  double median_ms = missing;
  std::int64_t stride = 1;  // the usual distance of two logged steps
};

WallTimes wall_times(const std::vector<Draft>& drafts) {
  WallTimes times;
  times.dt_ms.resize(drafts.size());
  std::vector<double> good;
  std::vector<double> strides;
  std::size_t pairs = 0;
  const Draft* before = nullptr;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const Draft& draft = drafts[i];
    if (is_missing(draft.loss_at)) continue;
    if (before && draft.record.step > before->record.step) {
      ++pairs;
      const double steps = static_cast<double>(draft.record.step - before->record.step);
      const double ms = (draft.loss_at - before->loss_at) * 1000 / steps;
      strides.push_back(steps);
      if (ms > 0 && std::isfinite(ms)) {
        times.dt_ms[i] = ms;
        good.push_back(ms);
      }
    }
    before = &draft;
  }
  // Numbers that were sent together, long after the steps, share one time or are microseconds apart.
  times.median_ms = middle_of(good);
  times.plausible = good.size() >= 3 && good.size() * 10 >= pairs * 9 && times.median_ms >= 0.05;
  if (!strides.empty()) times.stride = static_cast<std::int64_t>(middle_of(strides));
  return times;
}

std::vector<double> values_of(const std::vector<Draft>& drafts, MetricRole role) {
  std::vector<double> values;
  for (const Draft& draft : drafts)
    if (const double value = draft.speed[static_cast<std::size_t>(role)]; !is_missing(value)) values.push_back(value);
  return values;
}

// A time without a unit is in seconds or in milliseconds, whichever is near the wall clock; 0 if neither is.
double unit_from_wall_clock(double typical, const WallTimes& wall) {
  if (!wall.plausible) return 0;
  const double unit = unit_near(typical, wall.median_ms);
  return is_missing(unit) ? 0 : unit;
}

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
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
    found = columns_.emplace(std::string(name), Column{.meaning = meaning_of_metric(name)}).first;
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
  return std::all_of(columns_.begin(), columns_.end(), [](const auto& entry) { return entry.second.points.empty(); });
}

double MetricTable::first_at() const {
  return first_at_;
}

double MetricTable::last_at() const {
  return last_at_;
}

// Chooses one of several metrics with the same role: the one with the most points, except epochs' means and test sets.
// If no metric has a role, that of the most points counts the steps, in the place of `none`.
std::array<MetricTable::Column*, metric_roles> MetricTable::choose(std::vector<std::string>& notes) {
  std::array<Column*, metric_roles> chosen{};
  const auto better = [](const Column& a, const Column& b) {
    return is_better({a.points.size(), a.meaning.second_rate}, {b.points.size(), b.meaning.second_rate});
  };
  for (auto& [name, candidate] : columns_) {
    if (candidate.points.empty()) continue;
    Column*& place = chosen[static_cast<std::size_t>(candidate.meaning.role)];
    if (!place || better(candidate, *place)) place = &candidate;
  }
  Column*& without_role = chosen[static_cast<std::size_t>(MetricRole::none)];
  std::string taken;
  for (Column* const each : chosen) {
    if (!each || each->meaning.role == MetricRole::none) continue;
    taken += (taken.empty() ? "" : ", ") + std::string("\"") + short_list({each->name}) + "\" is the " +
             std::string(to_string(each->meaning.role));
  }
  if (!taken.empty()) {
    notes.push_back(taken);
    without_role = nullptr;
  }
  std::vector<std::string> others;
  for (const auto& [name, column] : columns_)
    if (!column.points.empty() && chosen[static_cast<std::size_t>(column.meaning.role)] != &column)
      others.push_back(name);
  if (!others.empty())
    notes.push_back("kept " + plural(std::ssize(others), "more metric: ", "more metrics: ") + short_list(others));
  return chosen;
}

std::vector<MetricTable::LoggedMetric> MetricTable::take_metrics(const std::array<Column*, metric_roles>& chosen) {
  std::vector<LoggedMetric> metrics;
  for (auto& [name, column] : columns_) {
    if (column.points.empty()) continue;
    LoggedMetric& logged = metrics.emplace_back();
    const MetricRole role = column.meaning.role;
    logged.metric = logged_metric(name, role, chosen[static_cast<std::size_t>(role)] == &column);
    if (logged.metric.field.empty()) logged.points = std::move(column.points);
  }
  return metrics;
}

namespace {

// Joins the steps of several columns. A step that a column holds several times (a resumed run) makes several records;
// the last one has the newest value of each column.
template <class Column>
std::vector<Draft> merge(const std::array<Column*, metric_roles>& columns) {
  struct Cursor {
    Column* column;
    MetricRole role;
    std::size_t next = 0;
    std::size_t left = 0;  // how many more points belong to the next step

    void count_left() {
      const auto& points = column->points;
      left = 0;
      while (next + left + 1 < points.size() && points[next + left + 1].step == points[next].step) ++left;
    }
  };
  std::vector<Cursor> cursors;
  for (std::size_t role = 0; role < columns.size(); ++role) {
    if (!columns[role]) continue;
    auto& points = columns[role]->points;
    const auto by_step = [](const auto& a, const auto& b) { return a.step < b.step; };
    if (!std::is_sorted(points.begin(), points.end(), by_step)) std::stable_sort(points.begin(), points.end(), by_step);
    cursors.push_back({columns[role], static_cast<MetricRole>(role)});
    cursors.back().count_left();
  }

  std::vector<Draft> drafts;
  while (true) {
    const Cursor* first = nullptr;
    for (const Cursor& cursor : cursors) {
      if (cursor.next == cursor.column->points.size()) continue;
      const std::int64_t step = cursor.column->points[cursor.next].step;
      if (!first || step < first->column->points[first->next].step ||
          (step == first->column->points[first->next].step && cursor.left > first->left))
        first = &cursor;
    }
    if (!first) return drafts;
    const std::int64_t step = first->column->points[first->next].step;
    const std::size_t left = first->left;
    Draft& draft = drafts.emplace_back();
    draft.record.step = step;
    draft.speed.fill(missing);
    for (Cursor& cursor : cursors) {
      if (cursor.next == cursor.column->points.size()) continue;
      const auto& point = cursor.column->points[cursor.next];
      if (point.step != step || cursor.left != left) continue;
      if (double* place = field_of(draft.record, cursor.role))
        *place = point.value;
      else
        draft.speed[static_cast<std::size_t>(cursor.role)] =
            point.value * (cursor.column->meaning.scale == 0 ? 1 : cursor.column->meaning.scale);
      if (cursor.role == MetricRole::loss || cursor.role == MetricRole::none) draft.loss_at = point.at;
      if (is_missing(draft.record.at)) draft.record.at = point.at;
      ++cursor.next;
      if (cursor.left > 0)
        --cursor.left;
      else if (cursor.next < cursor.column->points.size())
        cursor.count_left();
    }
  }
}

double speed(const Draft& draft, MetricRole role) {
  return draft.speed[static_cast<std::size_t>(role)];
}

// Takes dt from the best source: a step time, steps per second, or the wall clock. Notes a derived source.
void set_step_times(std::vector<Draft>& drafts, std::string_view time_name, bool unit_known,
                    std::vector<std::string>& notes) {
  const WallTimes wall = wall_times(drafts);
  double scale = 1;
  const double typical = middle_of(values_of(drafts, MetricRole::step_time));
  if (!is_missing(typical) && !unit_known) {
    scale = unit_from_wall_clock(typical, wall);
    const std::string name = "\"" + short_list({std::string(time_name)}) + "\"";
    if (scale == 0)
      notes.push_back(name + " gives no step times: its name has no unit, and the wall clock doesn't show whether " +
                      shown(typical) + " are seconds or milliseconds");
    else
      notes.push_back(name + " is in " + (scale == 1 ? "milliseconds" : "seconds") + ": its median is " +
                      shown(typical) + ", and the wall clock moved " + shown(wall.median_ms) + " ms a step");
  }
  std::size_t measured = 0;
  for (Draft& draft : drafts) {
    const double time = speed(draft, MetricRole::step_time);
    const double rate = speed(draft, MetricRole::steps_per_s);
    if (!is_missing(time) && scale != 0)
      draft.record.dt_ms = as_logged(time * scale);
    else if (!is_missing(rate) && rate > 0)
      draft.record.dt_ms = as_logged(1000 / rate);
    if (!is_missing(draft.record.dt_ms)) ++measured;
  }
  if (measured > 0 || !wall.plausible) return;
  std::size_t derived = 0;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (!wall.dt_ms[i]) continue;
    drafts[i].record.dt_ms = *wall.dt_ms[i];
    ++derived;
  }
  std::string note = "the store holds no step times: those of " + plural(derived, "step") +
                     " are differences of the wall times at which values were logged, so they include everything that "
                     "the program did in between";
  if (wall.stride > 1) note += "; one was logged every " + std::to_string(wall.stride) + " steps, dt is their mean";
  notes.push_back(note);
}

void set_tokens(std::vector<Draft>& drafts, std::int64_t tokens_per_sample, bool dt_is_derived,
                std::vector<std::string>& notes) {
  bool from_samples = false;
  bool rate_unused = false;
  const Draft* before = nullptr;
  for (Draft& draft : drafts) {
    double tokens = speed(draft, MetricRole::tokens_per_step);
    const double seen = speed(draft, MetricRole::tokens_seen);
    if (is_missing(tokens) && !is_missing(seen)) {
      if (before && draft.record.step > before->record.step)
        tokens = (seen - speed(*before, MetricRole::tokens_seen)) /
                 static_cast<double>(draft.record.step - before->record.step);
      else if (!before && draft.record.step > 0)
        tokens = seen / static_cast<double>(draft.record.step);
      before = &draft;
    }
    const double rate = speed(draft, MetricRole::tokens_per_s);
    const double samples = speed(draft, MetricRole::samples_per_s);
    const bool has_rate = !is_missing(rate) || !is_missing(samples);
    if (is_missing(tokens) && has_rate && !is_missing(draft.record.dt_ms) && !dt_is_derived) {
      if (!is_missing(rate)) {
        tokens = rate * draft.record.dt_ms / 1000;
      } else if (tokens_per_sample > 0) {
        tokens = samples * draft.record.dt_ms / 1000 * static_cast<double>(tokens_per_sample);
        from_samples = true;
      }
    }
    if (has_rate && is_missing(tokens)) rate_unused = true;
    if (usable_count(tokens)) draft.record.tokens = std::llround(tokens);
  }
  if (from_samples)
    notes.push_back("tokens are samples per second x dt x " + std::to_string(tokens_per_sample) +
                    " tokens a sample, the sequence length in the run's configuration");
  if (rate_unused)
    notes.push_back(
        "the throughput of some steps isn't used: without a measured step time (or, for samples, a sequence length) it "
        "does not give the tokens per step");
}

}  // namespace

MetricTable::Steps MetricTable::take_steps(std::int64_t tokens_per_sample) {
  Steps steps;
  const auto chosen = choose(steps.notes);
  if (bad_steps_ > 0)
    steps.notes.push_back(plural(bad_steps_, "point was", "points were") +
                          " left out: the step is negative or too large");
  std::vector<Draft> drafts = merge(chosen);
  const Column* time = chosen[static_cast<std::size_t>(MetricRole::step_time)];
  set_step_times(drafts, time ? time->name : "", !time || time->meaning.scale != 0, steps.notes);
  const bool dt_is_derived = !time && !chosen[static_cast<std::size_t>(MetricRole::steps_per_s)];
  set_tokens(drafts, tokens_per_sample, dt_is_derived, steps.notes);

  steps.metrics = take_metrics(chosen);
  steps.records.reserve(drafts.size());
  std::size_t twice = 0;
  bool constant = true;
  for (const Draft& draft : drafts) {
    const StepRecord& record = draft.record;
    if (!steps.records.empty() && steps.records.back().step == record.step) ++twice;
    if (record.tokens > 0) {
      if (steps.tokens_per_step == 0) steps.tokens_per_step = record.tokens;
      constant = constant && steps.tokens_per_step == record.tokens;
    }
    steps.records.push_back(record);
  }
  if (!constant) steps.tokens_per_step = 0;
  if (twice > 0)
    steps.notes.push_back(plural(twice, "step was", "steps were") + " logged more than once; the newer count");
  *this = MetricTable{};
  return steps;
}

}  // namespace stepladder
