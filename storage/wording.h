// Formats numbers for sentences. app/format.h adds what only window and command line need.
#pragma once

#include <cstdint>
#include <string>

namespace stepladder::wording {

std::string grouped(std::int64_t value);  // "50,257"
std::string grouped(double value);        // rounded
std::string figure(double value);         // four significant digits, grouped from 10,000 on
std::string percent(double share);        // "23 %"
std::string factor(double value);         // "1.31 x", "12.5 x"; "-" if missing

}  // namespace stepladder::wording
