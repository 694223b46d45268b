// Advisor makes the case for each stage from one run's own numbers, then sorts by kind and gain. A run with an
// impossible throughput or without device sync gets no other advice. What a stage gained here is what the ladder says
// of it, in the ladder's own word.
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

// A ladder's rungs as the Ladder view judges them; none if steps of its runs weren't read.
std::map<int, RungJudgement> judged_rungs(std::span<const AdviceRun> project, LadderId ladder,
                                          const HardwareTable& hardware) {
  std::vector<MeasuredRun> runs;
  for (const AdviceRun& run : project) {
    if (run.run->ladder != ladder) continue;
    if (!run.series) return {};
    runs.push_back({run.run, run.summary, run.series, &run.timed});
  }
  std::map<int, RungJudgement> rungs;
  for (RungJudgement& rung : judge_rungs(runs, hardware)) rungs[rung.rung] = std::move(rung);
  return rungs;
}

std::string range_text(double low, double high) {
  return low < high ? factor_text(low) + " to " + factor_text(high) : factor_text(low);
}

// What a ladder says of a rung's own step. Known only where its answer is clear.
ExpectedGain answer_of(const RungJudgement& rung) {
  const Gain& step = rung.own_step;
  ExpectedGain gain{.source = GainSource::own_measurement,
                    .answer = rung.answer(),
                    .measured = rung.runs.front()->id,
                    .over = rung.stands_on};
  if (gain.answer == RungAnswer::impossible || gain.answer == RungAnswer::cannot_tell) return gain;
  if (gain.answer == RungAnswer::no_effect) {
    gain.low = gain.high = 1;
    return gain;
  }
  gain.low = step.ci95.known() ? step.ci95.low : step.factor;
  gain.high = step.ci95.known() ? step.ci95.high : step.factor;
  return gain;
}

// "1.07 x, 0.93 x to 1.20 x; about 3 more runs of each would settle it"
std::string unclear_text(const Gain& step) {
  return factor_text(step.factor) + (step.ci95.known() ? ", " + range_text(step.ci95.low, step.ci95.high) : "") +
         (step.needed_runs > 0 ? "; about " + plural(step.needed_runs, "more run") + " of each would settle it" : "");
}

// The largest factor from removing a share of the step, or making it `times` as fast (Amdahl 1967).
double amdahl(double share, double times = INFINITY) {
  return 1 / (1 - share + share / times);
}

