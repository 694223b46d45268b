// The peaks that a probe of this machine measured. Plain values, no torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepladder {

// Products of two square matrices in one precision, at the size that was fastest.
struct ProductRate {
  std::string precision;      // "fp32", "tf32", "bf16", "fp16"
  double tflops = 0;          // the median of the samples at that size
  double fastest_tflops = 0;  // the fastest of them
  std::int64_t size = 0;      // rows and columns of each matrix
  int samples = 0;
};

struct PeakProbe {
  std::string device;    // "cpu", "cuda" or "mps"
  std::string hardware;  // as runs record it
  int threads = 0;       // on a CPU
  double memory_bytes = 0;
  std::vector<ProductRate> rates;
  double bandwidth_gb_s = 0;
  std::int64_t bandwidth_bytes = 0;  // that one pass moves
  // On a CPU, the share of its threads' time that this process got. If it is well below 1, other programs used the
  // cores and every figure is too low. 1 on other devices.
  double cpu_share = 1;
};

}  // namespace stepladder
