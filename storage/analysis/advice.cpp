// Advisor makes the case for each stage from one run's own numbers, then sorts by kind and gain. A run with an
// impossible throughput or without device sync gets no other advice. advice_held replays the advisor with only the runs
// that existed before a rung, so it must never see that rung's own measurement.
#include "storage/analysis/advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "storage/analysis/judgement.h"
#include "storage/analysis/plausibility.h"
#include "storage/analysis/recipe_facts.h"
#include "storage/by_enum.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr double worth_it = 0.03;   // a smaller share of the step isn't worth advice
constexpr double noise = 0.01;      // a factor nearer to 1 isn't a gain
constexpr double spike_nats = 0.5;  // a spike: the loss jumps by more than this, and
constexpr double spike_times = 10;  // by this many times its usual scatter
constexpr std::int64_t long_sequence = 512;

// Whether one model's gain predicts the other's: their parameters differ by a factor of two at most.
bool similar_models(const Run& a, const Run& b) {
  if (a.params <= 0 || b.params <= 0) return a.params == b.params;
  return a.params <= 2 * b.params && b.params <= 2 * a.params;
}

// The runs that are over, by ladder and rung.
using Repeats = std::vector<const AdviceRun*>;
using Ladders = std::map<LadderId, std::map<int, Repeats>>;

double tokens_per_s(const Repeats& runs) {
  std::vector<const Summary*> summaries;
  for (const AdviceRun* run : runs) summaries.push_back(run->summary);
  return throughput_of(summaries).median;
}

Ladders ladders_of(std::span<const AdviceRun> project) {
  Ladders ladders;
  for (const AdviceRun& run : project) {
    if (run.run->ladder && is_over(run.run->status) && run.summary->steps > 0)
      ladders[*run.run->ladder][run.run->rung].push_back(&run);
  }
  for (auto& [id, rungs] : ladders) {
    for (auto& [place, rung] : rungs) {
      const auto is_out = [](const AdviceRun* run) { return was_cut_short(*run->run); };
      if (!std::ranges::all_of(rung, is_out)) std::erase_if(rung, is_out);
    }
  }
  return ladders;
}

// The gain of each of a ladder's rungs over the previous one: that of the one judgement, so that the Ladder view shows
// the same.
std::map<int, Gain> gains_of(std::span<const AdviceRun> project, LadderId ladder, const HardwareTable& hardware) {
  static const Series not_read;  // throughput needs summaries only
  std::vector<MeasuredRun> runs;
  for (const AdviceRun& run : project) {
    if (run.run->ladder == ladder) runs.push_back({run.run, run.summary, &not_read});
  }
  std::map<int, Gain> gains;
  for (const RungJudgement& rung : judge_rungs(runs, hardware, -1, {.intervals = Intervals::no}))
    gains[rung.rung] = rung.over_previous;
  return gains;
}

// The largest factor from removing a share of the step, or making it `times` as fast (Amdahl 1967).
double amdahl(double share, double times = INFINITY) {
  return 1 / (1 - share + share / times);
}

class Advisor {
 public:
  Advisor(std::span<const AdviceRun> project, const AdviceRun& about, const HardwareTable& hardware,
          std::span<const KnownStage> stages)
      : project_(project),
        about_(about),
        run_(*about.run),
        summary_(*about.summary),
        facts_(recipe_facts(run_)),
        parts_(breakdown_of(about.parts, about.summary->dt_ms_median).parts),
        hardware_(hardware),
        stages_(stages) {
    for (const AdviceRun& run : project) repeats_.add(*run.run);
    ladders_ = ladders_of(project);
  }