// The share of a step's time, 0 to 1, in kinds of work that the law makes faster: an upper bound of what it can remove,
// which needs no trace. missing: the law doesn't say, or there are no times.
double share_within_reach(const StageLaw& law, std::string_view device, const KindTimes& times) {
  const bool is_about_device =
      std::ranges::any_of(law.terms, [&](const LawTerm& term) { return term.device.empty() || term.device == device; });
  double within = 0, whole = 0;
  for (const OperatorKind kind : all_operator_kinds) {
    whole += times.of(kind);
    within += shortens(law, device, kind) ? times.of(kind) : 0;
  }
  return is_about_device && whole > 0 ? within / whole : missing;
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
      return advice.gain.known() ? std::sqrt(advice.gain.low * advice.gain.high) : 1.0;
    };
    // Of gains that aren't known, those that can shorten more of the step are first.
    std::ranges::stable_sort(list_, [&](const Advice& a, const Advice& b) {
      if (a.kind != b.kind) return a.kind < b.kind;
      return value(a) != value(b) ? value(a) > value(b) : reach_of(a.stage) > reach_of(b.stage);
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

  const std::map<int, RungJudgement>& judged(LadderId ladder) {
    const auto [known, is_new] = judged_.try_emplace(ladder);
    if (is_new) known->second = judged_rungs(project_, ladder, hardware_);
    return known->second;
  }

  // What the project's ladders say of the stage on the same hardware and a model of a similar size: the range over
  // those with a clear answer; where none has one, the last that can't tell.
  ExpectedGain measured_here(std::string_view stage, std::vector<RunId>& evidence) {
    ExpectedGain gain;
    int clear = 0;
    for (const auto& [id, rungs] : ladders_) {
      for (const auto& [place, repeats] : rungs) {
        const Run& on = *repeats.front()->run;
        if (known_stage(on, stages_) != stage || on.hardware != run_.hardware || on.device != run_.device ||
            !similar_models(on, run_))
          continue;
        const auto found = judged(id).find(place);
        if (found == judged(id).end() || found->second.is_baseline) continue;
        const RungJudgement& rung = found->second;
        if (rung.own_step.worst() != Trust::trusted || is_missing(rung.own_step.factor)) continue;
        ExpectedGain here = answer_of(rung);
        const auto below = judged(id).find(rung.stands_on);
        here.from =
            fmt::format("run {} over run {}", on.id, below == judged(id).end() ? 0 : below->second.runs.front()->id);
        if (!here.known()) {
          here.from += ": " + unclear_text(rung.own_step);
          if (clear == 0) gain = std::move(here);
          continue;
        }
        evidence.push_back(on.id);
        if (clear++ > 0) {
          here.low = std::min(gain.low, here.low);
          here.high = std::max(gain.high, here.high);
          if (here.answer != gain.answer) here.answer = {};  // the ladders don't agree
        }
        gain = std::move(here);
      }
    }
    if (clear > 1) gain.from += fmt::format(", and {} more", clear - 1);
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

  // The share of the step that the stage can shorten, by the operators that were timed; 0: not known.
  double reach_of(std::string_view id) const {
    const auto stage = std::ranges::find(stages_, id, &KnownStage::id);
    if (stage == stages_.end()) return 0;
    const double reach = share_within_reach(stage->law, run_.device, KindTimes(about_.timed));
    return is_missing(reach) ? 0 : reach;
  }

  // At most: the work that the stage makes faster is only a share of the step. Beyond half of it the bound says
  // nothing.
  ExpectedGain bounded(const KnownStage& stage, std::string& why) const {
    const double reach = share_within_reach(stage.law, run_.device, KindTimes(about_.timed));
    if (!(reach < 0.95)) return {};  // not known, or all of it
    why += std::string(why.empty() ? "" : " ") + "It can shorten no more than " + percent_text(reach) + " of the step.";
    if (reach > 0.5) return {};
    return bound(amdahl(reach), "Amdahl, if " + percent_text(reach) + " of the step took no time");
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
                .from = factor_text(other.factor()) + " in " + other.source};
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
      const std::string range = range_text(here.low, here.high);
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
        own = "Not tried on this hardware, and " + why_not_predicted(stage) + ".";
      }
      if (!advice.gain.known() && advice.kind == AdviceKind::speed) take_published(stage, advice.gain);
      if (here.answer) {
        own = "Its ladder can't tell what it brought here (" + here.from + ").";
        if (!advice.gain.known()) advice.gain = here;
      } else if (!advice.gain.known()) {
        if (ExpectedGain most = bounded(stage, own); most.known()) advice.gain = std::move(most);
      }
    }
    advice.why = std::move(own);
    add(std::move(advice));
  }

  // What the log of an imported run measured after it, in the words of the Ladder view.
  void name_later_rungs() {
    if (run_.source == "launched" || !run_.ladder) return;
    int impossible = 0;
    for (const auto& [place, rung] : judged(*run_.ladder)) {
      if (place <= run_.rung) continue;
      const Run& on = *rung.runs.front();
      ExpectedGain gain = answer_of(rung);
      impossible += gain.answer == RungAnswer::impossible ? 1 : 0;
      if (gain.answer == RungAnswer::impossible || is_missing(rung.own_step.factor)) continue;
      gain.from = fmt::format("rung {} of its own log", rung.rung);
      add({.kind = gain.known() && gain.high >= 1 ? AdviceKind::speed : AdviceKind::open,
           .stage = known_stage(on, stages_),
           .title = on.title.empty() ? on.name : on.title,
           .why = fmt::format("Rung {} of its own log{}.", rung.rung,
                              gain.known() ? "" : ", which can't tell: " + unclear_text(rung.own_step)),
           .gain = std::move(gain),
           .evidence = {on.id}});
    }
    if (impossible == 0) return;
    add({.kind = AdviceKind::open,
         .title = plural(impossible, "later rung") + " of this log " + (impossible == 1 ? "is" : "are") + " impossible",
         .why = "Faster than the hardware can be: most likely the clock was read before the device had finished.",
         .gain = {.source = GainSource::own_measurement, .answer = RungAnswer::impossible}});
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
  std::map<LadderId, std::map<int, RungJudgement>> judged_;
  std::vector<Advice> list_;
};

}  // namespace

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

bool shortens(const StageLaw& law, std::string_view device, OperatorKind kind) {
  return std::ranges::any_of(law.terms, [&](const LawTerm& term) {
    const bool is_shorter = term.rule != LawRule::unchanged && term.rule != LawRule::adds_bytes;
    const bool is_here = term.device.empty() || term.device == device;
    return is_shorter && is_here &&
           (term.kinds.empty() ? is_work(kind) : std::ranges::find(term.kinds, kind) != term.kinds.end());
  });
}

std::vector<Advice> advise(std::span<const AdviceRun> project, RunId about, const HardwareTable& hardware,
                           std::span<const KnownStage> stages, bool also_open) {
  const auto found = std::ranges::find_if(project, [&](const AdviceRun& run) { return run.run->id == about; });
  if (found == project.end()) return {};
  std::vector<Advice> list = Advisor(project, *found, hardware, stages).advise();
  if (!also_open) std::erase_if(list, [](const Advice& advice) { return advice.kind == AdviceKind::open; });
  return list;
}

}  // namespace stepladder
