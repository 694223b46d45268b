// Formats numbers for sentences. app/format.h adds what only window and command line need.
#pragma once

#include <cstdint>
#include <string>

namespace stepladder::wording {

// Rounded; what is beyond every whole number becomes the last one, and NaN 0.
std::int64_t whole(double value);

std::string grouped(std::int64_t value);  // "50,257"
std::string grouped(double value);        // rounded; four significant digits from 1e15 on
std::string figure(double value);         // four significant digits, grouped from 10,000 on
std::string percent(double share);        // "23 %"
std::string fine_percent(double share);   // "23 %", "2.1 %", "0.08 %"
std::string factor(double value);         // "1.31 x", "12.5 x"; "-" if missing

}  // namespace stepladder::wording
