// The figures behind `doctor --noise`: robust within a run, plain between runs, since an outlier among runs is what a
// comparison meets.
#include "storage/analysis/verdict/machine_noise.h"

#include <cmath>
#include <vector>

#include "storage/analysis/plausibility.h"

namespace stepladder {
namespace {

constexpr double quartiles_of_normal = 1.349;  // their distance, in standard deviations
constexpr std::size_t fewest_for_drift = 4;

void fit_drift(MachineNoise& noise, const std::vector<double>& at, const std::vector<double>& logs) {
  const auto n = static_cast<double>(at.size());
  double mean_at = 0, mean_log = 0, squares = 0, products = 0;
  for (std::size_t i = 0; i < at.size(); ++i) mean_at += at[i] / n, mean_log += logs[i] / n;
  for (std::size_t i = 0; i < at.size(); ++i) {
    squares += (at[i] - mean_at) * (at[i] - mean_at);
    products += (at[i] - mean_at) * (logs[i] - mean_log);
  }
  if (!(squares > 0)) return;
  const double slope = products / squares;
  double residual = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double off = logs[i] - mean_log - slope * (at[i] - mean_at);
    residual += off * off;
  }
  const double span = at.back() - at.front();
  const double half = t_critical(n - 2) * std::sqrt(residual / (n - 2) / squares) * span;
  noise.drift = std::expm1(slope * span);
  noise.drift_ci95 = {std::expm1(slope * span - half), std::expm1(slope * span + half)};
}

}  // namespace

MachineNoise noise_of(std::span<const RunAndSummary> runs) {
  MachineNoise noise;
  std::vector<double> figures, logs, at, within;
  for (const auto& [run, summary] : runs) {
    const double median = summary.dt_ms_median;
    if (run.status != RunStatus::finished || !(median > 0)) continue;
    ++noise.runs;
    if (is_disturbed(summary)) ++noise.disturbed;
    figures.push_back(median);
    logs.push_back(std::log(median));
    at.push_back(run.started_at);
    within.push_back((summary.dt_ms_p75 - summary.dt_ms_p25) / quartiles_of_normal / median);
    noise.seconds = run.ended_at - at.front();
  }
  noise.within = median_of(within);
  noise.between = spread_of(figures);
  noise.between_ci95 = deviation_interval(noise.between);
  if (noise.runs >= fewest_for_drift) fit_drift(noise, at, logs);
  return noise;
}

}  // namespace stepladder
