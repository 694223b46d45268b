#include "app/text/verdict_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "app/text/format.h"

namespace stepladder {

namespace {

constexpr std::int64_t most_proposed_runs = 50;  // nobody makes more to settle one difference

// "About 7 more runs of each, 12 min, "
std::string more_runs_text(std::int64_t runs, double seconds) {
  return "About " + plural(runs, "more run") + " of each" +
         (seconds > 0 ? ", " + rough_duration_text(seconds) + ", " : " ");
}

// "below 2.1 %": what a difference is within, if there is one.
std::string bound_of(const Interval& ci95) {
  return fmt::format("below {:.2g} %", 100 * (std::max(ci95.high, 1 / ci95.low) - 1));
}

// "More than 50 further runs of each would be needed to settle it."; with the interval also what the difference is
// below.
std::string too_many_runs_text(const char* what, const Interval& ci95 = {}) {
  const std::string needed = "ore than " + std::to_string(most_proposed_runs) +
                             " further runs of each would be needed to settle " + what + ".";
  if (!ci95.known()) return "M" + needed;
  return "The difference, if there is any, is " + bound_of(ci95) + "; m" + needed;
}

// As needed_text(runs, ...), of a factor.
std::string settled_by_text(const SpeedUp& factor, double seconds, double noise_floor) {
  return factor.needed_runs > most_proposed_runs ? too_many_runs_text("it", factor.ci95)
                                                 : needed_text(factor.needed_runs, seconds, noise_floor);
}

// The decimals of a value with this uncertainty: two digits of the uncertainty if they are at most 35, else one
// (Particle Data Group, Review of Particle Physics, section 5.3).
int decimals_of(double uncertainty) {
  constexpr int most = 4;
  if (!(uncertainty > 0)) return 3;
  const double exponent = std::floor(std::log10(uncertainty));
  const int digits = uncertainty < 3.55 * std::pow(10, exponent) ? 2 : 1;
  return std::clamp(digits - 1 - static_cast<int>(exponent), 0, most);
}

}  // namespace

std::string title_in_lower_case(const FlagKind& kind) {
  std::string title(kind.title);
  const auto rest = std::string_view(title).substr(0, title.find(' ')).substr(1);
  const bool is_name = std::ranges::any_of(rest, [](unsigned char c) { return std::isupper(c) != 0; });  // "NaN"
  if (!is_name) title.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(title.front())));
  return title;
}

bool is_informative(const Interval& ci95) {
  constexpr double widest = 30;
  return ci95.known() && !(ci95.low > 0 && ci95.high > widest * ci95.low);
}

std::string ci95_text(const Interval& interval) {
  if (!interval.known()) return "-";
  if (!is_informative(interval)) return "no interval";
  const auto side = [](double value) { return value < 1 ? -1 : value > 1 ? 1 : 0; };
  const auto rounded = [](double value, int digits) {
    return std::round(value * std::pow(10, digits)) / std::pow(10, digits);
  };
  const auto end = [&, width = interval.high - interval.low](double value) {
    int digits = decimals_of(width);
    while (digits < 4 && side(rounded(value, digits)) != side(value)) ++digits;  // an end stays on its side of 1
    if (value != 0 && std::fabs(value) < 0.5 * std::pow(10, -digits))            // an end that would be 0 has one digit
      digits = std::clamp(-static_cast<int>(std::floor(std::log10(std::fabs(value)))), 0, 4);
    return fmt::format("{:.{}f}", value, digits);
  };
  return end(interval.low) + " - " + end(interval.high);
}

std::string_view verdict_word(Verdict verdict) {
  return verdict == Verdict::cannot_tell ? "inconclusive" : to_string(verdict);
}

std::string_view verdict_word(MetricVerdict verdict) {
  return verdict == MetricVerdict::cannot_tell ? "inconclusive" : to_string(verdict);
}

std::string try_verdict_word(std::string verdict) {
  return verdict == "cannot-tell" ? "inconclusive" : std::move(verdict);
}

