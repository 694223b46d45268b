// Infers units of printed times and rates: with known tokens per step, rate x time must give them, and each hypothesis
// is tried in order of likelihood. Without, labels and plausible sizes decide. The reasons become the user's notes, so
// each branch explains its arithmetic.
#include "storage/importers/logs/units.h"

#include <algorithm>
#include <cmath>

#include "storage/analysis/summary.h"
#include "storage/by_enum.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

// An unlabelled time from here on counts milliseconds: no step of a small model takes that many seconds.
constexpr double least_unlabelled_ms = 20;

// The largest relative difference of rate x time from the tokens of a step: both are printed rounded, and some rates
// are smoothed.
constexpr double fit_tolerance = 0.03;

constexpr double least_tokens_per_step = 30;
constexpr double most_tokens_per_step = 1e12;

// No single machine trains a useful model faster.
constexpr double fastest_tokens_per_s = 5e8;

bool near(double value, double expected) {
  return std::fabs(value / expected - 1) < fit_tolerance;
}

const char* name_of(TimeUnit unit) {
  return by_enum<TimeUnit>("ms", "us", "ms", "s", "min", "h")[unit];
}

const char* name_of(RateMeaning rate) {
  return by_enum<RateMeaning>("", "tokens/s", "tokens/ms", "samples/s", "steps/s")[rate];
}

RateMeaning by_label(RateLabel label) {
  return by_enum<RateLabel>(RateMeaning::unknown, RateMeaning::unknown, RateMeaning::tokens_per_s,
                            RateMeaning::tokens_per_ms, RateMeaning::samples_per_s,
                            RateMeaning::iterations_per_s)[label];
}

// The relative error of values that were printed with the digits that they have behind the point.
double rounding_of(std::vector<double>& values) {
  double unit = 1;
  const auto has_more = [&](double value) {
    return std::fabs(value / unit - std::round(value / unit)) > 1e-6 * std::max(1.0, value / unit);
  };
  while (unit > 1e-6 && std::ranges::any_of(values, has_more)) unit /= 10;
  return values.empty() ? 0 : unit / 2 / quantile(values, 0.5);
}

struct Reading {
  TimeUnit time = TimeUnit::ms;
  RateMeaning rate = RateMeaning::unknown;
};

class Inference {
 public:
  explicit Inference(const UnitEvidence& evidence) : evidence_(evidence) {
    std::vector<double> times, rates, products;
    // The first step holds compilation and allocation; with other steps, it adds nothing.
    for (std::size_t i = evidence.steps.size() > 2 ? 1 : 0; i < evidence.steps.size(); ++i) {
      const auto& [time, rate] = evidence.steps[i];
      if (time > 0 && std::isfinite(time)) times.push_back(time);
      if (rate > 0 && std::isfinite(rate)) rates.push_back(rate);
      if (time > 0 && rate > 0 && std::isfinite(time * rate)) products.push_back(time * rate);
    }
    time_ = quantile(times, 0.5);
    rate_ = quantile(rates, 0.5);
    product_ = quantile(products, 0.5);
    show_factors();
    if (evidence.time_covers > 0) {
      between_ = 1;
      units_.per_step = static_cast<double>(evidence.time_covers);
      product_ /= units_.per_step;
    } else if (!evidence.since_start) {
      between_ = evidence.steps_between;
    }
    spread_ =
        products.size() < 4 ? 0.005 : (quantile(products, 0.75) - quantile(products, 0.25)) / quantile(products, 0.5);
    rounding_ = rounding_of(times);
    units_.tokens_per_step = evidence.tokens_per_step;
  }

  Units infer() {
    if (is_missing(rate_)) {
      take_time(time_by_label());
      return units_;
    }
    if (evidence_.is_of_one_device) {
      with_one_device();
    } else if (is_missing(product_)) {
      take_time(time_by_label());
      take_rate(by_label(evidence_.rate));
    } else if (evidence_.rate == RateLabel::iterations && check_iterations()) {
      // steps/s don't give tokens
    } else if (evidence_.rate == RateLabel::samples) {
      with_samples();
    } else if (evidence_.tokens_per_step > 0) {
      with_known_tokens();
    } else if (evidence_.rate == RateLabel::iterations) {
      take_time(time_by_label());
      take_rate(by_label(evidence_.rate));
    } else if (evidence_.time_is_rate && roundest(product_, 1e-4 * product_) % 256 != 0) {  // too few digits to tell
      take_time(time_by_label());
      take_rate(by_label(evidence_.rate));
    } else {
      without_tokens();
    }
    return units_;
  }

