// Reasons to distrust a pool, one function for each: differing facts, scripts, seeds, copied curves, a clock that
// starts late or pauses, another machine or day. Sentences name at most four files. A new flag is called in
// hygiene_flags, whose order is what people see.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>

#include "storage/analysis/means/student_t.h"
#include "storage/analysis/statistics.h"
#include "storage/analysis/verdict/step_grain.h"
#include "storage/speedrun/record_claim.h"
#include "storage/speedrun/script_diff.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

using Logs = std::vector<SpeedrunLog>;

constexpr std::size_t most_named = 4;

std::string name_of(const SpeedrunLog& log) {
  return std::filesystem::path(log.file).filename().string();
}

// The first few, and how many more.
std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most_named); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > most_named) text += fmt::format(" and {} more", names.size() - most_named);
  return text;
}

// Groups logs by a fact; those without it (an empty text) are skipped.
std::map<std::string, std::vector<std::string>> groups_of(const Logs& logs,
                                                          const std::function<std::string(const SpeedrunLog&)>& say) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const SpeedrunLog& log : logs)
    if (std::string said = say(log); !said.empty()) groups[said].push_back(name_of(log));
  return groups;
}

// "2.9.0 (3 logs), 2.10.0 (1 log: seed4.log)": the smaller groups by their files.
std::string groups_text(const std::map<std::string, std::vector<std::string>>& groups) {
  std::size_t largest = 0;
  for (const auto& [said, files] : groups) largest = std::max(largest, files.size());
  std::vector<std::string> parts;
  for (const auto& [said, files] : groups)
    parts.push_back(said + " (" + plural(files.size(), "log") +
                    (files.size() < largest ? ": " + list_text(files) : "") + ")");
  return list_text(parts);
}

// --- facts that should be the same in all logs -----------------------------------------------------------------------

std::string gpu_model(const SpeedrunLog& log) {
  std::vector<std::string> models = log.gpus;
  std::ranges::sort(models);
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return list_text(models);
}

std::string gpu_count(const SpeedrunLog& log) {
  return log.gpus.empty() ? "" : plural(log.gpus.size(), "GPU");
}

struct Fact {
  const char* id;
  const char* what;
  std::string (*of)(const SpeedrunLog&);
  bool of_baseline;            // whether the baseline should agree
  bool must_be_named = false;  // by both, if one names it
};

const Fact facts[] = {
    {"step-counts", "The runs are of different length: ",
     [](const SpeedrunLog& log) { return log.final.step > 0 ? plural(log.final.step, "step") : ""; }, false},
    {"gpu-models", "The GPUs differ: ", gpu_model, true, true},
    {"gpu-counts", "The numbers of GPUs differ: ", gpu_count, true},
    {"torch-versions", "The versions of PyTorch differ: ", [](const SpeedrunLog& log) { return log.torch; }, true},
    {"driver-versions", "The drivers differ: ", [](const SpeedrunLog& log) { return log.driver; }, true},
    {"val-tokens", "The losses are of different numbers of tokens: ",
     [](const SpeedrunLog& log) { return log.val_tokens > 0 ? plural(log.val_tokens, "token") : ""; }, true, true},
};

void flag_facts(const Logs& logs, const Logs* baseline, std::vector<RecordFlag>& flags) {
  for (const Fact& fact : facts) {
    auto groups = groups_of(logs, fact.of);
    std::string where = fact.what;
    if (groups.size() < 2 && baseline && fact.of_baseline && !logs.empty() && !baseline->empty()) {
      const auto theirs = groups_of(*baseline, fact.of);
      const auto said = [](const auto& of) { return of.empty() ? "not named" : groups_text(of); };
      if (groups.empty() && theirs.empty()) continue;
      if (groups.empty() || theirs.empty() ? fact.must_be_named
                                           : theirs.size() > 1 || groups.begin()->first != theirs.begin()->first) {
        flags.push_back({fact.id, where + said(groups) + "; in the baseline " + said(theirs)});
        continue;
      }
    }
    if (groups.size() > 1) flags.push_back({fact.id, where + groups_text(groups)});
  }
}

// --- scripts, seeds and curves ---------------------------------------------------------------------------------------