std::string verdict_text(const Gain& gain, std::string_view base) {
  if (gain.trust == Trust::impossible) return "impossible";
  if (is_missing(gain.factor)) return gain.worst() == Trust::doubtful ? "doubtful" : "-";
  if (gain.base_trust == Trust::impossible) return std::string(base) + " impossible";
  const bool is_one_run = gain.runs == 1 && (gain.verdict == Verdict::faster || gain.verdict == Verdict::slower);
  const bool is_doubtful = gain.worst() == Trust::doubtful && gain.verdict != Verdict::cannot_tell;
  return std::string(verdict_word(gain.verdict)) + (is_one_run ? ", one run" : "") + (is_doubtful ? ", doubtful" : "");
}

std::string loss_text(const LossParity& loss, bool is_baseline) {
  if (is_baseline) return "baseline";
  if (loss.verdict == LossVerdict::better || loss.verdict == LossVerdict::worse)
    return std::string(to_string(loss.verdict)) + " by " + loss_text(std::fabs(loss.tail_gap));
  return loss.verdict == LossVerdict::not_comparable ? "not comparable" : std::string(to_string(loss.verdict));
}

std::string difference_text(const std::string& name, const MetricComparison& metric) {
  std::string text = fmt::format("{} {}, baseline {}: {}", name, metric_text(metric.value), metric_text(metric.base),
                                 verdict_word(metric.verdict));
  if (is_missing(metric.difference) || metric.verdict == MetricVerdict::same) return text;
  text += ", a difference of " + metric_text(metric.difference);
  if (!metric.ci95.known()) return text + ", whose interval needs two runs of each that differ";
  return text + " (95 % interval " + metric_text(metric.ci95.low) + " to " + metric_text(metric.ci95.high) + ")";
}

std::string count_text(const RunCount& count) {
  const int all = count.all - count.to_come;
  if (count.counted() == all)
    return plural(all, "run") + (!count.all_busy ? "" : all == 1 ? ", disturbed" : ", all disturbed");
  std::string text =
      std::to_string(count.counted()) + " of " + plural(all, "run") + (count.counted() == 1 ? " counts" : " count");
  const auto add = [&text](int runs, const char* one, const char* many) {
    if (runs > 0) text += ", " + std::to_string(runs) + " " + (runs == 1 ? one : many);
  };
  add(count.disturbed, "was disturbed", "were disturbed");
  add(count.unfinished, "didn't finish", "didn't finish");
  add(count.copies, "is a copy", "are copies");
  return text;
}

std::string subject_of(const RungJudgement& below) {
  return below.is_baseline ? "the baseline" : "rung " + std::to_string(below.rung);
}

