// Infers a run's units from its first steps, in order: tokens, clocks, units by arithmetic (units.h), rate, time
// stamps. It corrects the held steps in place and writes a note for each conclusion, which people read. Thresholds at
// the top say how much evidence is enough.
#include "storage/importers/logs/unit_inference.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "storage/analysis/summary.h"
#include "storage/importers/importer.h"
#include "storage/importers/logs/units.h"

namespace stepladder {
namespace {

// The largest relative error of a number that was printed with three digits.
constexpr double rounding_of_short_numbers = 0.006;

// From here on, a clock of whole seconds is accurate to 2 %.
constexpr double least_whole_seconds = 50;

// With at least this many printed rates, their median describes the run.
constexpr std::size_t least_rates = 4;

// Steps that are this many times longer than the time stamps' resolution can be timed by them.
constexpr double least_resolved = 10;

// A time that has grown from step to step this often is a clock, not a step time.
constexpr std::size_t least_clock_steps = 6;

// A wrong label changes a time a thousandfold; pauses between the steps add to what a clock shows of them.
constexpr double unit_tolerance = 2.5;

// The same if it grows by equal amounts a step, from nothing.
constexpr std::size_t least_even_steps = 3;

using Steps = std::span<const PrintedStep>;

// Whether the times grow from nothing by amounts that are, for each step, within a quarter of the first.
bool grows_evenly(Steps steps) {
  double first = missing, rate = missing;
  const PrintedStep* last = nullptr;
  for (const PrintedStep& each : steps) {
    if (is_missing(each.time)) continue;
    if (last && each.step <= last->step) return false;
    const double grown = last ? (each.time - last->time) / static_cast<double>(each.step - last->step) : missing;
    if (is_missing(first)) first = each.time;
    if (last && is_missing(rate)) {
      rate = grown;
      if (!(first <= 1.5 * (each.time - last->time))) return false;
    }
    if (last && !(std::abs(grown - rate) <= 0.25 * rate)) return false;
    last = &each;
  }
  return true;
}

// Whether the values labelled as times grow with every step, as only the time since the start does.
bool time_is_a_clock(Steps steps) {
  std::size_t grown = 0;
  double first = missing, last = missing;
  for (const PrintedStep& step : steps) {
    if (is_missing(step.time)) continue;
    if (!is_missing(last)) {
      if (!(step.time > last)) return false;
      ++grown;
    } else {
      first = step.time;
    }
    last = step.time;
  }
  return (grown >= least_clock_steps || (grown >= least_even_steps && grows_evenly(steps))) && last > 2.5 * first;
}

// Whether the values labelled as time since the start fall as often as they grow, as only a step's own time does.
bool elapsed_is_a_step(Steps steps) {
  std::size_t grown = 0, fallen = 0;
  double last = missing;
  for (const PrintedStep& step : steps) {
    if (!is_missing(step.time)) return false;
    if (is_missing(step.elapsed)) continue;
    if (!is_missing(last)) ++(step.elapsed > last ? grown : fallen);
    last = step.elapsed;
  }
  return grown + fallen >= least_clock_steps / 2 && fallen * 4 > grown + fallen;
}

// Whether a clock of whole seconds is too coarse for these steps, while a rate gives their time.
bool clock_is_coarse(Steps steps) {
  std::vector<double> between;
  double last = missing;
  for (const PrintedStep& step : steps) {
    if (!is_missing(step.time) || is_missing(step.throughput)) return false;
    if (is_missing(step.elapsed)) continue;
    if (step.elapsed != std::floor(step.elapsed)) return false;
    if (!is_missing(last)) between.push_back(step.elapsed - last);
    last = step.elapsed;
  }
  return !between.empty() && quantile(between, 0.5) < least_whole_seconds;
}

// Seconds of a step by the time stamps of the lines; missing if these are absent or too coarse.
double stamped_time(Steps steps) {
  std::vector<double> per_step, between;
  bool whole = true;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const double apart = steps[i].at - steps[i - 1].at;
    const double gap = static_cast<double>(steps[i].step - steps[i - 1].step);
    if (is_missing(steps[i].at) || is_missing(steps[i - 1].at) || !(apart >= 0) || !(gap > 0)) continue;
    whole &= steps[i].at == std::floor(steps[i].at);
    between.push_back(apart);
    per_step.push_back(apart / gap);
  }
  const double resolution = whole ? 1 : 0.001;
  return between.empty() || quantile(between, 0.5) < least_resolved * resolution ? missing : quantile(per_step, 0.5);
}

// The iterations of a step, if the lines count both; 0 if they have no constant number.
std::int64_t iterations_of_a_step(Steps steps) {
  const PrintedStep& last = steps.back();
  if (last.iteration < 0) return 1;
  for (std::int64_t each = last.iteration / std::max<std::int64_t>(last.step, 1), tries = 0; tries < 2; --each, ++tries)
    if (each > 0 && std::ranges::all_of(steps, [&](const PrintedStep& step) {
          return step.iteration < 0 || step.iteration / each == step.step ||
                 (step.iteration + each - 1) / each == step.step;
        }))
      return each;
  return 0;
}

// The printed times as parts of the time between the lines by a clock, in seconds: the time stamps, or the time since
// the start. Lines are taken together until the clock, of whole seconds perhaps, has gone far enough.
template <class Clock>
std::vector<double> parts_of_clock(Steps steps, double ms_per_time, Clock clock) {
  const bool whole = std::ranges::all_of(steps, [&](const PrintedStep& step) {
    return is_missing(clock(step)) || clock(step) == std::floor(clock(step));
  });
  const double least = least_resolved * (whole ? 1 : 0.001);
  std::vector<double> parts;
  double seconds = 0, apart = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const double time = steps[i].time * ms_per_time / 1000, gap = clock(steps[i]) - clock(steps[i - 1]);
    if (!(time > 0) || !(gap >= 0) || steps[i].step <= steps[i - 1].step) {
      seconds = apart = 0;
      continue;
    }
    seconds += time;
    apart += gap;
    if (apart < least) continue;
    parts.push_back(seconds / apart);
    seconds = apart = 0;
  }
  return parts;
}