 private:
  TimeUnit time_by_label() const {
    if (evidence_.time_unit != TimeUnit::unknown) return evidence_.time_unit;
    if (is_missing(time_)) return TimeUnit::ms;
    if (evidence_.since_start) return TimeUnit::s;
    return time_ >= least_unlabelled_ms ? TimeUnit::ms : TimeUnit::s;
  }

  void take_time(TimeUnit unit) { units_.ms_per_time = milliseconds_in(unit); }

  void take_rate(RateMeaning rate) {
    units_.rate = rate;
    if (rate == RateMeaning::unknown) return;
    units_.unit = name_of(rate);
    if (evidence_.rate_text.empty()) return;
    if (by_label(evidence_.rate) != rate) units_.unit += " printed as " + evidence_.rate_text;
  }

  void take(const Reading& reading) {
    take_time(reading.time);
    take_rate(reading.rate);
  }

  // Chooses the step whose product is nearest to the median of all: its factors are the ones to show.
  void show_factors() {
    double least = missing;
    for (std::size_t i = 0; i < evidence_.steps.size(); ++i) {
      const double product = evidence_.steps[i].time * evidence_.steps[i].rate, apart = std::fabs(product - product_);
      if (!(product > 0) || !(is_missing(least) || apart < least)) continue;
      least = apart;
      units_.shown = i;
    }
  }

  // "93600 x 8 devices x 0.35 s = 262080", of one step: the time is in the taken rate's unit, so that the product
  // counts what the rate does.
  std::string product_text(TimeUnit unit) const {
    const TimeUnit counted = units_.rate == RateMeaning::unknown         ? unit
                             : units_.rate == RateMeaning::tokens_per_ms ? TimeUnit::ms
                                                                         : TimeUnit::s;
    const double time = evidence_.steps[units_.shown].time * milliseconds_in(unit) / milliseconds_in(counted);
    const double rate = evidence_.steps[units_.shown].rate;
    const auto devices = static_cast<double>(evidence_.devices);
    return short_text(rate / devices) +
           (evidence_.devices > 1 ? " x " + std::to_string(evidence_.devices) + " devices" : std::string()) + " x " +
           short_text(time) + " " + name_of(counted) +
           (evidence_.time_covers > 1 ? " / " + std::to_string(evidence_.time_covers) + " steps" : std::string()) +
           " = " + short_text(rate * time / static_cast<double>(std::max<std::int64_t>(evidence_.time_covers, 1)));
  }

  bool check_iterations() {
    for (const TimeUnit unit : {TimeUnit::s, TimeUnit::ms}) {
      if (!near(product_ * milliseconds_in(unit), 1000)) continue;
      take({unit, RateMeaning::iterations_per_s});
      return true;
    }
    return false;
  }

  // The unit of time that both share; the time's label, or else its size, decides which.
  TimeUnit shared_unit() const {
    const bool claims_per_s = evidence_.rate == RateLabel::tokens;
    if (evidence_.time_unit == TimeUnit::ms) return rate_ * 1000 > fastest_tokens_per_s ? TimeUnit::s : TimeUnit::ms;
    if (evidence_.time_unit == TimeUnit::s) return TimeUnit::s;
    return time_ >= least_unlabelled_ms && !(claims_per_s && time_ < 2 * least_unlabelled_ms) ? TimeUnit::ms
                                                                                              : TimeUnit::s;
  }

  std::string of_step() const { return " the " + std::to_string(evidence_.tokens_per_step) + " tokens of a step"; }

  // Explains the arithmetic and its result.
  bool explain(const std::string& why) {
    units_.arithmetic = why + ": the rate is in " + units_.unit;
    units_.is_proven = true;
    return true;
  }

