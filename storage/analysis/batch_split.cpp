// Separates a stage's gain from that of a bigger batch with the model t(B) = a + b B. A third run fixes the line;
// without one the result is a pair of bounds. The two factors always multiply to the whole speed-up.
#include "storage/analysis/batch_split.h"

#include <algorithm>

#include "storage/analysis/recipe_facts.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

bool is_known(const BatchPoint& point) {
  return point.tokens > 0 && point.dt_ms > 0;
}

BatchPoint point_of(const RunAndSummary& run) {
  return {run.run.id, static_cast<double>(run.run.tokens_per_step), run.summary.dt_ms_median};
}

// t(B) = a + b B through two runs.
struct Line {
  double a = 0;
  double b = 0;
  Line(const BatchPoint& p, const BatchPoint& q) : b((p.dt_ms - q.dt_ms) / (p.tokens - q.tokens)) {
    a = p.dt_ms - b * p.tokens;
  }
  double at(double tokens) const { return a + b * tokens; }
};

bool alike_but_for_batch(const Run& a, const Run& b) {
  if (a.device != b.device || a.hardware != b.hardware || a.precision != b.precision) return false;
  if (!a.recipe.empty() && !b.recipe.empty()) return same_recipe_but_batch(a, b);
  return a.stage == b.stage;
}

}  // namespace

std::optional<BatchSplit> split_gain(const BatchPoint& base, const BatchPoint& run,
                                     const std::optional<ThirdPoint>& third) {
  if (!is_known(base) || !is_known(run) || base.tokens == run.tokens) return std::nullopt;
  BatchSplit split{.tokens_ratio = run.tokens / base.tokens, .step_time_ratio = run.dt_ms / base.dt_ms};
  const double speedup = split.tokens_ratio / split.step_time_ratio;
  split.sentence = grouped(run.tokens) + " / " + grouped(base.tokens) +
                   " tokens a step = " + figure_text(split.tokens_ratio) + ", " + figure_text(run.dt_ms) + " / " +
                   figure_text(base.dt_ms) + " ms = " + figure_text(split.step_time_ratio) + ": " +
                   factor_text(speedup) + " in all. ";

  if (third && is_known(third->point)) {
    const bool like_run = third->is == ThirdIs::like_run;
    const BatchPoint& partner = like_run ? run : base;
    const double wanted = like_run ? base.tokens : run.tokens;
    if (third->point.tokens != partner.tokens) {
      const Line line(partner, third->point);
      const double predicted = line.at(wanted);
      if (predicted > 0) {
        const double equal = like_run ? base.dt_ms / predicted : predicted / run.dt_ms;
        split.third = third->point.run;
        split.equal_batch_low = split.equal_batch_high = equal;
        split.bigger_batch_low = split.bigger_batch_high = speedup / equal;
        const std::string id = std::to_string(third->point.run);
        split.sentence +=
            (third->point.tokens == wanted
                 ? "Run " + id + " is the same at " + grouped(wanted) + " tokens: "
                 : "By run " + id + ", t = " + figure_text(line.a) + " ms + " + figure_text(1000 * line.b) +
                       " us per token, at " + grouped(wanted) + " tokens: ") +
            figure_text(predicted) + " ms. So " +
            (like_run ? figure_text(base.dt_ms) + " / " + figure_text(predicted)
                      : figure_text(predicted) + " / " + figure_text(run.dt_ms)) +
            " = " + factor_text(equal) + " at equal batch, and " + factor_text(speedup / equal) + " by the batch.";
        return split;
      }
    }
  }
  const double if_fixed = 1 / split.step_time_ratio;
  split.equal_batch_low = std::min(if_fixed, speedup);
  split.equal_batch_high = std::max(if_fixed, speedup);
  split.bigger_batch_low = speedup / split.equal_batch_high;
  split.bigger_batch_high = speedup / split.equal_batch_low;
  split.sentence += "Two runs can't separate the change from the batch: at equal batch between " +
                    factor_text(if_fixed) + " (if a step's time did not depend on its batch) and " +
                    factor_text(speedup) +
                    " (if it were proportional), the rest by the batch. A run of either at the other's batch would.";
  return split;
}

std::optional<ThirdPoint> third_point(const RunAndSummary& base, const RunAndSummary& run,
                                      std::span<const RunAndSummary> others) {
  std::optional<ThirdPoint> found;
  const auto consider = [&](const RunAndSummary& other, const RunAndSummary& partner, const RunAndSummary& opposite,
                            ThirdIs is) {
    if (!other.run.ladder || (other.run.ladder != base.run.ladder && other.run.ladder != run.run.ladder)) return;
    if (other.run.tokens_per_step == partner.run.tokens_per_step || !is_known(point_of(other))) return;
    if (!alike_but_for_batch(other.run, partner.run)) return;
    const auto fits = [&](double tokens) { return tokens == static_cast<double>(opposite.run.tokens_per_step); };
    const BatchPoint point = point_of(other);
    if (!found || fits(point.tokens)) found = ThirdPoint{point, is};
  };
  for (const RunAndSummary& other : others) {
    if (other.run.id == base.run.id || other.run.id == run.run.id) continue;
    consider(other, base, run, ThirdIs::like_base);
    consider(other, run, base, ThirdIs::like_run);
  }
  return found;
}

}  // namespace stepladder