// How many steps a printed time covers: one or all between two lines, by the lines' own steps/s or their time stamps.
struct Covered {
  std::int64_t steps = 1;  // 0: the steps/s contradict the time
  bool is_proven = false;
};
Covered steps_of_a_time(Steps steps, double ms_per_time, double ms_per_elapsed, std::int64_t between) {
  constexpr double tolerance = 0.15;
  constexpr std::size_t least_parts = 2;
  const auto is_near = [&](double value, std::int64_t expected) {
    return std::fabs(value / static_cast<double>(expected) - 1) < tolerance;
  };
  std::vector<double> by_rate;
  for (const PrintedStep& step : steps)
    if (const double covered = step.time * ms_per_time / 1000 * step.iterations; covered > 0)
      by_rate.push_back(covered);
  if (!by_rate.empty()) {
    const double covered = quantile(by_rate, 0.5);
    if (is_near(covered, 1)) return {1, true};
    return between > 1 && is_near(covered, between) ? Covered{between, true} : Covered{0, false};
  }
  std::vector<double> by_stamp =
      parts_of_clock(steps, ms_per_time, [&](const PrintedStep& step) { return step.elapsed * ms_per_elapsed / 1000; });
  if (by_stamp.size() < least_parts)
    by_stamp = parts_of_clock(steps, ms_per_time, [](const PrintedStep& step) { return step.at; });
  if (between < 2 || by_stamp.size() < least_parts) return {};
  const double part = quantile(by_stamp, 0.5);
  if (is_near(part, 1)) return {between, true};
  return {1, is_near(part * static_cast<double>(between), 1)};
}