namespace {

bool is_measured(const RungJudgement& rung) {
  return !is_missing(rung.tokens_per_s) || !is_missing(rung.steps_per_s);
}

const Flag* doubt_of(const RungJudgement& rung) {
  for (const Flag& flag : rung.flags)
    if (flag.trust() == Trust::doubtful || flag.id == FlagId::other_machine) return &flag;
  return nullptr;
}

// Why a rung's gain is not proven: "busy machine"; empty: more runs would tell, or no reason is known.
std::string reason_of(const RungJudgement& rung, const RungJudgement* below) {
  const auto why = [](const RungJudgement& of) { return of.why_untimed.empty() ? "not measured" : of.why_untimed; };
  if (!is_measured(rung)) return why(rung);
  if (below && !is_measured(*below)) return "can't be compared with " + subject_of(*below) + ": " + why(*below);
  if (below && below->trust == Trust::impossible) return subject_of(*below) + " is impossible";
  const Flag* doubt = doubt_of(rung);
  if (!doubt && below) doubt = doubt_of(*below);
  if (!doubt) return rung.own_step.worst() == Trust::doubtful ? "not the same work" : "";
  return title_in_lower_case(kind_of(doubt->id));
}

std::string sentence(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + ".";
}

bool is_busy(const RungJudgement& rung) {
  return std::ranges::any_of(rung.flags, [](const Flag& flag) { return flag.id == FlagId::busy_machine; });
}

// A rung without a reason that its gain is not proven, and the rung that it stands on.
struct OpenRung {
  const RungJudgement* rung;
  const RungJudgement* below;
};

// "up to 3 more runs, 4 min"; empty if it isn't known for one of them.
std::string needed_of(const std::vector<OpenRung>& rungs) {
  std::int64_t most = 0;
  double seconds = 0;
  for (const auto& [rung, below] : rungs) {
    const std::int64_t runs = rung->own_step.needed_runs;
    if (runs == 0 || runs > most_proposed_runs) return "";
    most = std::max(most, runs);
    const double each = below ? below->run_seconds + rung->run_seconds : missing;
    if (each > 0) seconds = std::max(seconds, static_cast<double>(runs) * each);
  }
  return (rungs.size() > 1 ? "up to " : "") + plural(most, "more run") +
         (seconds > 0 ? ", " + rough_duration_text(seconds) : "");
}

constexpr std::size_t most_named = 4;

// "TF32 2.39 x, bf16 3.1 x and 2 more"
// What a gain may have cost: " (loss worse)". Nothing where the loss stayed, or is simply not settled.
std::string price_of(const LossParity& loss) {
  if (!loss.doubt.empty()) return " (loss unproven)";
  const bool is_apart = loss.verdict == LossVerdict::not_comparable && !is_missing(loss.max_gap);
  const bool costs = loss.verdict == LossVerdict::worse || loss.verdict == LossVerdict::diverged;
  return is_apart ? " (loss not comparable)" : costs ? " (loss " + std::string(to_string(loss.verdict)) + ")" : "";
}

std::string list_of(const std::vector<std::string>& texts) {
  std::string list;
  for (std::size_t i = 0; i < std::min(texts.size(), most_named); ++i) list += (i == 0 ? "" : ", ") + texts[i];
  return texts.size() > most_named ? list + " and " + std::to_string(texts.size() - most_named) + " more" : list;
}

// "TF32, bf16" or, of more than people read, "60 of 61".
std::string some_of(const std::vector<std::string>& titles, std::size_t all) {
  return titles.size() > most_named ? std::to_string(titles.size()) + " of " + std::to_string(all) : list_of(titles);
}

}  // namespace

std::string doubt_text(const Plausibility& found) {
  if (found.trust == Trust::trusted) return "";
  std::string text = found.trust == Trust::impossible ? "Impossible: " : "Doubtful: ";
  const auto flag = std::ranges::find_if(found.flags, [&](const Flag& each) { return each.trust() == found.trust; });
  return text + title_in_lower_case(kind_of(flag->id));
}

std::string_view answer_word(RungAnswer answer) {
  if (answer == RungAnswer::faster_once) return "faster, one run";
  if (answer == RungAnswer::slower_once) return "slower, one run";
  if (answer == RungAnswer::no_effect) return "no effect";
  return answer == RungAnswer::cannot_tell ? "can't tell" : to_string(answer);
}

