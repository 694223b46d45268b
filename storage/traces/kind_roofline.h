// How near each kind of work in a traced step comes to what the device can do (storage/analysis/roofline.h). Only rows
// whose shapes the trace has count, which are products; of the others nothing is claimed. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/analysis/hardware.h"
#include "storage/traces/attribution.h"

namespace stepladder {

// What the device can do at best.
struct Ceiling {
  std::string hardware;  // empty: not known which
  Precision precision = Precision::unknown;
  double tflops = missing;          // the peak in that precision
  double bandwidth_gb_s = missing;  // of the memory
  std::string source;               // "measured here", or who says so
};

// A peak that was measured on this machine counts before a datasheet's. An unknown precision has no peak.
Ceiling ceiling_of(const HardwareTable& table, std::string_view hardware, std::string_view precision);

struct KindRoofline {
  OperatorKind kind = OperatorKind::between;
  double busy_ms = 0;           // of a step: how long its rows ran
  double known_ms = 0;          // of it, in rows whose shapes are known
  double flops = missing;       // of these rows, a step; missing: there are none
  double bytes = missing;       // that they have to move at least: each operand once
  double tflops = missing;      // reached
  double attainable = missing;  // TFLOP/s: the lower one of the peak and of what the memory allows; missing: no ceiling
  bool is_memory_bound = false;  // which of the two it is
  double share() const { return is_missing(attainable) ? missing : tflops / attainable; }
};

// Of the kinds that compute, the most expensive first.
std::vector<KindRoofline> rooflines(std::span<const TracedOperator> operators, const Ceiling& ceiling);

// 2mnk of a product of "128x64 64x256", and the elements of its operands and result; a batch of them has a third
// number. missing: these aren't the shapes of a product.
double product_flops(const std::string& shapes);
double product_elements(const std::string& shapes);

}  // namespace stepladder
