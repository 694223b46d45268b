// Finds what predictions are made of: a stored trace, its run and recipe, the peaks of its device, and how past
// predictions fared.
#include <fmt/format.h>

#include <algorithm>

#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/profile/predict.h"
#include "app/profile/trace_owner.h"
#include "app/runs/find_run.h"
#include "storage/database/traces/prediction_store.h"
#include "storage/database/traces/trace_details.h"

namespace stepladder {
namespace {

constexpr std::size_t most_kept_steps = 9;       // of the kept ones, that are played again
constexpr std::int64_t most_slices = 3'000'000;  // of these together

std::vector<StepSlices> load_steps(RunStore& store, TraceId trace) {
  TraceDetails details = store.traces().details();
  const std::vector<KeptStepName> kept = details.steps(trace);
  const std::size_t every = std::max<std::size_t>(1, (kept.size() + most_kept_steps - 1) / most_kept_steps);
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

// The device's name as recipes spell it.
std::string device_of(const StoredTrace& trace, const std::optional<Run>& run) {
  if (run && !run->device.empty()) return run->device;
  return trace.profile.on_gpu ? "cuda" : "cpu";
}

}  // namespace

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
    if (recipe->vocab > 0) facts.parameters_before = static_cast<double>(parameter_count(*recipe));
    facts.parameters_after = facts.parameters_before;
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

}  // namespace stepladder
