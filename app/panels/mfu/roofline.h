// The MFU view's roofline (storage/analysis/roofline.h): the chosen hardware's roof, and the runs as points under it.
// UI thread.
#pragma once

#include <string>
#include <vector>

#include "app/panels/mfu/calculator.h"

namespace stepladder {

struct RooflinePoint {
  RunId run = 0;
  std::string name;
  double intensity = missing;
  double tflops = missing;  // of one device
  std::string hardware;     // of the table
  std::string bytes;        // their arithmetic, as text
};

struct Roofline {
  std::vector<RooflinePoint> points;
  std::size_t runs = 0;  // including those of unknown shape, batch or throughput
};

Roofline roofline_of(const std::vector<RunEntry>& runs, MfuConvention convention, const HardwareTable& table);
void draw_roofline(const Roofline& roofline, const MfuForm& form, MfuConvention convention, const HardwareTable& table);

}  // namespace stepladder