  // Rate x time as a multiple of the tokens of a step; 1 in the right units.
  double ratio() const { return product_ / static_cast<double>(evidence_.tokens_per_step); }

  // 1024 and 1000 are nearer to each other than the tolerance: the nearer one of the two counts.
  bool nearer_to_sequences(double factor) const {
    const double per_sample = evidence_.seq > 0 ? factor * 1000 / static_cast<double>(evidence_.seq) : 0;
    return per_sample > 0 && std::fabs(ratio() / per_sample - 1) < std::fabs(ratio() / factor - 1);
  }

  void with_known_tokens() {
    if (covers_all_steps() || counts_tokens_in_one_unit() || counts_tokens_in_two_units()) return;
    if (counts_sequences() || counts_steps()) return;
    if (counts_parts_of_a_step(TimeUnit::s) || counts_parts_of_a_step(TimeUnit::ms)) return;
    take({time_by_label(), by_label(evidence_.rate)});
    units_.arithmetic =
        product_text(time_by_label()) + " doesn't match" + of_step() + " in any unit; the step time is used as printed";
  }

  // Whether a time with a unit covers all steps between two lines: several steps' tokens fit no other reading.
  bool covers_all_steps() {
    const bool counts_tokens = evidence_.rate == RateLabel::tokens || evidence_.rate == RateLabel::unlabelled;
    return counts_tokens && evidence_.time_unit != TimeUnit::unknown && covers_all_steps(evidence_.time_unit);
  }

  bool covers_all_steps(TimeUnit unit) {
    const auto between = static_cast<double>(between_);
    if (between < 2 || !near(ratio() * milliseconds_in(unit) / 1000, between)) return false;
    take({unit, RateMeaning::tokens_per_s});
    units_.per_step = between;
    return explain(product_text(unit) + ", " + std::to_string(between_) + " steps: the time covers all of them");
  }

  std::vector<TimeUnit> possible_units() const {
    if (evidence_.time_unit != TimeUnit::unknown) return {evidence_.time_unit};
    return {TimeUnit::s, TimeUnit::ms};
  }

  // Samples per second x time are the sequences of a step, or of all steps between two lines.
  void with_samples() {
    const std::int64_t between = between_;
    const auto sequences = static_cast<double>(evidence_.sequences);
    if (evidence_.sequences == 0) return with_unknown_sequences(between);
    for (const TimeUnit unit : possible_units()) {
      const double steps = product_ * milliseconds_in(unit) / 1000 / sequences;
      if (!near(steps, 1) && !(between > 1 && near(steps, static_cast<double>(between)))) continue;
      take({unit, RateMeaning::samples_per_s});
      if (near(steps, 1)) {
        explain(product_text(unit) + ", the " + std::to_string(evidence_.sequences) + " sequences of a step");
        return;
      }
      units_.per_step = static_cast<double>(between);
      explain(product_text(unit) + ", " + std::to_string(between) + " x the " + std::to_string(evidence_.sequences) +
              " sequences of a step: the time covers the " + std::to_string(between) + " steps between two lines");
      return;
    }
    for (const TimeUnit unit : possible_units()) {
      const double parts = product_ * milliseconds_in(unit) / 1000 / sequences;
      const std::int64_t more = small_count(parts), devices = small_count(1 / parts);
      if (more > 1 && between == 1 && !evidence_.sequences_are_certain) {
        take({unit, RateMeaning::samples_per_s});
        if (!evidence_.tokens_are_certain) units_.tokens_per_step *= more;
        explain(product_text(unit) + ", " + std::to_string(more) + " x " + std::to_string(evidence_.sequences) +
                " sequences: batches are accumulated or devices add up");
        return;
      }
      if (devices <= 1) continue;
      take({unit, RateMeaning::samples_per_s});
      units_.rate_scale = static_cast<double>(devices);
      explain(product_text(unit) + ", 1/" + std::to_string(devices) + " of the " + std::to_string(evidence_.sequences) +
              " sequences of a step: the rate is that of one device");
      return;
    }
    take({time_by_label(), RateMeaning::samples_per_s});
    units_.arithmetic = product_text(time_by_label()) + " doesn't match the " + std::to_string(evidence_.sequences) +
                        " sequences of a step in any unit; the step time is used as printed";
  }