void flag_scripts(const Logs& logs, const char* of, std::vector<RecordFlag>& flags) {
  const auto groups = groups_of(logs, [](const SpeedrunLog& log) { return log.script_hash; });
  if (groups.size() < 2) return;
  const SpeedrunLog* first = nullptr;
  const SpeedrunLog* other = nullptr;
  for (const SpeedrunLog& log : logs) {
    if (log.script_hash.empty()) continue;
    if (!first) first = &log;
    if (log.script_hash != first->script_hash && !other) other = &log;
  }
  flags.push_back({"several-scripts", fmt::format("The {} holds runs of {}: {}. {} and {}: {}", of,
                                                  plural(groups.size(), "script"), groups_text(groups), name_of(*first),
                                                  name_of(*other), difference_in_short(first->script, other->script))});
}

void flag_seeds(const Logs& logs, const char* of, std::vector<RecordFlag>& flags) {
  std::vector<std::string> parts;
  for (const auto& [seed, files] : groups_of(logs, [](const SpeedrunLog& log) { return log.seed; }))
    if (files.size() > 1) parts.push_back("seed " + seed + " in " + list_text(files));
  if (!parts.empty())
    flags.push_back({"equal-seeds", std::string("Runs of the ") + of +
                                        " have the same seed, so they aren't independent: " + list_text(parts)});
}

// The evaluations after step 0 as text, and the clock where there are too few of them to distinguish runs.
std::string curve_of(const SpeedrunLog& log) {
  std::string curve;
  std::size_t values = 0;
  for (const PrintedEvaluation& it : log.evaluations) {
    if (it.step == 0) continue;
    ++values;
    curve += fmt::format("{}:{} ", it.step, std::bit_cast<std::uint64_t>(it.value));
  }
  if (values < 3)
    for (const ClockReading& it : log.clock) curve += fmt::format("{} ", std::bit_cast<std::uint64_t>(it.time_ms));
  return curve;
}

// Whether nearly all evaluations of the two are equal to their last printed digit, perhaps but for one constant: those
// of two seeds differ by tens of it.
constexpr std::size_t fewest_alike = 5;
bool are_near_copies(const SpeedrunLog& log, const SpeedrunLog& other, double last_digit, double finer_digit) {
  std::vector<double> gaps;
  auto theirs = other.evaluations.begin();
  for (const PrintedEvaluation& it : log.evaluations) {  // both are in the order of steps
    while (theirs != other.evaluations.end() && theirs->step < it.step) ++theirs;
    if (theirs == other.evaluations.end()) break;
    if (it.step == 0 || theirs->step != it.step) continue;
    gaps.push_back(theirs->value - it.value);
  }
  const auto are_near = [&](double shift, double digit) {
    const auto equal = std::ranges::count_if(gaps, [&](double gap) { return std::abs(gap - shift) <= 1.5 * digit; });
    return 10 * equal >= 9 * std::ssize(gaps);
  };
  return gaps.size() >= fewest_alike && (are_near(0, last_digit) || are_near(median_of(gaps), finer_digit));
}

