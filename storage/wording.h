// Numbers, counts and times for people: the one home of their formats, for sentences, tables and charts. Pure
// functions. A measured value has three or four significant digits and "-" if missing. Whoever includes this can
// write sentences with fmt::format.
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepladder {

// Rounded; what is beyond every whole number becomes the last one, and NaN 0.
std::int64_t whole_number(double value);

std::string grouped(std::int64_t value);  // "50,257"
std::string grouped(double value);        // rounded; four significant digits from 1e15 on
template <std::integral Whole>
std::string grouped(Whole value) {
  return grouped(static_cast<std::int64_t>(value));
}

// "1 run", "2,400 runs"; `many` for a plural that does more than add an s: plural(n, "run waits", "runs wait").
std::string plural(std::int64_t count, std::string_view one, std::string_view many = {});

std::string decimals(double value, int digits);     // decimals(3.28, 5) is "3.28000"
std::string significant(double value, int digits);  // significant(0.01234, 3) is "0.0123"
std::string figure_text(double value);              // four significant digits, grouped from 10,000 on
std::string percent_text(double share);             // "23 %"; "< 0.5 %"
std::string fine_percent_text(double share);        // "23 %", "2.1 %", "0.08 %"
std::string factor_text(double factor);             // "1.31 x", "12.5 x"
std::string loss_text(double loss);                 // "1.8731", "NaN", "Infinity"
std::string metric_text(double value);        // five digits of any metric: "3.2831", "0.31234", "1.2346e+06", "NaN"
std::string compact(double value);            // 11.5 k, 1.34 M, 0.00102
std::string compact_in_unit(double value);    // 11,500, 8.6, 0.00102
std::string tokens_per_s_text(double value);  // "28.4 k"
std::string bytes_text(double bytes);         // "23.4 GB"

std::string milliseconds_text(double dt_ms);        // "27.0 ms", "1.52 s"
std::string ms_figure(double ms, double whole_ms);  // "9.62", "1,204": as many decimals as a step of whole_ms needs
std::string duration_text(double seconds);          // "8 s", "2 min 05 s", "1 h 12 min"
std::string local_time_text(double unix_seconds);   // "2026-11-21 13:20"

// A label of an axis that is `width` wide, in as many digits as tell its neighbours apart: "22.5 k", "123.405 k".
std::string axis_text(double value, double width);
std::string plain_axis_text(double value, double width);  // without k, M or G: "0.25", "40000", "7e+09"; for losses

}  // namespace stepladder
