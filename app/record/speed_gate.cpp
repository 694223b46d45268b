// Judges a gate: new figures against a baseline's file, or two sides in turns as pairs. Metrics of any sign and
// direction become positive costs first, so one test serves all. Times of another machine are refused, not compared.
#include "app/record/speed_gate.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "app/host/held_folder.h"
#include "app/record/machine.h"
#include "app/record/run_doubt.h"
#include "app/text/format.h"
#include "engine/files/files.h"
#include "storage/analysis/metric_comparison.h"
#include "storage/analysis/verdict/loss_parity.h"
#include "storage/analysis/verdict/step_grain.h"
#include "storage/by_enum.h"
#include "storage/errors.h"
#include "storage/json_values.h"
#include "storage/speedrun/record_pool.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr int baseline_version = 1;
constexpr std::size_t most_values = 100'000;
constexpr std::size_t most_compared = 10;  // runs of a side whose losses are compared
// Far beyond every time and loss, so that sums of squares are finite.
constexpr double least_figure = 1e-15, most_figure = 1e15;

std::string interval_words(const GateJudgement& judged, const FigureQuestion& question) {
  std::string words;
  if (question.by == FigureBy::metric)
    words = fmt::format("{} is {:.6g} on average, the baseline's {:.6g} ({} is better): ", name_of(question),
                        judged.now.mean, judged.baseline.mean, question.lower_is_better ? "lower" : "higher");
  words += fmt::format("the factor against the baseline is {:.4f}", judged.factor);
  if (!judged.ci95.known()) return words + ", and its interval needs two runs of each that differ";
  if (judged.baseline.std == 0 && judged.now.std == 0)
    words += "; all figures are equal to the last digit, which is all that the interval shows";
  return words + fmt::format(" (95 % interval {:.4f} to {:.4f})", judged.ci95.low, judged.ci95.high);
}

// How far rounding may have moved the mean, as a share of it.
double rounding_share(const GateSample& sample, const SampleFigures& figures) {
  if (sample.question.by == FigureBy::wall) return 0;  // our own clock
  const bool takes_steps = sample.question.by == FigureBy::throughput;
  const double grain = sample.resolution > 0 || takes_steps ? sample.resolution : last_digit_of(sample.values);
  if (!(grain > 0) || figures.mean == 0) return 0;
  return rounding_error(grain, figures.std) / std::abs(figures.mean);
}

// An interval of the factor that holds what the figures' resolution hides too.
Interval with_rounding(const Interval& interval, const GateSample& baseline, const GateSample& now,
                       const GateJudgement& judged) {
  if (!interval.known()) return interval;
  const double share = rounding_share(baseline, judged.baseline) + rounding_share(now, judged.now);
  return {interval.low / (1 + share), interval.high * (1 + share)};
}

// The values of both sides as positive costs, of which lower is better: a metric of which higher is better is inverted.
// The cost of one that may have any sign follows from how much worse it is than the baseline's mean, as a share of
// that.
struct Costs {
  std::vector<double> before, now;
};
Costs costs_of(const FigureQuestion& question, std::span<const double> baseline, std::span<const double> now) {
  Costs costs{{baseline.begin(), baseline.end()}, {now.begin(), now.end()}};
  const auto is_above_0 = [](double value) { return value >= least_figure; };
  const bool is_positive = std::ranges::all_of(costs.before, is_above_0) && std::ranges::all_of(costs.now, is_above_0);
  if (question.by != FigureBy::metric || (is_positive && question.lower_is_better)) return costs;
  const double mean = figures_of(baseline).mean;
  if (mean == 0)
    throw StorageError("the mean " + name_of(question) +
                       " of the baseline is 0, and record gate compares shares of it");
  const double worse = question.lower_is_better ? 1 : -1;
  for (std::vector<double>* const side : {&costs.before, &costs.now})
    for (double& value : *side)
      if (const double share = worse * (value - mean) / std::abs(mean); is_positive)
        value = 1 / value;
      else
        value = share > 0 ? 1 + share : 1 / (1 - share);
  return costs;
}

