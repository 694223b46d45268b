// The Compare view's table: each line's speed and loss against the baseline, and its first metric in numbers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/curves/curves.h"
#include "app/desktop/commands.h"
#include "app/desktop/widgets.h"
#include "app/panels/compare/view.h"

namespace stepladder {

// One row, ready to be drawn.
struct ComparedNumbers {
  std::string tokens_per_s, factor, ci95;
  std::string verdict;  // of the speed
  Tone verdict_tone = Tone::neutral;
  std::optional<LossParity> loss;        // unset for the baseline, and while it is being computed
  std::string mean, min, max, last;      // over the visible steps
  std::string at_cursors, between_them;  // the values at A and B, and their difference
};

// `judged` is null while it is being computed; `visible` are the statistics of the line's first metric over the zoom.
// Pure.
ComparedNumbers compared_numbers(const ComparedLine& line, bool is_base, const RungJudgement* judged,
                                 const RangeStatistics& visible, Quantity metric, const SharedX& x);

struct NumberColumn;

// UI thread.
class CompareTable {
 public:
  void forget() { visible_.clear(); }  // the curves have changed
  // A click on a row makes it the view's baseline, a double click opens its run.
  void draw(CompareView& view, Commands& commands);

 private:
  struct Visible {  // of a line's first metric between two x, as last computed
    double low = missing;
    double high = missing;
    RangeStatistics statistics;
  };

  const RangeStatistics& visible(const ComparedLine& line, const SharedX& x);
  void draw_row(CompareView& view, std::size_t i, const std::vector<const NumberColumn*>& columns, Commands& commands);

  std::map<RunId, Visible> visible_;
};

}  // namespace stepladder
