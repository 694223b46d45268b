// Joins a stored trace, its run, its recipe and the peaks of its device into predictions. The profiler slows a step, so
// a prediction is a ratio from the trace, applied to the run's own step where the run is known.
#include "app/profile/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/profile/roofline_report.h"
#include "app/profile/trace_owner.h"
#include "app/runs/find_run.h"
#include "app/text/format.h"
#include "engine/stage.h"
#include "storage/database/traces/prediction_store.h"
#include "storage/database/traces/trace_details.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

constexpr std::size_t most_steps = 9;            // of the kept ones, that are played again
constexpr std::int64_t most_slices = 3'000'000;  // of these together
constexpr double least_gain = 1.005;             // a smaller one is no rung
constexpr double most_scale = 100;
constexpr double most_times_longer = 4;  // a traced step than the run's, for its shares to count

std::vector<StepSlices> load_steps(RunStore& store, TraceId trace) {
  TraceDetails details = store.traces().details();
  const std::vector<KeptStepName> kept = details.steps(trace);
  const std::size_t every = std::max<std::size_t>(1, (kept.size() + most_steps - 1) / most_steps);
  std::vector<StepSlices> steps;
  std::int64_t slices = 0;
  for (std::size_t i = 0; i < kept.size(); i += every) {
    if (!steps.empty() && slices + kept[i].slices > most_slices) break;
    slices += kept[i].slices;
    steps.push_back(details.slices(trace, kept[i].rank, kept[i].step));
  }
  return steps;
}

std::optional<Recipe> recipe_of(const StoredTrace& trace, const std::optional<Run>& run) {
  std::string text = trace.recipe;
  if (text.empty() && run && run->source == "launched") text = run->recipe;
  if (text.empty()) return std::nullopt;
  try {
    Recipe recipe = recipe_from_json(text);
    validate_each_value(recipe);
    return recipe;
  } catch (const RecipeError&) {
    return std::nullopt;
  }
}

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

// The device's name as recipes spell it.
std::string device_of(const StoredTrace& trace, const std::optional<Run>& run) {
  if (run && !run->device.empty()) return run->device;
  return trace.profile.on_gpu ? "cuda" : "cpu";
}

std::string part_word(ModelPart part) {
  return part == ModelPart::mlp ? "mlp" : std::string(to_string(part));
}

std::string title_of(const WorkChange& change) {
  std::string kinds;
  for (const OperatorKind kind : change.kinds) kinds += (kinds.empty() ? "" : ", ") + std::string(to_string(kind));
  if (kinds.empty()) kinds = "all work";
  if (!change.operators.empty()) kinds += fmt::format(" ({})", fmt::join(change.operators, ", "));
  return change.part == ModelPart::unknown ? kinds : kinds + " of " + std::string(to_string(change.part));
}

std::vector<std::string> kind_words() {
  std::vector<std::string> words;
  for (const OperatorKind kind : all_operator_kinds) words.push_back(kind_key(kind));
  return words;
}

OperatorKind kind_from(const std::string& text, const std::string& option) {
  const std::string word = text == "optimiser"                     ? "optimizer"
                           : text == "matmul" || text == "matmuls" ? "products"
                                                                   : text;
  for (const OperatorKind kind : all_operator_kinds)
    if (word == kind_key(kind) || text == to_string(kind)) return kind;
  throw UsageError(
      fmt::format("{}: there is no kind of work '{}'; the kinds are {}", option, text, fmt::join(kind_words(), ", ")),
      {.code = "invalid-value", .argument = option, .value = text});
}

double factor_from(const std::string& text, const std::string& option) {
  const std::optional<double> value = parse_number<double>(text);
  if (!value || !std::isfinite(*value) || *value < 0 || *value > most_scale)
    throw UsageError(fmt::format("{}: the factor must be a number from 0 to {}, not '{}'", option, most_scale, text),
                     {.code = "invalid-value", .argument = option, .value = text});
  return *value;
}