// Refuses figures that a ratio makes no sense of.
void require_figure(double value, const FigureQuestion& question, const fs::path& file) {
  if (value >= least_figure && value <= most_figure) return;
  if (question.by == FigureBy::metric && std::abs(value) <= most_figure) return;
  throw StorageError(
      fmt::format("{} gives {:g}, and record gate compares positive figures up to 1e15", file.string(), value));
}

}  // namespace

const char* to_string(GateAnswer answer) {
  return by_enum<GateAnswer>("passes", "slower", "worse", "cannot-tell", "other-machine", "invalid", "guard")[answer];
}

GateJudgement judge_gate(const GateSample& baseline, const GateSample& now, double tolerance, double error) {
  GateJudgement judged;
  judged.baseline = figures_of(baseline.values);
  judged.now = figures_of(now.values);
  if (const std::string other = machine_difference(now.machine, baseline.machine);
      !other.empty() && takes_time(now.question)) {
    judged.answer = GateAnswer::other_machine;
    judged.reason = "the baseline was measured on another machine: " + other;
    return judged;
  }
  if (takes_time(now.question) && !now.hardware.empty() && !baseline.hardware.empty() &&
      now.hardware != baseline.hardware) {
    judged.answer = GateAnswer::other_machine;
    judged.reason = "the logs name " + now.hardware + ", and the baseline's " + baseline.hardware;
    return judged;
  }
  const Costs costs = costs_of(now.question, baseline.values, now.values);
  const SampleFigures before = figures_of(costs.before), after = figures_of(costs.now);
  if (!(before.mean > 0) || !(after.mean > 0)) {
    judged.reason = "a figure isn't a positive number";
    return judged;
  }
  judged.factor = before.mean / after.mean;
  judged.ci95 = mean_ratio_interval(before, after, error);
  // Equal values have no spread: a loss that is the same to the last digit has not changed.
  const bool exact = judged.baseline.std == 0 && judged.now.std == 0;
  if (exact) judged.ci95 = {judged.factor, judged.factor};
  judged.ci95 = with_rounding(judged.ci95, baseline, now, judged);
  judged.reason = interval_words(judged, now.question);
  switch (verdict_of(judged.factor, judged.ci95, tolerance)) {
    case Verdict::faster:
    case Verdict::same:
      judged.answer = GateAnswer::passes;
      break;
    case Verdict::slower:
      judged.answer = !takes_time(now.question) ? GateAnswer::worse : GateAnswer::slower;
      break;
    case Verdict::cannot_tell:
      judged.answer = GateAnswer::cannot_tell;
      break;
  }
  return judged;
}

GateJudgement judge_turns(const GateSample& base, const GateSample& now, double tolerance, double error) {
  GateJudgement judged;
  const std::size_t n = std::min(base.values.size(), now.values.size());
  judged.baseline = figures_of(std::span(base.values).first(n));
  judged.now = figures_of(std::span(now.values).first(n));
  std::vector<double> ratios;
  const Costs costs = costs_of(now.question, std::span(base.values).first(n), std::span(now.values).first(n));
  for (std::size_t i = 0; i < n; ++i) ratios.push_back(std::log(costs.before[i] / costs.now[i]));
  const SampleFigures pairs = figures_of(ratios);
  judged.factor = std::exp(pairs.mean);
  // Pairs of one ratio have no spread: runs that are the same to the last digit have not changed, others are copies.
  if (n >= 2 && (pairs.std > 0 || judged.factor == 1)) {
    const Interval of_mean = mean_interval(pairs, error);
    judged.ci95 = with_rounding({std::exp(of_mean.low), std::exp(of_mean.high)}, base, now, judged);
    if (judged.ci95.low >= 1 / (1 + tolerance))
      judged.answer = GateAnswer::passes;
    else if (judged.ci95.high < 1 / (1 + tolerance / 2))
      judged.answer = !takes_time(now.question) ? GateAnswer::worse : GateAnswer::slower;
  }
  judged.reason = interval_words(judged, now.question);
  return judged;
}

