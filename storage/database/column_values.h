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
#include "storage/record_fields.h"
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

// ", ?, ?" for ", name, rung".
inline std::string places_of(std::string_view columns) {
  std::string places;
  for (const char c : columns)
    if (c == ',') places += ", ?";
  return places;
}

// Binds NULL if the value isn't known, and may be NULL.
template <class Value>
void bind_value(Statement& row, const Value& value, const Unknown<Value>& unknown, bool is_never_null = false) {
  if constexpr (std::is_enum_v<Value>)
    row.bind(to_string(value));
  else if (is_never_null || is_known(value, unknown))
    row.bind(value);
  else
    row.bind(std::nullopt);
}

// The value of a field of storage/record_fields.h. Throws std::invalid_argument for an unknown word.
template <class Value>
void read_value(const Statement& row, int column, Value& value, const Unknown<Value>& unknown) {
  if constexpr (std::is_same_v<Value, std::string>)
    value = row.text(column);
  else if constexpr (std::is_same_v<Value, double>)
    value = row.real(column);
  else if constexpr (std::is_same_v<Value, int>)
    value = static_cast<int>(row.integer(column));
  else if constexpr (std::is_same_v<Value, std::int64_t>)
    value = row.is_null(column) ? unknown : count_of(row, column);
  else if constexpr (std::is_same_v<Value, RunStatus>)
    value = run_status_from(row.text(column));
  else if constexpr (std::is_same_v<Value, Sync>)
    value = sync_from(row.text(column));
  else if (!row.is_null(column))
    value = row.integer(column);
}

}  // namespace stepladder
