// Converts values that SQLite cannot hold. Inside storage/ only.
#pragma once

#include <algorithm>
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

// Steps, tokens and bytes beyond this exist only in files that another program has written. Sums of a few such counts
// don't overflow.
inline constexpr std::int64_t largest_count = 1'000'000'000'000'000;

// A count, or the number of a step.
inline std::int64_t count_of(const Statement& row, int column) {
  return std::clamp(row.integer(column), -largest_count, largest_count);
}

// A time or a number of calls that is always there; 0 for what no measurement gives, so that sums and orders are of
// finite numbers.
inline double measure_of(const Statement& row, int column) {
  const double value = row.real(column);
  return std::abs(value) <= static_cast<double>(largest_count) ? value : 0;
}

inline std::optional<std::int64_t> known(std::int64_t value, std::int64_t unknown = 0) {
  return value == unknown ? std::nullopt : std::optional(value);
}

// SQLite turns every NaN into NULL. A bit in nan_mask distinguishes a measured NaN from a missing value.
inline std::int64_t nan_bit(double value, int bit) {
  return std::isnan(value) && !is_missing(value) ? std::int64_t{1} << bit : 0;
}

inline double real_or_nan(const Statement& row, int column, std::int64_t nan_mask, int bit) {
  return (nan_mask >> bit & 1) != 0 ? std::numeric_limits<double>::quiet_NaN() : row.real(column);
}

}  // namespace stepladder
