// Trains equal runs in turns to measure how noisy this machine is: for `doctor --noise` and the window's "Measure
// noise".
#pragma once

#include <string>
#include <vector>

#include "app/session/session.h"
#include "storage/analysis/compare.h"
#include "storage/analysis/verdict/run_spread.h"

namespace stepladder {

// A ladder of the baseline against itself, in random order, whose runs take about `run_seconds` each. Its runs are
// repeats like any others: verdicts on this hardware learn their spread.
LadderRequest noise_request(double run_seconds, const DeviceReport& report, const HardwareTable& table);

// The noise of the noise ladder's runs, whichever side they are on.
MachineNoise noise_of(RunStore& store, const std::vector<RunId>& runs);

// How runs on this hardware are expected to differ, for whoever is about to start some.
RunSpread expected_spread(const std::string& device, const std::string& hardware, const HardwareTable& table);

// "With 3 runs of each you can see a gain of 2.1 %"; empty if the spread isn't known.
std::string smallest_gain_text(const RunSpread& spread, std::size_t runs);

}  // namespace stepladder
