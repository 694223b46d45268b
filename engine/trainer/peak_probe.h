// A short measurement of the default device's peaks: matrix products and memory bandwidth.
#pragma once

#include <functional>

#include "engine/peak_probe.h"

namespace stepladder {

// Blocks for some ten seconds, on the calling thread and all cores. Throws std::runtime_error if `stop_requested`
// returns true between samples, or if the device cannot do it.
PeakProbe measure_peak(const std::function<bool()>& stop_requested);

}  // namespace stepladder
