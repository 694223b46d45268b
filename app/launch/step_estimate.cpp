// Own runs of the recipe first, arithmetic where there are none, scaled by how far it is off for other runs here.
#include "app/launch/step_estimate.h"

#include <algorithm>
#include <optional>

#include "app/text/format.h"
#include "engine/stage.h"
#include "storage/analysis/means/mean_test.h"
#include "storage/analysis/mfu.h"
#include "storage/analysis/recipe_facts.h"

namespace stepladder {
namespace {

// The share of the peak of dense products that untuned training of a small model reaches.
constexpr int usual_percent = 20;
// AdamW reads and writes weights, gradients and two moments: about 32 bytes a parameter in float32.
constexpr double update_bytes_per_parameter = 32;
constexpr double usual_bandwidth_gb_s = 10;  // of a CPU that the table doesn't know
constexpr double usual_core_ghz = 2.5;

// Two FLOPs for each float32 lane of two units and each clock.
double guessed_cpu_tflops(const DeviceReport& report) {
  const double lanes = report.cpu_capability.starts_with("AVX512") ? 16 : 8;
  return 2 * 2 * lanes * usual_core_ghz * std::max(1, report.cpu_cores) / 1000;
}

// By arithmetic.
StepEstimate guess_step(const Recipe& recipe, const DeviceReport& report, const HardwareTable& table) {
  if (recipe.vocab <= 0) return {};
  const std::string device = report.resolve(recipe.device);
  const std::string hardware = report.hardware(device);
  const auto params = static_cast<double>(parameter_count(recipe));
  const double flops = static_cast<double>(recipe.tokens_per_step()) *
                       flops_per_token(MfuConvention::palm, {.params = parameter_count(recipe),
                                                             .layers = recipe.layers,
                                                             .d_model = recipe.d_model,
                                                             .seq_len = recipe.seq});
  const Peak peak = table.peak(hardware, precision_name(recipe));
  const bool is_cpu = device == "cpu";
  if (!peak.known() && !is_cpu) return {};
  const double tflops = peak.known() ? peak.total_tflops() : guessed_cpu_tflops(report);
  const double bandwidth_gb_s = peak.hardware && !is_missing(peak.hardware->bandwidth_gb_s)
                                    ? peak.hardware->bandwidth_gb_s
                                    : usual_bandwidth_gb_s;
  const double used = usual_percent / 100.0 * tflops * 1e12;
  return {.seconds = flops / used + params * update_bytes_per_parameter / (bandwidth_gb_s * 1e9),
          .basis = (flops < 1e12 ? compact(flops / 1e9) + " GFLOP" : compact(flops / 1e12) + " TFLOP") + " a step at " +
                   std::to_string(usual_percent) + " % of a " + (peak.known() ? "" : "guessed ") + "peak of " +
                   compact(tflops) + " TFLOP/s"};
}

// As a run of it records it here (engine/trainer/preflight.h): with its device and threads.
Run like(Recipe recipe, const DeviceReport& report) {
  recipe.device = report.resolve(recipe.device);
  if (recipe.threads == 0) recipe.threads = report.cpu_cores;
  return {.tokens_per_step = recipe.tokens_per_step(),
          .hardware = report.hardware(report.resolve(recipe.device)),
          .recipe = to_json(recipe)};
}

struct MeasuredSteps {
  std::vector<double> quiet, disturbed;  // seconds of a step: each run's median, newest first, at most five
};

MeasuredSteps measured_steps(const Run& like, std::span<const MeasuredRun> runs) {
  constexpr std::size_t most = 5, most_looked_at = 200;
  MeasuredSteps steps;
  for (std::size_t i = runs.size(); i > 0 && runs.size() - i < most_looked_at && steps.quiet.size() < most; --i) {
    const auto& [run, summary, series, profile] = runs[i - 1];
    const bool is_comparable = run->source == "launched" && run->hardware == like.hardware &&
                               run->tokens_per_step == like.tokens_per_step && summary->dt_ms_median > 0;
    if (!is_comparable || !same_recipe_but_batch(*run, like)) continue;
    std::vector<double>& list = is_disturbed(*summary) ? steps.disturbed : steps.quiet;
    if (list.size() < most) list.push_back(summary->dt_ms_median / 1000);
  }
  return steps;
}

// Seconds a token of the runs of measured_step that nobody disturbed.
SampleFigures token_seconds(const Recipe& recipe, const DeviceReport& report, std::span<const MeasuredRun> runs) {
  std::vector<double> seconds = measured_steps(like(recipe, report), runs).quiet;
  for (double& each : seconds) each /= static_cast<double>(recipe.tokens_per_step());
  return figures_of(seconds);
}

std::string slower_text(const SampleFigures& below, const SampleFigures& with) {
  return fmt::format("{} as fast as the rung below it here, by {} of each", factor_text(below.mean / with.mean),
                     plural(std::min(below.n, with.n), "run"));
}

// What the newest run of this hardware that computes in bf16 says beside the same recipe in float32: why it isn't
// proposed, or empty if it was faster; nullopt if there are no two such runs.
std::optional<std::string> bf16_measured_here(const DeviceReport& report, std::span<const MeasuredRun> runs) {
  const std::string hardware = report.hardware("cpu");
  for (std::size_t i = runs.size(); i > 0; --i) {
    const Run& run = *runs[i - 1].run;
    if (run.source != "launched" || run.hardware != hardware || run.precision != "bf16") continue;
    const Recipe with = recipe_from_json(run.recipe);
    Recipe below = with;
    below.autocast = Autocast::off;
    if (below.matmul == MatmulPrecision::bf16) below.matmul = MatmulPrecision::fp32;
    const SampleFigures before = token_seconds(below, report, runs), after = token_seconds(with, report, runs);
    if (before.n == 0 || after.n == 0) continue;
    return after.mean < before.mean ? "" : slower_text(before, after);
  }
  return std::nullopt;
}

}  // namespace

StepEstimate measured_step(const Run& like, std::span<const MeasuredRun> runs) {
  MeasuredSteps steps = measured_steps(like, runs);
  const bool is_disturbed = steps.quiet.empty();
  std::vector<double>& seconds = is_disturbed ? steps.disturbed : steps.quiet;
  if (seconds.empty()) return {};
  const std::size_t count = seconds.size();
  return {.seconds = median_of(std::move(seconds)),
          .basis = plural(count, "run") + " of this recipe here" + (is_disturbed ? ", beside other programs" : ""),
          .is_measured = true,
          .is_disturbed = is_disturbed};
}

std::vector<std::string> slower_here(std::span<const Rung> rungs, const DeviceReport& report,
                                     std::span<const MeasuredRun> runs) {
  std::vector<SampleFigures> here;
  for (const Rung& rung : rungs) here.push_back(token_seconds(rung.recipe, report, runs));
  std::vector<std::string> reasons(rungs.size());
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    if (rungs[i].stands_on < 0) continue;
    const SampleFigures& below = here[static_cast<std::size_t>(rungs[i].stands_on)];
    if (below.n < 2 || here[i].n < 2) continue;
    const double factor = below.mean / here[i].mean;
    if (verdict_of(factor, mean_ratio_interval(below, here[i])) == Verdict::slower)
      reasons[i] = slower_text(below, here[i]);
  }
  return reasons;
}