// The pieces of "a=1,b=2", each cut at its "=".
std::vector<std::pair<std::string, std::string>> pairs_of(const std::vector<std::string>& texts,
                                                          const std::string& option, const char* example) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : texts) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      const std::string piece = text.substr(begin, comma - begin);
      const std::size_t equals = piece.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == piece.size())
        throw UsageError(fmt::format("{}: '{}' isn't like {}", option, piece, example),
                         {.code = "invalid-value", .argument = option, .value = piece});
      pairs.emplace_back(piece.substr(0, equals), piece.substr(equals + 1));
      begin = comma + 1;
    }
  }
  return pairs;
}

Json step_json(const PredictedStep& step) {
  Json json = {{"bound", to_string(step.bound)},
               {"predicted_ms", number(step.ms)},
               {"ci95", interval_json(step.ci95)},
               {"factor", number(step.factor)},
               {"factor_ci95", interval_json(step.factor_ci95)}};
  json["why_unknown"] = text_or_null(step.why_unknown);
  return json;
}

Json calibration_json(const LawRecord& record) {
  return {{"n", record.n},
          {"here", record.here},
          {"median_error", number(record.median_error)},
          {"broken", record.broken},
          {"from_all_stages", record.is_of_all_stages}};
}

Json answer_json(const PredictionAnswer& answer) {
  Json json = step_json(answer.step);
  Json rows = Json::array();
  for (const PredictionRow& row : answer.rows)
    rows.push_back({{"kind", row.title},
                    {"before_ms", row.before_ms},
                    {"after_ms", row.after_ms},
                    {"bound", row.at_most ? to_string(Bound::at_most) : to_string(Bound::estimate)},
                    {"law", row.why}});
  json["rows"] = std::move(rows);
  json["calibration"] = answer.stage.empty() ? Json() : calibration_json(answer.record);
  json["notes"] = answer.notes;
  return json;
}

Json subject_json(const PredictionSubject& subject) {
  return {{"of",
           {{"profile", subject.trace.id},
            {"run", subject.run ? Json(subject.run->id) : Json()},
            {"name", subject.trace.name},
            {"device", subject.device},
            {"hardware", text_or_null(subject.ceiling.hardware)}}},
          {"step_ms", number(subject.step_ms)},
          {"step_from", subject.step_is_of_run ? "run" : "trace"},
          {"traced_ms", number(subject.traced_ms)}};
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

double gain_of(const PredictionAnswer& answer) {
  return answer.step.bound == Bound::unknown ? 0 : answer.step.factor;
}

std::string words_of(std::size_t count) {
  constexpr std::array words{"no", "one", "two", "three", "four", "five", "six"};
  return count < words.size() ? words[count] : std::to_string(count);
}

}  // namespace

std::string kind_key(OperatorKind kind) {
  constexpr std::pair<OperatorKind, const char*> keys[] = {
      {OperatorKind::products, "products"},
      {OperatorKind::softmax, "softmax"},
      {OperatorKind::normalisation, "norm"},
      {OperatorKind::gelu, "gelu"},
      {OperatorKind::elementwise, "elementwise"},
      {OperatorKind::copies, "copies"},
      {OperatorKind::optimizer, "optimizer"},
      {OperatorKind::between, "between"},
      {OperatorKind::graph, "graphs"},
  };
  for (const auto& [known, key] : keys)
    if (known == kind) return key;
  return std::string(to_string(kind));
}

std::vector<WorkChange> parse_scales(const std::vector<std::string>& texts) {
  const std::string option = "--scale";
  std::vector<WorkChange> changes;
  std::set<OperatorKind> seen;
  for (const auto& [word, factor] : pairs_of(texts, option, "attention=0.4")) {
    const OperatorKind kind = kind_from(word, option);
    if (!seen.insert(kind).second)
      throw UsageError(fmt::format("{}: {} is given twice", option, word),
                       {.code = "invalid-value", .argument = option, .value = word});
    changes.push_back({.kinds = {kind}, .factor = factor_from(factor, option), .why = "as asked for"});
  }
  return changes;
}