void add_run(GateSample& sample, const LogFigure& figure, const LoggedRun& logged) {
  const fs::path& log = logged.log;
  if (!sample.values.empty() && sample.unit != figure.unit)
    throw StorageError(log.string() + " gives " + unit_words(figure.unit) + ", and the others " +
                       unit_words(sample.unit));
  require_figure(figure.value, sample.question, log);
  sample.unit = figure.unit;
  sample.values.push_back(figure.value);
  sample.resolution = std::max(sample.resolution, figure.resolution);
  if (logged.steps.empty()) return;
  LoadedRun run = loaded_from(logged);
  const double loss = is_missing(run.summary.val_loss_last) ? run.summary.loss_last : run.summary.val_loss_last;
  if (!is_missing(loss)) sample.losses.push_back(loss);
  if (sample.tokens_per_step == 0) sample.tokens_per_step = logged.run.tokens_per_step;
  if (sample.hardware.empty()) sample.hardware = logged.run.hardware;
  sample.steps = sample.steps == 0 ? run.summary.steps : std::min(sample.steps, run.summary.steps);
  if (sample.runs.size() < most_compared) sample.runs.push_back(std::move(run));
}

namespace {

// Of a stored baseline, whose runs are gone: what its file says about loss and batch.
DoubtedGain doubt_of_stored(const GateSample& baseline, const GateSample& now, bool by_time) {
  if (baseline.tokens_per_step > 0 && now.tokens_per_step > 0 && baseline.tokens_per_step != now.tokens_per_step)
    return {RunDoubt::cannot_tell,
            "it trains on " + plural(now.tokens_per_step, "token") + " a step, and the baseline on " +
                grouped(baseline.tokens_per_step) + ", so they can't be compared",
            {}};
  if (!by_time || baseline.losses.empty()) return {};
  if (now.losses.empty()) return {RunDoubt::guard, "the loss isn't printed any more", {}};
  const SampleFigures before = figures_of(baseline.losses), after = figures_of(now.losses);
  constexpr double level = 0.025;
  const double gap = after.mean - before.mean, p = p_below_welch(before, after, 0);
  if (std::isfinite(before.mean) && gap > loss_tolerance_nats && (is_missing(p) || p < level))
    return {RunDoubt::guard, fmt::format("the last loss is worse by {:.4g} nats than the baseline's", gap), {}};
  return {};
}

}  // namespace

void check_pass(GateJudgement& judged, const GateSample& baseline, const GateSample& now) {
  if (judged.answer != GateAnswer::passes) return;
  const bool has_copies =
      (judged.now.n > 1 && !(judged.now.std > 0)) || (judged.baseline.n > 1 && !(judged.baseline.std > 0));
  const bool by_time = takes_time(now.question);
  const auto withdraw = [&](GateAnswer answer, const std::string& why) {
    judged.answer = answer;
    judged.reason = why + "; " + judged.reason;
  };
  if (now.question.by == FigureBy::metric)
    for (const double value : now.values)
      if (std::string why = impossible_value(now.question.metric.metric, judged.baseline.mean, value); !why.empty())
        return withdraw(GateAnswer::invalid, why);
  DoubtedGain doubted =
      doubt_of(measured(baseline.runs), measured(now.runs), load_run_context(nullptr).hardware, by_time);
  if (doubted.doubt == RunDoubt::none && baseline.runs.empty())
    if (DoubtedGain stored = doubt_of_stored(baseline, now, by_time); stored.doubt != RunDoubt::none)
      doubted = std::move(stored);
  switch (doubted.doubt) {
    case RunDoubt::invalid:
      return withdraw(GateAnswer::invalid, doubted.reason);
    case RunDoubt::guard:
      return withdraw(GateAnswer::guard, doubted.reason);
    case RunDoubt::cannot_tell:
      return withdraw(GateAnswer::cannot_tell, doubted.reason);
    case RunDoubt::none:
      if (!doubted.note.empty()) judged.reason += "; " + doubted.note;
  }
  if (by_time && baseline.steps > 0 && now.steps > 0 && now.steps < baseline.steps && baseline.runs.empty())
    return withdraw(GateAnswer::guard, "it trains for " + plural(now.steps, "step") + ", and the baseline for " +
                                           plural(baseline.steps, "step"));
  if (!by_time && baseline.steps > 0 && now.steps > baseline.steps)
    return withdraw(GateAnswer::cannot_tell, "it trains for " + plural(now.steps, "step") + ", and the baseline for " +
                                                 plural(baseline.steps, "step"));
  if (has_copies && judged.factor != 1)
    withdraw(GateAnswer::cannot_tell, "a side's runs are equal to the last digit, so nobody knows the noise");
}

