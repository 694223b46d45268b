// Every format of a number, as a function of its own. Tests from outside pin the texts, and exported tables repeat
// them: a change here changes windows, command line, reports and figures at once.
#include "storage/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include "storage/records.h"

namespace stepladder {
namespace {

// Three significant digits without an exponent, for values from 0.001 to 999.
std::string three_digits(double value) {
  const double size = std::fabs(value);
  if (size >= 1e15) return fmt::format("{:.3g}", value);
  return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

// "NaN" and the infinities as words; empty for a finite number.
std::string not_a_number(double value) {
  if (is_missing(value)) return "-";
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return {};
}

// A label with as many digits as tell neighbours apart on an axis that is `width` wide, but at least `fewest`.
std::string axis_label(double value, double width, double scaled, int fewest, std::string_view unit) {
  constexpr double labels = 8;  // on one axis, about
  const double digits = width > 0 && std::isfinite(width)
                            ? std::floor(std::log10(std::fabs(value))) - std::floor(std::log10(width / labels)) + 1
                            : 0;
  return fmt::format("{:.{}g}{}", scaled, static_cast<int>(std::clamp(digits, double(fewest), 12.0)), unit);
}

// Minus zero, and what rounding left of it.
bool is_zero(double value, double width) {
  return value == 0 || std::fabs(value) < width * 1e-9;
}

}  // namespace

std::int64_t whole_number(double value) {
  constexpr double beyond = 0x1p63;
  if (std::isnan(value)) return 0;
  if (value >= beyond) return std::numeric_limits<std::int64_t>::max();
  return value < -beyond ? std::numeric_limits<std::int64_t>::min() : std::llround(value);
}

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  const std::ptrdiff_t first_digit = value < 0 ? 1 : 0;
  for (auto at = std::ssize(text) - 3; at > first_digit; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string grouped(double value) {
  return std::abs(value) < 1e15 ? grouped(whole_number(value)) : fmt::format("{:.4g}", value);
}

std::string plural(std::int64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  return fmt::format("{} {}{}", grouped(count), many.empty() ? one : many, many.empty() ? "s" : "");
}

std::string decimals(double value, int digits) {
  return is_missing(value) ? "-" : fmt::format("{:.{}f}", value, digits);
}

std::string significant(double value, int digits) {
  return is_missing(value) ? "-" : fmt::format("{:.{}g}", value, digits);
}

std::string figure_text(double value) {
  return std::abs(value) >= 9999.5 ? grouped(value) : fmt::format("{:.4g}", value);
}

std::string percent_text(double share) {
  if (share > 0 && share < 0.005) return "< 0.5 %";  // else it would read as nothing
  return fmt::format("{:.0f} %", 100 * share);
}

std::string fine_percent_text(double share) {
  const double size = std::abs(100 * share);
  return fmt::format("{:.{}f} %", 100 * share, size >= 9.95 ? 0 : size >= 0.995 ? 1 : 2);
}

std::string factor_text(double factor) {
  if (auto words = not_a_number(factor); !words.empty()) return words;
  return fmt::format("{:.{}f} x", factor,
                     factor >= 99.95                 ? 0
                     : factor >= 9.995               ? 1
                     : factor > 0 && factor < 0.0995 ? 3
                                                     : 2);
}

std::string loss_text(double loss) {
  if (auto words = not_a_number(loss); !words.empty()) return words;
  const double size = std::fabs(loss);
  return (size < 1e-3 && size != 0) || size >= 1e6 ? fmt::format("{:.2e}", loss) : fmt::format("{:.4f}", loss);
}

std::string metric_text(double value) {
  if (auto words = not_a_number(value); !words.empty()) return words;
  return fmt::format("{:.5g}", value);
}

std::string compact(double value) {
  if (auto words = not_a_number(value); !words.empty()) return words;
  const double size = std::fabs(value);
  if (size >= 999.5e9) return fmt::format("{:.3g}", value);
  if (size >= 999.5e6) return three_digits(value / 1e9) + " G";
  if (size >= 999.5e3) return three_digits(value / 1e6) + " M";
  if (size >= 999.5) return three_digits(value / 1e3) + " k";
  return size >= 0.1 || size == 0 ? three_digits(value) : fmt::format("{:.3g}", value);
}

std::string compact_in_unit(double value) {
  return value >= 999.5 ? grouped(value) : compact(value);
}

std::string tokens_per_s_text(double value) {
  return compact(value);
}

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return three_digits(bytes / 1e9) + " GB";
  if (bytes >= 1e6) return three_digits(bytes / 1e6) + " MB";
  return three_digits(bytes / 1e3) + " kB";
}

std::string milliseconds_text(double dt_ms) {
  if (auto words = not_a_number(dt_ms); !words.empty()) return words;
  return dt_ms >= 999.5 ? three_digits(dt_ms / 1e3) + " s" : three_digits(dt_ms) + " ms";
}

std::string ms_figure(double ms, double whole_ms) {
  return whole_ms >= 1000 ? grouped(ms) : fmt::format("{:.{}f}", ms, whole_ms >= 100 ? 1 : 2);
}

std::string duration_text(double seconds) {
  if (auto words = not_a_number(seconds); !words.empty()) return words;
  const std::int64_t whole = whole_number(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string local_time_text(double unix_seconds) {
  if (is_missing(unix_seconds)) return "-";
  const std::time_t time = whole_number(unix_seconds);
  std::tm local{};
  if (!localtime_r(&time, &local)) return "-";  // no clock has shown it
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local)};
}

std::string axis_text(double value, double width) {
  if (is_zero(value, width)) return "0";
  const double size = std::fabs(value);
  if (!std::isfinite(value) || size >= 999.5e9) return compact(value);
  if (size >= 999.5e6) return axis_label(value, width, value / 1e9, 3, " G");
  if (size >= 999.5e3) return axis_label(value, width, value / 1e6, 3, " M");
  if (size >= 999.5) return axis_label(value, width, value / 1e3, 3, " k");
  return axis_label(value, width, value, 4, "");
}

std::string plain_axis_text(double value, double width) {
  if (is_zero(value, width)) return "0";
  if (auto words = not_a_number(value); !words.empty()) return words;
  return std::fabs(value) < 99'999.5 ? axis_label(value, width, value, 5, "") : fmt::format("{:.3g}", value);
}

}  // namespace stepladder
