#include "storage/analysis/roofline.h"

#include <algorithm>

#include "storage/analysis/plausibility.h"
#include "storage/analysis/recipe_facts.h"

namespace stepladder {

bool StepShape::known() const {
  return model.params > 0 && model.layers > 0 && model.d_model > 0 && model.seq_len > 0 && tokens > 0;
}

StepShape step_shape_of(const Run& run, const Summary& summary) {
  const RecipeFacts facts = recipe_facts(run);
  const int named = run.device == "cpu" ? 1 : device_count(run.hardware);  // cores share one memory
  const int devices = std::max(named, facts.devices);
  const Precision precision = precision_from(run.precision);
  return {.model = shape_of(run, summary),
          .tokens = run.tokens_per_step / devices,
          .micro_batches = std::max<std::int64_t>(facts.grad_accum, 1),
          .heads = facts.heads,
          .bytes_per_value = precision == Precision::fp32 || precision == Precision::tf32 ? 4.0 : 2.0,
          .stores_scores = run.attention == "explicit"};
}

StepTraffic step_traffic(const StepShape& shape) {
  const auto n = static_cast<double>(shape.model.params);
  const auto tokens = static_cast<double>(shape.tokens);
  const auto micro_batches = static_cast<double>(shape.micro_batches);
  // The activations that the backward pass needs from a layer, in values a token (Korthikanti et al. 2022, section 4.1,
  // without dropout): the inputs of both LayerNorms, of QKV, of the projection and of the MLP, and Q, K and V: 8 d; of
  // the GELU and of the layer after it 4 d each.
  const double a_token_and_layer = 16 * static_cast<double>(shape.model.d_model) +
                                   (shape.stores_scores ? static_cast<double>(shape.heads * shape.model.seq_len) : 0);
  const double a_token =
      static_cast<double>(shape.model.layers) * a_token_and_layer + static_cast<double>(shape.model.vocab);
  return {.weights = 2 * micro_batches * n * shape.bytes_per_value,
          .gradients = 4 * n * (2 * micro_batches - 1),
          .optimizer = 28 * n,
          .activations = 2 * tokens * a_token * shape.bytes_per_value};
}

double arithmetic_intensity(MfuConvention convention, const StepShape& shape) {
  const double flops = flops_per_token(convention, shape.model);
  if (!shape.known() || is_missing(flops)) return missing;
  return flops * static_cast<double>(shape.tokens) / step_traffic(shape).total();
}

double ridge_intensity(double peak_tflops, double bandwidth_gb_s) {
  if (is_missing(peak_tflops) || is_missing(bandwidth_gb_s)) return missing;
  return peak_tflops * 1e12 / (bandwidth_gb_s * 1e9);
}

double attainable_tflops(double intensity, double peak_tflops, double bandwidth_gb_s) {
  if (is_missing(intensity) || is_missing(peak_tflops) || is_missing(bandwidth_gb_s)) return missing;
  return std::min(peak_tflops, intensity * bandwidth_gb_s / 1e3);
}

}  // namespace stepladder