  // Without the sequences of a step: a number of samples that divides its tokens.
  void with_unknown_sequences(std::int64_t between) {
    take({time_by_label(), RateMeaning::samples_per_s});
    if (evidence_.tokens_per_step == 0 || evidence_.time_unit == TimeUnit::unknown) return;
    const auto divides = [&](double samples) {
      const auto whole = static_cast<std::int64_t>(std::llround(std::clamp(samples, 0.0, 1e9)));
      return whole > 0 && near(samples, static_cast<double>(whole)) && evidence_.tokens_per_step % whole == 0;
    };
    const double samples = product_ * milliseconds_in(evidence_.time_unit) / 1000;
    if (between < 2 || divides(samples) || !divides(samples / static_cast<double>(between))) return;
    units_.per_step = static_cast<double>(between);
    explain(product_text(evidence_.time_unit) + ", samples that only " + std::to_string(between) + " steps of " +
            std::to_string(evidence_.tokens_per_step) + " tokens can have: the time covers all of them");
  }

  // The rate is one device's, of an unknown number: only the tokens of a step show how many there are.
  void with_one_device() {
    const TimeUnit unit = time_by_label();
    const double steps[] = {1, static_cast<double>(between_)};
    const double tokens_per_s = evidence_.rate == RateLabel::tokens_per_ms ? 1000 : 1;
    const bool counts_tokens =
        evidence_.rate != RateLabel::samples && evidence_.tokens_per_step > 0 && !is_missing(product_);
    for (const double covered : steps) {
      const double part = counts_tokens ? ratio() * milliseconds_in(unit) / 1000 * tokens_per_s / covered : missing;
      const bool is_alone = near(part, 1) && evidence_.tokens_are_certain;
      const std::int64_t devices = is_alone ? 1 : small_count(1 / part, fit_tolerance);
      if (!(part > 0) || devices < 1) continue;
      take({unit, by_label(evidence_.rate)});
      units_.rate_scale = static_cast<double>(devices);
      units_.per_step *= covered;
      explain(product_text(unit) + ", 1/" + std::to_string(devices) + " of the tokens of " +
              (covered > 1 ? short_text(covered) + " steps" : std::string("a step")) + ": the rate is that of one of " +
              std::to_string(devices) + " devices");
      return;
    }
    take({unit, by_label(evidence_.rate)});
    if (!evidence_.tokens_are_certain) units_.tokens_per_step = 0;
  }

  // Tokens per second and seconds, or tokens per millisecond and milliseconds.
  bool counts_tokens_in_one_unit() {
    if (!near(ratio(), 1) || nearer_to_sequences(1)) return false;
    const TimeUnit unit = shared_unit();
    take({unit, unit == TimeUnit::ms ? RateMeaning::tokens_per_ms : RateMeaning::tokens_per_s});
    return explain(product_text(unit) + "," + of_step());
  }

  // Tokens per second and milliseconds, and the like.
  bool counts_tokens_in_two_units() {
    struct Scaled {
      double factor;
      Reading reading;
    };
    const Scaled scaled[] = {{1e3, {TimeUnit::ms, RateMeaning::tokens_per_s}},
                             {1e6, {TimeUnit::us, RateMeaning::tokens_per_s}},
                             {1e-3, {TimeUnit::s, RateMeaning::tokens_per_ms}}};
    for (const Scaled& it : scaled) {
      if (!near(ratio(), it.factor) || nearer_to_sequences(it.factor)) continue;
      take(it.reading);
      return explain(product_text(it.reading.time) + "," + of_step());
    }
    return false;
  }

  bool counts_sequences() {
    if (evidence_.seq == 0) return false;
    for (const TimeUnit unit : {TimeUnit::s, TimeUnit::ms}) {
      const double factor = 1000 / milliseconds_in(unit) / static_cast<double>(evidence_.seq);
      if (!near(ratio(), factor)) continue;
      take({unit, RateMeaning::samples_per_s});
      return explain(product_text(unit) + ", the sequences of a step");
    }
    return false;
  }

