// The figures of a run's steps: losses, step times, throughput. Derived from the steps, which remain the truth even if
// a summary is cached.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/analysis/statistics.h"
#include "storage/records.h"

namespace stepladder {

// Quantiles of any number of positive values in bounded memory.
// 16,384 bins to an octave, so that a bin's values differ by less than one part in 16,384 (0.006 %); each bin
// represents its values by their mean. Octaves are allocated when needed: a training's step times need two or three
// (256 kB each). Values below 2^-20 or from 2^40 on are counted at those ends (in milliseconds: 1 ns, and 35 years).
class FineHistogram {
 public:
  void add(double value);  // positive and finite
  std::int64_t count() const { return count_; }

  // As quantile() in statistics.h, with the bin's mean for each value; missing without values.
  double quantile(double q) const;

  // The number of values in bins whose mean is above `limit`.
  std::int64_t above(double limit) const;

 private:
  struct Bin {
    std::int64_t count = 0;
    double sum = 0;
  };
  static constexpr int lowest_octave = -20;
  static constexpr int octaves = 60;
  static constexpr int bins_per_octave = 1 << 14;

  double order_statistic(std::int64_t rank) const;

  std::array<std::vector<Bin>, octaves> bins_;
  std::int64_t count_ = 0;
};

struct Summary {
  std::int64_t steps = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t warmup_steps = 0;  // excluded from every figure below that is called steady
  double loss_first = missing;
  double loss_last = missing;
  double loss_min = missing;  // over finite losses
  double val_loss_last = missing;
  double val_loss_min = missing;
  double dt_ms_median = missing;      // steady; of blocks of steps where printed times are coarse (step_grain.h)
  double dt_ms_p25 = missing;         // steady
  double dt_ms_p75 = missing;         // steady
  double tokens_per_s = missing;      // tokens per step / dt_ms_median; if either is unknown, as the log prints it
  double tokens_per_s_p25 = missing;  // from dt_ms_p75: the slower quarter
  double tokens_per_s_p75 = missing;
  double dt_ms_p5 = missing;   // steady
  double dt_ms_p95 = missing;  // steady
  double dt_grain_ms = 0;      // distance between printed steady times; 0: too fine to matter, or not known
  double drift = missing;      // of dt over the steady steps: 0.02 if the last are 2 % slower than the first

  // Signs of trouble (storage/analysis/change_point.h, storage/analysis/plausibility.h).
  std::int64_t spikes = 0;           // steady steps far slower than the others; they count like any other
  std::int64_t spike_period = 0;     // steps between regular ones: validation or checkpoints; 0: not regular
  std::int64_t pauses = 0;           // spikes of over a second and 20 times the median
  std::int64_t untimed_steps = 0;    // without a positive, finite dt; not an evaluation before the first step
  std::int64_t nonfinite_steps = 0;  // whose loss is NaN or infinite
  std::int64_t first_nonfinite_step = 0;
  std::int64_t backwards_step = 0;  // the first step whose clock ran backwards; 0: none
  double wall_ms_median = missing;  // of a step by the wall clock (wall_clock.h); missing: not known
  std::int64_t repeated_steps = 0;  // steps that were written more than once
  std::int64_t first_repeated_step = 0;

  // Whether other programs disturbed it (storage/contention.h).
  std::int64_t watched_steps = 0;    // timed steady steps during which the others' use is known
  std::int64_t disturbed_steps = 0;  // of these, by others
  Contention disturbance;            // means over the disturbed steps
};

struct RunAndSummary {
  Run run;
  Summary summary;
};

// The minimum number of steps to exclude at the start: a tenth of the steps, at least 1 and at most 10, none if there
// are fewer than 4 steps; `asked` (Run::warmup_steps) overrides it unless negative, but always leaves one step.
std::int64_t warmup_steps(std::int64_t steps, std::int64_t asked);

// Builds a summary step by step, in bounded memory (200 MB at most) for any number of steps.
//
// Warm-up is the fixed minimum or, if no number was asked for, the warm-up found in the times if that is longer
// (storage/analysis/change_point.h). The time figures exclude steps without a positive, finite dt. If tokens_per_step
// is unknown (0), the steps' own tokens are used if they are all equal. The wall clock is added by WallClock
// (storage/analysis/wall_clock.h), and repeated steps by RunStore.
//
// Up to `exact_steps` every figure is exact. Beyond that, the times are not kept: counts, losses and steps stay exact;
// quantiles of dt come from a histogram (within 0.006 %, storage/analysis/summary.h), and so do the numbers of
// spikes and pauses; warm-up and the spikes' period are those of the first `exact_steps`; drift is computed from every
// k-th steady step (32,768 to 65,536 of them).
class SummaryBuilder {
 public:
  static constexpr std::size_t most_exact_steps = 2'000'000;

  SummaryBuilder(std::int64_t asked_warmup, std::int64_t tokens_per_step, std::size_t exact_steps = most_exact_steps,
                 ReadFrom from = ReadFrom::timer);
  void add(const StepRecord& record, const Contention& contention = {});  // in the order of steps
  Summary finish();

 private:
  struct Others {  // a step's contention, in less space
    float cores = 0;
    float program_cores = 0;
    float gpu_load = 0;
    bool known = false;
    bool disturbed = false;
  };
  Others others_at(std::size_t place) const { return place < others_.size() ? others_[place] : Others{}; }

  void leave_exactness();
  void take_steady(double dt_ms, const Others& others);
  void count_disturbed(double dt_ms, const Others& others);
  void finish_exact();
  void finish_bounded();

  const std::int64_t asked_warmup_;
  const std::int64_t tokens_per_step_;
  const std::size_t exact_steps_;
  const ReadFrom from_;
  Summary summary_;
  Series head_;                      // step, dt_ms and val_loss of all steps; empty from exact_steps_ on
  std::vector<Others> others_;       // of these steps, as far as it is known
  std::int64_t tokens_ = 0;          // of the last step
  std::int64_t tokens_changed_ = 0;  // index of the first step after which `tokens_` didn't change
  double last_dt_ms_ = missing;
  bool begins_with_evaluation_ = false;
  FineHistogram steady_;
  std::vector<double> every_kth_;  // steady dt
  std::int64_t kth_ = 1;
  std::int64_t until_next_ = 0;
};

// `metrics`: the samples of the machine during the run, in the order of time.
Summary summarise(const Series& series, std::int64_t asked_warmup, std::int64_t tokens_per_step,
                  std::span<const SystemMetrics> metrics = {}, ReadFrom from = ReadFrom::timer);
Summary summarise(const Run& run, const Series& series, std::span<const SystemMetrics> metrics = {});

// The way in which the run's step times were read.
ReadFrom read_from(const Run& run);

// The dt of the steady steps that have one, in order.
std::vector<double> steady_dt_ms(const Series& series, const Summary& summary);

}  // namespace stepladder
