// Numbers in the sentences that storage says: why a figure is doubted, why something is worth a try.
#pragma once

#include <cstdint>
#include <string>

namespace stepladder::wording {

std::string grouped(std::int64_t value);  // "50,257"
std::string grouped(double value);        // rounded
std::string figure(double value);         // four significant digits, grouped from 10,000 on
std::string percent(double share);        // "23 %"
std::string factor(double value);         // "1.31 x"

}  // namespace stepladder::wording