  bool counts_steps() {
    if (!near(product_, 1) && !near(product_, 1000)) return false;
    const TimeUnit unit = near(product_, 1) ? TimeUnit::s : TimeUnit::ms;
    take({unit, RateMeaning::iterations_per_s});
    return explain(product_text(unit) + ", one step");
  }

  // Whether there are several steps between two lines or several batches in a step, or the rate is one device's.
  bool counts_parts_of_a_step(TimeUnit unit) {
    if (evidence_.time_unit != TimeUnit::unknown && evidence_.time_unit != unit) return false;
    if (covers_all_steps(unit)) return true;
    const double parts = ratio() * milliseconds_in(unit) / 1000;
    const std::int64_t more = small_count(parts);
    if (more > 1 && !evidence_.tokens_are_certain && between_ > 1 && more % between_ == 0) {
      take({unit, RateMeaning::tokens_per_s});
      units_.ms_per_time = missing;
      units_.tokens_per_step = 0;
      units_.arithmetic = product_text(unit) + ", " + std::to_string(more) + " x" + of_step() +
                          ": the time covers several steps, or a step several batches; the log doesn't say which, so "
                          "neither was used";
      return true;
    }
    if (more > 1 && !evidence_.tokens_are_certain) {
      take({unit, RateMeaning::tokens_per_s});
      units_.tokens_per_step = more * evidence_.tokens_per_step;
      return explain(product_text(unit) + ", " + std::to_string(more) + " x " +
                     std::to_string(evidence_.tokens_per_step) + " tokens (batches are accumulated or devices add up)");
    }
    const std::int64_t devices = small_count(1 / parts);
    if (devices <= 1) return false;
    take({unit, RateMeaning::tokens_per_s});
    units_.rate_scale = static_cast<double>(devices);
    return explain(product_text(unit) + ", 1/" + std::to_string(devices) + " of" + of_step() +
                   " (the rate is that of one device)");
  }

  // Whether the tokens of a time that covers all steps between two lines would be rounder, as tokens of a step are.
  bool may_cover_all_steps(double tokens, double error, std::int64_t of_one) const {
    if (evidence_.time_is_of_step || between_ < 2) return false;
    const auto odd_part = [](std::int64_t number) { return number / (number & -number); };
    const double of_many = tokens / static_cast<double>(between_);
    const std::int64_t round = of_many < least_tokens_per_step ? 0 : roundest(of_many, error * of_many);
    return round > 0 && odd_part(round) < odd_part(of_one);
  }

  // Milliseconds and tokens per millisecond give the same product as seconds and tokens per second.
  void refuse_units() {
    units_.ms_per_time = missing;
    units_.arithmetic =
        "neither the step time nor the rate has a unit: they may be in ms and tokens/ms or in s and "
        "tokens/s, so neither was used";
  }

  void without_tokens() {
    const TimeUnit unit = time_by_label();
    const double seconds = milliseconds_in(unit) / 1000;
    const double as_printed = product_ * seconds * (evidence_.rate == RateLabel::tokens_per_ms ? 1000 : 1);
    const double error = std::max({spread_, 1e-4, rounding_});
    const std::int64_t per_s = as_printed < least_tokens_per_step || as_printed > most_tokens_per_step
                                   ? 0
                                   : roundest(as_printed, error * as_printed);
    const std::int64_t per_ms =
        as_printed * 1000 > most_tokens_per_step ? 0 : roundest(as_printed * 1000, error * as_printed * 1000);
    take_time(unit);
    if (per_s > 0 && may_cover_all_steps(as_printed, error, per_s)) {
      take_rate(by_label(evidence_.rate));
      units_.ms_per_time = missing;
      units_.arithmetic = product_text(unit) + ": the time covers one step or the " + std::to_string(between_) +
                          " steps between two lines; the log doesn't say which, so it wasn't used";
    } else if (per_s > 0) {
      units_.tokens_per_step = per_s;
      take_rate(evidence_.rate == RateLabel::tokens_per_ms ? RateMeaning::tokens_per_ms : RateMeaning::tokens_per_s);
      units_.arithmetic = product_text(unit) + ": a step has " + std::to_string(units_.tokens_per_step) +
                          " tokens if the rate is in " + units_.unit;
    } else if (per_ms >= 256 && per_ms % 64 == 0 && (as_printed < least_tokens_per_step || error * as_printed < 0.2)) {
      if (evidence_.time_unit == TimeUnit::unknown && evidence_.rate == RateLabel::unlabelled) return refuse_units();
      units_.tokens_per_step = per_ms;
      take_rate(RateMeaning::tokens_per_ms);
      units_.arithmetic = product_text(unit) + ": " + short_text(as_printed) + " tokens per step can't be a batch, " +
                          std::to_string(units_.tokens_per_step) + " can, so the rate is in " + units_.unit;
    } else {
      if (as_printed >= least_tokens_per_step) take_rate(by_label(evidence_.rate));
      units_.arithmetic = product_text(unit) + " doesn't give a definite number of tokens in any unit";
    }
  }

