#include "storage/importers/logs/lines/printed_unit.h"

#include <algorithm>

#include "storage/importers/text.h"

namespace stepladder {
namespace {

constexpr std::string_view micro_signs[] = {"\xC2\xB5s", "\xCE\xBCs"};

}  // namespace

TimeUnit time_unit(std::string_view text) {
  switch (text.empty() ? '\0' : text.front()) {
    case 's':
      return one_of(text, {"s", "sec", "secs", "second", "seconds"}) ? TimeUnit::s : TimeUnit::unknown;
    case 'm':
      if (one_of(text, {"ms", "msec", "msecs", "millisecond", "milliseconds", "millis"})) return TimeUnit::ms;
      return one_of(text, {"min", "mins", "minute", "minutes", "m"}) ? TimeUnit::min : TimeUnit::unknown;
    case 'h':
      return one_of(text, {"h", "hr", "hrs", "hour", "hours"}) ? TimeUnit::h : TimeUnit::unknown;
    default:
      return one_of(text, {"us", "usec", "microseconds", micro_signs[0], micro_signs[1]}) ? TimeUnit::us
                                                                                          : TimeUnit::unknown;
  }
}

// "tok/s", "tokens/ms", "k tok/s", "it/s", "s/it", "ms/step", "ms", "GiB", "%".
Unit unit_of(std::string_view text) {
  char buffer[24];
  if (text.empty() || text.size() > sizeof buffer) return {};
  std::transform(text.begin(), text.end(), buffer, lower);
  std::string_view unit(buffer, text.size());

  Unit found;
  if (unit == "m" && text == "M") return {.scale = 1e6, .known = true};
  if (unit == "k") return {.scale = 1e3, .known = true};
  if (one_of(unit, {"b", "g", "t"})) return {.scale = unit == "t" ? 1e12 : 1e9, .other = true, .known = true};
  if ((found.time = time_unit(unit)) != TimeUnit::unknown) return found.known = true, found;
  if (one_of(unit, {"%",      "gb",      "gib",      "mb",     "mib",    "kb", "kib", "w",  "mw", "c", "x",   "z",
                    "tflops", "tflop/s", "tflops/s", "pflops", "gflops", "th", "st",  "nd", "rd", "j", "mhz", "ghz"}))
    return {.other = true, .known = true};
  if (unit.starts_with("tflop") || unit.starts_with("pflop") || unit.starts_with("gflop"))
    return {.other = true, .known = true};

  const std::size_t slash = unit.find('/');
  if (slash == std::string_view::npos) return found;
  std::string_view above = unit.substr(0, slash);
  const std::string_view below = unit.substr(slash + 1);
  if (const TimeUnit time = time_unit(above); time != TimeUnit::unknown) {
    if (one_of(below, {"it", "iter", "iters", "iteration", "step", "steps", "batch", "ba", "update", "opt"}))
      return {.time = time, .per_step = true, .known = true};
    return {.other = true, .known = true};  // "ms/token" and the like
  }
  const TimeUnit per = time_unit(below == "gpu" || below.empty() ? "s" : below.substr(0, below.find('/')));
  if (per == TimeUnit::unknown || per == TimeUnit::min || per == TimeUnit::h) return found;
  if (above.size() > 2 && above[0] == 'k' && above[1] == 't') found.scale = 1e3, above.remove_prefix(1);
  if (above.size() > 2 && above[0] == 'm' && above[1] == 't') found.scale = 1e6, above.remove_prefix(1);
  if (one_of(above, {"tok", "toks", "token", "tokens", "t", "words", "w"})) found.rate = RateLabel::tokens;
  if (one_of(above, {"sample", "samples", "seq", "seqs", "sequence", "sequences", "example", "examples", "ex", "img",
                     "imgs", "images", "sent", "sents"}))
    found.rate = RateLabel::samples;
  if (one_of(above, {"it", "iter", "iters", "iterations", "step", "steps", "batch", "batches", "ba", "updates"}))
    found.rate = RateLabel::iterations;
  if (found.rate == RateLabel::none) return {};
  if (per == TimeUnit::ms && found.rate == RateLabel::tokens) found.rate = RateLabel::tokens_per_ms;
  found.known = true;
  return found;
}

double milliseconds_in(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::us:
      return 1e-3;
    case TimeUnit::s:
      return 1e3;
    case TimeUnit::min:
      return 6e4;
    case TimeUnit::h:
      return 3.6e6;
    case TimeUnit::ms:
    case TimeUnit::unknown:
      return 1;
  }
  return 1;
}

}  // namespace stepladder