void flag_near_copies(const Logs& both, std::vector<RecordFlag>& flags) {
  std::vector<std::string> files;
  std::vector<double> last_digits;
  for (const SpeedrunLog& log : both) {
    std::vector<double> printed;
    for (const PrintedEvaluation& it : log.evaluations) printed.push_back(it.value);
    last_digits.push_back(last_digit_of(printed));
  }
  for (std::size_t i = 1; i < both.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (are_near_copies(both[j], both[i], last_digits[i], std::min(last_digits[i], last_digits[j]))) {
        files.push_back(name_of(both[i]) + " (as " + name_of(both[j]) + ")");
        break;
      }
  if (!files.empty())
    flags.push_back(
        {"same-curve", "The same curve but for its last digits, or for a constant, is there more than once, so " +
                           plural(std::ssize(files), "log adds", "logs add") + " nothing: " + list_text(files)});
}

// A pool whose final values scatter far less than the baseline's, by an F test: seeds that differ in both don't do
// that.
constexpr std::size_t fewest_scattered = 4;
constexpr double scatter_level = 0.001;
void flag_scatter(const Logs& logs, const Logs& baseline, std::vector<RecordFlag>& flags) {
  const auto figures = [](const Logs& of) {
    std::vector<double> values;
    for (const SpeedrunLog& log : of) values.push_back(log.final.value);
    return figures_of(values);
  };
  const SampleFigures ours = figures(logs), theirs = figures(baseline);
  if (ours.n < fewest_scattered || theirs.n < fewest_scattered || !(theirs.std > 0) || is_missing(ours.std)) return;
  const double ratio = ours.std / theirs.std;
  const double p = f_cdf(ratio * ratio, static_cast<double>(ours.n - 1), static_cast<double>(theirs.n - 1));
  if (p < scatter_level)
    flags.push_back(
        {"little-scatter",
         fmt::format("The final values scatter by {}, and the baseline's by {}; with the same spread of seeds "
                     "that has a probability of {}, so these may be one run",
                     significant(ours.std, 2), significant(theirs.std, 2), significant(p, 2))});
}

// The last step has two values; which one the run ended with is anyone's guess.
void flag_other_finals(const Logs& logs, std::vector<RecordFlag>& flags) {
  std::vector<std::string> files;
  std::string why;
  for (const SpeedrunLog& log : logs) {
    if (is_missing(log.other_final)) continue;
    if (files.empty())
      why = name_of(log) + ": step " + std::to_string(log.final.step) + " has two values, " +
            loss_text(log.final.value) + ", which counts here, and " + loss_text(log.other_final);
    files.push_back(name_of(log));
  }
  if (files.empty()) return;
  if (files.size() > 1) why += fmt::format(" (and so in {} of {} logs)", files.size(), logs.size());
  flags.push_back({"two-final-values", why});
}

void flag_copies(const Logs& logs, const Logs* baseline, std::vector<RecordFlag>& flags) {
  Logs both = logs;
  if (baseline) both.insert(both.end(), baseline->begin(), baseline->end());
  std::vector<std::string> parts;
  std::size_t copies = 0;
  for (const auto& [curve, files] : groups_of(both, curve_of)) {
    if (files.size() < 2) continue;
    copies += files.size() - 1;
    parts.push_back(list_text(files));
  }
  if (copies > 0)
    flags.push_back({"same-curve", "The same curve is there more than once, so " +
                                       plural(copies, "log adds", "logs add") + " nothing: " + list_text(parts)});
  else
    flag_near_copies(both, flags);
}

// --- the clock -------------------------------------------------------------------------------------------------------

// The time of a step once the clock runs: the median over the log's steps.
double step_ms(const SpeedrunLog& log) {
  std::vector<double> times;
  for (std::size_t i = 1; i < log.clock.size(); ++i) {
    const auto steps = static_cast<double>(log.clock[i].step - log.clock[i - 1].step);
    const double ms = log.clock[i].time_ms - log.clock[i - 1].time_ms;
    if (steps > 0 && ms > 0) times.push_back(ms / steps);
  }
  return median_of(std::move(times));
}

// The steps that were done before the clock began, or began again; 0 if it ran from the start.
std::int64_t untimed_steps(const SpeedrunLog& log) {
  std::int64_t untimed = 0;
  for (std::size_t i = 1; i < log.clock.size(); ++i) {
    if (log.clock[i].step > log.final.step / 2) break;
    // The reading of the first step after the clock was set to 0 includes that step.
    if (log.clock[i].time_ms < log.clock[i - 1].time_ms) untimed = log.clock[i - 1].step;
  }
  const double step = step_ms(log);
  if (untimed == 0 && !log.clock.empty() && log.clock.front().step > 1 && step > 0) {
    const auto timed = static_cast<std::int64_t>(std::ceil(log.clock.front().time_ms / step));
    if (timed * 2 < log.clock.front().step) untimed = log.clock.front().step - timed;
  }
  return untimed;
}

// Consecutive steps in which the clock advanced by less than half of what it does around them, or, in many, by less
// than two thirds of what it did before and does again later: a schedule makes steps shorter for good.
struct ClockGap {
  std::int64_t first = 0;
  std::int64_t last = 0;
  double advanced_ms = 0;
  double expected_ms = 0;
};

// Readings at launch run ahead of the device, so windows of ten steps are compared; in published logs none advances by
// less than 0.87 of its surroundings.
constexpr std::size_t window = 10;
constexpr std::size_t surroundings = 60;

double median_rate(const std::vector<double>& rates, std::size_t first, std::size_t end) {
  std::vector<double> positive;
  for (std::size_t i = first; i < std::min(end, rates.size()); ++i)
    if (!is_missing(rates[i]) && rates[i] > 0) positive.push_back(rates[i]);
  return median_of(std::move(positive));
}

ClockGap worst_gap(const SpeedrunLog& log) {
  ClockGap worst;
  const std::vector<ClockReading>& clock = log.clock;
  if (clock.size() < 2 * surroundings) return worst;
  std::vector<double> rates(clock.size() - window);  // ms per step from each reading on
  for (std::size_t i = 0; i + window < clock.size(); ++i) {
    const auto steps = static_cast<double>(clock[i + window].step - clock[i].step);
    rates[i] = steps > 0 ? (clock[i + window].time_ms - clock[i].time_ms) / steps : missing;
  }
  const auto take = [&](std::size_t first, std::size_t last, double rate, double expected) {
    const auto steps = static_cast<double>(clock[last].step - clock[first].step);
    if ((expected - rate) * steps > worst.expected_ms - worst.advanced_ms)
      worst = {clock[first].step, clock[last].step, rate * steps, expected * steps};
  };
  std::vector<double> later = rates;  // the largest from there on
  for (std::size_t i = rates.size(); i-- > 0;)
    later[i] = std::fmax(median_rate(rates, i, i + window), i + 1 < later.size() ? later[i + 1] : missing);
  const std::int64_t begin = untimed_steps(log) + 1;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (clock[i].step <= begin || is_missing(rates[i])) continue;
    const double before = median_rate(rates, i > surroundings ? i - surroundings : 0, i > window ? i - window : 0);
    const double after = median_rate(rates, i + window, i + surroundings);
    // A schedule may make steps longer for good, so both sides must be slower.
    const double expected = is_missing(after) ? before : std::min(before, after);
    if (is_missing(before)) continue;
    if (rates[i] < expected / 2) take(i, i + window, rates[i], expected);
    const bool is_long = i >= surroundings && clock[i - surroundings].step > begin && i + surroundings < rates.size();
    if (is_long && after < before * 2 / 3 && later[i + surroundings] > before * 5 / 6)
      take(i, i + surroundings, after, before);
  }
  return worst;
}

