// The share of the device's peak that each kind of work in a traced step reaches (the roofline of
// storage/analysis/roofline.h). Only operators whose operands the trace has, and that operator_work.h knows, count;
// nothing is claimed of the others. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/analysis/hardware.h"
#include "storage/traces/attribution.h"
#include "storage/traces/operator_work.h"

namespace stepladder {

// The peaks of the device.
struct Ceiling {
  std::string hardware;  // empty: not known which
  Precision precision = Precision::unknown;
  double tflops = missing;          // the peak in that precision
  double fp8_tflops = missing;      // the peak of the products that ran in fp8 beside it
  double bandwidth_gb_s = missing;  // of the memory
  std::string source;               // "measured here", or who says so
  bool known() const { return !is_missing(tflops) && !is_missing(bandwidth_gb_s); }
};

// A peak that was measured on this machine counts before a datasheet's. An unknown precision has no peak.
Ceiling ceiling_of(const HardwareTable& table, std::string_view hardware, std::string_view precision);

// One kind of work in a step. On a GPU the times are how long the kernels ran; on a CPU, whose threads share the
// ceiling, their share of the step.
struct KindRoofline {
  OperatorKind kind = OperatorKind::between;
  double ms = 0;
  double known_ms = 0;           // of it, in operators whose work is known
  double flops = missing;        // of these; missing: none of them are counted, as the memory is their limit
  double bytes = missing;        // that they have to move at least
  double least_ms = missing;     // they can't be faster: the sum over them of the longer one of FLOPs at the peak and
                                 // bytes at the bandwidth; missing: no ceiling, or nothing known
  bool is_memory_bound = false;  // whether bytes are the limit in most of that time
  double tflops() const { return is_missing(flops) ? missing : flops / known_ms / 1e9; }
  double gb_s() const { return is_missing(bytes) ? missing : bytes / known_ms / 1e6; }
  // The share of the ceiling that was reached. Above 1 where operands were still in a cache, which is faster than the
  // memory. missing also if nothing is known of most of the time.
  double share() const { return is_missing(least_ms) || 2 * known_ms < ms ? missing : least_ms / known_ms; }
};

// The ceiling of one rank: a GPU has its own, but the ranks of a CPU share it.
Ceiling of_rank(Ceiling ceiling, const TraceProfile& profile);

// The ceiling of one operator, by its name: PyTorch's products in fp8 are called `_scaled_mm`.
Ceiling of_operator(Ceiling ceiling, std::string_view name);

// The roofline of one piece of work that took `ms`. Its share is missing without a ceiling.
KindRoofline roofline_of(const Work& work, double ms, const Ceiling& ceiling);

// "memory", "compute"; empty: no share is claimed.
std::string_view bound_of(const KindRoofline& kind);

// The rooflines of the kinds that are work, the most expensive first.
std::vector<KindRoofline> rooflines(const TraceProfile& profile, const Ceiling& ceiling);

}  // namespace stepladder
