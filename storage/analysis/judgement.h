// The one judgement of measured runs: a rung's throughput, its gain, whether the loss stayed the same and whether the
// numbers can be trusted. Report, views, exports and command line take their answer from here and add presentation
// only. Pure: no thread, no file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/analysis/compare.h"
#include "storage/analysis/plausibility.h"
#include "storage/analysis/summary.h"
#include "storage/records.h"

namespace stepladder {

// One run with the figures of all its steps. All three are owned by the caller.
struct MeasuredRun {
  const Run* run = nullptr;
  const Summary* summary = nullptr;
  const Series* series = nullptr;        // all steps, or an excerpt of a long run (RunStore::excerpt)
  const StepProfile* profile = nullptr;  // null, or of no steps: it has none

  bool is_excerpt() const { return std::ssize(series->step) < summary->steps; }
};

// A factor of throughput over another rung, and the trust in both sides of it. The verdict is arithmetic; it counts
// only where both sides can be trusted. Where a side is impossible, others disturbed it (`busy-machine`), or the steps
// of both may train on different numbers of tokens, it is always `cannot_tell`; where the sides were measured on two
// machines
// (`other-machine`) there is no factor either.
struct Gain : SpeedUp {
  Trust trust = Trust::trusted;       // in the rung
  Trust base_trust = Trust::trusted;  // in the rung that it is relative to

  Trust worst() const { return std::max(trust, base_trust); }
  bool is(Verdict wanted) const { return verdict == wanted && worst() == Trust::trusted; }
};

// The median of several runs' throughputs, and their range: of one run the quartiles of its steady steps, of several
// the slowest and the fastest run. In tokens/s; missing if no run has a throughput.
struct Throughput {
  double median = missing;
  double low = missing;
  double high = missing;
};
Throughput throughput_of(std::span<const Summary* const> repeats);

// What is said of a rung in one word: of its own step, the gain over the rung that it stands on. `real` and `slower`
// are clear and trusted; a side of a single run makes them faster_once and slower_once. `noise`: within the noise
// floor. `no_effect`: its runs do what the other's do (RungJudgement::does_the_same), and their times don't differ
// beyond the interval.
enum class RungAnswer { baseline, real, faster_once, slower, slower_once, noise, cannot_tell, impossible, no_effect };
std::string_view to_string(RungAnswer answer);  // "faster-one-run", "cannot-tell"

// How many runs a rung has, and which of them don't count.
struct RunCount {
  int all = 0;
  int to_come = 0;     // running or queued beside one that counts
  int unfinished = 0;  // ended before their last step, beside a finished one; or without a step, beside one with steps
  int copies = 0;      // of another, which counts
  int disturbed = 0;   // by other programs, beside one that wasn't
  bool all_busy = false;  // none was undisturbed, so the disturbed ones count

  int counted() const { return all - to_come - unfinished - copies - disturbed; }
};

struct RungJudgement {
  int rung = 0;
  std::vector<const Run*> runs;  // its repeats, in order
  RunCount count;                // of these
  bool is_under_way = false;     // one is running or queued, and none has finished
  double tokens_per_s = missing;
  double low = missing;  // see Throughput
  double high = missing;
  double steps_per_s = missing;  // median over the repeats
  double step_ms() const { return 1e3 / steps_per_s; }
  std::string why_untimed;                // why neither is known: "failed before a step"; empty: one is
  std::vector<double> each_tokens_per_s;  // of the repeats that count, of two or more
  Interval step_time_ci95;                // as multiples of its own step time: 0.98 to 1.02
  std::string why_no_interval;            // of a timed rung: "2 runs, 21 x apart", "too few steps"; empty: it is known
  Gain over_previous;                     // factor missing for the first rung
  Gain over_baseline;                     // factor 1 for the baseline
  std::string why_no_factor;              // why it has none: "baseline: no step times"; empty: it has one
  bool is_baseline = false;
  int stands_on = 0;  // the rung whose changes it keeps; the baseline for one that stands alone
  bool stands_on_baseline = false, stands_on_previous = false;  // whose numbers may be another subject's too
  Gain own_step;  // over the rung that it stands on; factor missing for the baseline
  bool does_the_same =
      false;             // as that rung: a run of each has the same losses to the last bit, and the same operators
  int loss_against = 0;  // the rung that the loss is compared with
  LossParity loss;
  std::vector<Flag> flags;  // of all repeats, in the order of FlagId, each once
  Trust trust = Trust::trusted;
  bool is_checked = false;                   // no repeat ran unsynchronised, and the hardware's peak is known
  PhysicalLimit limit;                       // at tokens_per_s
  double noise_floor = default_noise_floor;  // of its verdicts
  double run_seconds = missing;              // that one of its runs takes: the median
  double needed_run_seconds = missing;       // one more run of each side: of this rung and of the baseline

