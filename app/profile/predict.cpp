// Joins a stored trace, its run, its recipe and the peaks of its device into predictions. The profiler slows a step, so
// a prediction is a ratio from the trace, applied to the run's own step where the run is known.
#include "app/profile/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "app/exit_status.h"
#include "app/profile/roofline_report.h"
#include "app/text/format.h"
#include "engine/stage.h"
#include "storage/database/traces/prediction_store.h"

namespace stepladder {
namespace {

constexpr double most_times_longer = 4;  // a traced step than the run's, for its shares to count

void state_recipe(LawFacts& facts, const Recipe& before, const Recipe& after) {
  if (before.vocab <= 0 || after.vocab <= 0) return;
  facts.parameters_before = static_cast<double>(parameter_count(before));
  facts.parameters_after = static_cast<double>(parameter_count(after));
}

// Whether a trace without a recipe shows that its program has the stage already.
bool shows(const PredictionSubject& subject, const std::string& stage) {
  const auto has_kind = [&](OperatorKind kind) { return subject.steps.ms_of({.kinds = {kind}}) > 0; };
  const auto has_name = [&](std::string_view word) {
    return std::ranges::any_of(subject.trace.profile.operators, [&](const TracedOperator& each) {
      return each.time.name.find(word) != std::string::npos;
    });
  };
  const std::string& precision = subject.facts.precision;
  if (stage == "tf32" || stage == "bf16-matmul") return !precision.empty() && precision != "fp32";
  if (stage == "bf16") return precision == "bf16" || precision == "fp16" || precision == "fp8";
  if (stage == "flash-attention") return has_kind(OperatorKind::attention);
  if (stage == "ddp") return has_kind(OperatorKind::communication);
  if (stage == "fused-adamw") return has_name("fused_adam") || has_name("FusedAdam") || has_name("multi_tensor");
  if (stage == "compile" || stage == "compile-max")
    return std::ranges::any_of(subject.trace.profile.operators,
                               [](const TracedOperator& each) { return is_compiled(each.time.name); });
  return false;
}

std::string title_of(const WorkChange& change) {
  std::string kinds;
  for (const OperatorKind kind : change.kinds) kinds += (kinds.empty() ? "" : ", ") + std::string(to_string(kind));
  if (kinds.empty()) kinds = "all work";
  if (!change.operators.empty()) kinds += fmt::format(" ({})", fmt::join(change.operators, ", "));
  return change.part == ModelPart::unknown ? kinds : kinds + " of " + std::string(to_string(change.part));
}

// The changes that these stages make, one after the other, and the recipe that they end with.
struct StageChanges {
  std::vector<WorkChange> changes;
  std::optional<Recipe> recipe;
  bool at_most = false;
  std::string unknown;
};

bool is_on(const PredictionSubject& subject, const std::optional<Recipe>& recipe, const Stage& stage) {
  if (stage.id == "baseline") return false;
  return recipe ? stage.is_on(*recipe) : shows(subject, stage.id);
}

std::string why_unavailable(const std::optional<Recipe>& recipe, const Stage& stage, const DeviceReport* report,
                            const std::string& device) {
  if (!recipe || !report) return "";
  return stage.unavailable(*recipe, *report, device).for_command_line();
}

StageChanges changes_of(const PredictionSubject& subject, const std::vector<std::string>& stages) {
  StageChanges made{.recipe = subject.recipe};
  std::string precision = subject.facts.precision;
  std::vector<LawRow> rows = subject.steps.rows();
  for (const std::string& id : stages) {
    const Stage& stage = stage_by_id(id);
    LawFacts facts = subject.facts;
    facts.precision = precision;
    if (made.recipe) {
      Recipe after = *made.recipe;
      stage.apply(after);
      state_recipe(facts, *made.recipe, after);
      precision = precision_name(after);
      made.recipe = after;
    }
    LawAnswer answer = apply(stage.known.law, facts, rows);
    if (!answer.unknown.empty()) {
      made.unknown = stages.size() > 1 ? id + ": " + answer.unknown : answer.unknown;
      return made;
    }
    made.at_most = made.at_most || answer.at_most;
    for (WorkChange& change : answer.changes) {
      for (LawRow& row : rows) {
        if (!change.matches(row.kind, row.part, row.name)) continue;
        row.ms *= change.factor;
        row.bytes *= change.factor;
      }
      made.changes.push_back(std::move(change));
    }
  }
  return made;
}

PredictionAnswer answer_of(const PredictionSubject& subject, const WhatIf& what_if) {
  PredictionAnswer answer{.stage = fmt::format("{}", fmt::join(what_if.stages, "+"))};
  StageChanges made = changes_of(subject, what_if.stages);
  answer.recipe = made.recipe;
  answer.step.why_unknown = made.unknown;
  if (!made.unknown.empty()) return answer;
  if (const double times = subject.steps.shortest_ms() / subject.step_ms; times > most_times_longer) {
    answer.step.why_unknown = fmt::format(
        "a traced step takes {:.1f} times as long as the run's, so its shares aren't the run's; trace it again while "
        "nothing else runs",
        times);
    return answer;
  }
  bool at_most = made.at_most;
  for (const WorkChange& scale : what_if.scales) {
    at_most = at_most || scale.at_most;
    made.changes.push_back(scale);
    WorkChange& change = made.changes.back();
    change.before_ms = subject.steps.ms_of(change);
    change.after_ms = change.before_ms * change.factor;
    if (change.before_ms <= 0 && change.kinds != std::vector{OperatorKind::idle})
      answer.notes.push_back("This step has no " + title_of(change) + ".");
  }
  for (const WorkChange& change : made.changes)
    answer.rows.push_back({title_of(change), change.before_ms, change.after_ms, change.why, change.at_most});
  if (!what_if.stages.empty()) answer.record = record_of(answer.stage, subject.device, at_most, subject.past);
  answer.step = predicted_step(subject.steps.length_ratios(made.changes), at_most, subject.step_ms, subject.step_ci95,
                               answer.record);
  if (!what_if.stages.empty() && answer.record.n == 0)
    answer.notes.emplace_back("No prediction of this kind was ever compared with a measurement.");
  return answer;
}

// Whether a term of the law makes work shorter on this device.
bool shortens(const LawTerm& term, const std::string& device) {
  return term.rule != LawRule::unchanged && term.rule != LawRule::adds_bytes &&
         (term.device.empty() || term.device == device);
}

// Whether a stage of unknown gain can shorten this step: its law is about work that takes some of it, and not about a
// language model where the trace, without a recipe, is of another one.
bool may_shorten(const PredictionSubject& subject, const StageLaw& law, const std::string& why_unknown) {
  const std::vector<LawRow> rows = subject.steps.rows();
  const bool is_language_model =
      subject.recipe || std::ranges::any_of(rows, [](const LawRow& row) {
        return row.ms > 0 && (row.kind == OperatorKind::embedding || row.kind == OperatorKind::attention);
      });
  const auto is_about_a_part = [](const LawTerm& term) { return term.part != ModelPart::unknown; };
  if (!is_language_model && (why_unknown == no_recipe || std::ranges::any_of(law.terms, is_about_a_part))) return false;
  double whole = 0, changed = 0;
  for (const LawRow& row : rows) {
    whole += row.ms;
    if (std::ranges::any_of(law.terms, [&](const LawTerm& term) {
          const WorkChange change{.kinds = term.kinds, .operators = {term.operators.begin(), term.operators.end()}};
          return shortens(term, subject.device) && change.matches(row.kind, ModelPart::unknown, row.name);
        }))
      changed += row.ms;
  }
  return whole > least_predicted_gain * (whole - changed);
}

// What people do about a kind of work that takes long; after "People". Empty: nothing in general.
std::string_view remedy_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::products:
      return "multiply in a lower precision, and choose sizes that fill the tiles of the tensor cores";
    case OperatorKind::attention:
      return "use a newer fused kernel for their card, shorter windows, or fewer key and value heads";
    case OperatorKind::convolution:
      return "compute in bf16 with channels last, and let cuDNN or MIOpen search for the fastest algorithm";
    case OperatorKind::softmax:
      return "fuse the loss with the last product, so that the logits are never stored";
    case OperatorKind::layer_norm:
    case OperatorKind::normalisation:
    case OperatorKind::gelu:
    case OperatorKind::activation:
    case OperatorKind::elementwise:
      return "compile the model or use fused kernels, so that such work is done while the data is in fast memory";
    case OperatorKind::copies:
      return "keep one type and memory layout from end to end, and copy from pinned memory while the device computes";
    case OperatorKind::embedding:
      return "tie the embedding to the head, and use a fused gradient of the embedding";
    case OperatorKind::optimizer:
      return "use a fused optimiser, or update less often by accumulating gradients";
    case OperatorKind::communication:
      return "overlap it with the backward pass, send gradients in bf16, or send them less often by accumulating them";
    case OperatorKind::data:
      return "load ahead with more workers, and keep the data in the form that the step reads";
    case OperatorKind::between:
    case OperatorKind::idle:
      return "launch fewer and larger kernels: compile the model, capture the step as a CUDA graph, or raise the batch";
    case OperatorKind::graph:
    case OperatorKind::other:
      break;
  }
  return "";
}