// A column of tokens: the same on every line, or counting up. 0 if it is neither.
struct TokenColumn {
  std::int64_t per_step = 0;
  bool counts_up = false;
};
TokenColumn read_token_column(Steps steps, bool rounded) {
  double first = missing, last = missing;
  std::int64_t first_step = 0, last_step = 0, seen = 0;
  double per_step = missing;
  bool constant = true, even = true;
  for (const PrintedStep& step : steps) {
    if (is_missing(step.tokens) || !std::isfinite(step.tokens)) continue;
    if (++seen == 1) {
      first = step.tokens;
      first_step = step.step;
    } else {
      constant &= step.tokens == first;
      const double gap = static_cast<double>(step.step - last_step);
      const double grown = gap > 0 ? (step.tokens - last) / gap : missing;
      if (is_missing(per_step)) per_step = grown;
      even &= !is_missing(grown) && std::fabs(grown - per_step) <= 0.01 * per_step;
    }
    last = step.tokens;
    last_step = step.step;
  }
  if (seen < (constant ? 2 : 3) || !(first > 0) || !(last < 1e15)) return {};
  if (constant) return {rounded ? 0 : std::llround(first)};
  const double slope = last_step > first_step ? (last - first) / static_cast<double>(last_step - first_step) : 0;
  if (rounded) return {roundest(slope, rounding_of_short_numbers * slope)};
  if (even && per_step >= 1) return {std::llround(slope), true};
  return {};
}

class UnitInference {
 public:
  explicit UnitInference(FirstSteps first) : steps_(first.steps), first_(first) {}

  InferredUnits infer() {
    infer_tokens();
    infer_iterations();
    infer_clocks();
    devices_ =
        first_.labels.per_device && first_.labels.rate != RateLabel::iterations ? first_.facts.device_count() : 1;
    const LogFacts::Tokens worked_out = first_.facts.tokens_per_step();
    const UnitEvidence evidence = evidence_of_units(worked_out);
    const Units inferred = infer_units(evidence);
    take(inferred, evidence.tokens_are_certain);
    const bool timed = std::ranges::any_of(
        steps_, [](const PrintedStep& step) { return !is_missing(step.time) || !is_missing(step.elapsed); });
    check_by_wall_clock(evidence);
    if (evidence.time_covers > 1)
      note_interval(evidence.time_covers);
    else if (!evidence.since_start && units_.per_step == 1)
      infer_interval(evidence, inferred.is_proven, timed);
    if (iterations_ == 0) units_.ms_per_time = missing;
    if (iterations_ > 1) units_.per_step /= static_cast<double>(iterations_);
    infer_rate(evidence, timed, inferred.is_proven);
    explain(worked_out, inferred, timed, evidence.time_unit == TimeUnit::unknown);
    infer_rate_to_steps(inferred, evidence);
    return std::move(units_);
  }

 private:
  void note(std::string text, std::size_t step = 0) { units_.notes.push_back({steps_[step].line, std::move(text)}); }

  // Takes the tokens of a step from the most reliable source that gives them.
  void infer_tokens() {
    if (first_.tokens_per_step > 0) {
      units_.tokens_per_step = first_.tokens_per_step;
      return;
    }
    if (first_.step_is_epoch) return;
    const TokenColumn column = read_token_column(steps_, first_.labels.rounded_tokens);
    units_.tokens_per_step = column.per_step;
    if (column.counts_up) note("the token count grows by " + std::to_string(column.per_step) + " per step");
    if (column.per_step > 0) return;
    const double sequences = steps_.front().batch_size;
    if (!is_missing(sequences) && sequences > 0 && first_.facts.global_batch == 0)
      first_.facts.global_batch = std::llround(std::min(sequences, 1e9));
  }

  void infer_iterations() {
    iterations_ = iterations_of_a_step(steps_);
    if (iterations_ == 1) return;
    note("the lines count iterations and steps; the steps are counted here" +
         (iterations_ > 1 ? ", whose time is that of " + std::to_string(iterations_) + " iterations"
                          : std::string(", and the times, of iterations, were skipped")));
  }

  // Corrects the labels: values labelled as times may be a clock, and the reverse.
  void infer_clocks() {
    units_.time_is_clock = time_is_a_clock(steps_);
    if (units_.time_is_clock) {
      for (PrintedStep& step : steps_)
        if (!is_missing(step.time)) step.elapsed = std::exchange(step.time, missing);
      first_.labels.elapsed_unit = first_.labels.time_unit;
    }
    units_.process_clock = first_.labels.process_clock;
    units_.clock_is_coarse = first_.labels.rate != RateLabel::unlabelled && clock_is_coarse(steps_);
    if (units_.time_is_clock)
      note(std::string("the printed time grows with every step, so it counts from the start; ") +
           (units_.clock_is_coarse ? "its whole seconds are too coarse for step times"
                                   : "step times are its differences"));
    if (units_.clock_is_coarse)
      for (PrintedStep& step : steps_) step.elapsed = missing;
    units_.elapsed_is_step = elapsed_is_a_step(steps_);
    if (units_.elapsed_is_step) {
      note("the printed time since the start doesn't grow, so it was read as the time of a step");
      for (PrintedStep& step : steps_) step.time = std::exchange(step.elapsed, missing);
      first_.labels.time_unit = first_.labels.elapsed_unit;
    }
  }