  bool is_trusted() const { return trust == Trust::trusted; }
  RungAnswer answer() const;

  // About how many more runs of each side would settle both the factor over the baseline and the loss; 0: both are
  // settled, no number is known, or no number would do: a side is impossible or was disturbed.
  std::int64_t needed_runs() const { return std::max(over_baseline.needed_runs, loss.needed_runs); }

  // The 95 % interval of a rate of this rung (tokens_per_s or steps_per_s); unknown if step_time_ci95 is.
  Interval rate_ci95(double rate) const;
};

enum class Intervals { yes, no };

struct JudgementOptions {
  Intervals intervals = Intervals::yes;  // they cost up to ten milliseconds a run
  double noise_floor = default_noise_floor;
  bool apart = false;  // the caller judges some of the subjects at a time, and calls hold_together() with all
};

// A rung with all its repeats, or a single run.
struct Subject {
  int rung = 0;
  std::vector<MeasuredRun> runs = {};            // at least one; the figures are medians over them
  std::vector<MeasuredRun> siblings = {};        // further finished runs of the rung, for the spread between repeats
  std::optional<std::size_t> loss_against = {};  // place of another subject; else the baseline
  std::optional<std::size_t> stands_on = {};     // likewise
  std::string mixes = {};  // why its runs have no speed in common: "batch 8, 16"; then nothing is judged of it
};

// Judges the subjects and returns them in the same order. A gain whose sides were both repeated by a verification has
// the wider interval of its looks (Run::looks_up_to), and no verdict between two of them; one to which somebody added
// runs has that of the looks up to now. `baseline` is an index of
// `subjects`. Siblings' series may be empty; those of the baseline's siblings show how much losses of one program
// differ.
std::vector<RungJudgement> judge(std::span<const Subject> subjects, std::size_t baseline, const HardwareTable& hardware,
                                 const JudgementOptions& options = {});

// Withdraws gains over the baseline and over the rung below that hold alone but not with the others: one baseline's,
// judged `apart`. A gain that is both is withdrawn as both. `unjudged` rungs are still to come (compare.h).
void hold_together(std::span<RungJudgement* const> rungs, std::size_t unjudged);

// Judges a ladder: its runs by rung and repeat. Runs without steps are included with missing figures. Factors are
// relative to `baseline`; so are losses, unless a rung names another (Run::loss_against). If `baseline` doesn't exist,
// the first rung is used. A rung stands on the one that it was launched on (Run::stands_on). If that isn't known, it
// stands on the last one below it whose changes it keeps; rungs of a sweep, of a ladder whose rungs have nothing in
// common, and of several imported files stand on the baseline.
std::vector<RungJudgement> judge_rungs(std::span<const MeasuredRun> runs, const HardwareTable& hardware,
                                       int baseline = -1, const JudgementOptions& options = {});

// The gain of a rung over another one of the same ladder, as the ladder's own judgement has it if that judges this
// pair. Both rungs exist.
struct PairJudgement {
  Gain gain;
  RungJudgement base, rung;
};
PairJudgement judge_pair(std::span<const MeasuredRun> runs, int base, int rung, const HardwareTable& hardware,
                         const JudgementOptions& options = {});

// The ratio of throughputs, or of steps/s if the tokens are unknown; missing if neither is known.
double factor_over(const RungJudgement& base, const RungJudgement& rung);

// The run that stands for a rung where one run does: its first finished one, else its first. `runs`: of one rung, by
// repeat; at least one.
const Run& reference_of(std::span<const Run* const> runs);

// The run that single runs of a ladder are compared with: the first repeat of its lowest rung that finished
// undisturbed, else reference_of that rung. `runs`: of one ladder, at least one.
using RunWithSummary = std::pair<const Run*, const Summary*>;
const Run& baseline_of(std::span<const RunWithSummary> runs);

// The speed that their factors are relative to, as a ladder's are: the medians of those repeats. It has `tokens_per_s`
// and `dt_ms_median` alone.
Summary baseline_speed(std::span<const RunWithSummary> runs);

// The sample behind a run's figure (`averaged` is 1) or behind the median of its repeats. The run may be one of
// `repeats`.
Sample sample_of(const MeasuredRun& run, std::span<const MeasuredRun> repeats, std::size_t averaged);

}  // namespace stepladder