  std::vector<Advice> advise() {
    if (!is_over(run_.status) || summary_.steps == 0) return {};
    synchronise_first();
    if (!list_.empty()) return std::move(list_);
    name_doubts();
    steady_the_loss();
    for (const KnownStage& stage : stages_)
      if (stage.is_off && stage.is_off(run_, facts_)) turn_on(stage);
    load_data_sooner();
    take_larger_batches();
    communicate_less();
    keep_the_gpu_busy();
    name_later_rungs();
    repeat();
    const auto value = [](const Advice& advice) {
      return advice.gain.known() && advice.gain.doubt.empty() ? std::sqrt(advice.gain.low * advice.gain.high) : 1.0;
    };
    std::ranges::stable_sort(list_, [&](const Advice& a, const Advice& b) {
      return a.kind != b.kind ? a.kind < b.kind : value(a) > value(b);
    });
    return std::move(list_);
  }

 private:
  void add(Advice advice) {
    if (std::ranges::find(advice.evidence, run_.id) == advice.evidence.end())
      advice.evidence.insert(advice.evidence.begin(), run_.id);
    list_.push_back(std::move(advice));
  }

  // The first stage with this effect; empty if no stage has it.
  std::string stage_that(StageEffect effect) const {
    for (const KnownStage& stage : stages_)
      if (stage.effect == effect) return stage.id;
    return "";
  }

  // A part's share of the step; missing if it wasn't timed.
  double share(double part_ms) const {
    return part_ms > 0 && summary_.dt_ms_median > 0 ? std::min(part_ms / summary_.dt_ms_median, 0.99) : missing;
  }
  std::string part_text(const char* part, double part_ms) const {
    return fmt::format("{} takes {} ms, {} of the median step of {} ms", part, figure_text(part_ms),
                       percent_text(share(part_ms)), figure_text(summary_.dt_ms_median));
  }
  // What the profile of operators says about the same wait, since its few steps may have waited for another time.
  std::string timed_text(OperatorKind kind) const {
    const double whole = step_ms(about_.timed);
    if (!(whole > 0)) return "";
    return fmt::format("; in the {} timed operator by operator it was {} of a step", plural(about_.timed.steps, "step"),
                       percent_text(KindTimes(about_.timed).of(kind) / whole));
  }
  ExpectedGain bound(double high, std::string from) const {
    if (is_doubtful_) from += ", of a doubtful run";
    return {.low = 1, .high = std::max(high, 1.0), .source = GainSource::arithmetic, .from = std::move(from)};
  }

  void synchronise_first() {
    for (const Flag& flag : flags_of(run_, summary_, repeats_.of(run_), hardware_)) {
      if (flag.id != FlagId::impossible_throughput && flag.id != FlagId::no_sync) continue;
      const bool waited = run_.sync == Sync::device || run_.sync == Sync::event;
      add({.kind = AdviceKind::trust,
           .change = waited ? Change::check_peak : Change::wait_for_device,
           .title = waited ? "Check the peak first" : "Synchronise first",
           .why = flag.why});
      return;
    }
  }

  // Gains that follow from doubtful numbers are doubtful too.
  void name_doubts() {
    std::string why;
    for (const Flag& flag : flags_of(run_, summary_, repeats_.of(run_), hardware_)) {
      if (trust_of({&flag, 1}) == Trust::trusted) continue;
      is_doubtful_ = true;
      // steady_the_loss names these.
      if (flag.id != FlagId::nonfinite_loss) why += (why.empty() ? "" : " ") + flag.why;
    }
    if (why.empty()) return;
    add({.kind = AdviceKind::trust,
         .title = "This run is doubtful",
         .why = why + " So are the gains that follow from its numbers."});
  }

  // The bucket in which the loss jumped highest; nothing if it never did.
  std::optional<Bucket> loss_spike() const {
    if (!about_.loss || about_.loss->buckets.size() < 8) return std::nullopt;
    // Compared with the mean of the bucket before, so that a spike alone in its bucket is found too.
    const std::vector<Bucket>& buckets = about_.loss->buckets;
    std::vector<double> jumps;
    std::size_t at = 0;
    double farthest = 0;
    for (std::size_t i = 1; i < buckets.size(); ++i) {
      if (buckets[i].count == 0 || buckets[i - 1].count == 0) continue;
      const double jump = buckets[i].max - buckets[i - 1].mean;
      jumps.push_back(std::abs(jump));
      if (jump > farthest) {
        farthest = jump;
        at = i;
      }
    }
    if (farthest <= spike_nats || farthest <= spike_times * median_of(jumps)) return std::nullopt;
    return buckets[at];
  }