  const UnitEvidence& evidence_;
  double time_ = missing;
  double rate_ = missing;
  double product_ = missing;
  double spread_ = 0;
  double rounding_ = 0;       // of the times, relative
  std::int64_t between_ = 1;  // the steps that a time may cover: all between two lines; 1: it is known how many
  Units units_;
};

}  // namespace

std::int64_t small_count(double value, double tolerance) {
  const double whole = std::round(value);
  if (whole < 2 || whole > 4096 || std::fabs(value / whole - 1) > tolerance) return 0;
  const auto count = static_cast<std::int64_t>(whole);
  return count <= 16 || (count & (count - 1)) == 0 || count % 8 == 0 ? count : 0;
}

std::int64_t roundest(double tokens, double error) {
  for (int power = 24; power >= 0; --power) {
    const double unit = std::ldexp(1, power);
    if (unit < 4 * error) break;
    const double whole = std::round(tokens / unit) * unit;
    if (whole > 0 && std::fabs(tokens - whole) <= error) return static_cast<std::int64_t>(whole);
  }
  return 0;
}

bool is_failed_measurement(std::string_view text) {
  const bool is_nan = equal_in_lower(text.substr(0, 3), "nan");
  if (text.size() == 3 || !(is_nan || equal_in_lower(text.substr(0, 3), "inf"))) return is_nan;
  return unit_of(text.substr(3)).known;
}

Units infer_units(const UnitEvidence& evidence) {
  return Inference(evidence).infer();
}

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

bool is_device_word(std::string_view word) {
  return one_of(word, {"gpu", "gpus", "device", "devices", "chip", "rank", "card", "npu", "tpu", "accelerator"});
}

namespace {

// "tokens per second" and "tokens / s" as "tokens/s", in lower case. Returns its size.
std::size_t with_slashes(std::string_view text, char* into) {
  std::size_t size = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const std::string_view word = rest.starts_with(" per ") ? " per " : rest.starts_with(" / ") ? " / " : "";
    into[size++] = word.empty() ? lower(text[at]) : '/';
    at += std::max<std::size_t>(1, word.size());
  }
  return size;
}

// The seconds of "s", "min", "day" behind a slash; 0 if it is no such word.
double seconds_of(std::string_view word) {
  if (one_of(word, {"d", "day", "days"})) return 86400;
  const TimeUnit unit = time_unit(word);
  return unit == TimeUnit::unknown ? 0 : milliseconds_in(unit) / 1000;
}

}  // namespace

