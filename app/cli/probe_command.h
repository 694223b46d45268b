// `stepladder doctor --probe`: what this machine reached, beside its datasheet, kept in the user's table of hardware.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "app/cli/report.h"
#include "engine/peak_probe.h"

namespace stepladder {

struct Probe {
  PeakProbe peak;
  Hardware row;                     // as it stands in `file`
  std::filesystem::path file;       // the user's own hardware.csv
  const Hardware* known = nullptr;  // what the table says of this hardware apart from probes
};

// Below this part of the cores' time the figures are those of a busy machine.
inline constexpr double least_cpu_share = 0.9;

// Measures (some ten seconds) and writes the row. Hardware that the table does not know gets one under the name that
// runs record, and so a peak. Beside a datasheet the row is called "NAME (measured here)": MFU stays what others
// publish. Throws StorageError or DataError, with the table as it was, and std::runtime_error where `stop_requested`
// says so.
Probe probe_peak(const HardwareTable& table, const std::function<bool()>& stop_requested);

Json probe_json(const Probe& probe);
std::string probe_text(const Probe& probe);

}  // namespace stepladder
