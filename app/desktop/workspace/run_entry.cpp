// A run with the loaded part of its steps, as panels and plots need it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "app/desktop/workspace.h"
#include "storage/record_fields.h"

namespace stepladder {

std::span<const double> RunEntry::values(Quantity quantity) const {
  const QuantityFacts* const field = facts_of(quantity);
  if (!field) return {};  // metrics are read as overviews
  return field->of_series ? (*series_).*field->of_series : tokens_per_s;
}

const MinMaxPyramid& RunEntry::levels(Quantity quantity) const {
  MinMaxPyramid& levels = levels_[static_cast<std::size_t>(quantity)];
  levels.follow(steps, values(quantity));
  return levels;
}

void RunEntry::set_series(Series read) {
  series_ = std::make_shared<Series>(std::move(read));
  ++rewritten;
  loaded = true;
  if (!series_->empty()) last_step_at = series_->at.back();
  steps.clear();
  tokens_per_s.clear();
  levels_ = {};
  for (std::size_t i = 0; i < series_->size(); ++i) {
    steps.push_back(static_cast<double>(series_->step[i]));
    tokens_per_s.push_back(series_->tokens_per_s(i));
  }
}

void RunEntry::append(const StepRecord& record) {
  const bool is_next = series_->empty() || record.step > series_->step.back();
  series_->append(record);
  last_step_at = record.at;
  if (!is_next) return set_series(std::move(*series_));  // a resumed run's step counts anew
  steps.push_back(static_cast<double>(record.step));
  tokens_per_s.push_back(series_->tokens_per_s(series_->size() - 1));
}

void RunEntry::replace_steps(const Series& read) {
  if (read.empty()) return;
  const std::vector<std::int64_t>& known = series_->step;
  const auto first = std::ranges::lower_bound(known, read.step.front()) - known.begin();
  const auto end = std::ranges::upper_bound(known, read.step.back()) - known.begin();
  bool is_same = end - first == std::ssize(read.step);
  for_each_field(series_columns, [&](const auto& column) {
    const auto& known_values = (*series_).*column.values;
    const auto& now = read.*column.values;
    is_same = is_same && std::memcmp(known_values.data() + first, now.data(), now.size() * sizeof now[0]) == 0;
  });
  if (is_same) return;
  for_each_field(series_columns, [&](const auto& column) {
    auto& values = (*series_).*column.values;
    const auto at = values.erase(values.begin() + first, values.begin() + end);
    values.insert(at, (read.*column.values).begin(), (read.*column.values).end());
  });
  set_series(std::move(*series_));
}

}  // namespace stepladder
