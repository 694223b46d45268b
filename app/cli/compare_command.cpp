#include "app/cli/compare_command.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>

#include "app/cli/cli.h"
#include "app/cli/find_run.h"
#include "app/excerpt.h"
#include "app/format.h"

namespace stepladder {
namespace {

struct CompareOptions {
  std::string base;
  std::vector<std::string> runs;
  double noise_floor = default_noise_floor;
  std::optional<double> target_loss;  // else the base's own last one, smoothed
  bool gate = false;
};

LoadedRun load(RunStore& store, const Run& run, std::int64_t most_steps) {
  LoadedRun loaded{.run = run, .summary = store.summary(run), .series = {}, .profile = {}};
  const bool whole = loaded.summary.steps <= most_steps;
  loaded.series = whole ? store.series(run.id) : store.excerpt(run.id, excerpt_of(most_steps));
  return loaded;
}

// The other runs of its rung that are over; those of the base with their steps, for how far apart losses may be.
std::vector<LoadedRun> repeats_of(RunStore& store, const Run& run, bool with_steps, std::int64_t most_steps) {
  std::vector<LoadedRun> repeats;
  if (!run.ladder) return repeats;
  for (const Run& other : store.runs_of(*run.ladder)) {
    if (other.rung != run.rung || other.id == run.id || other.status != RunStatus::finished) continue;
    repeats.push_back(with_steps ? load(store, other, most_steps) : LoadedRun{other, store.summary(other), {}, {}});
  }
  return repeats;
}

// One recorded step and the next, on average: 10 where a log has every tenth.
std::int64_t steps_apart(const Summary& summary) {
  return (summary.last_step - summary.first_step) / std::max<std::int64_t>(1, summary.steps) + 1;
}

// The loss that a run ends with: validation loss where there is any, else the median of the last five.
double final_loss(RunStore& store, const ComparedRun& run) {
  const Summary& summary = run.loaded.summary;
  if (std::isfinite(summary.val_loss_last)) return summary.val_loss_last;
  const std::int64_t end = 4096 * steps_apart(summary);
  const Series series = run.is_excerpt()
                            ? store.series(run.loaded.run.id, summary.last_step - end + 1, summary.last_step)
                            : run.loaded.series;
  std::vector<double> last;
  for (std::size_t i = series.size(); i-- > 0 && last.size() < 5;)
    if (std::isfinite(series.loss[i])) last.push_back(series.loss[i]);
  return quantile(last, 0.5);
}

// From an excerpt seconds and tokens cannot be summed up: of a long run all steps are read, some at a time.
TargetReached find_target(RunStore& store, const ComparedRun& run, double target_loss) {
  const auto& [of, summary, series, profile] = run.loaded;
  if (!run.is_excerpt()) return reach(series, of.tokens_per_step, target_loss);
  TargetSearch search(of.tokens_per_step, target_loss, !is_missing(summary.val_loss_last));
  const std::int64_t at_once = longest_excerpt * steps_apart(summary);
  for (std::int64_t first = summary.first_step; first <= summary.last_step && !search.found(); first += at_once)
    search.add(store.series(of.id, first, first + at_once - 1));
  return search.reached();
}

Json target_json(const std::optional<TargetReached>& target) {
  if (!target || target->step == 0) return nullptr;
  return {{"step", target->step}, {"seconds", number(target->seconds)}, {"tokens", number(target->tokens)}};
}

std::string target_text(const TargetReached& target) {
  if (target.step == 0) return "target: its loss never reached it";
  return "target: reached at step " + grouped(target.step) +
         (is_missing(target.seconds) ? "" : ", after " + duration_text(target.seconds)) +
         (is_missing(target.tokens) ? "" : " and " + compact(target.tokens) + " tokens");
}

std::string excerpt_note(const ComparedRun& run) {
  if (!run.is_excerpt()) return {};
  return "run " + std::to_string(run.loaded.run.id) + ", excerpt: interval and loss are from " +
         grouped(std::ssize(run.loaded.series.step)) + " of its " + grouped(run.loaded.summary.steps) +
         " steps, evenly chosen\n";
}

std::optional<BatchSplit> split_batch(const LoadedRun& base, const LoadedRun& run,
                                      const std::vector<RunAndSummary>& others) {
  const auto point = [](const LoadedRun& of) {
    return BatchPoint{of.run.id, static_cast<double>(of.run.tokens_per_step), of.summary.dt_ms_median};
  };
  return split_gain(point(base), point(run), third_point({base.run, base.summary}, {run.run, run.summary}, others));
}

// Who did what of a gain where the batch changed too: a pair of equal numbers where it is known, else bounds.
Json batch_json(const BatchSplit& split) {
  return {{"equal_batch", Json::array({number(split.equal_batch_low), number(split.equal_batch_high)})},
          {"bigger_batch", Json::array({number(split.bigger_batch_low), number(split.bigger_batch_high)})},
          {"third_run", split.third ? Json(*split.third) : Json()},
          {"why", split.sentence}};
}

Sample sample(const ComparedRun& run) {
  std::vector<MeasuredRun> all = measured(run.repeats);
  all.push_back({&run.loaded.run, &run.loaded.summary, &run.loaded.series});
  return sample_of(all.back(), all, 1);
}

// An excerpt may lack the step at which the loss was lost; the summary has seen all of them.
LossParity parity_of(const ComparedRun& base, const ComparedRun& run, double band) {
  LossParity parity = loss_parity(base.loaded.run, base.loaded.series, run.loaded.run, run.loaded.series, band);
  const Summary& summary = run.loaded.summary;
  const bool lost = run.is_excerpt() && summary.nonfinite_steps > 0 && base.loaded.summary.nonfinite_steps == 0 &&
                    summary.first_nonfinite_step <= base.loaded.summary.last_step;
  if (!lost || parity.verdict == LossVerdict::not_comparable) return parity;
  return {.verdict = LossVerdict::diverged,
          .max_gap = std::numeric_limits<double>::infinity(),
          .at_step = summary.first_nonfinite_step};
}

// The gravest of what a gate finds: what cannot be true, then the loss, then the speed.
int gate_status(const std::vector<Comparison>& comparisons) {
  const auto any = [&](auto&& found) { return std::any_of(comparisons.begin(), comparisons.end(), found); };
  if (any([](const Comparison& c) { return is_impossible(c.flags); })) return exit_implausible;
  if (any([](const Comparison& c) {
        return c.loss.verdict == LossVerdict::worse || c.loss.verdict == LossVerdict::diverged;
      }))
    return exit_loss_not_at_parity;
  if (any([](const Comparison& c) { return c.speedup.verdict == Verdict::slower; })) return exit_slower;
  if (any([](const Comparison& c) { return c.speedup.verdict == Verdict::cannot_tell; })) return exit_cannot_tell;
  return exit_done;
}

int compare(const CompareOptions& options, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  std::vector<Run> found{find_run(store, options.base)};
  for (const std::string& wanted : options.runs) found.push_back(find_run(store, wanted));
  const std::int64_t most_steps = most_steps_of_each(found.size());
  std::vector<ComparedRun> all;
  for (const Run& run : found)
    all.push_back({load(store, run, most_steps), repeats_of(store, run, all.empty(), most_steps)});
  const ComparedRun& base = all.front();
  std::vector<RunAndSummary> others;
  if (std::any_of(found.begin(), found.end(),
                  [&](const Run& run) { return run.tokens_per_step != found.front().tokens_per_step; }))
    others = store.runs_with_summaries();
  std::vector<Comparison> comparisons =
      compare_runs(base, std::span(all).subspan(1), options.noise_floor, load_judge(&store), others);
  if (common.json || options.target_loss) {
    const double target = options.target_loss ? *options.target_loss : final_loss(store, base);
    for (Comparison& comparison : comparisons) comparison.target = find_target(store, *comparison.run, target);
  }
  if (common.json) {
    print(compare_json(base, comparisons));
  } else {
    std::cout << compare_table(base, comparisons);
  }
  return options.gate ? gate_status(comparisons) : exit_done;
}

}  // namespace

std::vector<Comparison> compare_runs(const ComparedRun& base, std::span<const ComparedRun> runs, double noise_floor,
                                     const PlausibilityContext& judge, const std::vector<RunAndSummary>& others) {
  std::vector<const Series*> base_series{&base.loaded.series};
  for (const LoadedRun& repeat : base.repeats) base_series.push_back(&repeat.series);
  const double band = loss_band(base_series);
  const Sample base_sample = sample(base);

  std::vector<Comparison> comparisons;
  const Summary* previous = &base.loaded.summary;
  Sample previous_sample = base_sample;
  for (const ComparedRun& compared : runs) {
    const auto& [run, summary, series, profile] = compared.loaded;
    const Summary& base_summary = base.loaded.summary;
    Sample own = sample(compared);
    comparisons.push_back(
        {.run = &compared,
         .speedup = judge_speedup(speedup(base_summary, summary), base_sample, own, noise_floor),
         .against_previous = judge_speedup(speedup(*previous, summary), previous_sample, own, noise_floor),
         .loss = parity_of(base, compared, band),
         .flags = flags_of(run, summary, judge.repeats.of(run), judge.hardware),
         .target = {},
         .batch = split_batch(base.loaded, compared.loaded, others),
         .break_even_steps = break_even_steps(run.setup_ms, base_summary.dt_ms_median, summary.dt_ms_median)});
    previous = &summary;
    previous_sample = std::move(own);
  }
  return comparisons;
}

Json compare_json(const ComparedRun& base, const std::vector<Comparison>& comparisons) {
  const auto& [base_run, base_summary, base_series, base_profile] = base.loaded;
  Json compared = Json::array();
  for (const Comparison& comparison : comparisons) {
    const auto& [run, summary, series, profile] = comparison.run->loaded;
    Json flags = Json::array();
    for (const Flag& flag : comparison.flags) flags.push_back(to_string(flag.id));
    Json row = {{"id", run.id},
                {"name", run.name},
                {"speedup", number(comparison.speedup.factor)},
                {"ci95", interval_json(comparison.speedup.ci95)},
                {"verdict", to_string(comparison.speedup.verdict)},
                {"against_previous", number(comparison.against_previous.factor)},
                {"against_previous_ci95", interval_json(comparison.against_previous.ci95)},
                {"loss", parity_json(comparison.loss)},
                {"reached_base_loss", target_json(comparison.target)},
                {"flags", flags}};
    if (base_run.tokens_per_step > 0 && run.tokens_per_step > 0 && base_run.tokens_per_step != run.tokens_per_step) {
      // speedup = tokens_ratio / step_time_ratio
      row["tokens_ratio"] = static_cast<double>(run.tokens_per_step) / static_cast<double>(base_run.tokens_per_step);
      row["step_time_ratio"] =
          base_summary.dt_ms_median > 0 ? number(summary.dt_ms_median / base_summary.dt_ms_median) : Json();
    }
    if (comparison.batch) row["batch"] = batch_json(*comparison.batch);
    if (!is_missing(comparison.break_even_steps)) row["break_even_steps"] = comparison.break_even_steps;
    if (comparison.run->is_excerpt()) row["excerpt_steps"] = series.size();
    compared.push_back(std::move(row));
  }
  Json all = {{"base", base_run.id}, {"runs", compared}};
  if (base.is_excerpt()) all["base_excerpt_steps"] = base_series.size();
  return all;
}

std::string compare_table(const ComparedRun& base, const std::vector<Comparison>& comparisons) {
  const auto& [base_run, base_summary, base_series, base_profile] = base.loaded;
  std::vector<std::vector<std::string>> rows = {
      {"run", "name", "tokens/s", "vs previous", "vs base", "95 % interval", "verdict", "loss", "largest gap"}};
  rows.push_back({std::to_string(base_run.id), base_run.name, tokens_per_s_text(base_summary.tokens_per_s), "-",
                  factor_text(speedup(base_summary, base_summary)), "-", "base", "reference", "-"});
  std::string notes = excerpt_note(base);
  for (const Comparison& comparison : comparisons) {
    const auto& [run, summary, series, profile] = comparison.run->loaded;
    const LossParity& loss = comparison.loss;
    const bool gap = !is_missing(loss.max_gap);
    rows.push_back({std::to_string(run.id), run.name, tokens_per_s_text(summary.tokens_per_s),
                    factor_text(comparison.against_previous.factor), factor_text(comparison.speedup.factor),
                    ci95_text(comparison.speedup.ci95), std::string(to_string(comparison.speedup.verdict)),
                    loss_text(loss, false), gap ? loss_text(loss.max_gap) + " at step " + grouped(loss.at_step) : "-"});
    const std::string who = "run " + std::to_string(run.id) + ", ";
    notes += excerpt_note(*comparison.run);
    if (comparison.target) notes += who + target_text(*comparison.target) + "\n";
    if (comparison.batch) notes += who + "batch: " + comparison.batch->sentence + "\n";
    if (comparison.break_even_steps > 0)
      notes += who + "set-up: " + milliseconds_text(run.setup_ms) + " before the first step pay back after " +
               grouped(static_cast<std::int64_t>(comparison.break_even_steps)) + " steps\n";
    for (const Flag& flag : comparison.flags) notes += who + std::string(to_string(flag.id)) + ": " + flag.why + "\n";
  }
  return table(rows, {true, false, true, true, true, true, false, false, false}) + (notes.empty() ? "" : "\n" + notes);
}

Subcommand compare_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = add_with_json(app, common, "compare", "Runs against a base run");
  command->add_option("base", options->base, "The run to compare with")->required();
  command->add_option("runs", options->runs, "The runs to compare")->required();
  command->add_option("--noise-floor", options->noise_floor, "Differences below this are none: 0.01")
      ->check(between(0, 1));
  command
      ->add_option("--target-loss", options->target_loss,
                   "When each run reached it (in JSON the base's last loss unless given)")
      ->check(between(-1e9, 1e9));
  command->add_flag("--gate", options->gate,
                    "Exit with 12 implausible, 13 loss not at parity, 10 slower, 11 cannot tell, or 0");
  return {command, [options, &common] { return compare(*options, common); }};
}

}  // namespace stepladder