std::string basis_text(const StepEstimate& step) {
  return (step.is_measured ? ", by " : ": a rough estimate from ") + step.basis;
}

std::vector<MeasuredRun> finished_runs(std::span<const RunAndSummary> runs) {
  std::vector<MeasuredRun> finished;
  for (const auto& [run, summary] : runs)
    if (run.status == RunStatus::finished) finished.push_back({&run, &summary, nullptr});
  return finished;
}

std::string why_not_bf16(const std::string& device, const DeviceReport& report, const HardwareTable& table,
                         std::span<const MeasuredRun> runs) {
  constexpr double faster_products = 1.2;  // than those of float32, for a step to gain at all
  if (report.resolve(device) != "cpu") return "";
  if (const std::optional<std::string> measured = bf16_measured_here(report, runs)) return *measured;
  if (std::string slow = stage_by_id("bf16").slow(report, "cpu"); !slow.empty()) return slow;
  const Hardware* row = table.find(report.hardware("cpu"));
  const auto peak = [&](Precision precision) {
    return row ? row->peak_tflops[static_cast<std::size_t>(precision)] : missing;
  };
  const double gain = peak(Precision::bf16) / peak(Precision::fp32);
  if (is_missing(gain)) return "whether bf16 pays on this CPU wasn't measured yet";
  if (gain >= faster_products) return "";
  return "products in bf16 were measured at " + factor_text(gain) + " the speed of those in float32 here";
}

namespace {

// Measured over guessed, of the newest runs, up to five, that were launched on `like`'s hardware undisturbed; those of
// this model and precision only, or of any.
std::vector<double> guesses_off(bool alike, const Recipe& recipe, const Run& like, const DeviceReport& report,
                                const HardwareTable& table, std::span<const MeasuredRun> runs) {
  constexpr std::size_t most = 5, most_looked_at = 200;
  std::vector<double> off;
  for (std::size_t i = runs.size(); i > 0 && runs.size() - i < most_looked_at && off.size() < most; --i) {
    const auto& [run, summary, series, profile] = runs[i - 1];
    if (run->source != "launched" || run->hardware != like.hardware || is_disturbed(*summary)) continue;
    const Recipe other = recipe_from_json(run->recipe);
    const bool is_alike = run->params == parameter_count(recipe) && precision_name(other) == precision_name(recipe);
    if ((alike && !is_alike) || !(summary->dt_ms_median > 0)) continue;
    const double guess = guess_step(other, report, table).seconds;
    if (guess > 0) off.push_back(summary->dt_ms_median / 1000 / guess);
  }
  return off;
}

}  // namespace

StepEstimate estimate_step(const Recipe& recipe, const DeviceReport& report, const HardwareTable& table,
                           std::span<const MeasuredRun> runs) {
  const Run wanted = like(recipe, report);
  StepEstimate step = measured_step(wanted, runs);
  if (!step.is_measured) step = guess_step(recipe, report, table);
  step.steps = recipe.steps;
  if (step.is_measured || is_missing(step.seconds)) return step;
  std::vector<double> off = guesses_off(true, recipe, wanted, report, table, runs);
  step.is_measured = !off.empty();
  if (!step.is_measured) off = guesses_off(false, recipe, wanted, report, table, runs);
  if (off.empty()) return step;
  step.seconds *= median_of(std::move(off));
  step.basis = step.is_measured ? "runs of this model with other stages here" : "other runs here";
  return step;
}

double seconds_of(std::span<const StepEstimate> runs, double slowdown) {
  double seconds = 0;
  for (const StepEstimate& run : runs) {
    if (is_missing(run.seconds)) return missing;
    seconds += run.seconds_beside(slowdown) * static_cast<double>(run.steps);
  }
  return seconds;
}

double estimate_seconds(const std::vector<Recipe>& recipes, const DeviceReport& report, const HardwareTable& table,
                        std::span<const MeasuredRun> runs) {
  std::vector<StepEstimate> steps;
  for (const Recipe& recipe : recipes) steps.push_back(estimate_step(recipe, report, table, runs));
  return seconds_of(steps);
}

}  // namespace stepladder