double gain_of(const PredictionAnswer& answer) {
  return answer.step.bound == Bound::unknown ? 0 : answer.step.factor;
}

std::string words_of(std::size_t count) {
  constexpr std::array words{"no", "one", "two", "three", "four", "five", "six"};
  return count < words.size() ? words[count] : std::to_string(count);
}

}  // namespace

bool changes_nothing(const PredictionAnswer& answer) {
  return answer.step.bound != Bound::unknown &&
         std::ranges::all_of(answer.rows, [](const PredictionRow& row) { return row.before_ms == row.after_ms; });
}

PredictionAnswer predict(const PredictionSubject& subject, const WhatIf& what_if, const DeviceReport* report) {
  std::optional<Recipe> recipe = subject.recipe;
  std::set<std::string> seen;
  for (const std::string& id : what_if.stages) {
    const Stage& stage = stage_by_id(id);
    const ErrorParts parts{.code = "invalid-value", .argument = "--stage", .value = id};
    if (!seen.insert(id).second) throw UsageError("--stage: " + id + " is given twice", parts);
    if (is_on(subject, recipe, stage))
      throw UsageError("--stage: " + id + (recipe ? " is already in this recipe" : " is already in this trace"), parts);
    if (const std::string why = why_unavailable(recipe, stage, report, subject.device); !why.empty())
      throw UsageError("--stage: " + id + " can't be had: " + why, parts);
    if (recipe) stage.apply(*recipe);
  }
  for (const std::string& id : what_if.stages) {
    if (recipe && id != "baseline" && !stage_by_id(id).is_on(*recipe))
      throw UsageError("--stage: " + id + " and " + what_if.stages.back() + " exclude each other",
                       {.code = "conflicting-options", .argument = "--stage", .value = id});
  }
  const bool asks_for_parts =
      std::ranges::any_of(what_if.scales, [](const WorkChange& change) { return change.part != ModelPart::unknown; });
  if (asks_for_parts && !subject.steps.are_parts_known())
    throw UsageError(fmt::format("--part: nothing in trace {} shows which work belongs to which part of the model",
                                 subject.trace.id),
                     {.code = "invalid-value",
                      .argument = "--part",
                      .hint = "a trace needs ranges or modules with their names, and to be imported by this version"});
  return answer_of(subject, what_if);
}

