// The program's own hardware table.
#pragma once

#include "storage/analysis/hardware.h"

namespace stepladder {

inline const HardwareTable& table() {
  static const HardwareTable hardware =
      HardwareTable::read(std::filesystem::path(STEPLADDER_SOURCE_DIR) / "assets" / "hardware.csv");
  return hardware;
}

}  // namespace stepladder
