#include "storage/wording.h"

#include <cmath>
#include <cstdio>
#include <limits>

#include "storage/records.h"

namespace stepladder::wording {

std::int64_t whole(double value) {
  constexpr double beyond = 0x1p63;
  if (std::isnan(value)) return 0;
  if (value >= beyond) return std::numeric_limits<std::int64_t>::max();
  return value < -beyond ? std::numeric_limits<std::int64_t>::min() : std::llround(value);
}

std::string grouped(std::int64_t value) {
  const auto size = static_cast<std::uint64_t>(value);
  std::string text = std::to_string(value < 0 ? -size : size);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return (value < 0 ? "-" : "") + text;
}

std::string grouped(double value) {
  if (std::abs(value) < 1e15) return grouped(whole(value));
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4g", value);
  return buffer;
}

std::string figure(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4g", value);
  return std::abs(value) >= 9999.5 ? grouped(value) : buffer;
}

std::string percent(double share) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.0f %%", 100 * share);
  return buffer;
}

std::string fine_percent(double share) {
  const double size = std::abs(100 * share);
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.*f %%", size >= 9.95 ? 0 : size >= 0.995 ? 1 : 2, 100 * share);
  return buffer;
}

std::string factor(double value) {
  if (is_missing(value)) return "-";
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, value >= 99.95 ? "%.0f x" : value >= 9.995 ? "%.1f x" : "%.2f x", value);
  return buffer;
}

}  // namespace stepladder::wording