std::string why_open_text(const RungJudgement& rung, const RungJudgement* below) {
  const RungAnswer answer = rung.answer();
  if (answer == RungAnswer::no_effect)
    return "Its losses are those of " + (below ? subject_of(*below) : "the rung below") +
           " to the last bit, and a step runs the same operators as often: the change has no effect here. A difference "
           "in time, if there is any, is " +
           bound_of(rung.own_step.ci95) + ".";
  if (answer == RungAnswer::faster_once || answer == RungAnswer::slower_once)
    return "One run of a side doesn't show how much runs differ. Repeats would.";
  if (answer != RungAnswer::cannot_tell || rung.is_under_way) return "";
  const bool below_is_busy = below && is_busy(*below);
  if (is_measured(rung) && (is_busy(rung) || below_is_busy)) {
    const std::string sides = !below_is_busy   ? "this rung"
                              : !is_busy(rung) ? subject_of(*below)
                                               : "this rung and " + subject_of(*below);
    return "Other programs disturbed " + sides + ". Runs on a quiet machine would settle it.";
  }
  const std::string reason = reason_of(rung, below);
  if (!reason.empty()) {
    const bool is_of_below = is_measured(rung) && below && !doubt_of(rung) && doubt_of(*below);
    return sentence((is_of_below ? subject_of(*below) + ": " : "") + reason);
  }
  const Gain& own = rung.own_step;
  if (own.needed_runs > 0) {
    const double seconds =
        below ? static_cast<double>(own.needed_runs) * (below->run_seconds + rung.run_seconds) : missing;
    return "Runs of one rung differ by about as much. " + settled_by_text(own, seconds, rung.noise_floor);
  }
  const bool is_clear_alone = verdict_of(own.factor, own.ci95, rung.noise_floor) != Verdict::cannot_tell;
  if (is_clear_alone && own.compared > 1)
    return "Clear alone, but not among the " + std::to_string(own.compared) +
           " factors of this ladder: with so many one seems clear by chance. Repeats would settle it.";
  if (is_clear_alone) return "A verification judges at planned numbers of runs; the next one is still to come.";
  if (own.ci95.known()) return needed_text(0, missing, rung.noise_floor);
  if (is_missing(rung.steps_per_s) || (below && is_missing(below->steps_per_s)))
    return "The rate was logged without step times, so the factor has no interval.";
  return rung.why_no_interval.empty() ? "Repeats would give it an interval."
                                      : "No interval: " + rung.why_no_interval + ".";
}

std::string answer_text(std::span<const AnsweredRung> rungs, std::int64_t binned_runs) {
  if (rungs.size() < 2) return "";
  std::map<RungAnswer, std::vector<std::string>> named;
  std::map<std::string, std::vector<std::string>> unproven;  // by reason
  std::vector<std::string> reasons;                          // in the order of rungs
  std::vector<std::string> under_way;
  std::vector<OpenRung> open_rungs;
  std::int64_t impossible = 0, measured = 0;
  for (const AnsweredRung& rung : rungs) {
    const RungJudgement& judged = *rung.judged;
    const std::string title = rung.title.empty() ? subject_of(judged) : rung.title;
    const RungAnswer answer = judged.answer();
    if (judged.is_under_way) {
      under_way.push_back(title);
      continue;
    }
    measured += is_measured(judged) ? 1 : 0;
    impossible += answer == RungAnswer::impossible ? 1 : 0;
    if (answer == RungAnswer::noise || answer == RungAnswer::no_effect) {
      named[answer].push_back(title);
    } else if (answer == RungAnswer::cannot_tell) {
      const auto below = std::ranges::find_if(
          rungs, [&](const AnsweredRung& other) { return other.judged->rung == judged.stands_on; });
      const RungJudgement* stands_on = below == rungs.end() ? nullptr : below->judged;
      const std::string reason = reason_of(judged, stands_on);
      if (!unproven.contains(reason)) reasons.push_back(reason);
      if (reason.empty()) open_rungs.push_back({&judged, stands_on});
      unproven[reason].push_back(title);
    } else if (answer != RungAnswer::baseline && answer != RungAnswer::impossible) {
      named[answer].push_back(title + " " + factor_text(judged.own_step.factor) + price_of(judged.loss));
    }
  }
  std::string text;
  const auto add = [&text](const std::string& sentence) { text += (text.empty() ? "" : " ") + sentence + "."; };
  const auto add_named = [&](const char* what, RungAnswer answer) {
    if (!named[answer].empty()) add(what + list_of(named[answer]));
  };
  const bool is_any_real = !named[RungAnswer::real].empty() || !named[RungAnswer::faster_once].empty();
  if (!is_any_real && under_way.size() + 1 < rungs.size())
    add("Real: none" + std::string(under_way.empty() ? "" : " yet"));
  add_named("Real: ", RungAnswer::real);
  add_named("Faster, one run: ", RungAnswer::faster_once);
  add_named("Slower: ", RungAnswer::slower);
  add_named("Slower, one run: ", RungAnswer::slower_once);
  const std::size_t judged = rungs.size() - 1;  // all but the baseline
  for (const auto& [answer, what] :
       {std::pair(RungAnswer::noise, "No gain: "), std::pair(RungAnswer::no_effect, "No effect: ")})
    if (!named[answer].empty()) add(what + some_of(named[answer], judged));
  std::string open;
  for (const std::string& reason : reasons) {
    const std::string why = reason.empty() ? needed_of(open_rungs) : reason;
    open += (open.empty() ? "" : "; ") + some_of(unproven[reason], judged) + (why.empty() ? "" : " (" + why + ")");
  }
  if (!open.empty()) add("Not proven: " + open);
  if (!under_way.empty()) add("Under way: " + some_of(under_way, judged));
  if (impossible > 0) add("Impossible: " + std::to_string(impossible) + " of " + std::to_string(measured));
  const RungJudgement& last = *rungs.back().judged;
  const auto below =
      std::ranges::find_if(rungs, [&](const AnsweredRung& rung) { return rung.judged->rung == last.stands_on; });
  const bool is_stacked = below != rungs.end() && !below->judged->is_baseline;
  if (is_stacked && last.over_baseline.is(Verdict::faster))
    add("All together " + factor_text(last.over_baseline.factor) + " baseline");
  if (binned_runs > 0 && !text.empty()) add(plural(binned_runs, "further run is", "further runs are") + " in the bin");
  return text;
}