  void steady_the_loss() {
    std::string why;
    if (summary_.nonfinite_steps > 0) {
      why = "The loss is NaN or infinite at " + grouped(summary_.nonfinite_steps) + " of " + grouped(summary_.steps) +
            " steps, first at step " + grouped(summary_.first_nonfinite_step);
    } else if (const auto spike = loss_spike()) {
      why = "The loss jumps to " + figure_text(spike->max) + " at step " +
            (spike->first_step == spike->last_step ? grouped(spike->first_step)
                                                   : grouped(spike->first_step) + " to " + grouped(spike->last_step));
    } else {
      return;
    }
    Advice advice;
    advice.kind = AdviceKind::stability;
    advice.why = why + ".";
    advice.risk = "changes training results";
    if (!(facts_.clip > 0)) {
      advice.stage = stage_that(StageEffect::clipped_gradients);
      advice.title = "Clip gradients";
      if (!is_missing(facts_.clip)) advice.why = why + ", and gradients are not clipped.";
    } else if (facts_.lr_warmup == 0) {
      advice.stage = stage_that(StageEffect::learning_rate_climb);
      advice.title = "Warm up the learning rate";
      advice.why = why + ", and the learning rate starts at its maximum.";
    } else {
      advice.change = Change::lower_learning_rate;
      advice.title = "Lower the learning rate";
      advice.why = why + ", though gradients are clipped to " + figure_text(facts_.clip) + ".";
    }
    add(std::move(advice));
  }

  // The judgement's gains of a ladder's rungs.
  const std::map<int, Gain>& gains(LadderId ladder) {
    const auto [known, is_new] = gains_.try_emplace(ladder);
    if (is_new) known->second = gains_of(project_, ladder, hardware_);
    return known->second;
  }

  // The stage's gain on neighbouring rungs of this project's ladders: from the smallest to the largest factor that the
  // Ladder view shows for one of them.
  ExpectedGain measured_here(std::string_view stage, std::vector<RunId>& evidence) {
    ExpectedGain gain;
    int times = 0;
    for (const auto& [id, rungs] : ladders_) {
      for (auto rung = rungs.begin(); rung != rungs.end(); ++rung) {
        if (rung == rungs.begin() || known_stage(*rung->second.front()->run, stages_) != stage) continue;
        const Run& before = *std::prev(rung)->second.front()->run;
        const Run& on = *rung->second.front()->run;
        if (on.hardware != run_.hardware || on.device != run_.device || !similar_models(on, run_)) continue;
        const Gain& found = gains(id).at(rung->first);
        if (found.worst() != Trust::trusted || is_missing(found.factor)) continue;
        gain.low = is_missing(gain.low) ? found.factor : std::min(gain.low, found.factor);
        gain.high = is_missing(gain.high) ? found.factor : std::max(gain.high, found.factor);
        evidence.push_back(on.id);
        gain.from = fmt::format("run {} over run {}", on.id, before.id);
        ++times;
      }
    }
    if (times == 0) return gain;
    gain.source = GainSource::own_measurement;
    gain.from += times > 1 ? fmt::format(", and {} more", times - 1) : "";
    return gain;
  }

  static ExpectedGain gain_of(const PredictedStep& step, std::string from) {
    return {.low = step.factor_ci95.low,
            .high = step.factor_ci95.high,
            .source = GainSource::prediction,
            .from = std::move(from)};
  }
  // The gain that a trace of the run predicts; else that it would.
  ExpectedGain predicted(const KnownStage& stage) const {
    for (const StagePrediction& each : about_.predicted)
      if (each.stage == stage.id && each.step.bound != Bound::unknown)
        return gain_of(each.step, each.step.bound == Bound::at_most ? "at most, by its law" : "by its law");
    return {.needs_trace = !about_.has_trace};
  }

