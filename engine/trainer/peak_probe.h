// A short measurement of the default device's peaks: matrix products and memory bandwidth.
#pragma once

#include <functional>

#include "engine/peak_probe.h"

namespace stepladder {

// Blocks for some ten seconds, on the calling thread and all cores. Looks at `stop_requested` between samples and then
// throws, as where the device cannot do it: std::runtime_error.
PeakProbe measure_peak(const std::function<bool()>& stop_requested);

}  // namespace stepladder
