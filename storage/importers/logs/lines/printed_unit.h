// Units as logs print them: "ms", "tok/s", "k tok/s", "s/it", "GiB".
#pragma once

#include <cstdint>
#include <string_view>

namespace stepladder {

enum class TimeUnit : std::uint8_t { unknown, us, ms, s, min, h };
double milliseconds_in(TimeUnit unit);  // 1 for unknown

// The thing that a printed rate counts, by its label. The label is evidence, never proof (see units.h).
enum class RateLabel : std::uint8_t { none, unlabelled, tokens, tokens_per_ms, samples, iterations };

struct Unit {
  TimeUnit time = TimeUnit::unknown;
  RateLabel rate = RateLabel::none;
  double scale = 1;
  bool per_step = false;  // "ms/step", "s/it": a time although it has a slash
  bool other = false;     // known, but not one of ours: %, GiB
  bool known = false;
};

TimeUnit time_unit(std::string_view text);  // in lower case
Unit unit_of(std::string_view text);

}  // namespace stepladder