  std::string why_not_predicted(const KnownStage& stage) const {
    if (!about_.has_trace) return "no trace to predict it from";
    for (const StagePrediction& each : about_.predicted)
      if (each.stage == stage.id && !each.step.why_unknown.empty()) return "no prediction: " + each.step.why_unknown;
    return "its gain doesn't follow from a trace";
  }

  // At most: by the trace, else by this share of the step.
  ExpectedGain without(OperatorKind kind, double waiting, const std::string& from) const {
    double factor = 0;
    for (const auto& [advised, less] : advised_kinds)
      if (advised == kind) factor = less;
    for (const KindPrediction& each : about_.kinds)
      if (each.kind == kind && each.step.bound != Bound::unknown) return gain_of(each.step, "at most, " + from);
    return bound(amdahl(waiting, 1 / factor), "Amdahl, " + from);
  }

  // The case for a stage, made from the run's own numbers, in a sentence; empty: no case.
  std::string case_for(const KnownStage& stage) const {
    switch (stage.effect) {
      case StageEffect::faster_matmuls:
        return case_for_precision(stage.precision);
      case StageEffect::fused_update:
        return case_for_fused_update();
      case StageEffect::fused_attention:
        return case_for_fused_attention();
      case StageEffect::tiled_vocabulary:
        return case_for_tiled_vocabulary();
      default:
        return {};
    }
  }

  std::string case_for_fused_update() const {
    if (!(share(parts_.optimizer_ms) >= worth_it)) return {};
    return part_text("AdamW, tensor by tensor,", parts_.optimizer_ms) + ".";
  }

  std::string case_for_fused_attention() const {
    if (facts_.seq < long_sequence || facts_.heads <= 0 || facts_.batch <= 0) return {};
    const double bytes = 4.0 * static_cast<double>(facts_.batch * facts_.heads) * static_cast<double>(facts_.seq) *
                         static_cast<double>(facts_.seq);
    return fmt::format(
        "Each layer writes its scores to memory and reads them again: B x heads x T x T = {} x {} x {} x {}, {} MB in "
        "float32.",
        facts_.batch, facts_.heads, grouped(facts_.seq), grouped(facts_.seq), grouped(bytes / 1e6));
  }

  std::string case_for_tiled_vocabulary() const {
    if (run_.device != "cuda") return {};
    return fmt::format(
        "The vocabulary of {} is 128 x {} + {}, so the head's matrix does not fit the tensor cores' tiles.",
        grouped(facts_.vocab), grouped(facts_.vocab / 128), facts_.vocab % 128);
  }

  std::string case_for_precision(const std::string& precision) const {
    if (run_.device != "cuda") return {};
    const Peak now = hardware_.peak(run_.hardware, run_.precision);
    const Peak then = hardware_.peak(run_.hardware, precision);
    if (!now.known() || !then.known() || now.assumed || then.assumed || then.tflops <= now.tflops * (1 + noise))
      return {};
    const double matmuls = share(parts_.forward_ms + parts_.backward_ms);
    const std::string peaks = now.hardware->name + " reaches " + figure_text(then.tflops) + " TFLOP/s in " + precision +
                              " and " + figure_text(now.tflops) + " in " + run_.precision + ", which this run used";
    if (is_missing(matmuls)) return peaks + ".";
    return peaks + "; forward and backward take " + percent_text(matmuls) + " of a step.";
  }

  void take_published(const KnownStage& stage, ExpectedGain& gain) const {
    for (const PublishedGain& other : stage.published)
      if (other.device == run_.device)
        gain = {.low = std::min(other.factor(), 1.0),
                .high = other.factor(),
                .source = GainSource::measured_elsewhere,
                .from = factor_text(other.factor()) + " in " + other.source,
                .published = other};
  }