std::string largest_part_text(const KindTimes& kinds, double step_ms, const std::string& device,
                              const std::vector<std::string>& stages) {
  const std::vector<OperatorKind> present = kinds_in({&kinds, 1});
  if (present.empty() || !(step_ms > 0)) return "";
  const OperatorKind kind = present.front();
  const double share = std::min(1.0, kinds.of(kind) / step_ms);
  std::string text = fmt::format("The largest part of this step is {}, {}", to_string(kind), percent_text(share));
  text += share < 0.99 ? fmt::format(": without it, a step would be at most {} as fast.", factor_text(1 / (1 - share)))
                       : ".";
  std::string helpers;
  for (const std::string& id : stages) {
    const Stage& stage = stage_by_id(id);
    if (std::ranges::any_of(stage.known.law.terms, [&](const LawTerm& term) {
          return shortens(term, device) && WorkChange{.kinds = term.kinds}.matches(kind, ModelPart::unknown, "");
        }))
      helpers += (helpers.empty() ? "" : ", ") + stage.title;
  }
  if (!helpers.empty()) return text + " Stages that may shorten it: " + helpers + ".";
  text += " No stage here shortens it.";
  return remedy_of(kind).empty() ? text : fmt::format("{} People {}.", text, remedy_of(kind));
}