// The run's time with its slowest step behind the first ten, or steps between two readings, at the median step's time.
double time_without_slowest_ms(const SpeedrunLog& log) {
  const double usual = step_ms(log);
  double most = 0;
  for (std::size_t i = 1; i < log.clock.size() && log.clock[i].step <= log.final.step; ++i) {
    if (log.clock[i - 1].step < 10) continue;
    const auto steps = static_cast<double>(log.clock[i].step - log.clock[i - 1].step);
    most = std::max(most, log.clock[i].time_ms - log.clock[i - 1].time_ms - steps * usual);
  }
  return log.final.time_ms - most;
}

// A gain that is one slow step of the baseline.
void flag_slow_step(const Logs& logs, const Logs& baseline, std::vector<RecordFlag>& flags) {
  constexpr double least_left = 1.0 / 3;
  const auto mean = [](const Logs& of, const auto& time) {
    double sum = 0;
    for (const SpeedrunLog& log : of) sum += time(log) / static_cast<double>(of.size());
    return sum;
  };
  const auto all = [](const SpeedrunLog& log) { return log.final.time_ms; };
  const double gain = mean(baseline, all) / mean(logs, all);
  const double left = mean(baseline, time_without_slowest_ms) / mean(logs, time_without_slowest_ms);
  if (!(gain > 1) || !(std::log(left) < least_left * std::log(gain))) return;
  flags.push_back({"uneven-steps", fmt::format("Without the slowest step of each log, the speed-up of {} is {}",
                                               decimals(gain, 4), decimals(left, 4))});
}

// Whether the last train_time is the last step_avg times the steps. Some scripts leave out the first ten, or count one
// more or less.
bool have_columns_agreed(const SpeedrunLog& log, double& steps) {
  constexpr std::int64_t left_out[] = {0, 1, -1, 9, 10, 11, 12};
  const auto last = std::ranges::find_if(log.clock.rbegin(), log.clock.rend(),
                                         [](const ClockReading& it) { return it.average_ms > 0; });
  if (last == log.clock.rend() || last->step < 20) return true;
  steps = last->time_ms / last->average_ms;
  const double tolerance = 0.5 + 0.003 * static_cast<double>(last->step);
  return std::ranges::any_of(left_out, [&](std::int64_t without) {
    return std::abs(steps - static_cast<double>(last->step - without)) <= tolerance;
  });
}

void flag_columns(const Logs& logs, const char* of, std::vector<RecordFlag>& flags) {
  std::vector<std::string> files;
  std::string why;
  for (const SpeedrunLog& log : logs) {
    double steps = 0;
    if (have_columns_agreed(log, steps)) continue;
    if (files.empty())
      why = fmt::format("{}, of the {}: after {} steps train_time is {} times step_avg", name_of(log), of,
                        log.clock.back().step, significant(steps, 3));
    files.push_back(name_of(log));
  }
  if (files.empty()) return;
  if (files.size() > 1) why += fmt::format(" (and so in {} of {} logs)", files.size(), logs.size());
  flags.push_back({"clock-columns", why});
}