  void turn_on(const KnownStage& stage) {
    Advice advice;
    advice.stage = stage.id;
    advice.title = stage.title;
    advice.risk = stage.risk;
    std::string own = case_for(stage);
    const ExpectedGain here = measured_here(stage.id, advice.evidence);
    if (here.known()) {
      advice.gain = here;
      const std::string range =
          here.low < here.high ? factor_text(here.low) + " to " + factor_text(here.high) : factor_text(here.low);
      if (std::sqrt(here.low * here.high) < 1 + noise) {  // it was tried here without a gain
        advice.kind = AdviceKind::open;
        own = "It was tried on this hardware: " + range + " (" + here.from + ").";
      }
      if (own.empty()) own = "It brought " + range + " on this hardware (" + here.from + ").";
    } else {
      advice.gain = predicted(stage);
      if (advice.gain.known() && advice.gain.high < 1 + noise) {
        advice.kind = AdviceKind::open;
        own = "By a trace of this run it buys nothing here.";
      }
      if (own.empty() && advice.gain.known()) own = "A trace of this run predicts a gain.";
      if (own.empty()) {
        advice.kind = AdviceKind::open;
        own = "No trusted measurement on this hardware, and " + why_not_predicted(stage) + ".";
      }
      if (!advice.gain.known() && advice.kind == AdviceKind::speed) take_published(stage, advice.gain);
    }
    advice.why = std::move(own);
    add(std::move(advice));
  }

  // What the log of an imported run measured after it, by the judgement that the Ladder view shows.
  void name_later_rungs() {
    if (run_.source == "launched" || !run_.ladder || !ladders_.contains(*run_.ladder)) return;
    const auto& rungs = ladders_.at(*run_.ladder);
    for (auto rung = rungs.upper_bound(run_.rung); rung != rungs.end(); ++rung) {
      const Gain& found = gains(*run_.ladder).at(rung->first);
      const Run& on = *rung->second.front()->run;
      if (is_missing(found.factor)) continue;
      const bool is_believed = found.worst() == Trust::trusted;
      ExpectedGain gain{found.factor, found.factor, GainSource::own_measurement,
                        fmt::format("run {} over the rung before it", on.id)};
      if (!is_believed) gain.doubt = to_string(found.worst());
      Advice advice{.kind = is_believed ? AdviceKind::speed : AdviceKind::open,
                    .stage = known_stage(on, stages_),
                    .title = on.title.empty() ? on.name : on.title,
                    .why = fmt::format("Rung {} of its own log.", on.rung),
                    .gain = std::move(gain),
                    .evidence = {on.id}};
      add(std::move(advice));
    }
  }

  void load_data_sooner() {
    const double waiting = share(parts_.data_ms);
    if (!(waiting >= worth_it)) return;
    add({.change = Change::load_ahead,
         .title = "Load data sooner",
         .why = part_text("Reading and copying tokens", parts_.data_ms) + timed_text(OperatorKind::data) + ".",
         .gain = without(OperatorKind::data, waiting, "if no step waited for data")});
  }

  void take_larger_batches() {
    const RunUtilisation used = utilisation_of(run_, summary_, hardware_);
    const Hardware* device = hardware_.find(run_.hardware);
    if (!(used.mfu < 0.3) || facts_.batch <= 0 || run_.peak_memory_bytes <= 0 || !device ||
        is_missing(device->memory_gb))
      return;
    const double memory = device->memory_gb * 1e9;
    const auto peak = static_cast<double>(run_.peak_memory_bytes);
    std::int64_t times = 1;
    while (2 * static_cast<double>(times) * peak <= 0.8 * memory && times < 64) times *= 2;
    if (times == 1) return;
    // A micro-batch that replaces accumulation leaves the update as it is.
    const bool same_update = facts_.grad_accum >= times && facts_.grad_accum % times == 0;
    const double limit = suspicious_share / used.mfu;
    std::vector<std::pair<std::string, std::string>> values{{"batch", std::to_string(facts_.batch * times)}};
    if (same_update) values.emplace_back("grad_accum", std::to_string(facts_.grad_accum / times));
    add({.change = Change::set_values,
         .values = std::move(values),
         .title = "Larger micro-batch",
         .why = "MFU is " + std::string(used.assumed.empty() ? "" : "about ") + percent_text(used.mfu) + " (" +
                used.convention + (used.condition.empty() ? "" : ", " + used.condition) + ") with a batch of " +
                std::to_string(facts_.batch) + ", which fills " + figure_text(peak / 1e9) + " of " +
                figure_text(device->memory_gb) + " GB.",
         .gain = bound(std::min(static_cast<double>(times), limit),
                       fmt::format("{} times the tokens, if a step took no longer", times)),
         .risk = same_update ? "" : "fewer updates for the same tokens: the learning rate may need to change"});
  }