PredictionOverview predict_all(const PredictionSubject& subject, const DeviceReport* report) {
  PredictionOverview overview;
  std::vector<LawRow> shares;
  for (const TracedOperator& each : subject.trace.profile.operators)
    shares.push_back({.kind = kind_of(each), .ms = each.time.self_ms, .flops = each.time.flops, .bytes = each.bytes});
  const double ranks = subject.trace.profile.on_gpu ? 1 : std::max(subject.trace.profile.ranks, 1);
  overview.floor = step_floor(shares, subject.ceiling.tflops / ranks, subject.ceiling.bandwidth_gb_s / ranks);
  if (is_missing(overview.floor.floor_ms)) overview.why_no_floor = ceiling_text({}, subject.ceiling, subject.trace.id);

  // Of the run's step, as everything else here.
  const double scale = overview.floor.step_ms > 0 ? subject.step_ms / overview.floor.step_ms : 1;
  overview.floor.step_ms *= scale;
  if (!is_missing(overview.floor.floor_ms)) overview.floor.floor_ms *= scale;
  for (KindFloor& each : overview.floor.kinds) each.ms *= scale, each.least_ms *= scale, each.known_ms *= scale;

  for (const Stage& stage : all_stages()) {
    if (stage.kind == StageKind::check || stage.id == "baseline" || is_on(subject, subject.recipe, stage) ||
        !why_unavailable(subject.recipe, stage, report, subject.device).empty() ||
        (subject.recipe && report && !stage.slow(*report, subject.device).empty()))
      continue;
    PredictionAnswer answer = answer_of(subject, {.stages = {stage.id}});
    if (answer.step.bound != Bound::unknown || may_shorten(subject, stage.known.law, answer.step.why_unknown))
      overview.stages.push_back(std::move(answer));
  }
  // Gains, then what isn't known, then what buys nothing.
  const auto place = [](const PredictionAnswer& answer) {
    const int rank = gain_of(answer) >= least_predicted_gain ? 0 : answer.step.bound == Bound::unknown ? 1 : 2;
    return std::pair(rank, -gain_of(answer));
  };
  std::ranges::stable_sort(overview.stages, {}, place);

  std::vector<std::string> useful;
  for (const PredictionAnswer& each : overview.stages)
    if (each.step.bound == Bound::unknown || gain_of(each) >= least_predicted_gain) useful.push_back(each.stage);
  const StepProfile traced = step_profile(subject.trace);
  overview.largest = largest_part_text(KindTimes(traced), step_ms(traced), subject.device, useful);

  std::vector<std::string> climbed;
  std::optional<Recipe> recipe = subject.recipe;
  double before = 1;
  for (const PredictionAnswer& each : overview.stages) {
    if (gain_of(each) < least_predicted_gain) break;
    const Stage& stage = stage_by_id(each.stage);
    if (is_on(subject, recipe, stage) || !why_unavailable(recipe, stage, report, subject.device).empty()) continue;
    // A way to take the step replaces another one.
    if (recipe && recipe->compile != Compile::off && stage.id.starts_with("compile")) continue;
    std::vector<std::string> stages = climbed;
    stages.push_back(stage.id);
    PredictionAnswer answer = answer_of(subject, {.stages = stages});
    if (gain_of(answer) < before * least_predicted_gain) continue;
    before = gain_of(answer);
    climbed = std::move(stages);
    if (recipe) stage.apply(*recipe);
    overview.order.push_back(std::move(answer));
  }
  const double floor = overview.floor.floor_ms;
  if (!overview.order.empty() && !is_missing(floor)) {
    const std::size_t count = std::min<std::size_t>(2, overview.order.size());
    const PredictionAnswer& last = overview.order[count - 1];
    overview.sentence = fmt::format(
        "The step's floor, {}, is {} of it. After {} ({}) that is {}{}.", milliseconds_text(floor),
        percent_text(floor / subject.step_ms), count == 1 ? "this one" : "these " + words_of(count), last.stage,
        last.step.bound == Bound::at_most ? "at most " : "about ", percent_text(std::min(1.0, floor / last.step.ms)));
  } else if (!is_missing(floor)) {
    overview.sentence = fmt::format("The step's floor, {}, is {} of it.", milliseconds_text(floor),
                                    percent_text(floor / subject.step_ms));
  }
  return overview;
}

void keep_prediction(RunStore& store, const PredictionSubject& subject, const PredictionAnswer& answer) {
  if (answer.stage.empty() || answer.step.bound == Bound::unknown || !subject.recipe || !answer.recipe) return;
  store.traces().predictions().keep({.trace = subject.trace.id,
                                     .run = subject.run ? std::optional(subject.run->id) : std::nullopt,
                                     .stage = answer.stage,
                                     .device = subject.device,
                                     .hardware = subject.run ? subject.run->hardware : subject.trace.hardware,
                                     .base_recipe = to_json(*subject.recipe),
                                     .recipe = to_json(*answer.recipe),
                                     .at_most = answer.step.bound == Bound::at_most,
                                     .step_ms = subject.step_ms,
                                     .predicted_ms = answer.step.ms,
                                     .low_ms = answer.step.ci95.low,
                                     .high_ms = answer.step.ci95.high});
}

}  // namespace stepladder
