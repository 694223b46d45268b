#include "app/panels/compare/view.h"

#include <algorithm>

namespace stepladder {

bool HiddenLines::any_of(const std::vector<ComparedLine>& lines) const {
  return std::ranges::any_of(lines, [&](const ComparedLine& line) { return has(line.id()); });
}

void HiddenLines::click(RunId line) {
  before_click_ = hidden_;
  clicked_ = line;
  if (hidden_.erase(line) == 0) hidden_.insert(line);
}

void HiddenLines::show_only(RunId line, const std::vector<ComparedLine>& lines) {
  std::set<RunId> others;
  for (const ComparedLine& other : lines) {
    if (other.id() != line) others.insert(other.id());
  }
  const bool is_alone = !has(line) && std::ranges::all_of(others, [&](RunId id) { return has(id); });
  hidden_ = is_alone ? std::set<RunId>{} : std::move(others);
  clicked_ = 0;
}

void HiddenLines::double_click(RunId line, const std::vector<ComparedLine>& lines) {
  if (clicked_ == line) hidden_ = before_click_;
  show_only(line, lines);
}

void SeenMetrics::begin_frame() {
  before_ = std::exchange(now_, {});
}

void SeenMetrics::see(Quantity metric) {
  now_.push_back(metric);
  if (!seen_.empty() && seen_.back() == metric) return;
  std::erase(seen_, metric);
  seen_.push_back(metric);
  if (seen_.size() > most) seen_.erase(seen_.begin());
}

std::vector<Quantity> SeenMetrics::of(const std::vector<Quantity>& wanted) const {
  if (wanted.size() <= most) return wanted;
  std::vector<Quantity> found;
  for (const Quantity metric : wanted)
    if (std::ranges::find(seen_, metric) != seen_.end()) found.push_back(metric);
  return found;
}

Quantity CompareView::first_metric() const {
  const std::vector<Quantity>& computed = shown.curves.options.metrics;
  const std::vector<GridChart>& charts = grid.charts;
  const auto is_computed = [&](const GridChart& chart) {
    return std::ranges::find(computed, drawn(chart.quantity)) != computed.end();
  };
  const auto first = std::ranges::find_if(charts, is_computed);
  return first != charts.end() ? drawn(first->quantity) : computed.empty() ? Quantity::loss : computed.front();
}

}  // namespace stepladder
