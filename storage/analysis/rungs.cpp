#include "storage/analysis/rungs.h"

#include <algorithm>
#include <map>

namespace stepladder {
namespace {

RungSummary put_together(int rung, std::span<const MeasuredRun> repeats) {
  RungSummary summary{.rung = rung};
  std::vector<double> figures;
  for (const MeasuredRun& repeat : repeats) {
    summary.runs.push_back(repeat.run);
    if (!is_missing(repeat.summary->tokens_per_s)) figures.push_back(repeat.summary->tokens_per_s);
  }
  if (figures.empty()) return summary;
  if (figures.size() == 1) {
    const auto measured = std::find_if(repeats.begin(), repeats.end(), [](const MeasuredRun& repeat) {
      return !is_missing(repeat.summary->tokens_per_s);
    });
    summary.low = measured->summary->tokens_per_s_p25;
    summary.high = measured->summary->tokens_per_s_p75;
  } else {
    const auto [low, high] = std::minmax_element(figures.begin(), figures.end());
    summary.low = *low;
    summary.high = *high;
  }
  summary.tokens_per_s = quantile(figures, 0.5);
  return summary;
}

// Throughput over throughput, or step time under step time where no tokens are known.
double factor(const RungSummary& base, const MeasuredRun& base_run, const RungSummary& rung, const MeasuredRun& run) {
  if (!is_missing(base.tokens_per_s) && !is_missing(rung.tokens_per_s)) return rung.tokens_per_s / base.tokens_per_s;
  return speedup(*base_run.summary, *run.summary);
}

}  // namespace

Sample sample_of(const MeasuredRun& run, std::span<const MeasuredRun> repeats, std::size_t averaged) {
  Sample sample{.steps = sample_median(steady_dt_ms(*run.series, *run.summary)), .averaged = averaged};
  for (const MeasuredRun& repeat : repeats)
    if (!is_missing(repeat.summary->dt_ms_median)) sample.repeats.push_back(repeat.summary->dt_ms_median);
  return sample;
}

std::vector<RungSummary> summarise_rungs(std::span<const MeasuredRun> runs, Intervals intervals, int baseline) {
  std::map<int, std::vector<MeasuredRun>> by_rung;
  for (const MeasuredRun& run : runs) by_rung[run.run->rung].push_back(run);
  if (by_rung.empty()) return {};

  std::vector<RungSummary> rungs;
  std::vector<Sample> samples;
  for (auto& [rung, repeats] : by_rung) {
    std::sort(repeats.begin(), repeats.end(),
              [](const MeasuredRun& a, const MeasuredRun& b) { return a.run->repeat < b.run->repeat; });
    rungs.push_back(put_together(rung, repeats));
    samples.push_back(intervals == Intervals::yes ? sample_of(repeats.front(), repeats, repeats.size()) : Sample{});
  }

  const auto base = by_rung.contains(baseline) ? by_rung.find(baseline) : by_rung.begin();
  const auto base_place = static_cast<std::size_t>(std::distance(by_rung.begin(), base));
  const MeasuredRun& base_run = base->second.front();
  std::vector<const Series*> base_series;
  for (const MeasuredRun& repeat : base->second) base_series.push_back(repeat.series);
  const double band = loss_band(base_series);

  const MeasuredRun* previous = nullptr;
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    RungSummary& summary = rungs[i];
    const MeasuredRun& run = by_rung.at(summary.rung).front();
    if (previous) {
      summary.against_previous = factor(rungs[i - 1], *previous, summary, run);
      if (intervals == Intervals::yes)
        summary.previous_verdict = judge_speedup(summary.against_previous, samples[i - 1], samples[i]);
    }
    if (i == base_place) {
      if (!is_missing(summary.tokens_per_s) || !is_missing(run.summary->dt_ms_median)) summary.speedup = 1;
      summary.loss = {.verdict = LossVerdict::same, .max_gap = 0, .at_step = 0, .tail_gap = 0};
    } else {
      summary.speedup = factor(rungs[base_place], base_run, summary, run);
      if (intervals == Intervals::yes)
        summary.verdict = judge_speedup(summary.speedup, samples[base_place], samples[i]);
      const MeasuredRun* against = &base_run;
      if (const auto named = by_rung.find(run.run->loss_against);
          named != by_rung.end() && named->first > base->first && named->first < summary.rung &&
          !named->second.front().series->empty()) {
        against = &named->second.front();
      }
      summary.loss_against = against->run->rung;
      summary.loss = loss_parity(*against->run, *against->series, *run.run, *run.series, band);
    }
    previous = &run;
  }
  return rungs;
}

}  // namespace stepladder