// "tok/s", "tokens/ms", "k tok/s", "it/s", "s/it", "ms/step", "ms", "GiB", "%", "M tokens per minute per GPU".
Unit unit_of(std::string_view text) {
  char buffer[48];
  if (text.empty() || text.size() > sizeof buffer) return {};
  std::string_view unit(buffer, with_slashes(text, buffer));

  Unit found;
  if (const std::size_t space = unit.find(' '); space != std::string_view::npos) {
    const Unit prefix = unit_of(text.substr(0, text.find(' ')));
    found = unit_of(unit.substr(space + 1));
    if (!(prefix.scale > 1) || found.rate == RateLabel::none) return {};
    found.scale *= prefix.scale;
    return found;
  }
  if (unit == "m" && text == "M") return {.scale = 1e6, .known = true};
  if (unit == "k") return {.scale = 1e3, .known = true};
  if (one_of(unit, {"b", "g", "t"})) return {.scale = unit == "t" ? 1e12 : 1e9, .other = true, .known = true};
  if ((found.time = time_unit(unit)) != TimeUnit::unknown) return found.known = true, found;
  if (one_of(unit, {"%",      "gb",      "gib",      "mb",     "mib",    "kb", "kib", "w",  "mw", "c", "x",   "z",
                    "tflops", "tflop/s", "tflops/s", "pflops", "gflops", "th", "st",  "nd", "rd", "j", "mhz", "ghz"}))
    return {.other = true, .known = true};
  if (unit == "bits" || unit.starts_with("bits/")) return {.other = true, .known = true};
  if (unit.starts_with("tflop") || unit.starts_with("pflop") || unit.starts_with("gflop"))
    return {.other = true, .known = true};

  if (unit == "tps") return {.rate = RateLabel::tokens, .known = true};
  const std::size_t slash = unit.find('/');
  if (slash == std::string_view::npos) return found;
  std::string_view above = unit.substr(0, slash);
  const std::string_view below = unit.substr(slash + 1);
  if (const TimeUnit taken = time_unit(above); taken != TimeUnit::unknown) {
    if (one_of(below, {"it", "iter", "iters", "iteration", "step", "steps", "batch", "ba", "update", "opt"}))
      return {.time = taken, .per_step = true, .known = true};
    return {.other = true, .known = true};  // "ms/token" and the like
  }
  // A time and perhaps a device, in either order: "s", "s/gpu", "gpu/s"; some print the device alone: "tok/gpu".
  const std::size_t second = below.find('/');
  const std::string_view first_word = below.substr(0, second);
  const std::string_view second_word = second == std::string_view::npos ? "" : below.substr(second + 1);
  found.per_device = is_device_word(first_word) || is_device_word(second_word);
  const std::string_view time = is_device_word(first_word) ? second_word : first_word;
  const double per = seconds_of(time.empty() ? "s" : time);
  if (per == 0) return {};
  const bool per_ms = time_unit(time) == TimeUnit::ms;
  found.scale = per > 1 ? 1 / per : 1;
  if (above.size() > 1 && above[0] == 'k' && above[1] == 't') found.scale *= 1e3, above.remove_prefix(1);
  if (above.size() > 1 && above[0] == 'm' && above[1] == 't') found.scale *= 1e6, above.remove_prefix(1);
  if (one_of(above, {"tok", "toks", "token", "tokens", "t", "words", "w"})) found.rate = RateLabel::tokens;
  if (one_of(above, {"sample", "samples", "seq", "seqs", "sequence", "sequences", "example", "examples", "ex", "img",
                     "imgs", "images", "sent", "sents"}))
    found.rate = RateLabel::samples;
  if (one_of(above, {"it", "iter", "iters", "iterations", "step", "steps", "batch", "batches", "ba", "updates"}))
    found.rate = RateLabel::iterations;
  if (found.rate == RateLabel::none) return {};
  if (per_ms && found.rate == RateLabel::tokens) found.rate = RateLabel::tokens_per_ms;
  found.known = true;
  return found;
}

Unit printed_unit(std::string_view text) {
  const std::size_t space = text.rfind(' ');
  Unit unit = unit_of(text);
  if (space == std::string_view::npos || unit.known) return unit;
  const Unit prefix = unit_of(text.substr(0, space));
  unit = unit_of(text.substr(space + 1));
  if (prefix.scale > 1) unit.scale = prefix.scale;
  return unit;
}

double milliseconds_in(TimeUnit unit) {
  return by_enum<TimeUnit>(1.0, 1e-3, 1.0, 1e3, 6e4, 3.6e6)[unit];
}

}  // namespace stepladder
