#include "engine/trainer/settings.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>

#include "engine/trainer/parallel/data_parallel.h"

namespace stepladder {

RunSettings::RunSettings(const Recipe& recipe) : threads_before_(at::get_num_threads()) {
  at::set_num_threads(threads_per_process(recipe));
  // "high": inputs of float32 products may be rounded to TF32.
  at::globalContext().setFloat32MatmulPrecision(recipe.matmul == MatmulPrecision::tf32 ? "high" : "highest");
}

RunSettings::~RunSettings() {
  at::globalContext().setFloat32MatmulPrecision("highest");
  at::set_num_threads(threads_before_);
}

AutocastScope::AutocastScope(Autocast autocast, at::DeviceType device)
    : on_(autocast == Autocast::bf16), device_(device) {
  if (!on_) return;
  dtype_before_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_dtype(device_, at::kBFloat16);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, false);
  at::autocast::set_autocast_dtype(device_, dtype_before_);
}

at::ScalarType product_type(const at::Tensor& x) {
  return at::autocast::is_autocast_enabled(at::kCPU) ? at::autocast::get_autocast_dtype(at::kCPU) : x.scalar_type();
}

int default_threads() {
  static const int threads = at::get_num_threads();
  return threads;
}

}  // namespace stepladder
