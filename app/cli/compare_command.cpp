// `stepladder compare`: loads the runs with their rungs' other repeats, judges them against the base, and prints a
// table, JSON or, with --gate, an exit status. The verdicts are storage/analysis/judgement.h's; only their presentation
// is here.
#include "app/cli/compare_command.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/metric_report.h"
#include "app/exit_status.h"
#include "app/runs/excerpt.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {
namespace {

struct CompareOptions {
  std::string against;
  std::vector<std::string> runs;  // the first is the base unless --against names it
  double noise_floor = default_noise_floor;
  std::optional<double> target_loss;
  std::string metric;
  bool lower = false;
  bool gate = false;
  bool ignores_loss = false;
};

// The mean distance between recorded steps: 10 if a log has every tenth.
std::int64_t steps_apart(const Summary& summary) {
  return (summary.last_step - summary.first_step) / std::max<std::int64_t>(1, summary.steps) + 1;
}

bool is_validated(const ComparedRun& run) {
  return !is_missing(run.loaded.summary.val_loss_last);
}

// A run's final loss: validation loss if there is any, else the median of the last five.
double final_loss(RunStore& store, const ComparedRun& run) {
  const Summary& summary = run.loaded.summary;
  if (std::isfinite(summary.val_loss_last)) return summary.val_loss_last;
  const std::int64_t end = 4096 * steps_apart(summary);
  const Series series = run.loaded.is_excerpt()
                            ? store.series(run.loaded.run.id, summary.last_step - end + 1, summary.last_step)
                            : run.loaded.series;
  std::vector<double> last;
  for (std::size_t i = series.size(); i-- > 0 && last.size() < 5;)
    if (std::isfinite(series.loss[i])) last.push_back(series.loss[i]);
  return quantile(last, 0.5);
}

// By validation losses or by training losses; a run without them never reaches it. Seconds and tokens are sums over all
// steps, so those of a long run are read piece by piece.
TargetReached find_target(RunStore& store, const ComparedRun& run, double target_loss, bool by_validation) {
  const Run& of = run.loaded.run;
  TargetSearch search(of, target_loss, by_validation);
  if (!run.loaded.is_excerpt()) search.add(run.loaded.series);
  if (run.loaded.is_excerpt())
    store.for_steps(of.id, [&](std::span<const StepRecord> steps) {
      if (search.found()) return;
      Series piece;
      for (const StepRecord& step : steps) piece.append(step);
      search.add(piece);
    });
  return search.reached();
}

Json target_json(const std::optional<TargetReached>& target) {
  if (!target || target->step == 0) return nullptr;
  return {{"step", target->step},
          {"seconds", number(target->seconds)},
          {"tokens", number(target->tokens)},
          {"by", target->by_validation ? "val_loss" : "loss"},
          {"once", target->once}};
}

// The loss that a run was judged by, and what it needed; the latter is null if it never reached the target.
Json reached_json(RunId run, const std::optional<TargetReached>& target) {
  return {{"id", run}, {"by", target && target->by_validation ? "val_loss" : "loss"}, {"reached", target_json(target)}};
}

std::string target_text(const TargetReached& target) {
  const std::string by = target.once            ? "val loss, once: no later one confirms it"
                         : target.by_validation ? "val loss"
                                                : "median of five losses";
  if (target.step == 0) return "target: not reached (" + by + ")";
  return "target: reached (" + by + ") at step " + grouped(target.step) +
         (is_missing(target.seconds) ? "" : ", after " + duration_text(target.seconds)) +
         (is_missing(target.tokens) ? "" : " and " + compact(target.tokens) + " tokens");
}

std::string excerpt_note(const ComparedRun& run) {
  if (!run.loaded.is_excerpt()) return {};
  return fmt::format("run {}, excerpt: interval and loss are from {} evenly spaced steps of {}\n", run.loaded.run.id,
                     grouped(std::ssize(run.loaded.series.step)), grouped(run.loaded.summary.steps));
}

std::optional<BatchSplit> split_batch(const LoadedRun& base, const LoadedRun& run,
                                      const std::vector<RunAndSummary>& others) {
  const auto point = [](const LoadedRun& of) {
    return BatchPoint{of.run.id, static_cast<double>(of.run.tokens_per_step), of.summary.dt_ms_median};
  };
  return split_gain(point(base), point(run), third_point({base.run, base.summary}, {run.run, run.summary}, others));
}

// The parts of a gain if the batch changed too: a pair of equal numbers if they are known, else bounds.
Json batch_json(const BatchSplit& split) {
  return {{"equal_batch", Json::array({number(split.equal_batch_low), number(split.equal_batch_high)})},
          {"bigger_batch", Json::array({number(split.bigger_batch_low), number(split.bigger_batch_high)})},
          {"third_run", split.third ? Json(*split.third) : Json()},
          {"why", split.sentence}};
}

Subject subject_of(const ComparedRun& run) {
  Subject subject{.rung = run.loaded.run.rung, .runs = {run.loaded.measured()}};
  for (const LoadedRun& repeat : run.repeats) subject.siblings.push_back(repeat.measured());
  return subject;
}

// The exit status of a gate's gravest finding: an impossible number, then the loss, then the speed.
int gate_status(const Comparisons& compared, bool ignores_loss) {
  const auto any = [&](auto&& found) {
    return std::ranges::any_of(compared.runs, [&](const Comparison& each) { return found(each.judgement); });
  };
  if (any([](const RungJudgement& run) { return run.over_baseline.worst() == Trust::impossible; }))
    return exit_implausible;
  const auto any_loss = [&](LossVerdict first, LossVerdict second) {
    return !ignores_loss &&
           any([&](const RungJudgement& run) { return run.loss.verdict == first || run.loss.verdict == second; });
  };
  if (any_loss(LossVerdict::worse, LossVerdict::diverged)) return exit_loss_not_at_parity;
  if (any([](const RungJudgement& run) { return run.over_baseline.verdict == Verdict::slower; })) return exit_slower;
  if (any([](const RungJudgement& run) { return run.over_baseline.verdict == Verdict::cannot_tell; }) ||
      any([](const RungJudgement& run) { return run.over_baseline.worst() == Trust::doubtful; }) ||
      any_loss(LossVerdict::inconclusive, LossVerdict::not_comparable))
    return exit_cannot_tell;
  return exit_done;
}

int compare(const CompareOptions& options, const CommonOptions& common) {
  const bool is_first = options.against.empty();
  const auto refuse = [&] {
    throw UsageError("compare needs a baseline and a run", {.code = "missing-argument",
                                                            .argument = is_first ? "runs" : "run",
                                                            .hint = "`stepladder compare BASE RUN...`"});
  };
  if (options.runs.empty()) refuse();
  RunStore store = open_existing(common.database);
  std::vector<Run> found;
  if (is_first && options.runs.size() == 1) {  // "1-9": the first of them is the baseline
    found = find_runs(store, options.runs);
    if (found.size() < 2) refuse();
  } else {
    found.push_back(find_run(store, is_first ? options.runs.front() : options.against));
    for (Run& run : find_runs(store, {options.runs.begin() + is_first, options.runs.end()}))
      found.push_back(std::move(run));
  }
  const std::int64_t most_steps = most_steps_of_each(found.size());
  const auto itself = [&](const Run& run) { return run.id == found.front().id; };
  if (std::any_of(found.begin() + 1, found.end(), itself))
    throw UsageError(
        fmt::format("run {} is compared with itself; name another run to compare it with", found.front().id));
  std::vector<ComparedRun> all;
  for (const Run& run : found) all.push_back(load_compared(store, run, all.empty(), most_steps));
  const ComparedRun& base = all.front();
  std::vector<RunAndSummary> others;
  if (std::ranges::any_of(found, [&](const Run& run) { return run.tokens_per_step != found.front().tokens_per_step; }))
    others = store.runs_with_summaries();
  Comparisons compared =
      compare_runs(base, std::span(all).subspan(1), options.noise_floor, load_run_context(&store).hardware, others);
  if (common.json || options.target_loss) {
    compared.target_loss = options.target_loss;
    const double target = options.target_loss ? *options.target_loss : final_loss(store, base);
    for (Comparison& comparison : compared.runs)
      comparison.target =
          find_target(store, *comparison.run, target, is_validated(options.target_loss ? *comparison.run : base));
    if (options.target_loss) compared.base_target = find_target(store, base, target, is_validated(base));
  }
  const auto metrics = options.metric.empty()
                           ? std::vector<MetricOfRun>{}
                           : compared_metrics(store, found, options.metric, options.lower, options.noise_floor);
  if (common.json) {
    Json json = compare_json(compared);
    if (!metrics.empty()) json["metric"] = compared_metrics_json(metrics, options.metric);
    print(json);
  } else {
    std::cout << compare_table(compared);
    if (!metrics.empty()) std::cout << "\n" << notes_text(options.metric) << compared_metrics_text(metrics);
  }
  return options.gate ? gate_status(compared, options.ignores_loss) : exit_done;
}

std::string flag_notes(const RungJudgement& judgement, const std::string& who) {
  std::string notes;
  for (const Flag& flag : judgement.flags)
    notes += who + std::string(to_string(flag.id)) + ": " + flag_text(flag) + "\n";
  return notes;
}

}  // namespace

