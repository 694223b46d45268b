// Numbers and times for people: three significant digits, always with a unit, "-" if missing. storage/wording.h has
// the formats that storage's own sentences use too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "storage/records.h"
#include "storage/wording.h"

namespace stepladder {

// A label of an axis that is `width` wide, in as many digits as tell its neighbours apart: "22.5 k", "123.405 k".
std::string axis_text(double value, double width);
std::string plain_axis_text(double value, double width);  // without k, M or G: "0.25", "40000", "7e+09"; for losses
std::string compact(double value);                        // 11.5 k, 1.34 M, 0.00102; "-" if missing
std::string tokens_per_s_text(double value);              // "28.4 k"
std::string milliseconds_text(double dt_ms);              // "27.0 ms", "1.52 s"
std::string ms_figure(double ms, double whole_ms);  // "9.62", "1,204": as many decimals as a step of whole_ms needs
inline std::string factor_text(double factor) {
  return wording::factor(factor);
}  // "1.42 x"
std::string loss_text(double loss);         // "1.8731", "NaN", "inf"
std::string metric_text(double value);      // five digits of any metric: "3.2831", "0.31234", "1.2346e+06", "NaN"
std::string duration_text(double seconds);  // "8 s", "2 min 05 s", "1 h 12 min"
std::string bytes_text(double bytes);       // "23.4 GB"
inline std::string grouped(std::int64_t value) {
  return wording::grouped(value);
}  // "1,115,394"
// The signs of print for those of the terminal, in text without names: "1.42 x" becomes 1.42 and a multiplication sign
// without space, "6 x 2" keeps its spaces; "1.38 - 1.46" gets an en dash; also for +/- and ->.
std::string in_print(const std::string& text);
std::string runs_text(std::size_t count);          // "1 run", "2 runs"
std::string local_time_text(double unix_seconds);  // "2026-11-21 13:20"

// Replaces control characters (is_control) other than line ends and tabs by dots, and bytes that aren't UTF-8 by
// U+FFFD: foreign text (logs, names, untrained models) must not steer the terminal.
std::string harmless(std::string text);

// From this age of a run's newest value on, lateness_text is worth showing.
inline constexpr double late_after_s = 15;

// "newest value 95 s old; TensorBoard's writer holds values back for up to 120 s"; empty if writers of this format (an
// importer's id) pass on values at once.
std::string lateness_text(std::string_view format, double age_s);

// The same of a run that `follow` or `watch` takes from a store, if its newest value (unix seconds) is late; else
// empty.
std::string lateness_text(const Run& run, double newest_at);

}  // namespace stepladder
