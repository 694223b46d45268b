// Converts values that SQLite cannot hold. Inside storage/ only.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "storage/database/database.h"
#include "storage/records.h"

namespace stepladder {

// NULL is "not known" in every column, whatever represents it in memory.
inline std::optional<std::string_view> known(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

inline std::optional<std::int64_t> known(std::int64_t value, std::int64_t unknown = 0) {
  return value == unknown ? std::nullopt : std::optional(value);
}

// SQLite turns every NaN into NULL. A bit in nan_mask tells a measured NaN from a missing value.
inline std::int64_t nan_bit(double value, int bit) {
  return std::isnan(value) && !is_missing(value) ? std::int64_t{1} << bit : 0;
}

inline double real_or_nan(const Statement& row, int column, std::int64_t nan_mask, int bit) {
  return (nan_mask >> bit & 1) != 0 ? std::numeric_limits<double>::quiet_NaN() : row.real(column);
}

}  // namespace stepladder