// The step of the first reading that is below the one before it, after the half in which the clock may begin again; 0:
// there is none.
std::int64_t backwards_at(const SpeedrunLog& log) {
  for (std::size_t i = 1; i < log.clock.size(); ++i)
    if (log.clock[i].step > log.final.step / 2 && log.clock[i].time_ms < log.clock[i - 1].time_ms)
      return log.clock[i].step;
  return 0;
}

void flag_clock(const Logs& logs, std::vector<RecordFlag>& flags) {
  std::vector<std::string> late, gaps, backwards;
  std::string late_why, gap_why, backwards_why;
  for (const SpeedrunLog& log : logs) {
    if (const std::int64_t step = backwards_at(log); step > 0) {
      if (backwards.empty())
        backwards_why =
            fmt::format("{}: at step {} the clock shows less time than at an earlier step", name_of(log), step);
      backwards.push_back(name_of(log));
    }
    if (const std::int64_t untimed = untimed_steps(log); untimed > 0) {
      const double step = step_ms(log);
      if (late.empty())
        late_why =
            fmt::format("{}: the clock begins after step {}; {} x {} ms = {} s are untimed", name_of(log), untimed,
                        untimed, decimals(step, 1), decimals(static_cast<double>(untimed) * step / 1e3, 2));
      late.push_back(name_of(log));
    }
    if (const ClockGap gap = worst_gap(log); gap.last > 0) {
      if (gaps.empty())
        gap_why =
            fmt::format("{}: from step {} to {} the clock advanced by {} s; at the rate around it, {} s", name_of(log),
                        gap.first, gap.last, decimals(gap.advanced_ms / 1e3, 2), decimals(gap.expected_ms / 1e3, 2));
      gaps.push_back(name_of(log));
    }
  }
  const auto of_all = [&](const std::vector<std::string>& files) {
    return files.size() == 1 ? "" : fmt::format(" (and so in {} of {} logs)", files.size(), logs.size());
  };
  if (!late.empty()) flags.push_back({"clock-starts-late", late_why + of_all(late)});
  if (!gaps.empty()) flags.push_back({"clock-gap", gap_why + of_all(gaps)});
  if (!backwards.empty()) flags.push_back({"clock-backwards", backwards_why + of_all(backwards)});
}

// Evaluations without a value before one that has one: a training that is lost doesn't come back.
void flag_lost(const Logs& logs, std::vector<RecordFlag>& flags) {
  std::vector<std::string> files;
  for (const SpeedrunLog& log : logs) {
    const auto lost = std::ranges::find_if(log.evaluations, [](const auto& it) { return !std::isfinite(it.value); });
    if (lost != log.evaluations.end() && lost->step < log.final.step)
      files.push_back(fmt::format("{} (step {})", name_of(log), lost->step));
  }
  if (!files.empty())
    flags.push_back({"lost-evaluations", "Evaluations before the last one aren't finite numbers: " + list_text(files)});
}

// --- the baseline ----------------------------------------------------------------------------------------------------

std::string node_of(const SpeedrunLog& log) {
  std::string node;
  for (const std::string& bus : log.bus_ids) node += (node.empty() ? "" : " ") + bus;
  return node;
}

