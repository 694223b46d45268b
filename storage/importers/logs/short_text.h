// A number for a sentence: six significant digits.
#pragma once

#include <cstdio>
#include <string>

namespace stepladder {

inline std::string short_text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

}  // namespace stepladder
