// Computes the flags of a run, each with its arithmetic in a sentence, and what they need: assumed parameters, peaks,
// repeats. Flags are pushed in the order of FlagId, which readers rely on. Only runs that are over are checked.
#include "storage/analysis/plausibility.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "storage/analysis/recipe_facts.h"
#include "storage/contention.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

struct Gpt2 {
  std::string_view name;
  std::string_view size;
  std::int64_t params;
  std::int64_t layers, d_model;
};

constexpr std::int64_t gpt2_vocab = 50'257;

// Radford et al. 2019; tied head, position embeddings included. The larger names first, since each begins with the
// smallest's.
constexpr std::array gpt2_sizes{
    Gpt2{"gpt2-xl", "1558m", 1'557'611'200, 48, 1600}, Gpt2{"gpt2-large", "774m", 774'030'080, 36, 1280},
    Gpt2{"gpt2-medium", "355m", 354'823'168, 24, 1024}, Gpt2{"gpt2", "124m", 124'439'808, 12, 768}};

// Lower case, and "GPT-2 medium", "gpt_2-medium" and "gpt2medium" all the same.
std::string plain(const std::string& text) {
  std::string letters;
  for (const char c : text) {
    if (c == '-' || c == '_' || c == ' ') continue;
    letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

const Gpt2* named_gpt2(const std::string& text) {
  const std::string letters = plain(text);
  for (const Gpt2& gpt2 : gpt2_sizes) {
    const bool size = letters.find(gpt2.size) != std::string::npos && letters.find("gpt") != std::string::npos;
    if (size || letters.find(plain(std::string(gpt2.name))) != std::string::npos) return &gpt2;
  }
  return nullptr;
}

bool is_cpu(const Run& run) {
  return run.device == "cpu";
}

std::string throughput_sum(const Run& run, const Summary& summary) {
  if (run.tokens_per_step <= 0) return grouped(summary.tokens_per_s) + " tokens/s";
  return grouped(run.tokens_per_step) + " tokens / " + figure_text(summary.dt_ms_median) +
         " ms = " + grouped(summary.tokens_per_s) + " tokens/s";
}

std::string peak_text(const Peak& peak, const Run& run) {
  std::string text = figure_text(peak.total_tflops()) + " TFLOP/s of ";
  text += peak.devices > 1 ? grouped(peak.devices) + " x " + peak.hardware->name : peak.hardware->name;
  text += " in " + std::string(to_string(peak.precision)) + " (dense; " + peak.hardware->source;
  if (peak.assumed)
    text += run.precision.empty() ? "; its fastest training precision, since the run's is unknown"
                                  : "; its fastest, since it lists none for " + run.precision;
  return text + ")";
}

// Of unknown hardware a throughput is still bounded by the fastest device that there is.
void check_against_all(const Run& run, const Summary& summary, const HardwareTable& hardware,
                       std::vector<Flag>& flags) {
  const AssumedParams params = params_of(run, summary);
  const Peak fastest = hardware.fastest();
  const bool is_listed = hardware.find(run.hardware) != nullptr;  // but not in this precision
  if (is_listed || !fastest.known() || params.count == 0 || is_missing(summary.tokens_per_s)) return;
  const RecipeFacts facts = recipe_facts(run);
  const double tflops = 6 * static_cast<double>(params.count) * summary.tokens_per_s / 1e12;
  const double devices = tflops / fastest.tflops;
  if (devices <= facts.devices) return;
  const bool is_counted =
      facts.names_devices && run.hardware.empty() && tflops > fastest.most_tflops * static_cast<double>(facts.devices);
  std::string why = throughput_sum(run, summary) + ", x 6 x " + grouped(params.count) +
                    " parameters = " + figure_text(tflops) + " TFLOP/s, which takes " + figure_text(devices) +
                    " of the fastest device in the table (" + fastest.hardware->name + ", " +
                    figure_text(fastest.tflops) + " TFLOP/s in " + std::string(to_string(fastest.precision)) + ")";
  why += is_counted             ? ", and the run had " + plural(facts.devices, "device")
         : run.hardware.empty() ? "; neither hardware nor number of devices is known"
                                : "; it doesn't list " + run.hardware;
  why += ": most likely its times are in another unit, or the clock was read too early";
  if (!params.why.empty()) why += "; " + params.why;
  flags.push_back({is_counted ? FlagId::impossible_throughput : FlagId::suspicious_throughput, why + ".",
                   params.from_loss_alone ? std::optional(Remedy::give_params) : std::nullopt});
}

void check_throughput(const Run& run, const Summary& summary, const HardwareTable& hardware, std::vector<Flag>& flags) {
  const Peak peak = peak_of(run, hardware);
  const AssumedParams params = params_of(run, summary);
  if (!peak.known()) return check_against_all(run, summary, hardware, flags);
  if (params.count == 0 || is_missing(summary.tokens_per_s)) return;
  const double tflops = 6 * static_cast<double>(params.count) * summary.tokens_per_s / 1e12;
  const double share = tflops / peak.total_tflops();
  if (share <= suspicious_share) return;
  const bool is_impossible = tflops > peak.most_total_tflops();
  std::optional<Remedy> remedy;
  std::string why = throughput_sum(run, summary) + ", x 6 x " + grouped(params.count) +
                    " parameters = " + figure_text(tflops) + " TFLOP/s";
  if (share > 1) why += ", over the peak of " + peak_text(peak, run);
  if (share > 1 && !is_impossible) {
    why += "; in fp8 it would be " + percent_text(tflops / peak.most_total_tflops()) + " of " +
           figure_text(peak.most_total_tflops()) + " TFLOP/s";
  } else if (is_impossible) {
    const bool waited = run.sync == Sync::device || run.sync == Sync::event;
    if (peak.hardware->source == "measured here") {
      why += waited ? ": most likely other programs slowed the probe that measured the peak"
                    : ": the clock was read before the device had finished, or other programs slowed the probe that "
                      "measured the peak";
      remedy = Remedy::probe_again;
    } else {
      why += waited ? ": the clock waited for the device, so the peak or the number of parameters is wrong"
                    : ": most likely the clock was read before the device had finished";
      if (run.source == "import" && peak.devices == 1 && !recipe_facts(run).names_devices && !is_cpu(run))
        why += ", or it ran on several of them, which nobody says";
    }
  } else {
    why += ", which is " + percent_text(share) + " of the peak of " + peak_text(peak, run) +
           "; whole training steps hardly ever reach " + percent_text(suspicious_share);
  }
  if (!params.why.empty()) why += "; " + params.why;
  if (params.from_loss_alone) remedy = Remedy::give_params;
  flags.push_back({is_impossible ? FlagId::impossible_throughput : FlagId::suspicious_throughput, why + ".", remedy});
}

void check_unit(const Run& run, const Summary& summary, std::vector<Flag>& flags) {
  const PrintedUnits& printed = run.printed;
  if (printed.unit.starts_with("tokens/ms") && printed.unit.find(" as ") != std::string::npos) {
    const std::string sum = is_missing(summary.tokens_per_s)
                                ? std::string()
                                : ": " + throughput_sum(run, summary) + ", which is " +
                                      figure_text(summary.tokens_per_s / 1000) + " tokens/ms";
    const std::string label = printed.unit.substr(printed.unit.find(" as ") + 4);
    flags.push_back({FlagId::unit_tokens_per_ms, "The log prints tokens/ms and calls them " + label + sum + "."});
  }
  constexpr double most_in_parts = 1.1;
  if (const auto parts = printed.per_step.find(per_step::parts_ms);
      parts != printed.per_step.end() && parts->second > most_in_parts * summary.dt_ms_median)
    return flags.push_back({FlagId::dt_throughput_mismatch,
                            "The parts of a step that the log prints add up to " + milliseconds_text(parts->second) +
                                ", and the step to " + milliseconds_text(summary.dt_ms_median) + "."});
  if (is_missing(printed.tokens_per_s) || is_missing(summary.tokens_per_s)) return;
  const double ratio = printed.tokens_per_s / summary.tokens_per_s;
  if (ratio > 0.9 && ratio < 1.1) return;
  flags.push_back({FlagId::dt_throughput_mismatch, throughput_sum(run, summary) + ", but the log prints " +
                                                       figure_text(printed.tokens_per_s) + " tokens/s (" +
                                                       figure_text(ratio) + " times that)."});
}

// The wall clock of a log, or of the lines as they came: a step can't take less than its dt, but far more if the dt
// leaves out a part of it. Runs that were launched here have both from one clock.
void check_wall_clock(const Run& run, const Summary& summary, std::vector<Flag>& flags) {
  constexpr double most_beside_dt = 1.5;
  if (run.is_ours() || !(summary.dt_ms_median > 0)) return;
  if (!(summary.wall_ms_median > most_beside_dt * summary.dt_ms_median)) return;
  flags.push_back({FlagId::wall_clock_mismatch,
                   "A step takes " + milliseconds_text(summary.dt_ms_median) + " by its own time, but " +
                       milliseconds_text(summary.wall_ms_median) +
                       " by the wall clock: the printed time leaves out a part of the step, or has another unit."});
}

// Steps that a log which has most of them lacks: without its slow ones it would be faster.
void check_holes(const Summary& summary, std::vector<Flag>& flags) {
  constexpr double least_there = 0.6;  // a log may print every second step
  constexpr double most_lost = 0.05;
  constexpr std::int64_t fewest = 20;
  const std::int64_t expected = summary.last_step - summary.first_step + 1;
  const auto there = static_cast<double>(summary.steps) / static_cast<double>(expected);
  if (expected < fewest || there < least_there || there > 1 - most_lost) return;
  flags.push_back({FlagId::missing_steps, grouped(expected - summary.steps) + " of the " + grouped(expected) +
                                              " steps from the first to the last are not in it: if they were the "
                                              "slow ones, its step time is too short."});
}

// A run that was launched here records every step; a log may print every tenth.
void check_missing_steps(const Run& run, const Summary& summary, std::vector<Flag>& flags) {
  if (run.status == RunStatus::reported)
    flags.push_back({FlagId::missing_steps, "A text reports " + grouped(summary.tokens_per_s) +
                                                " tokens/s, and no step is behind the figure."});
  if (run.source != "launched") return check_holes(summary, flags);
  const std::int64_t first = run.forked_at_step + 1;
  const std::int64_t last =
      run.status == RunStatus::finished ? std::max(run.planned_steps, summary.last_step) : summary.last_step;
  const std::int64_t expected = last - first + 1;
  const std::int64_t missing_steps = expected - summary.steps;
  if (missing_steps <= 0) return;
  const bool unbroken = summary.last_step - summary.first_step + 1 == summary.steps;
  const std::int64_t from = unbroken && summary.first_step == first ? summary.last_step + 1 : first;
  const std::int64_t to = unbroken && summary.last_step == last ? summary.first_step - 1 : last;
  flags.push_back({FlagId::missing_steps, grouped(summary.steps) + " of " + grouped(expected) + " steps are stored; " +
                                              grouped(missing_steps) + " between " + grouped(from) + " and " +
                                              grouped(to) + (missing_steps == 1 ? " is missing." : " are missing.")});
}

void check_steps(const Run& run, const Summary& summary, std::vector<Flag>& flags) {
  const auto of_all = [&](std::int64_t count) { return grouped(count) + " of " + grouped(summary.steps) + " steps"; };
  if (summary.nonfinite_steps > 0)
    flags.push_back({FlagId::nonfinite_loss, "The loss of " + of_all(summary.nonfinite_steps) +
                                                 " is NaN or infinite, first at step " +
                                                 grouped(summary.first_nonfinite_step) + "."});
  check_missing_steps(run, summary, flags);
  if (summary.repeated_steps > 0)
    flags.push_back({.id = FlagId::step_overlap,
                     .why = of_all(summary.repeated_steps) + " were written more than once, first step " +
                            grouped(summary.first_repeated_step) + "; the newer records count.",
                     .doubts = 4 * summary.repeated_steps > summary.steps});
  if (summary.backwards_step > 0)
    flags.push_back(
        {FlagId::clock_backwards, "The clock ran backwards or stood still at step " + grouped(summary.backwards_step) +
                                      ": the step ended as it began or before, or before the previous step ended."});
  // A few change nothing: TrainingProgress counts them. A log may print every tenth time, but if it prints most, those
  // that it leaves out may be the slow ones.
  if (20 * summary.untimed_steps > summary.steps)
    flags.push_back(
        {.id = FlagId::missing_dt,
         .why = of_all(summary.untimed_steps) + " have no step time" +
                (summary.untimed_steps == summary.steps
                     ? is_missing(summary.tokens_per_s)
                           ? ", so there is no throughput."
                           : ", so the throughput is the printed one, and its unit can't be checked."
                     : "; the throughput excludes them, and the training time counts each as the one before."),
         .doubts = 10 * summary.untimed_steps > summary.steps && 2 * summary.untimed_steps < summary.steps});
}

// The precision of a peak, and where it is known from.
std::string precision_text(const Peak& peak, const Run& run) {
  std::string text(to_string(peak.precision));
  if (peak.assumed)
    return text +
           ", its fastest: " + (run.precision.empty() ? "the run's precision is unknown" : "none for " + run.precision);
  const std::string names = run.stage + " " + run.title + " " + run.changed;
  const bool is_named = run.source != "launched" && names.find(run.precision) != std::string::npos;
  return text + (is_named ? ", as its name says" : "");
}

double disturbed_share(const Summary& summary) {
  return summary.watched_steps == 0
             ? 0
             : static_cast<double>(summary.disturbed_steps) / static_cast<double>(summary.watched_steps);
}

void check_contention(const Summary& summary, std::vector<Flag>& flags) {
  if (!is_disturbed(summary)) return;
  const double share = disturbed_share(summary);
  std::string why = contention_text(
      summary.disturbance, " during " + percent_text(share) + " of the steps that count (" +
                               grouped(summary.disturbed_steps) + " of " + grouped(summary.watched_steps) + ")");
  why.front() = 'O';
  why += share >= too_disturbed_share ? ": its median is a disturbed step, so it cannot be judged"
                                      : ": its times may be too long";
  flags.push_back({FlagId::busy_machine, why + ". Measure it again on a quiet machine."});
}

}  // namespace

std::optional<Flag> doubt_unit(double factor) {
  if (!(factor > 0) || !std::isfinite(factor)) return std::nullopt;
  struct Units {
    double ratio;
    double most;  // by which a factor may differ from it: a real gain, beside thousands; nearly nothing beside 60
    std::string_view names;
  };
  constexpr std::array units{Units{1e3, 3, "milliseconds and seconds"}, Units{1e6, 3, "microseconds and seconds"},
                             Units{60, 1.05, "seconds and minutes"}};
  for (const Units& each : units) {
    const double off = std::max(factor, 1 / factor) / each.ratio;
    if (off > each.most || off < 1 / each.most) continue;
    return Flag{FlagId::unit_doubted, "Its throughput is " + figure_text(factor) + " x the baseline's, and " +
                                          (factor > 1 ? "" : "1 / ") + grouped(static_cast<std::int64_t>(each.ratio)) +
                                          " is the ratio of " + std::string(each.names) +
                                          ": one of the two files most likely gives its times in another unit."};
  }
  return std::nullopt;
}

bool is_disturbed(const Summary& summary) {
  return summary.disturbed_steps > 0 && disturbed_share(summary) >= least_disturbed_share;
}

std::string_view to_string(Trust trust) {
  return by_enum<Trust, std::string_view>("trusted", "doubtful", "impossible")[trust];
}

std::string_view to_string(FlagId id) {
  return kind_of(id).name;
}

AssumedParams params_of(const Run& run, const Summary& summary) {
  if (run.params > 0) return {.count = run.params};
  const std::string model = recipe_facts(run).model;
  const std::string file = run.source_path.substr(run.source_path.find_last_of('/') + 1);
  for (const std::string* text : {&model, &run.name, &run.title, &file}) {
    if (const Gpt2* gpt2 = named_gpt2(*text))
      return {gpt2->params, "the parameters are those of " + std::string(gpt2->name) + ", which it is named after",
              "if this is " + std::string(gpt2->name) + ", as its name says", false};
  }
  if (summary.loss_first > 10.5 && summary.loss_first < 11.5 && summary.first_step <= 1) {
    return {gpt2_sizes.back().params,
            "the parameters are assumed to be those of GPT-2 124M, since a first loss of " +
                decimals(summary.loss_first, 2) +
                " is that of an untrained model with GPT-2's vocabulary (ln 50,257 = 10.82) and this is the smallest",
            "if this is GPT-2 124M", true};
  }
  return {};
}

Peak peak_of(const Run& run, const HardwareTable& hardware) {
  Peak peak = hardware.peak(run.hardware, run.precision);
  peak.devices = std::max(peak.devices, recipe_facts(run).devices);
  return peak;
}

ModelShape shape_of(const Run& run, const Summary& summary) {
  const RecipeFacts facts = recipe_facts(run);
  ModelShape shape{.params = params_of(run, summary).count,
                   .layers = facts.layers,
                   .d_model = facts.d_model,
                   .seq_len = facts.seq,
                   .vocab = facts.vocab};
  const auto gpt2 = std::ranges::find(gpt2_sizes, shape.params, &Gpt2::params);
  if (gpt2 == gpt2_sizes.end()) return shape;
  if (shape.layers == 0) shape.layers = gpt2->layers;
  if (shape.d_model == 0) shape.d_model = gpt2->d_model;
  if (shape.vocab == 0) shape.vocab = gpt2_vocab;
  return shape;
}

std::vector<Flag> flags_of(const Run& run, const Summary& summary, int repeats, const HardwareTable& hardware,
                           std::span<const RunPlace> baseline) {
  std::vector<Flag> flags;
  const bool reported = run.status == RunStatus::reported && !is_missing(summary.tokens_per_s);
  if ((summary.steps == 0 && !reported) || !is_over(run.status)) return flags;
  check_throughput(run, summary, hardware, flags);
  check_unit(run, summary, flags);
  check_wall_clock(run, summary, flags);
  check_steps(run, summary, flags);
  const bool timed = summary.untimed_steps < summary.steps || reported;
  const RecipeFacts facts = recipe_facts(run);
  std::string elsewhere = baseline.empty() || !timed ? "" : why_no_factor(baseline, place_of(run));
  if (!elsewhere.empty())
    flags.push_back({FlagId::other_machine, std::move(elsewhere)});
  else if (timed && !facts.other_hardware.empty())
    flags.push_back({.id = FlagId::other_machine,
                     .why = "Its log names two devices, " + run.hardware + " and " + facts.other_hardware +
                            ", so nobody knows which one it ran on.",
                     .doubts = true});
  check_contention(summary, flags);
  if (!facts.fell_back.empty())
    flags.push_back({FlagId::fell_back, facts.fell_back + ". Its figures are the plainer step's."});
  if (run.sync == Sync::none && timed && !is_cpu(run))
    flags.push_back(
        {FlagId::no_sync, "The clock was read without waiting for the device, so it shows how fast work was queued."});
  if (repeats < 2 && timed && !reported)
    flags.push_back(
        {FlagId::not_repeated,
         "A single run doesn't show how much runs differ, so its interval uses a spread known from elsewhere."});
  if (timed && !hardware.peak(run.hardware, run.precision).known())
    flags.push_back({FlagId::unknown_hardware, run.hardware.empty()
                                                   ? "Its hardware is unknown, so no peak limits its throughput."
                                                   : "The table of hardware has no peak for '" + run.hardware + "'" +
                                                         (hardware.find(run.hardware) ? " in " + run.precision : "") +
                                                         ", so nothing limits its throughput."});
  return flags;
}

Trust trust_of(std::span<const Flag> flags) {
  Trust trust = Trust::trusted;
  for (const Flag& flag : flags) trust = std::max(trust, flag.trust());
  return trust;
}

Plausibility plausibility_of(const Run& run, const Summary& summary, int repeats, const HardwareTable& hardware,
                             std::span<const RunPlace> baseline) {
  Plausibility found{.flags = flags_of(run, summary, repeats, hardware, baseline)};
  found.trust = trust_of(found.flags);
  const bool waited = run.sync == Sync::event || run.sync == Sync::device;
  found.is_checked = waited && !is_missing(limit_of(run, summary, hardware).tokens_per_s);
  return found;
}

Plausibility plausibility_of(const Run& run, const Summary& summary, const PlausibilityContext& context) {
  return plausibility_of(run, summary, context.repeats.of(run), context.hardware, context.repeats.baseline_places(run));
}

bool was_cut_short(const Run& run) {
  if (run.source == "import" && run.status == RunStatus::interrupted) return false;
  return is_over(run.status) && run.status != RunStatus::finished && run.status != RunStatus::reported;
}

void RepeatCounts::add(const Run& run) {
  if (!run.ladder) return;
  Baseline& baseline = baselines_.try_emplace(*run.ladder, Baseline{.rung = run.rung}).first->second;
  if (run.rung < baseline.rung) baseline = {.rung = run.rung};
  if (run.rung == baseline.rung) {
    if (RunPlace place = place_of(run); std::ranges::find(baseline.places, place) == baseline.places.end())
      baseline.places.push_back(std::move(place));
  }
  Counts& counts = counts_[{*run.ladder, run.rung}];
  if (is_over(run.status) && !was_cut_short(run)) ++counts.finished;
  if (was_cut_short(run) && !is_missing(run.started_at)) ++counts.cut_short;
}

std::span<const RunPlace> RepeatCounts::baseline_places(const Run& run) const {
  const auto found = run.ladder ? baselines_.find(*run.ladder) : baselines_.end();
  return found == baselines_.end() ? std::span<const RunPlace>() : found->second.places;
}

int RepeatCounts::of(const Run& run) const {
  if (!run.ladder) return 1;
  const auto found = counts_.find({*run.ladder, run.rung});
  if (found == counts_.end()) return 1;
  return std::max(1, found->second.finished > 0 ? found->second.finished : found->second.cut_short);
}

PhysicalLimit limit_of(const Run& run, const Summary& summary, const HardwareTable& hardware) {
  PhysicalLimit limit;
  const AssumedParams params = params_of(run, summary);
  if (params.count == 0) return limit;
  limit.condition = params.condition;
  const double flops_per_token = 6.0 * static_cast<double>(params.count);
  if (!is_missing(summary.tokens_per_s)) limit.tflops = flops_per_token * summary.tokens_per_s / 1e12;
  if (const Peak peak = peak_of(run, hardware); peak.known()) {
    limit.peak_tflops = peak.total_tflops();
    limit.peak_in = precision_text(peak, run);
    limit.tokens_per_s = limit.peak_tflops * 1e12 / flops_per_token;
  }
  return limit;
}

RunUtilisation utilisation_of(const Run& run, const Summary& summary, const HardwareTable& hardware) {
  return params_of(run, summary).from_loss_alone ? RunUtilisation{} : assumed_utilisation_of(run, summary, hardware);
}

RunUtilisation assumed_utilisation_of(const Run& run, const Summary& summary, const HardwareTable& hardware,
                                      MfuConvention convention) {
  RunUtilisation result;
  const AssumedParams params = params_of(run, summary);
  if (params.count == 0) return result;
  result.flops_per_token = flops_per_token(convention, shape_of(run, summary));
  const Peak peak = peak_of(run, hardware);
  if (!peak.known() || is_missing(summary.tokens_per_s) || is_missing(result.flops_per_token)) return result;
  result.mfu = utilisation(result.flops_per_token, summary.tokens_per_s, peak.total_tflops());
  result.convention = to_string(convention);
  result.condition = params.condition;
  if (!params.why.empty()) result.assumed = "Assumed: " + params.why + ".";
  if (peak.assumed) {
    result.convention += " of the " + std::string(to_string(peak.precision)) + " peak";
    result.assumed += fmt::format("{}Assumed: {} peak, since the run's precision is unknown.",
                                  result.assumed.empty() ? "" : " ", to_string(peak.precision));
  }
  return result;
}

}  // namespace stepladder
