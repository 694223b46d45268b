// The Compare view's table: each line's speed and loss against the baseline, and its first metric in numbers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/curves/curves.h"
#include "app/desktop/widgets.h"
#include "app/panels/compare/view.h"

namespace stepladder {

// One row, ready to be drawn.
struct ComparedNumbers {
  std::string tokens_per_s, factor, ci95;
  bool rate_is_doubted = false;    // grey, as in Ladder and History
  bool factor_is_doubted = false;  // with its interval: also where the baseline is
  std::string verdict;             // of the speed
  Tone verdict_tone = Tone::neutral;
  std::optional<LossParity> loss;                        // unset for the baseline, and while it is being computed
  std::string mean, min, max, last;                      // over the visible steps
  std::string last_gap;                                  // from the baseline, at the last step that both have
  std::string at_cursors, between_them;                  // the values at A and B, and their difference
  std::string target_steps, target_time, target_tokens;  // to reach the target loss
};

// `judged` is null while it is being computed; `visible` are the statistics of `metric` over the zoom. Pure.
ComparedNumbers compared_numbers(const ComparedLine& line, bool is_base, const RungJudgement* judged,
                                 const RangeStatistics& visible, Quantity metric, const SharedX& x);

// Adds what the line needed to reach the target; `is_estimate` marks the numbers of runs too long to be read whole.
void set_target(ComparedNumbers& row, const TargetOfRuns& target, bool is_estimate);

// "+0.018 (1.02 x)"; "~" before it marks an estimate; "-" if there is none.
std::string last_gap_text(const LastGap& gap);

// "steps to val loss 3.2000": the loss that had to reach the target, and how.
std::string target_title(const ComparedTargets& targets);
std::string target_explanation(const ComparedTargets& targets);

struct NumberColumn;

// UI thread.
class CompareTable {
 public:
  void forget() { visible_.clear(); }  // the curves have changed
  // A click on a row hides or shows its line, a double click shows only it, the right button opens its menu.
  void draw(CompareView& view);

 private:
  struct Visible {  // of a line's metric between two x, as last computed
    Quantity metric = Quantity::loss;
    double low = missing;
    double high = missing;
    RangeStatistics statistics;
  };

  const RangeStatistics& visible(const ComparedLine& line, Quantity metric, const SharedX& x);
  void draw_row(CompareView& view, std::size_t i, const std::vector<const NumberColumn*>& columns);

  std::map<RunId, Visible> visible_;
};

}  // namespace stepladder
