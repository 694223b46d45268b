// Spread between runs: the table of what was published, and the repeats of this project by their hardware. Estimates
// are kept as squares and degrees of freedom, so that pooling them is addition.
#include "storage/analysis/verdict/run_spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <ranges>

#include "storage/analysis/means/student_t.h"
#include "storage/analysis/plausibility.h"
#include "storage/by_enum.h"
#include "storage/csv.h"

namespace stepladder {
namespace {

constexpr std::string_view columns = "quantity,kind,sd,freedom,source";

// Unknown hardware may be any: only the runs of one ladder share it.
std::string hardware_of(const Run& run) {
  if (!run.hardware.empty()) return run.device + "," + run.hardware;
  return run.ladder ? "ladder," + std::to_string(*run.ladder) : "";
}

// Servers keep their cards' clocks; the published repeats are of these. So are most logs that name no card.
bool is_of_a_server(const std::string& gpu) {
  if (gpu.empty()) return true;
  constexpr std::array names{"A100", "A800", "H100", "H800", "H200", "B200", "B300", "MI300"};
  return std::ranges::any_of(names, [&](const char* name) { return gpu.find(name) != gpu.npos; });
}

std::string_view kind_of(const Run& run, const Summary& summary) {
  constexpr double short_ms = 20;  // below it, what starts the kernels may set the pace, not the GPU
  if (run.device == "cpu")
    return summary.watched_steps > 0 && !is_disturbed(summary) ? "step-time,cpu-quiet" : "step-time,cpu";
  if (summary.dt_ms_median < short_ms) return "step-time,gpu-short";
  return is_of_a_server(run.hardware) ? "step-time,gpu-server" : "step-time,gpu";
}

}  // namespace

std::string_view to_string(SpreadFrom from) {
  return by_enum<SpreadFrom, std::string_view>("", "prior", "project", "repeats")[from];
}

RunSpread pooled(const RunSpread& known, const RunSpread& more) {
  if (!more.known()) return known;
  return {known.squares + more.squares, known.freedom + more.freedom, more.from};
}

RunSpread spread_of(std::span<const double> figures) {
  std::vector<double> logs;
  for (const double figure : figures)
    if (figure > 0) logs.push_back(std::log(figure));
  return spread_of_repeats(logs, 0);
}

RunSpread spread_of_repeats(std::span<const double> figures, double of_values) {
  if (figures.size() < 2) return {};
  const double mean = std::accumulate(figures.begin(), figures.end(), 0.0) / static_cast<double>(figures.size());
  RunSpread spread{.freedom = static_cast<double>(figures.size() - 1), .from = SpreadFrom::repeats};
  for (const double x : figures) spread.squares += (x - mean) * (x - mean);
  const double rounding = 1e-12 * std::max(std::abs(of_values), std::abs(mean));
  return spread.squares > rounding * rounding * spread.freedom ? spread : RunSpread{};
}

Interval deviation_interval(const RunSpread& spread) {
  if (!spread.known()) return {};
  const auto end = [&](double p) {
    const double part = 2 / (9 * spread.freedom);
    const double root = 1 - part + normal_quantile(p) * std::sqrt(part);
    return std::sqrt(spread.squares / (spread.freedom * std::pow(std::max(root, 0.1), 3)));
  };
  return {end(0.975), end(0.025)};
}

std::int64_t more_runs_for(double distance, std::size_t have,
                           const std::function<double(std::size_t runs)>& half_width) {
  constexpr std::size_t most = 1000;
  const auto numbers = std::views::iota(std::size_t{2}, most + 1);
  const auto enough = std::ranges::partition_point(numbers, [&](std::size_t n) { return half_width(n) > distance; });
  return enough == numbers.end() ? 0 : std::max<std::int64_t>(std::int64_t(*enough) - std::int64_t(have), 1);
}

SpreadTable SpreadTable::read(const std::filesystem::path& file) {
  SpreadTable table;
  for (CsvFile csv(file, columns); csv.next();) {
    const auto sd = csv.number<double>(2);
    const auto freedom = csv.number<double>(3);
    if (!(sd > 0) || !(freedom > 0)) csv.refuse("has a deviation or degrees of freedom that are not positive");
    table.priors_[std::string(csv.text(0)) + "," + std::string(csv.text(1))] = {sd * sd * freedom, freedom,
                                                                                SpreadFrom::prior};
  }
  return table;
}

void SpreadTable::learn_from(std::span<const RunAndSummary> runs) {
  std::vector<std::pair<const Run*, const Summary*>> pointers;
  for (const RunAndSummary& each : runs) pointers.emplace_back(&each.run, &each.summary);
  learn_from(pointers);
}

void SpreadTable::learn_from(const std::vector<std::pair<const Run*, const Summary*>>& runs) {
  projects_.clear();
  std::map<std::pair<LadderId, int>, std::vector<std::pair<const Run*, const Summary*>>> rungs;
  for (const auto& [run, summary] : runs)
    if (run->ladder && run->status == RunStatus::finished && !is_disturbed(*summary))
      rungs[{*run->ladder, run->rung}].emplace_back(run, summary);
  for (const auto& [rung, repeats] : rungs) {
    const std::string hardware = hardware_of(*repeats.front().first);
    std::vector<double> figures;
    for (const auto& [run, summary] : repeats)
      if (hardware_of(*run) == hardware) figures.push_back(summary->dt_ms_median);
    RunSpread& known = projects_[hardware];
    known = pooled(known, spread_of(figures));
  }
}

RunSpread SpreadTable::step_time(const Run& run, const Summary& summary) const {
  const auto prior = priors_.find(kind_of(run, summary));
  RunSpread spread = prior == priors_.end() ? RunSpread{} : prior->second;
  const auto project = projects_.find(hardware_of(run));
  if (project == projects_.end() || !project->second.known()) return spread;
  RunSpread own = project->second;
  own.from = SpreadFrom::project;
  return pooled(spread, own);
}

RunSpread SpreadTable::loss(std::int64_t steps) const {
  const auto row = [&](std::string_view kind) {
    const auto found = priors_.find(kind);
    return found == priors_.end() ? RunSpread{} : found->second;
  };
  const RunSpread longest = row("loss,long-run");
  RunSpread shorter = row("loss,one-step");
  shorter.squares /= std::max<double>(1, static_cast<double>(steps));
  return !longest.known() || (shorter.known() && shorter.variance() > longest.variance()) ? shorter : longest;
}

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