  void communicate_less() {
    const double waiting = share(parts_.communication_ms);
    if (!(waiting >= worth_it) || (facts_.nproc <= 1 && facts_.devices <= 1)) return;
    add({.stage = stage_that(StageEffect::fewer_exchanges),
         .title = "Communicate less often",
         .why = part_text("Waiting for other processes", parts_.communication_ms) +
                timed_text(OperatorKind::communication) + ".",
         .gain = without(OperatorKind::communication, waiting, "with four micro-batches to an update"),
         .risk = "a larger batch, unless the micro-batches get smaller"});
  }

  // NVML's load is the share of time in which any kernel ran.
  void keep_the_gpu_busy() {
    if (run_.device != "cuda" || !(about_.gpu_load > 0.05) || about_.gpu_load >= 0.9) return;
    add({.change = Change::larger_kernels,
         .title = "Keep the GPU busy",
         .why = "No kernel ran on the GPU for " + percent_text(1 - about_.gpu_load) +
                " of the steady time: it waited for " + "the CPU, for data or for other processes.",
         .gain = bound(1 / about_.gpu_load, "if it never waited")});
  }

  void repeat() {
    if (repeats_.of(run_) > 1 || summary_.untimed_steps == summary_.steps) return;
    const double apart =
        summary_.dt_ms_median > 0 ? (summary_.dt_ms_p75 - summary_.dt_ms_p25) / summary_.dt_ms_median : missing;
    add({.kind = AdviceKind::certainty,
         .change = Change::repeat,
         .title = "Repeat to measure the noise",
         .why = "This is a single run. The quartiles of its steps are " + percent_text(apart) +
                " apart; how much repeats would differ is unknown."});
  }

  const std::span<const AdviceRun> project_;
  const AdviceRun& about_;
  const Run& run_;
  const Summary& summary_;
  const RecipeFacts facts_;
  const StepParts parts_;  // of the median step
  const HardwareTable& hardware_;
  const std::span<const KnownStage> stages_;
  bool is_doubtful_ = false;
  RepeatCounts repeats_;
  Ladders ladders_;
  std::map<LadderId, std::map<int, Gain>> gains_;
  std::vector<Advice> list_;
};

Held judge(const ExpectedGain& expected, double came) {
  if (came < expected.low * (1 - noise)) return Held::less;
  return came > expected.high * (1 + noise) ? Held::more : Held::as_expected;
}

// The same log, imported twice: equal to the last digit, which two trainings never are.
bool is_copy(const Summary& a, const Summary& b) {
  const auto equal = [](double x, double y) { return x == y || (is_missing(x) && is_missing(y)); };
  return a.steps == b.steps && equal(a.loss_first, b.loss_first) && equal(a.loss_last, b.loss_last) &&
         equal(a.dt_ms_median, b.dt_ms_median) && equal(a.dt_ms_p5, b.dt_ms_p5) && equal(a.dt_ms_p95, b.dt_ms_p95);
}

// The runs from before the rung was measured, without copies of it.
std::vector<AdviceRun> known_before(std::span<const AdviceRun> project, const Repeats& rung) {
  const Run& first = *rung.front()->run;
  std::vector<AdviceRun> known;
  for (const AdviceRun& other : project) {
    const bool is_own = other.run->ladder == first.ladder;
    if (is_own ? other.run->rung >= first.rung : !(other.run->created_at < first.created_at)) continue;
    const bool is_repeated = !is_own && std::ranges::any_of(rung, [&](const AdviceRun* run) {
      return is_copy(*other.summary, *run->summary);
    });
    if (!is_repeated) known.push_back(other);
  }
  return known;
}

