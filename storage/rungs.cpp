#include "storage/rungs.h"

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

std::vector<RungSummary> summarise_rungs(std::span<const MeasuredRun> runs, Intervals intervals) {
  std::map<int, std::vector<MeasuredRun>> by_rung;
  for (const MeasuredRun& run : runs) by_rung[run.run->rung].push_back(run);

  std::vector<RungSummary> rungs;
  const MeasuredRun* base = nullptr;
  const MeasuredRun* previous = nullptr;
  Sample base_sample;
  Sample previous_sample;
  double band = loss_tolerance_nats;
  for (auto& [rung, repeats] : by_rung) {
    std::sort(repeats.begin(), repeats.end(),
              [](const MeasuredRun& a, const MeasuredRun& b) { return a.run->repeat < b.run->repeat; });
    RungSummary summary = put_together(rung, repeats);
    Sample sample;
    if (intervals == Intervals::yes) sample = sample_of(repeats.front(), repeats, repeats.size());
    if (base) {
      summary.against_previous = factor(rungs.back(), *previous, summary, repeats.front());
      summary.speedup = factor(rungs.front(), *base, summary, repeats.front());
      if (intervals == Intervals::yes) {
        summary.previous_verdict = judge_speedup(summary.against_previous, previous_sample, sample);
        summary.verdict = judge_speedup(summary.speedup, base_sample, sample);
      }
      const MeasuredRun& run = repeats.front();
      const MeasuredRun* against = base;
      if (const auto named = by_rung.find(run.run->loss_against);
          named != by_rung.end() && named->first < rung && !named->second.front().series->empty()) {
        against = &named->second.front();
      }
      summary.loss_against = against->run->rung;
      summary.loss = loss_parity(*against->run, *against->series, *run.run, *run.series, band);
    } else {
      base = &repeats.front();
      base_sample = sample;
      std::vector<const Series*> base_series;
      for (const MeasuredRun& repeat : repeats) base_series.push_back(repeat.series);
      band = loss_band(base_series);
      if (!is_missing(summary.tokens_per_s) || !is_missing(base->summary->dt_ms_median)) summary.speedup = 1;
      summary.loss = {.verdict = LossVerdict::same, .max_gap = 0, .at_step = 0, .tail_gap = 0};
    }
    previous = &repeats.front();
    previous_sample = std::move(sample);
    rungs.push_back(std::move(summary));
  }
  return rungs;
}

}  // namespace stepladder
