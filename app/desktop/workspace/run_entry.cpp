// A run with the loaded part of its steps, as panels and plots need it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "app/desktop/workspace.h"

namespace stepladder {

std::span<const double> RunEntry::values(Quantity quantity) const {
  switch (quantity) {
    case Quantity::loss:
      return series_->loss;
    case Quantity::val_loss:
      return series_->val_loss;
    case Quantity::dt_ms:
      return series_->dt_ms;
    case Quantity::tokens_per_s:
      return tokens_per_s;
    case Quantity::lr:
      return series_->lr;
    case Quantity::grad_norm:
      return series_->grad_norm;
  }
  return {};  // metrics are read as overviews
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
  const auto first = std::lower_bound(known.begin(), known.end(), read.step.front()) - known.begin();
  const auto end = std::upper_bound(known.begin(), known.end(), read.step.back()) - known.begin();
  const auto for_columns = [&](auto use) {
    return use(series_->step, read.step) && use(series_->tokens, read.tokens) && use(series_->loss, read.loss) &&
           use(series_->val_loss, read.val_loss) && use(series_->dt_ms, read.dt_ms) && use(series_->lr, read.lr) &&
           use(series_->grad_norm, read.grad_norm) && use(series_->at, read.at);
  };
  const bool is_same = end - first == std::ssize(read.step) && for_columns([&](const auto& column, const auto& now) {
                         return std::memcmp(column.data() + first, now.data(), now.size() * sizeof now[0]) == 0;
                       });
  if (is_same) return;
  for_columns([&](auto& column, const auto& now) {
    const auto at = column.erase(column.begin() + first, column.begin() + end);
    column.insert(at, now.begin(), now.end());
    return true;
  });
  set_series(std::move(*series_));
}

}  // namespace stepladder