std::string needed_for_loss_text(const RungJudgement& rung) {
  const std::int64_t loss = rung.loss.needed_runs;
  std::string text;
  if (loss > most_proposed_runs)
    text = too_many_runs_text("the loss");
  else if (loss > rung.over_baseline.needed_runs)
    text = more_runs_text(loss, static_cast<double>(loss) * rung.needed_run_seconds) + "would settle the loss.";
  if (!rung.loss.doubt.empty())
    text += (text.empty() ? "" : " ") + ("The loss proves nothing: " + rung.loss.doubt + ".");
  return text;
}

std::string needed_text(const RungJudgement& rung) {
  const std::int64_t speed = rung.over_baseline.needed_runs;
  const std::string loss = needed_for_loss_text(rung);
  if (speed == 0) return loss;
  return settled_by_text(rung.over_baseline, static_cast<double>(speed) * rung.needed_run_seconds, rung.noise_floor) +
         (loss.empty() ? "" : " ") + loss;
}

// The number of runs is of the difference that was seen: a smaller one needs more.
std::string needed_text(std::int64_t runs, double seconds, double noise_floor) {
  if (runs > most_proposed_runs) return too_many_runs_text("it");
  if (runs > 0) return more_runs_text(runs, seconds) + "would settle a difference of this size.";
  return fmt::format("At this noise hardly any number of runs would tell {:.3g} %.", 100 * noise_floor);
}

std::string fit_text(const FittedProfile& fitted) {
  if (fitted.profile.steps == 0) return "";
  const std::string profiled = plural(fitted.profile.steps, "profiled step") + " took " +
                               milliseconds_text(fitted.profiled_ms) + (fitted.profile.steps == 1 ? "" : " each");
  if (is_missing(fitted.measured_ms)) return "Not comparable: " + profiled + ", and no measured step has a time.";
  const std::string both = profiled + ", the median step " + milliseconds_text(fitted.measured_ms);
  if (!fitted.is_comparable) return "Not comparable with the step's time: " + both + ". Only the shares count.";
  return "Scaled to the median step: " + both + ".";
}

}  // namespace stepladder
