// Infers the units of a run's printed times and rates. Labels are evidence, arithmetic is proof: tokens per step = rate
// x time holds for one pair of units only.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// Units as logs print them: "ms", "tok/s", "k tok/s", "s/it", "GiB".

enum class TimeUnit : std::uint8_t { unknown, us, ms, s, min, h };
double milliseconds_in(TimeUnit unit);  // 1 for unknown

// The thing that a printed rate counts, by its label. The label is evidence, never proof (see units.h).
enum class RateLabel : std::uint8_t { none, unlabelled, tokens, tokens_per_ms, samples, iterations };

struct Unit {
  TimeUnit time = TimeUnit::unknown;
  RateLabel rate = RateLabel::none;
  double scale = 1;
  bool per_step = false;    // "ms/step", "s/it": a time although it has a slash
  bool per_device = false;  // "tok/s/gpu"
  bool other = false;       // known, but not one of ours: %, GiB
  bool known = false;
};

TimeUnit time_unit(std::string_view text);   // in lower case
bool is_device_word(std::string_view word);  // "gpu": in lower case
// A rate is converted to one per second (or per ms): "tokens per minute" has a scale of 1/60.
Unit unit_of(std::string_view text);
// The same of one or two words: "k tok/s" too.
Unit printed_unit(std::string_view text);
bool is_failed_measurement(std::string_view text);  // "nan", "nanms", "infs"

// One step's printed figures, in whatever units.
struct PrintedRate {
  double time = missing;
  double rate = missing;
};

struct UnitEvidence {
  std::vector<PrintedRate> steps;
  TimeUnit time_unit = TimeUnit::unknown;  // by its label
  RateLabel rate = RateLabel::none;
  std::string rate_text;             // as printed
  std::int64_t tokens_per_step = 0;  // 0: not known
  bool tokens_are_certain = false;   // given by the user or printed as such, not calculated from batch and sequence
  std::int64_t seq = 0;              // tokens of a sequence; 0: not known
  std::int64_t sequences = 0;        // of a step; 0: not known
  bool sequences_are_certain = false;
  std::int64_t devices = 1;        // the printed rates x this = `rate` of the steps, which are those of one device
  bool is_of_one_device = false;   // the rate is one device's, and nobody says how many there are
  std::int64_t steps_between = 1;  // steps from one printed line to the next
  bool time_is_rate = false;       // the times are those of a printed steps/s, which has few digits
  bool time_is_of_step = false;    // the times are called those of a step
  bool since_start = false;        // the times are differences of a clock, which counts seconds if unlabelled
  std::int64_t time_covers = 0;    // the steps of a time, by the lines' own clock or steps/s; 0: neither shows them
};

enum class RateMeaning { unknown, tokens_per_s, tokens_per_ms, samples_per_s, iterations_per_s };

struct Units {
  double ms_per_time = 1;            // printed time x this = milliseconds
  double per_step = 1;               // ... and divided by this = one step
  std::int64_t tokens_per_step = 0;  // 0: still unknown
  RateMeaning rate = RateMeaning::unknown;
  double rate_scale = 1;   // the number of devices, if the rate is that of one
  std::string unit;        // "tokens/ms printed as tokens/sec"; empty: no rate was printed
  std::string arithmetic;  // one sentence that a reader can recalculate; empty: nothing was calculated
  std::size_t shown = 0;   // the step whose factors it shows
  bool is_proven = false;  // the arithmetic shows how many steps a time covers
};

Units infer_units(const UnitEvidence& evidence);

// The roundest whole number within `error` of `tokens` (batches and sequences are round), if that can't be chance: once
// 2^k is as small as the error, any number has a multiple of 2^k near it. 0 if there is no such number.
std::int64_t roundest(double tokens, double error);

// N if value is N within `tolerance`, as a number of devices or of accumulated batches; else 0.
std::int64_t small_count(double value, double tolerance = 0.01);

// A number for a sentence: six significant digits.

inline std::string short_text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

}  // namespace stepladder