  UnitEvidence evidence_of_units(const LogFacts::Tokens& worked_out) const {
    UnitEvidence evidence;
    evidence.rate = first_.labels.rate;
    evidence.rate_text = first_.labels.rate_text;
    evidence.seq = first_.facts.seq;
    evidence.devices = std::max<std::int64_t>(devices_, 1);
    evidence.is_of_one_device = devices_ == 0;
    const LogFacts::Sequences sequences = first_.facts.sequences_per_step();
    evidence.sequences = sequences.count;
    evidence.sequences_are_certain = sequences.certain;
    evidence.tokens_per_step = units_.tokens_per_step;
    evidence.tokens_are_certain = units_.tokens_per_step > 0;
    if (units_.tokens_per_step == 0 && !first_.step_is_epoch) {
      evidence.tokens_per_step = worked_out.count;
      evidence.tokens_are_certain = worked_out.certain;
    }
    if (evidence.tokens_are_certain && evidence.seq > 0 && evidence.tokens_per_step % evidence.seq == 0) {
      evidence.sequences = evidence.tokens_per_step / evidence.seq;
      evidence.sequences_are_certain = true;
    }
    bool timed = false, clocked = false;
    evidence.time_is_rate = true;
    std::vector<double> gaps;
    gaps.reserve(steps_.size());
    evidence.steps.reserve(steps_.size());
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const PrintedStep& step = steps_[i];
      PrintedRate printed{.time = step.time * static_cast<double>(iterations_),
                          .rate = step.throughput * static_cast<double>(evidence.devices)};
      if (i > 0) {
        const double gap = static_cast<double>(step.step - steps_[i - 1].step);
        if (gap > 0) gaps.push_back(gap);
        if (is_missing(step.time) && !is_missing(step.elapsed) && !is_missing(steps_[i - 1].elapsed) && gap > 0)
          printed.time = (step.elapsed - steps_[i - 1].elapsed) / gap;
      }
      timed |= !is_missing(step.time);
      evidence.time_is_rate &= std::fabs(step.time * step.iterations - 1) < 1e-12 &&
                               std::fabs(step.iterations * 100 - std::round(step.iterations * 100)) < 1e-9;
      clocked |= !is_missing(step.elapsed);
      evidence.steps.push_back(printed);
    }
    if (!gaps.empty()) evidence.steps_between = std::llround(quantile(gaps, 0.5));
    evidence.time_unit = timed ? first_.labels.time_unit : first_.labels.elapsed_unit;
    evidence.since_start = !timed && clocked;
    evidence.time_is_of_step = first_.labels.time_of_step || first_.is_known_program;
    if (first_.step_is_epoch && evidence.time_unit == TimeUnit::unknown) evidence.time_unit = TimeUnit::s;
    if (timed && iterations_ == 1 && evidence.time_unit != TimeUnit::unknown) {
      const Covered covered =
          steps_of_a_time(steps_, milliseconds_in(evidence.time_unit), ms_per_elapsed(), evidence.steps_between);
      if (covered.is_proven) evidence.time_covers = covered.steps;
    }
    return evidence;
  }

  double ms_per_elapsed() const {
    const TimeUnit unit = first_.labels.elapsed_unit;
    return milliseconds_in(unit == TimeUnit::unknown ? TimeUnit::s : unit);
  }

  void take(const Units& inferred, bool tokens_are_certain) {
    units_.ms_per_time = inferred.ms_per_time;
    units_.per_step = inferred.per_step;
    units_.printed.unit = inferred.unit;
    if (units_.tokens_per_step == 0 || !tokens_are_certain) units_.tokens_per_step = inferred.tokens_per_step;
    units_.rate_is_iterations = inferred.rate == RateMeaning::iterations_per_s;
    if (inferred.rate_scale > 1) first_.facts.add_devices(static_cast<std::int64_t>(inferred.rate_scale));
    if (inferred.rate == RateMeaning::tokens_per_s) units_.tokens_rate_to_s = inferred.rate_scale;
    if (inferred.rate == RateMeaning::tokens_per_ms) units_.tokens_rate_to_s = 1000 * inferred.rate_scale;
    if (inferred.rate == RateMeaning::samples_per_s && first_.facts.seq > 0)
      units_.tokens_rate_to_s = static_cast<double>(first_.facts.seq) * inferred.rate_scale;
  }

  // A step takes about as long as the lines' time stamps are apart. A thousand times more or less is a wrong label.
  void check_by_wall_clock(const UnitEvidence& evidence) {
    if (evidence.since_start || is_missing(units_.ms_per_time) || units_.rate_is_iterations) return;
    std::vector<double> times;
    for (const PrintedStep& step : steps_)
      if (step.time > 0) times.push_back(step.time);
    const double printed = quantile(times, 0.5) * units_.ms_per_time / units_.per_step;
    const auto check = [&](double wall_ms, const char* source, bool is_certain) {
      const double ratio = wall_ms / printed;
      if (!(ratio > 0) || std::max(ratio, 1 / ratio) < 1000 / unit_tolerance ||
          std::max(ratio, 1 / ratio) > 1000 * unit_tolerance)
        return false;
      // The time of all steps between two lines may be as far from that of one.
      const auto between = static_cast<double>(evidence.steps_between);
      const bool may_be_interval = units_.per_step == 1 && between > 1 && ratio < 1 &&
                                   std::max(ratio * between, 1 / (ratio * between)) < unit_tolerance;
      const std::string sum = "a step's printed time, " + short_text(printed) + " ms, and " + source + ", " +
                              short_text(wall_ms) + " ms a step, differ by a factor of " +
                              short_text(std::max(ratio, 1 / ratio));
      is_certain = is_certain && !may_be_interval;
      units_.ms_per_time = is_certain ? units_.ms_per_time * (ratio > 1 ? 1000 : 0.001) : missing;
      note(sum + (is_certain ? ", so the time is in " + std::string(ratio > 1 ? "seconds" : "milliseconds") +
                                   ", whatever its label says"
                  : may_be_interval
                      ? ", so its unit is wrong, or it covers the " + std::to_string(evidence.steps_between) +
                            " steps between two lines; the step times were skipped"
                      : ", so one of their units is wrong; the step times were skipped"));
      return true;
    };
    if (times.empty() || check(wall_ms_of(&PrintedStep::at, 1000), "the time stamps of the lines", true)) return;
    const double unit = milliseconds_in(first_.labels.elapsed_unit);
    if (first_.labels.elapsed_unit != TimeUnit::unknown)
      check(wall_ms_of(&PrintedStep::elapsed, unit), "the time since the start", false);
  }

  // Milliseconds of a step by a clock from the first line that has it to the last; missing if it is too coarse.
  double wall_ms_of(double PrintedStep::*clock, double unit_ms) const {
    const PrintedStep *first = nullptr, *last = nullptr;
    bool is_whole = true;
    for (const PrintedStep& step : steps_) {
      if (is_missing(step.*clock)) continue;
      if (last && (step.step <= last->step || step.*clock < last->*clock)) return missing;  // began anew
      is_whole = is_whole && step.*clock == std::floor(step.*clock);
      if (!first) first = &step;
      last = &step;
    }
    if (!first || first == last) return missing;
    const double apart = last->*clock - first->*clock;
    const double resolution = is_whole ? 1 : 0.001;
    return apart < least_resolved * resolution ? missing
                                               : apart * unit_ms / static_cast<double>(last->step - first->step);
  }

  void note_interval(std::int64_t steps) {
    note("the printed time covers the " + std::to_string(steps) +
         " steps since the line before, so it was divided by them");
  }

  void infer_interval(const UnitEvidence& evidence, bool is_proven, bool timed) {
    const std::int64_t between = evidence.steps_between;
    const Covered covered = steps_of_a_time(steps_, units_.ms_per_time, ms_per_elapsed(), between);
    if (covered.steps == 0) note("the printed step time and the printed steps/s disagree; the time was used");
    if (covered.steps > 1) {
      units_.per_step = static_cast<double>(covered.steps);
      return note_interval(covered.steps);
    }
    const bool is_certain = covered.is_proven || is_proven || first_.labels.time_of_step || first_.is_known_program;
    if (!timed || between < 2 || first_.step_is_epoch || is_missing(units_.ms_per_time) || is_certain) return;
    const std::string open = "the lines are " + std::to_string(between) +
                             " steps apart, and nothing shows whether a printed time covers one step or all " +
                             std::to_string(between) + "; it was ";
    if (units_.elapsed_is_step) units_.ms_per_time = missing;
    note(open + (units_.elapsed_is_step ? "not used" : "read as that of one step"));
  }

  // The steps/s by the printed rate, for steps without a time. It is the last to be settled.
  void infer_rate_to_steps(const Units& inferred, const UnitEvidence& evidence) {
    const auto devices = static_cast<double>(evidence.devices);
    units_.tokens_rate_to_s *= devices;
    if (units_.rate_is_iterations)
      units_.rate_to_steps = 1;
    else if (units_.tokens_rate_to_s > 0 && units_.tokens_per_step > 0)
      units_.rate_to_steps = units_.tokens_rate_to_s / static_cast<double>(units_.tokens_per_step);
    else if (inferred.rate == RateMeaning::samples_per_s && evidence.sequences > 0 && !is_of_one_device_)
      units_.rate_to_steps = devices * inferred.rate_scale / static_cast<double>(evidence.sequences);
  }

  void infer_rate(const UnitEvidence& evidence, bool timed, bool is_proven) {
    std::vector<double> rates;
    for (const PrintedRate& step : evidence.steps)
      if (step.rate > 0 && std::isfinite(step.rate)) rates.push_back(step.rate);
    const double rate = quantile(rates, 0.5);
    if (!timed) infer_stamps(static_cast<double>(units_.tokens_per_step), rate);
    if (devices_ == 0 && !is_proven && !has_stamped_devices_) {
      note("the rate is that of one device, and the log doesn't say how many there are, so it isn't the throughput");
      units_.tokens_rate_to_s = 0;
      is_of_one_device_ = true;
      if (!units_.printed.unit.empty()) units_.printed.unit += " of one device";
    }
    // Without tokens per step it is the only throughput that the log gives.
    const bool is_all = units_.tokens_per_step == 0 && !rates.empty();
    if (units_.tokens_rate_to_s > 0 && (is_all || (timed && rates.size() >= least_rates)))
      units_.printed.tokens_per_s = rate * units_.tokens_rate_to_s;
  }

  // Uses time stamps if no line gives the step time. With known tokens and their rate, they also show how many devices
  // the rate covers; for that, stamps that are too coarse for a step may do from the first line to the last.
  void infer_stamps(double tokens, double printed_rate) {
    double seconds = stamped_time(steps_);
    units_.stamps_are_clock = !is_missing(seconds);
    if (is_missing(seconds)) seconds = wall_ms_of(&PrintedStep::at, 1);
    if (!(seconds > 0)) return;
    if (tokens > 0 && units_.tokens_rate_to_s > 0 && printed_rate > 0) {
      const double devices = tokens / (seconds * printed_rate * units_.tokens_rate_to_s);
      const std::int64_t count = small_count(devices, 0.05);
      has_stamped_devices_ = count > 1 || std::fabs(devices - 1) < 0.25;
      if (count > 1 && ((count & (count - 1)) == 0 || count % 8 == 0 || count == first_.facts.devices)) {
        units_.tokens_rate_to_s *= static_cast<double>(count);
        first_.facts.add_devices(count);
        return note(short_text(tokens) + " tokens in " + short_text(seconds) + " s (by the time stamps) are " +
                    std::to_string(count) + " x " + short_text(printed_rate) + ": the rate is that of one device");
      }
      if (devices < 1.25) return;
      units_.tokens_rate_to_s = 0;  // its unit is unknown
      if (!units_.stamps_are_clock)
        note(short_text(tokens) + " tokens in " + short_text(seconds) + " s (by the time stamps) are " +
             short_text(devices) + " x " + short_text(printed_rate) + ": the rate isn't that of all tokens");
    }
    if (units_.stamps_are_clock && !units_.rate_is_iterations)
      note("the log prints no step time; it was taken from the time stamps of the lines");
  }

  void explain(const LogFacts::Tokens& worked_out, const Units& inferred, bool timed, bool unlabelled) {
    if (!worked_out.how.empty() && first_.tokens_per_step == 0 && units_.tokens_per_step == worked_out.count)
      note("tokens per step: " + std::to_string(worked_out.count) + " (" + worked_out.how + ")");
    if (devices_ > 1) note("the rate is that of one device; the log names " + std::to_string(devices_));
    if (!inferred.arithmetic.empty()) note(inferred.arithmetic, inferred.shown);
    if (timed && unlabelled && !is_missing(units_.ms_per_time))
      note(std::string("the step time has no unit; it was read as ") +
           (units_.ms_per_time >= 1000 ? "seconds" : "milliseconds"));
    if (units_.tokens_per_step == 0 && !first_.step_is_epoch && (timed || !first_.labels.rate_text.empty()))
      note(std::string(unknown_tokens_note) +
           (is_missing(units_.printed.tokens_per_s)
                ? ", so there is no throughput"
                : ", so the throughput is the printed one, whose unit can't be checked"));
    if (first_.step_is_epoch) note("the log counts epochs only, so each step here is an epoch");
  }

  std::span<PrintedStep> steps_;
  FirstSteps first_;
  InferredUnits units_;
  std::int64_t iterations_ = 1;       // of a step; 0: not constant
  bool is_of_one_device_ = false;     // the rate, and nothing shows how many there are
  bool has_stamped_devices_ = false;  // the time stamps show how many devices the rate is of
  std::int64_t devices_ = 1;          // that the rate has to be multiplied by; 0: an unknown number
};

}  // namespace