GateSample sample_of_logs(const std::vector<std::string>& paths, const FigureQuestion& question) {
  GateSample sample{.question = question, .unit = {}, .values = {}, .machine = machine_fingerprint()};
  for (const std::string& path : paths) {
    const PoolFiles found = log_files(path);
    if (!found.links.empty()) throw StorageError(found.links.front().string() + " " + link_problem);
    for (const fs::path& log : found.logs) {
      try {
        LoggedRun logged = read_logged_run(log);
        logged.run.started_at = logged.run.ended_at = missing;  // no process was watched
        add_run(sample, figure_of_log(logged, question), logged);
      } catch (const NoFigure& error) {
        throw StorageError(log.string() + ": " + error.what());
      }
    }
  }
  return sample;
}

void write_gate_baseline(const fs::path& file, const GateSample& sample, const std::string& commit) {
  const fs::path whole = fs::absolute(file);
  const bool is_metric = sample.question.by == FigureBy::metric;
  Json finite_losses = Json::array();  // JSON has no others
  for (const double loss : sample.losses)
    if (std::isfinite(loss)) finite_losses.push_back(loss);
  const std::string text = Json{{"version", baseline_version},
                                {"by", to_string(sample.question.by)},
                                {"metric", is_metric ? Json(to_string(sample.question.metric)) : Json()},
                                {"lower_is_better", sample.question.lower_is_better},
                                {"unit", sample.unit},
                                {"values", sample.values},
                                {"resolution", sample.resolution},
                                {"steps", sample.steps},
                                {"losses", finite_losses},
                                {"tokens_per_step", sample.tokens_per_step},
                                {"hardware", sample.hardware},
                                {"machine", sample.machine},
                                {"commit", text_or_null(commit)},
                                {"written", local_time_text(unix_now())}}
                               .dump(2) +
                           "\n";
  OutputFile out(whole, 0666, OutputFile::Devices::allowed);
  out.write(std::as_bytes(std::span(text)));
  out.commit();
}

GateSample read_gate_baseline(const fs::path& file) {
  const auto text = text_of(file);
  if (!text)
    throw StorageError(file.string() + " cannot be read; `stepladder record gate --out " + file.string() +
                       "` makes it");
  try {
    const Json json = nests_deep(*text) ? Json() : Json::parse(*text);
    if (json.at("version") != baseline_version) throw StorageError(file.string() + " was written by a newer version");
    const auto by = figure_by(json.at("by").get<std::string>());
    FigureQuestion question{.by = by.value_or(FigureBy::throughput),
                            .lower_is_better = json.value("lower_is_better", true)};
    if (question.by == FigureBy::metric) {
      const auto metric = metric_figure_from(json.at("metric").get<std::string>());
      if (!metric) throw StorageError(file.string() + " isn't a baseline of record gate");
      question.metric = *metric;
    }
    GateSample sample{.question = std::move(question),
                      .unit = json.at("unit").get<std::string>(),
                      .values = json.at("values").get<std::vector<double>>(),
                      .machine = json.at("machine"),
                      .resolution = json.value("resolution", 0.0),
                      .steps = json.value("steps", std::int64_t{0}),
                      .tokens_per_step = json.value("tokens_per_step", std::int64_t{0}),
                      .hardware = json.value("hardware", "")};
    for (const Json& loss : json.value("losses", Json::array()))
      if (sample.losses.size() < most_values) sample.losses.push_back(loss.get<double>());
    if (!(sample.resolution >= 0 && sample.resolution <= most_figure)) sample.resolution = 0;
    if (!by || sample.values.empty() || sample.values.size() > most_values)
      throw StorageError(file.string() + " isn't a baseline of record gate");
    for (const double value : sample.values) require_figure(value, sample.question, file);
    return sample;
  } catch (const Json::exception&) {
    throw StorageError(file.string() + " isn't a baseline of record gate");
  }
}

}  // namespace stepladder
