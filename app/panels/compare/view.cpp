#include "app/panels/compare/view.h"

#include <algorithm>

namespace stepladder {

bool HiddenLines::any_of(const std::vector<ComparedLine>& lines) const {
  return std::any_of(lines.begin(), lines.end(), [&](const ComparedLine& line) { return has(line.id()); });
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
  const bool is_alone = !has(line) && std::all_of(others.begin(), others.end(), [&](RunId id) { return has(id); });
  hidden_ = is_alone ? std::set<RunId>{} : std::move(others);
  clicked_ = 0;
}

void HiddenLines::double_click(RunId line, const std::vector<ComparedLine>& lines) {
  if (clicked_ == line) hidden_ = before_click_;
  show_only(line, lines);
}

Quantity CompareView::first_metric() const {
  const std::vector<Quantity>& computed = shown.curves.options.metrics;
  const std::vector<GridChart>& charts = layouts.now.charts;
  const auto is_computed = [&](const GridChart& chart) {
    return std::find(computed.begin(), computed.end(), chart.quantity) != computed.end();
  };
  const auto first = std::find_if(charts.begin(), charts.end(), is_computed);
  return first != charts.end() ? first->quantity : computed.empty() ? Quantity::loss : computed.front();
}

}  // namespace stepladder
