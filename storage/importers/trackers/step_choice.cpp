// Chooses by evidence: names alone are not enough, since a script may log the settings "steps" or "max_iter", or an
// inner loop's "iter". A row without the chosen number belongs to the step of the row before.
#include "storage/importers/trackers/step_choice.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "storage/importers/journal/journal_reader.h"
#include "storage/importers/trackers/metric_names.h"

namespace stepladder {
namespace {

constexpr std::size_t rows_to_decide_by = 1000;
constexpr std::size_t most_kinds = 10'000;
constexpr double most_steps = 1e15;

bool is_count(double value) {
  return value >= 0 && value < most_steps && value == std::floor(value);
}

// Whether nearly all are; some rows of a store may be odd.
bool nearly(std::size_t some, std::size_t all) {
  return all > 0 && some * 10 >= all * 9;
}

// "*" stands for any text.
bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  return name.starts_with(pattern.substr(0, star)) && name.size() >= pattern.size() - 1 &&
         name.ends_with(pattern.substr(star + 1));
}

}  // namespace

double LoggedRow::value(std::string_view name) const {
  for (const auto& [key, number] : values)
    if (key == name) return number;
  return missing;
}

StepChoice::StepChoice(std::string given, const Json& state) : name_(std::move(given)), is_given_(!name_.empty()) {
  if (!state.is_object()) return;
  last_ = integer_in(state, "last");
  counted_ = integer_in(state, "counted", -1);
  ones_ = integer_in(state, "ones");
  jumps_ = integer_in(state, "jumps");
  has_step_ = last_ > 0;
  if (const auto found = state.find("defined"); found != state.end() && found->is_object())
    for (const auto& [pattern, step] : found->items())
      if (step.is_string()) defined_[pattern] = step.get<std::string>();
  if (const auto found = state.find("before"); found != state.end() && found->is_object())
    for (const auto& [name, value] : found->items())
      if (value.is_number()) before_[name] = value.get<double>();
  is_open_ = !is_given_ && integer_in(state, "open", 1) != 0;
  if (!is_given_) name_ = text_in(state, "name");
}

Json StepChoice::state() const {
  Json state = {{"name", name_}, {"open", is_open_ ? 1 : 0}, {"last", last_}, {"counted", counted_},
                {"ones", ones_}, {"jumps", jumps_}};
  if (!defined_.empty()) state["defined"] = defined_;
  if (is_open_ && !before_.empty()) state["before"] = before_;
  return state;
}

void StepChoice::add(LoggedRow row, MetricTable& table) {
  if (counted_ >= 0 && row.counted > counted_) ++(row.counted == counted_ + 1 ? ones_ : jumps_);
  counted_ = row.counted;
  if (!is_open_) return pass(row, table);
  waiting_.push_back(std::move(row));
  if (waiting_.size() >= rows_to_decide_by) flush(table);
}

StepChoice::Kind StepChoice::kind_of(const std::string& name) const {
  const auto known = kinds_.find(name);
  if (known != kinds_.end()) return known->second;
  const Kind kind{meaning_of_metric(name).role == MetricRole::loss, rank_as_step(name)};
  if (kinds_.size() < most_kinds) kinds_.emplace(name, kind);
  return kind;
}

bool StepChoice::logs_loss(const LoggedRow& row) const {
  return std::ranges::any_of(row.values, [this](const auto& each) { return kind_of(each.first).is_loss; });
}

void StepChoice::flush(MetricTable& table) {
  if (is_open_ && !waiting_.empty()) decide();
  for (const LoggedRow& row : std::exchange(waiting_, {})) pass(row, table);
}

// The step that define_metric gives the training loss, or every metric.
std::string StepChoice::defined_step() const {
  for (const auto& [pattern, step] : defined_) {
    if (pattern == "*") return step;
    for (const LoggedRow& row : waiting_)
      for (const auto& [name, value] : row.values)
        if (matches(pattern, name) && kind_of(name).is_loss) return step;
  }
  return {};
}

