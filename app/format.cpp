#include "app/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string_view>

#include "storage/bounded_text.h"
#include "storage/importers/growing_source.h"
#include "storage/records.h"

namespace stepladder {
namespace {

std::string print(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

// Three significant digits without an exponent, for values from 0.001 to 999.
std::string three_digits(double value) {
  const double size = std::fabs(value);
  if (size >= 1e15) return print("%.3g", value);
  return print(size >= 99.95 ? "%.0f" : size >= 9.995 ? "%.1f" : "%.2f", value);
}

// "NaN" and the infinities as words; empty for a finite number.
std::string not_a_number(double value) {
  if (is_missing(value)) return "-";
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return {};
}

}  // namespace

std::string compact(double value) {
  if (auto words = not_a_number(value); !words.empty()) return words;
  const double size = std::fabs(value);
  if (size >= 999.5e9) return print("%.3g", value);
  if (size >= 999.5e6) return three_digits(value / 1e9) + " G";
  if (size >= 999.5e3) return three_digits(value / 1e6) + " M";
  if (size >= 999.5) return three_digits(value / 1e3) + " k";
  if (size >= 0.1 || size == 0) return three_digits(value);
  return print("%.3g", value);
}

namespace {

// A label with as many digits as tell neighbours apart on an axis that is `width` wide, but at least `fewest`.
std::string axis_label(double value, double width, double scaled, int fewest, const char* unit) {
  constexpr double labels = 8;  // on one axis, about
  const double digits = width > 0 && std::isfinite(width)
                            ? std::floor(std::log10(std::fabs(value))) - std::floor(std::log10(width / labels)) + 1
                            : 0;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*g%s", static_cast<int>(std::clamp(digits, double(fewest), 12.0)), scaled,
                unit);
  return text.data();
}

// Minus zero, and what rounding left of it.
bool is_zero(double value, double width) {
  return value == 0 || std::fabs(value) < width * 1e-9;
}

}  // namespace

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
  return std::fabs(value) < 99'999.5 ? axis_label(value, width, value, 5, "") : print("%.3g", value);
}

std::string tokens_per_s_text(double value) {
  return compact(value);
}

std::string milliseconds_text(double dt_ms) {
  if (auto words = not_a_number(dt_ms); !words.empty()) return words;
  return dt_ms >= 999.5 ? three_digits(dt_ms / 1e3) + " s" : three_digits(dt_ms) + " ms";
}

std::string loss_text(double loss) {
  if (auto words = not_a_number(loss); !words.empty()) return words;
  const double size = std::fabs(loss);
  return print((size < 1e-3 && size != 0) || size >= 1e6 ? "%.2e" : "%.4f", loss);
}

std::string metric_text(double value) {
  if (auto words = not_a_number(value); !words.empty()) return words;
  return print("%.5g", value);
}

std::string duration_text(double seconds) {
  if (auto words = not_a_number(seconds); !words.empty()) return words;
  const long long whole = wording::whole(seconds);
  std::array<char, 64> text{};
  if (whole < 60) {
    std::snprintf(text.data(), text.size(), "%lld s", whole);
  } else if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%lld min %02lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%lld h %02lld min", whole / 3600, whole / 60 % 60);
  }
  return text.data();
}

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return three_digits(bytes / 1e9) + " GB";
  if (bytes >= 1e6) return three_digits(bytes / 1e6) + " MB";
  return three_digits(bytes / 1e3) + " kB";
}

std::string ms_figure(double ms, double whole_ms) {
  if (whole_ms >= 1000) return wording::grouped(ms);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), whole_ms >= 100 ? "%.1f" : "%.2f", ms);
  return text.data();
}

std::string runs_text(std::size_t count) {
  return grouped(static_cast<std::int64_t>(count)) + (count == 1 ? " run" : " runs");
}

std::string in_print(const std::string& text) {
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  const auto begins = [&](std::size_t i) {
    return is_digit(i) || (i < text.size() && (text[i] == '(' || text[i] == '~'));
  };
  const auto is_capital = [&](std::size_t i) { return i < text.size() && text[i] >= 'A' && text[i] <= 'Z'; };
  std::string printed;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool after_number = i > 0 && (is_digit(i - 1) || text[i - 1] == ')' || text[i - 1] == 'k' ||
                                        text[i - 1] == 'M' || text[i - 1] == 'G');
    const std::string_view rest = std::string_view(text).substr(i);
    const bool ends_word =
        rest.size() == 2 || (rest.size() > 2 && std::string_view(" ,.;:)").find(rest[2]) != std::string_view::npos);
    const bool after_capital = i > 0 && is_capital(i - 1) && is_capital(i + 3);
    if ((after_number || after_capital) && rest.starts_with(" x") && ends_word) {
      const bool is_product = begins(i + 3) || is_capital(i + 3);
      printed += is_product && rest[2] == ' ' ? " \xC3\x97" : "\xC3\x97";
      i += 1;
    } else if (after_number && rest.starts_with(" - ") && begins(i + 3)) {
      printed += " \xE2\x80\x93 ";
      i += 2;
    } else if ((i == 0 || std::string_view(text).substr(0, i).ends_with(", ")) && rest.starts_with("x ") &&
               begins(i + 2)) {
      printed += "\xC3\x97";
    } else if (rest.starts_with("+/-")) {
      printed += "\xC2\xB1";
      i += 2;
    } else if (rest.starts_with(" -> ")) {
      printed += " \xE2\x86\x92 ";
      i += 3;
    } else {
      printed += text[i];
    }
  }
  return printed;
}

std::string harmless(std::string text) {
  std::string shown;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = utf8_length(rest);
    const std::string_view character = rest.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0) {
      shown += "\xEF\xBF\xBD";  // U+FFFD
    } else {
      shown += is_control(character) && character != "\n" && character != "\t" ? "." : character;
    }
    rest.remove_prefix(character.size());
  }
  return shown;
}

std::string local_time_text(double unix_seconds) {
  if (is_missing(unix_seconds)) return "-";
  const std::time_t time = wording::whole(unix_seconds);
  std::tm local{};
  if (!localtime_r(&time, &local)) return "-";  // no clock has shown it
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &local);
  return text.data();
}

std::string lateness_text(std::string_view format, double age_s) {
  const std::string_view delay = writer_delay(format);
  if (delay.empty()) return {};
  return "newest value " + std::to_string(std::llround(age_s)) + " s old; " + std::string(delay);
}

std::string lateness_text(const Run& run, double newest_at) {
  constexpr std::string_view key = "\"followed_store\":\"";  // written by app/import/source_follower.cpp
  const double age_s = unix_now() - newest_at;
  const std::size_t at = run.environment.find(key);
  if (run.status != RunStatus::running || at == std::string::npos || !(age_s >= late_after_s)) return {};
  const std::string_view rest = std::string_view(run.environment).substr(at + key.size());
  return lateness_text(rest.substr(0, rest.find('"')), age_s);
}

}  // namespace stepladder