std::vector<WorkChange> parse_parts(const std::vector<std::string>& texts) {
  const std::string option = "--part";
  std::vector<WorkChange> changes;
  std::set<std::string> seen;
  for (const auto& [word, factor] : pairs_of(texts, option, "mlp/gelu=fused or attention=0.5")) {
    const std::size_t slash = word.find('/');
    const std::string part_name = word.substr(0, slash);
    WorkChange change{.why = "as asked for"};
    std::vector<std::string> parts;
    for (const ModelPart part : all_model_parts) {
      if (part == ModelPart::unknown) continue;
      parts.push_back(part_word(part));
      if (part_name == parts.back() || part_name == to_string(part)) change.part = part;
    }
    if (change.part == ModelPart::unknown)
      throw UsageError(fmt::format("{}: there is no part of the model '{}'; the parts are {}", option, part_name,
                                   fmt::join(parts, ", ")),
                       {.code = "invalid-value", .argument = option, .value = part_name});
    if (slash != std::string::npos) change.kinds = {kind_from(word.substr(slash + 1), option)};
    if (!seen.insert(title_of(change)).second)
      throw UsageError(fmt::format("{}: {} is given twice", option, word),
                       {.code = "invalid-value", .argument = option, .value = word});
    if (factor == "fused") {
      change.factor = 0;
      change.at_most = true;
      change.why = "fused into the work around it, if that costs nothing";
    } else {
      change.factor = factor_from(factor, option);
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

std::vector<PastPrediction> past_predictions(RunStore& store) {
  std::vector<PastPrediction> past = read_past_predictions(assets_folder() / "predictions.csv");
  for (const MeasuredPrediction& each : store.traces().predictions().measured()) {
    const std::optional<Run> before = store.run(each.before), after = store.run(each.after);
    if (!before || !after) continue;
    const double before_ms = store.summary(*before).dt_ms_median, after_ms = store.summary(*after).dt_ms_median;
    const KeptPrediction& made = each.prediction;
    if (!(before_ms > 0) || !(after_ms > 0) || !(made.step_ms > 0) || !(made.predicted_ms > 0)) continue;
    past.push_back({.stage = made.stage,
                    .device = made.device,
                    .predicted = made.predicted_ms / made.step_ms,
                    .measured = after_ms / before_ms,
                    .at_most = made.at_most,
                    .is_from_here = true});
  }
  return past;
}

std::int64_t kept_slices(RunStore& store, TraceId trace) {
  std::int64_t slices = 0;
  for (const KeptStepName& each : store.traces().details().steps(trace)) slices += each.slices;
  return slices;
}

PredictionSubject load_subject(RunStore& store, StoredTrace trace) {
  std::optional<Run> run = trace.run ? store.run(*trace.run) : std::nullopt;
  std::optional<Recipe> recipe = recipe_of(trace, run);
  const double run_ms = run ? store.summary(*run).dt_ms_median : missing;
  PredictedSteps steps(trace.profile, load_steps(store, trace.id), run_ms);
  if (steps.empty())
    throw NotFound(fmt::format("trace {} keeps no slices of a step", trace.id),
                   {.code = "no-trace", .argument = "run", .hint = "import its file again"});
  PredictionSubject subject{.device = device_of(trace, run),
                            .ceiling = ceiling_of(HardwareTable::load(assets_folder()),
                                                  run && !run->hardware.empty() ? run->hardware : trace.hardware,
                                                  run && !run->precision.empty() ? run->precision : trace.precision),
                            .traced_ms = mean_step_ms(trace.profile),
                            .steps = std::move(steps),
                            .past = past_predictions(store)};
  const HardwareTable table = HardwareTable::load(assets_folder());
  LawFacts& facts = subject.facts;
  facts.device = subject.device;
  facts.bandwidth_gb_s = subject.ceiling.bandwidth_gb_s;
  facts.precision = run && !run->precision.empty() ? run->precision : trace.precision;
  for (const char* const precision : {"fp32", "tf32", "bf16", "fp16", "fp8"}) {
    const Ceiling each = ceiling_of(table, subject.ceiling.hardware, precision);
    if (!is_missing(each.tflops)) facts.tflops.emplace_back(precision, each.tflops);
  }
  if (recipe) {
    state_recipe(facts, *recipe, *recipe);
    facts.precision = precision_name(*recipe);
  }
  subject.step_ms = subject.traced_ms;
  if (run) {
    const Summary summary = store.summary(*run);
    if (summary.dt_ms_median > 0) {
      subject.step_ms = summary.dt_ms_median;
      subject.step_is_of_run = true;
      constexpr std::int64_t most = 100'000;
      const Series series = store.excerpt(run->id, most);
      subject.step_ci95 = median_interval(sample_steps(steady_dt_ms(series, summary), read_from(*run)));
      if (const std::string doubt = doubt_about(subject.traced_ms, subject.step_ms); !doubt.empty())
        subject.notes.push_back(doubt);
    }
  }
  if (!trace.profile.has_steps)
    subject.notes.emplace_back("The trace marks no steps, so all of it counts as one step.");
  if (subject.steps.exposed_ms() > 0 && trace.profile.on_gpu)
    subject.notes.emplace_back("Communication may hold time in which this rank waited for others; it stays as it was.");
  subject.run = std::move(run);
  subject.recipe = std::move(recipe);
  subject.trace = std::move(trace);
  return subject;
}

PredictionSubject find_subject(RunStore& store, const std::string& word) {
  const auto trace_of = [&](const std::string& wanted) -> std::optional<StoredTrace> {
    std::vector<TraceId> found;
    for (const StoredTrace& each : store.traces().list()) {
      if (std::to_string(each.id) == wanted) return store.traces().find(each.id);
      if (each.name == wanted) found.push_back(each.id);
    }
    if (found.size() > 1)
      throw UsageError("several traces are called '" + wanted +
                       "'; give a number: profile:" + std::to_string(found.back()));
    return found.empty() ? std::nullopt : store.traces().find(found.front());
  };
  for (const std::string_view prefix : {"profile:", "trace:"}) {
    if (!word.starts_with(prefix)) continue;
    if (std::optional<StoredTrace> trace = trace_of(word.substr(prefix.size())))
      return load_subject(store, std::move(*trace));
    throw NotFound(
        "there is no trace '" + word.substr(prefix.size()) + "'",
        {.code = "no-such-trace", .argument = "run", .value = word, .hint = "`stepladder profile list` shows them"});
  }
  constexpr std::string_view of_run = "run:";
  std::optional<Run> run;
  try {
    run = find_run(store, word.starts_with(of_run) ? word.substr(of_run.size()) : word);
  } catch (const UsageError&) {
    if (word.starts_with(of_run)) throw;
  }
  if (!run) {
    if (std::optional<StoredTrace> trace = trace_of(word)) return load_subject(store, std::move(*trace));
    std::error_code error;
    throw NotFound("there is no run and no trace '" + word + "'",
                   {.code = "no-such-run",
                    .argument = "run",
                    .value = word,
                    .hint = std::filesystem::is_regular_file(word, error)
                                ? "`stepladder profile import " + word + "` imports a trace"
                                : "`stepladder runs` and `stepladder profile list` show them"});
  }
  std::optional<TraceId> newest;
  for (const StoredTrace& each : store.traces().list())
    if (each.run == run->id) newest = each.id;
  if (newest) return load_subject(store, store.traces().find(*newest).value());
  const std::optional<StoredTrace> of_number = trace_of(word);
  throw NotFound(
      fmt::format("run {} has no trace to predict from", run->id) +
          (of_number ? fmt::format("; trace {} is profile:{}", word, word) : ""),
      {.code = "no-trace",
       .argument = "run",
       .value = word,
       .hint = run->source == "launched"
                   ? fmt::format("`stepladder profile run {}` traces its recipe", run->id)
                   : fmt::format("`stepladder profile import FILE --run {}` attaches one of its profiler", run->id)});
}

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
        !why_unavailable(subject.recipe, stage, report, subject.device).empty())
      continue;
    overview.stages.push_back(answer_of(subject, {.stages = {stage.id}}));
  }
  // Gains, then what isn't known, then what buys nothing.
  const auto place = [](const PredictionAnswer& answer) {
    const int rank = gain_of(answer) >= least_gain ? 0 : answer.step.bound == Bound::unknown ? 1 : 2;
    return std::pair(rank, -gain_of(answer));
  };
  std::ranges::stable_sort(overview.stages, {}, place);

  std::vector<std::string> climbed;
  std::optional<Recipe> recipe = subject.recipe;
  double before = 1;
  for (const PredictionAnswer& each : overview.stages) {
    if (gain_of(each) < least_gain) break;
    const Stage& stage = stage_by_id(each.stage);
    if (is_on(subject, recipe, stage) || !why_unavailable(recipe, stage, report, subject.device).empty()) continue;
    // A way to take the step replaces another one.
    if (recipe && recipe->compile != Compile::off && stage.id.starts_with("compile")) continue;
    std::vector<std::string> stages = climbed;
    stages.push_back(stage.id);
    PredictionAnswer answer = answer_of(subject, {.stages = stages});
    if (gain_of(answer) < before * least_gain) continue;
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
        last.step.bound == Bound::at_most ? "most " : "about ", percent_text(std::min(1.0, floor / last.step.ms)));
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

std::string step_text(const PredictedStep& step) {
  if (step.bound == Bound::unknown) return "-";
  if (step.bound == Bound::at_most) return "at best " + milliseconds_text(step.ms);
  return fmt::format("{} ({} - {})", milliseconds_text(step.ms), ms_figure(step.ci95.low, step.ms),
                     ms_figure(step.ci95.high, step.ms));
}

std::string gain_text(const PredictedStep& step) {
  if (step.bound == Bound::unknown) return "unknown";
  if (step.bound == Bound::at_most) return "at most " + factor_text(step.factor);
  return fmt::format("{} ({:.2f} - {:.2f})", factor_text(step.factor), step.factor_ci95.low, step.factor_ci95.high);
}

Json prediction_json(const PredictionSubject& subject, const PredictionAnswer& answer, const WhatIf& what_if) {
  Json json = subject_json(subject);
  json["stages"] = what_if.stages;
  Json scales = Json::array();
  for (const WorkChange& each : what_if.scales)
    scales.push_back({{"kind", each.kinds.empty() ? Json() : Json(to_string(each.kinds.front()))},
                      {"part", each.part == ModelPart::unknown ? Json() : Json(part_word(each.part))},
                      {"factor", each.factor}});
  json["scale"] = std::move(scales);
  json.update(answer_json(answer));
  for (const std::string& note : subject.notes) json["notes"].push_back(note);
  return json;
}

Json overview_json(const PredictionSubject& subject, const PredictionOverview& overview) {
  Json json = subject_json(subject);
  const StepFloor& floor = overview.floor;
  const double gap = is_missing(floor.floor_ms) ? missing : floor.step_ms - floor.floor_ms;
  Json kinds = Json::array();
  for (const KindFloor& each : floor.kinds)
    kinds.push_back({{"kind", to_string(each.kind)},
                     {"ms", each.ms},
                     {"least_ms", is_missing(gap) ? Json() : Json(each.least_ms)},
                     {"known_ms", each.known_ms},
                     {"share_of_gap", gap > 0 ? Json(each.gap_ms() / gap) : Json()}});
  json["floor"] = {{"floor_ms", number(floor.floor_ms)},
                   {"share", number(floor.share())},
                   {"known_share", floor.known_share},
                   {"kinds", std::move(kinds)},
                   {"reason", text_or_null(overview.why_no_floor)}};
  const auto list = [&](const std::vector<PredictionAnswer>& answers) {
    Json made = Json::array();
    for (const PredictionAnswer& each : answers) {
      Json one = {{"stage", each.stage}};
      one.update(answer_json(each));
      one["share_of_floor"] = is_missing(floor.floor_ms) || is_missing(each.step.ms)
                                  ? Json()
                                  : Json(std::min(1.0, floor.floor_ms / each.step.ms));
      made.push_back(std::move(one));
    }
    return made;
  };
  json["stages"] = list(overview.stages);
  json["order"] = list(overview.order);
  json["sentence"] = text_or_null(overview.sentence);
  json["notes"] = subject.notes;
  return json;
}

std::string subject_text(const PredictionSubject& subject) {
  const std::string name = subject.run ? fmt::format("run {}, {}", subject.run->id, subject.run->name)
                                       : fmt::format("trace {}, {}", subject.trace.id, subject.trace.name);
  if (!subject.step_is_of_run)
    return fmt::format("{}: a traced step of {}. The profiler slows a step, so the factors count more than the times.",
                       name, milliseconds_text(subject.traced_ms));
  return fmt::format("{}: a step of {}. Trace {}, whose step takes {} under the profiler, gives the factors.", name,
                     milliseconds_text(subject.step_ms), subject.trace.id, milliseconds_text(subject.traced_ms));
}

}  // namespace stepladder