ComparedRun load_compared(RunStore& store, const Run& run, bool with_steps, std::int64_t most_steps) {
  ComparedRun found{.loaded = load_run(store, run, most_steps), .repeats = {}};
  for (const Run& other : other_finished_repeats(store, run)) {
    if (with_steps) {
      found.repeats.push_back(load_run(store, other, most_steps));
    } else {
      LoadedRun& repeat = found.repeats.emplace_back();
      repeat.run = other;
      repeat.summary = store.summary(other);
    }
  }
  return found;
}

Comparisons compare_runs(const ComparedRun& base, std::span<const ComparedRun> runs, double noise_floor,
                         const HardwareTable& hardware, const std::vector<RunAndSummary>& others) {
  std::vector<Subject> subjects{subject_of(base)};
  for (const ComparedRun& run : runs) subjects.push_back(subject_of(run));
  std::vector<RungJudgement> judged = judge(subjects, 0, hardware, {.noise_floor = noise_floor});
  Comparisons compared{.base = &base, .base_judgement = std::move(judged.front()), .runs = {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const LoadedRun& run = runs[i].loaded;
    compared.runs.push_back({.run = &runs[i],
                             .judgement = std::move(judged[i + 1]),
                             .target = {},
                             .batch = {},
                             .break_even_steps = missing});
    Comparison& comparison = compared.runs.back();
    if (is_missing(comparison.judgement.over_baseline.factor)) continue;  // on two machines
    comparison.batch = split_batch(base.loaded, run, others);
    comparison.break_even_steps =
        break_even_steps(run.run.setup_ms, base.loaded.summary.dt_ms_median, run.summary.dt_ms_median);
  }
  return compared;
}

Json compare_json(const Comparisons& compared) {
  const LoadedRun& base = compared.base->loaded;
  Json rows = Json::array();
  for (const Comparison& comparison : compared.runs) {
    const LoadedRun& loaded = comparison.run->loaded;
    const Run& run = loaded.run;
    const RungJudgement& judgement = comparison.judgement;
    Json row = {{"id", run.id},
                {"name", run.name},
                {"speedup", number(judgement.over_baseline.factor)},
                {"ci95", interval_json(judgement.over_baseline.ci95)},
                {"verdict", to_string(judgement.over_baseline.verdict)},
                {"spread_from", text_or_null(std::string(to_string(judgement.over_baseline.spread_from)))},
                {"runs", judgement.over_baseline.runs},
                {"needed_runs", count_or_null(judgement.needed_runs())},
                {"against_previous", number(judgement.over_previous.factor)},
                {"against_previous_ci95", interval_json(judgement.over_previous.ci95)},
                {"loss", parity_json(judgement.loss)},
                {"loss_doubt", text_or_null(judgement.loss.doubt)},
                {"reached_base_loss", target_json(comparison.target)},
                {"flags", json_list(judgement.flags, [](const Flag& flag) { return to_string(flag.id); })},
                {"trust", to_string(judgement.over_baseline.worst())},
                {"tokens_ratio", nullptr},
                {"step_time_ratio", nullptr},
                {"batch", comparison.batch ? batch_json(*comparison.batch) : Json()},
                {"break_even_steps", number(comparison.break_even_steps)},
                {"excerpt_steps", loaded.is_excerpt() ? Json(loaded.series.size()) : Json()}};
    if (base.run.tokens_per_step > 0 && run.tokens_per_step > 0 && base.run.tokens_per_step != run.tokens_per_step) {
      // speedup = tokens_ratio / step_time_ratio
      row["tokens_ratio"] = static_cast<double>(run.tokens_per_step) / static_cast<double>(base.run.tokens_per_step);
      row["step_time_ratio"] =
          base.summary.dt_ms_median > 0 ? number(loaded.summary.dt_ms_median / base.summary.dt_ms_median) : Json();
    }
    rows.push_back(std::move(row));
  }
  Json all = {{"base", base.run.id},
              {"base_trust", to_string(compared.base_judgement.trust)},
              {"base_excerpt_steps", base.is_excerpt() ? Json(base.series.size()) : Json()},
              {"runs", rows}};
  if (compared.target_loss) {
    Json runs = Json::array({reached_json(base.run.id, compared.base_target)});
    for (const Comparison& comparison : compared.runs)
      runs.push_back(reached_json(comparison.run->loaded.run.id, comparison.target));
    all["target"] = {{"loss", *compared.target_loss}, {"runs", runs}};
  }
  return all;
}

std::string compare_table(const Comparisons& compared) {
  const LoadedRun& base = compared.base->loaded;
  std::vector<std::vector<std::string>> rows = {
      {"run", "name", "tokens/s", "vs previous", "vs baseline", "95 % interval", "verdict", "loss", "largest gap"}};
  const RungJudgement& reference = compared.base_judgement;
  rows.push_back({std::to_string(base.run.id), base.run.name, tokens_per_s_text(base.summary.tokens_per_s), "-",
                  factor_text(reference.over_baseline.factor), "-",
                  "baseline" + (reference.is_trusted() ? "" : ", " + std::string(to_string(reference.trust))),
                  loss_text({}, true), "-"});
  std::string notes = excerpt_note(*compared.base);
  if (!reference.is_trusted()) notes += flag_notes(reference, fmt::format("run {} (baseline), ", base.run.id));
  if (compared.base_target)
    notes += fmt::format("run {} (baseline), {}\n", base.run.id, target_text(*compared.base_target));
  for (const Comparison& comparison : compared.runs) {
    const LoadedRun& loaded = comparison.run->loaded;
    const RungJudgement& judgement = comparison.judgement;
    const LossParity& loss = judgement.loss;
    const bool gap = !is_missing(loss.max_gap);
    rows.push_back({std::to_string(loaded.run.id), loaded.run.name, tokens_per_s_text(loaded.summary.tokens_per_s),
                    factor_text(judgement.over_previous.factor), factor_text(judgement.over_baseline.factor),
                    ci95_text(judgement.over_baseline.ci95), verdict_text(judgement.over_baseline),
                    loss_text(loss, false), gap ? loss_text(loss.max_gap) + " at step " + grouped(loss.at_step) : "-"});
    const std::string who = fmt::format("run {}, ", loaded.run.id);
    notes += excerpt_note(*comparison.run);
    if (comparison.target) notes += who + target_text(*comparison.target) + "\n";
    if (comparison.batch) notes += who + "batch: " + comparison.batch->sentence + "\n";
    if (comparison.break_even_steps > 0)
      notes += who + "setup: " + milliseconds_text(loaded.run.setup_ms) + " before the first step pays off after " +
               grouped(comparison.break_even_steps) + " steps\n";
    if (const std::string needed = needed_text(judgement); !needed.empty())
      notes += who + "inconclusive: " + needed + "\n";
    notes += flag_notes(judgement, who);
  }
  return table(rows, {true, false, true, true, true, true, false, false, false}) +
         (notes.empty() ? "" : "\n" + notes_text(notes));
}

Subcommand compare_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = add_with_json(app, common, "compare", "Compare runs with a baseline");
  command->add_option("runs", options->runs, std::string("The run to compare with, then the others. ") + runs_help)
      ->required();
  command->add_option("--against", options->against, "The run to compare with; then all RUNs are compared with it");
  command
      ->add_option("--tolerance,--noise-floor", options->noise_floor,
                   "Differences below this count as none: 1%, or the share 0.01 (default 1%)")
      ->transform(percent(1, 0, 100));
  command
      ->add_option("--target,--target-loss", options->target_loss,
                   "Report the step, time and tokens at which each run reached this loss")
      ->check(between(-1e9, 1e9));
  CLI::Option* metric =
      command->add_option("--metric", options->metric, "Also compare this metric: val/acc, or a field such as lr");
  command->add_flag("--lower", options->lower, "Lower values of the metric are better")->needs(metric);
  CLI::Option* gate = command->add_flag("--gate", options->gate,
                                        "Exit with 12 (impossible), 13 (loss not at parity), 10 (slower), 11 "
                                        "(inconclusive, doubtful, or a loss that isn't comparable) or 0");
  command->add_flag("--ignore-loss", options->ignores_loss, "The gate judges the speed alone")->needs(gate);
  return {command, [options, &common] { return compare(*options, common); }};
}

}  // namespace stepladder
