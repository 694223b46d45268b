#include "app/launch/step_estimate.h"

#include <algorithm>

#include "app/text/format.h"
#include "storage/analysis/mfu.h"

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

}  // namespace

StepEstimate estimate_step(const Recipe& recipe, const DeviceReport& report, const HardwareTable& table) {
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

double estimate_seconds(const std::vector<Recipe>& runs, const DeviceReport& report, const HardwareTable& table) {
  double sum = 0;
  for (const Recipe& run : runs) {
    const double seconds = estimate_step(run, report, table).seconds;
    if (is_missing(seconds)) return missing;
    sum += seconds * static_cast<double>(run.steps);
  }
  return sum;
}

}  // namespace stepladder