std::string outcome_text(const ExpectedGain& expected, const AdviceOutcome& outcome) {
  if (outcome.held == Held::is_source)
    return "Measured " + factor_text(outcome.factor) +
           ". This is the log that the expectation comes from, so it can't "
           "confirm it.";
  const std::string range = expected.low == expected.high
                                ? factor_text(expected.low)
                                : factor_text(expected.low) + " to " + factor_text(expected.high);
  return fmt::format("Expected {} ({}), measured {}: {}.", range, source_text(expected), factor_text(outcome.factor),
                     to_string(outcome.held));
}

}  // namespace

bool PublishedGain::is_of(double tokens_per_s_before, double tokens_per_s_after) const {
  constexpr double rounding = 0.005;
  return std::fabs(tokens_per_s_before / before - 1) < rounding && std::fabs(tokens_per_s_after / after - 1) < rounding;
}

std::string_view to_string(Held held) {
  return by_enum<Held, std::string_view>("as expected", "more than expected", "less than expected", "not scored")[held];
}

std::string source_text(const ExpectedGain& gain) {
  const auto with = [&](const char* source) { return source + (gain.from.empty() ? "" : ": " + gain.from); };
  switch (gain.source) {
    case GainSource::own_measurement:
      return with("measured in this project");
    case GainSource::prediction:
      return with("predicted from a trace");
    case GainSource::measured_elsewhere:
      return with("measured elsewhere");
    case GainSource::arithmetic:
      return with("upper bound, by arithmetic");
    case GainSource::unknown:
      break;
  }
  return "";
}

std::vector<Advice> advise(std::span<const AdviceRun> project, RunId about, const HardwareTable& hardware,
                           std::span<const KnownStage> stages, bool also_open) {
  const auto found = std::ranges::find_if(project, [&](const AdviceRun& run) { return run.run->id == about; });
  if (found == project.end()) return {};
  std::vector<Advice> list = Advisor(project, *found, hardware, stages).advise();
  if (!also_open) std::erase_if(list, [](const Advice& advice) { return advice.kind == AdviceKind::open; });
  return list;
}

std::vector<AdviceOutcome> advice_held(std::span<const AdviceRun> project, const HardwareTable& hardware,
                                       std::span<const KnownStage> stages) {
  std::vector<AdviceOutcome> outcomes;
  for (const auto& [id, rungs] : ladders_of(project)) {
    const std::map<int, Gain> gains = gains_of(project, id, hardware);
    for (auto rung = rungs.begin(); rung != rungs.end(); ++rung) {
      if (rung == rungs.begin()) continue;
      const Run& before = *std::prev(rung)->second.front()->run;
      const Run& run = *rung->second.front()->run;
      const Gain& gain = gains.at(rung->first);
      if (gain.worst() != Trust::trusted || is_missing(gain.factor)) continue;
      const std::vector<AdviceRun> known = known_before(project, rung->second);
      for (Advice& advice : advise(known, before.id, hardware, stages)) {
        if (advice.kind != AdviceKind::speed || !advice.gain.known() || advice.stage.empty() ||
            advice.stage != known_stage(run, stages))
          continue;
        AdviceOutcome outcome{.before = before.id, .after = run.id, .factor = gain.factor};
        const bool is_source =
            advice.gain.source == GainSource::measured_elsewhere &&
            advice.gain.published.is_of(tokens_per_s(std::prev(rung)->second), tokens_per_s(rung->second));
        outcome.held = is_source ? Held::is_source : judge(advice.gain, outcome.factor);
        outcome.sentence = outcome_text(advice.gain, outcome);
        outcome.advice = std::move(advice);
        outcomes.push_back(std::move(outcome));
      }
    }
  }
  return outcomes;
}

}  // namespace stepladder