// Whether the number is whole, grows, and is logged with the losses, or with most rows if there are none.
bool StepChoice::is_step(std::string_view name) const {
  std::size_t with = 0, losses = before_.empty() ? 0 : 1, with_loss = 0, fallen = 0, grown = 0;
  double first = missing, last = missing;
  bool starts_over = false;  // an inner loop's counter
  if (const auto found = before_.find(name); found != before_.end()) {
    first = last = found->second;
    with = with_loss = 1;
  }
  for (const LoggedRow& row : waiting_) {
    const double value = row.value(name);
    const bool has_loss = logs_loss(row);
    losses += has_loss ? 1 : 0;
    if (is_missing(value)) continue;
    if (!is_count(value)) return false;
    with_loss += has_loss ? 1 : 0;
    ++with;
    fallen += value < last ? 1 : 0;
    starts_over |= value < last && value <= first;
    grown += value > last ? 1 : 0;
    last = value;
    if (is_missing(first)) first = value;
  }
  if (grown == 0 && kind_of(std::string(name)).rank == 1) return false;  // "steps" is more likely a setting
  if (with == 0 || starts_over || !nearly(with - fallen, with)) return false;
  if (with > 1 && grown == 0) return false;  // a setting
  return losses > 0 ? nearly(with_loss, losses) : with * 2 >= waiting_.size();
}

void StepChoice::decide() {
  if (is_given_) {
    is_open_ = false;
    return;
  }
  const std::string defined = defined_step();
  is_defined_ = !defined.empty() && is_step(defined);
  name_ = is_defined_ ? defined : "";
  int best = 0;
  bool has_loss = false;
  std::set<std::string_view> seen;
  for (const LoggedRow& row : waiting_)
    for (const auto& [name, value] : row.values) {
      if (!seen.insert(name).second) continue;
      const Kind kind = kind_of(name);
      has_loss |= kind.is_loss;
      if (is_defined_ || !counts_calls() || kind.rank <= best || !is_step(name)) continue;
      best = kind.rank;
      name_ = name;
    }
  const bool agree = best > 0 && std::ranges::all_of(waiting_, [this](const LoggedRow& row) {
                       const double value = row.value(name_);
                       return is_missing(value) || value == static_cast<double>(row.counted);
                     });
  if (agree) name_.clear();  // both are the step so far
  is_open_ = name_.empty() && (!has_loss || agree);
  // One row shows no growth: the next piece of a store decides again.
  std::size_t losses = before_.empty() ? 0 : 1;
  const LoggedRow* last = nullptr;
  for (const LoggedRow& row : waiting_) {
    if (!logs_loss(row)) continue;
    ++losses;
    last = &row;
  }
  is_open_ |= losses < 2;
  if (!is_open_ || !last) return;
  before_.clear();
  for (const auto& [name, value] : last->values)
    if ((kind_of(name).rank > 0 || name == defined) && is_count(value)) before_.emplace(name, value);
}

void StepChoice::pass(const LoggedRow& row, MetricTable& table) {
  std::int64_t step = row.counted;
  if (!name_.empty()) {
    double logged = row.value(name_);
    for (std::size_t i = 0; i < row.values.size() && is_missing(logged); ++i)  // "val/step"
      if (kind_of(row.values[i].first).rank < 0 && is_count(row.values[i].second)) logged = row.values[i].second;
    if (is_count(logged)) {
      last_ = static_cast<std::int64_t>(logged);
      has_step_ = true;
    }
    if (has_step_ || !is_given_) step = last_;
  }
  // A step that is named as one and equals the store's is no metric, whether or not it has been chosen yet.
  for (const auto& [name, value] : row.values)
    if (name != name_ && (value != static_cast<double>(step) || kind_of(name).rank <= 1))
      table.add(name, step, value, row.at);
}

std::string StepChoice::note() const {
  if (is_given_ && !has_step_)
    return "no call of log() has the chosen step key \"" + name_ + "\", so the store's own step counts";
  if (is_given_) return "steps are the logged \"" + name_ + "\", as chosen";
  if (is_defined_) return "steps are the logged \"" + name_ + "\", as define_metric says";
  if (!name_.empty())
    return "steps are the logged \"" + name_ +
           "\": the store's own step counts calls of log(); another step key can be chosen";
  if (!counts_calls() || ones_ == 0) return {};
  return "each call of log() is a step, since no logged number is named as one; a step key can be chosen";
}

}  // namespace stepladder