void flag_baseline(const Logs& logs, const Logs& baseline, std::vector<RecordFlag>& flags) {
  const auto ours = groups_of(logs, node_of);
  const auto theirs = groups_of(baseline, node_of);
  const bool shared = std::ranges::any_of(ours, [&](const auto& it) { return theirs.contains(it.first); });
  if (!ours.empty() && !theirs.empty() && !shared)
    flags.push_back(
        {"baseline-other-node", "The baseline's GPUs have other PCI addresses, so it ran on another machine: " +
                                    list_text({ours.begin()->first}) + " and " + theirs.begin()->first});
  std::vector<std::int64_t> days, baseline_days;
  for (const SpeedrunLog& log : logs)
    if (log.started_at_s) days.push_back(*log.started_at_s);
  for (const SpeedrunLog& log : baseline)
    if (log.started_at_s) baseline_days.push_back(*log.started_at_s);
  if (days.empty() || baseline_days.empty()) return;
  std::int64_t nearest = INT64_MAX;
  for (const std::int64_t day : days)
    for (const std::int64_t other : baseline_days) nearest = std::min(nearest, std::abs(day - other));
  if (nearest > session_gap_s)
    flags.push_back({"baseline-other-day", "The baseline's nearest run began " +
                                               decimals(static_cast<double>(nearest) / 3'600, 0) +
                                               " hours from the nearest of these runs"});
}

void flag_unfinished(const RecordPool& pool, const char* of, std::vector<RecordFlag>& flags) {
  std::vector<std::string> files;
  for (const ExcludedLog& log : pool.excluded)
    if (log.unfinished) files.push_back(std::filesystem::path(log.file).filename().string());
  if (files.empty()) return;
  flags.push_back(
      {"unfinished-logs", fmt::format("{} of the {} didn't finish and {} counted beside the {} that did: {}. Runs that "
                                      "are stopped when their loss is bad make the others look good",
                                      plural(files.size(), "run"), of, files.size() == 1 ? "isn't" : "aren't",
                                      pool.logs.size(), list_text(files))});
}

void flag_failed(const RecordPool& pool, const char* of, std::vector<RecordFlag>& flags) {
  std::vector<std::string> files;
  for (const ExcludedLog& log : pool.excluded)
    if (log.failed) files.push_back(std::filesystem::path(log.file).filename().string());
  if (!files.empty())
    flags.push_back(
        {"failed-runs",
         fmt::format("{} of the {} failed after some steps and {} repeated: {}. A script that "
                     "fails when it is unlucky chooses its own runs",
                     plural(files.size(), "run"), of, files.size() == 1 ? "was" : "were", list_text(files))});
}

// What the project itself says against its runs, each kind once.
void flag_doubts(const Logs& logs, const char* of, std::vector<RecordFlag>& flags) {
  for (const auto& [id, files] : groups_of(logs, [](const SpeedrunLog& log) { return log.doubt_id; })) {
    const auto first = std::ranges::find(logs, id, &SpeedrunLog::doubt_id);
    flags.push_back(
        {id,
         fmt::format("{}, of the {}: {}{}", files.front(), of, first->doubt,
                     files.size() == 1 ? "" : fmt::format(" (and so in {} of {} runs)", files.size(), logs.size()))});
  }
}

}  // namespace

std::vector<RecordFlag> hygiene_flags(const RecordPool& pool, const RecordPool* baseline, const RecordRule* rule) {
  std::vector<RecordFlag> flags;
  const bool same_machine = !rule || rule->same_hardware;
  const Logs* theirs = baseline ? &baseline->logs : nullptr;
  flag_unfinished(pool, "pool", flags);
  if (baseline) flag_unfinished(*baseline, "baseline", flags);
  flag_failed(pool, "pool", flags);
  if (baseline) flag_failed(*baseline, "baseline", flags);
  flag_doubts(pool.logs, "pool", flags);
  if (baseline) flag_doubts(baseline->logs, "baseline", flags);
  flag_copies(pool.logs, theirs, flags);
  if (theirs) flag_scatter(pool.logs, *theirs, flags);
  flag_seeds(pool.logs, "pool", flags);
  flag_scripts(pool.logs, "pool", flags);
  if (baseline) flag_scripts(baseline->logs, "baseline", flags);
  if (rule && rule->source_in_log) {
    const auto without =
        groups_of(pool.logs, [](const SpeedrunLog& log) { return log.script_hash.empty() ? "none" : ""; });
    if (!without.empty())
      flags.push_back({"no-script", "The rule asks for the script in each log, and there is none in " +
                                        list_text(without.begin()->second)});
  }
  flag_facts(pool.logs, same_machine ? theirs : nullptr, flags);
  if (theirs && same_machine) flag_baseline(pool.logs, *theirs, flags);
  if (rule && rule->val_tokens > 0 && std::ranges::find(flags, "val-tokens", &RecordFlag::id) == flags.end()) {
    std::vector<std::string> files;
    for (const SpeedrunLog& log : pool.logs)
      if (log.val_tokens > 0 && log.val_tokens != rule->val_tokens)
        files.push_back(name_of(log) + " (" + grouped(log.val_tokens) + ")");
    if (!files.empty())
      flags.push_back({"val-tokens", "The rule's loss is of " + plural(rule->val_tokens, "token") +
                                         ", and these logs name another number: " + list_text(files)});
  }
  flag_other_finals(pool.logs, flags);
  flag_lost(pool.logs, flags);
  flag_clock(pool.logs, flags);
  if (theirs) flag_slow_step(pool.logs, *theirs, flags);
  flag_columns(pool.logs, "pool", flags);
  if (theirs) flag_columns(*theirs, "baseline", flags);
  return flags;
}

}  // namespace stepladder