bool may_be_a_clock(Steps steps) {
  double last = missing;
  std::size_t times = 0;
  for (const PrintedStep& step : steps) {
    if (is_missing(step.time)) continue;
    if (!is_missing(last) && !(step.time > last)) return false;
    last = step.time;
    ++times;
  }
  return times > 1 && times <= least_clock_steps;
}

InferredUnits infer_run_units(FirstSteps first) {
  return UnitInference(first).infer();
}

void StepLabels::read(const StepLine& line) {
  if (time_unit == TimeUnit::unknown && !is_missing(line.time)) time_unit = line.time_unit;
  if (elapsed_unit == TimeUnit::unknown && !is_missing(line.elapsed)) elapsed_unit = line.elapsed_unit;
  if (rate == RateLabel::none && !is_missing(line.throughput)) {
    rate = line.rate;
    rate_text = line.rate_text;
    per_device = line.per_device;
  }
  if (planned_steps == 0 && line.total > 0) planned_steps = line.total;
  process_clock |= line.process_clock;
  time_of_step |= line.time_of_step || line.interval;
  rounded_tokens |= line.rounded_tokens;
}

void StepLabels::convert(const StepLine& line, const RunProgress& run, PrintedStep& printed) const {
  const auto turn = [](double& value, TimeUnit from, TimeUnit into) {
    if (from == into || from == TimeUnit::unknown || into == TimeUnit::unknown || is_missing(value)) return;
    value *= milliseconds_in(from) / milliseconds_in(into);
  };
  turn(printed.time, line.time_unit, time_unit);
  turn(printed.elapsed, line.elapsed_unit, elapsed_unit);
  if (line.interval) {
    const std::int64_t gap = run.steps > 0 ? printed.step - run.last_step : 0;
    if (gap > 0) {
      printed.time /= static_cast<double>(gap);
    } else {  // so many steps as its steps/s says
      const double seconds = printed.time * (time_unit == TimeUnit::unknown ? 1 : milliseconds_in(time_unit) / 1000);
      const double covered = std::round(seconds * printed.iterations);
      printed.time = covered >= 1 ? printed.time / covered : missing;
    }
  }
  if (!is_missing(printed.throughput) && (line.rate != rate || line.per_device != per_device))
    printed.throughput = missing;
}

}  // namespace stepladder
