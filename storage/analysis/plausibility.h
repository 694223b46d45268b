// Flags: reasons to doubt a run's numbers, each with the arithmetic that shows it.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/analysis/hardware.h"
#include "storage/analysis/mfu.h"
#include "storage/analysis/run_place.h"
#include "storage/analysis/summary.h"
#include "storage/by_enum.h"
#include "storage/records.h"

namespace stepladder {

// The weight with which a flag is shown.
enum class Severity { note, warning, grave };

// Whether a throughput can be trusted. The greater of two is the worse.
enum class Trust { trusted, doubtful, impossible };
std::string_view to_string(Trust trust);  // "doubtful"

enum class FlagId {
  impossible_throughput,   // 6 N x tokens/s is over the dense peak of the hardware in that precision
  suspicious_throughput,   // over 70 % of it, which nobody has published for a whole training step
  unit_tokens_per_ms,      // the log calls tokens per millisecond tokens per second
  unit_doubted,            // a factor between two files is that of two units: 1,000, 60
  dt_throughput_mismatch,  // dt, tokens per step and printed throughput do not fit together
  wall_clock_mismatch,     // by the wall clock a step takes far longer than its dt
  uneven_steps,            // the slower steps, or a long warm-up, take most of a gain in the median back
  nonfinite_loss,
  missing_steps,    // some of them, or all of a run whose figure a text reports
  step_overlap,     // steps that were written more than once
  clock_backwards,  // negative dt, or a wall clock that ran backwards
  missing_dt,
  other_machine,     // than its ladder's baseline: another host, or another model of GPU
  busy_machine,      // others took cores or the GPU from it during at least a quarter of the steps that count
  fell_back,         // its steps were taken in a plainer way than its stage's
  no_sync,           // the clock was read without waiting for the device
  not_repeated,      // one run says nothing about the spread between runs
  unknown_hardware,  // no peak to compare the throughput with
};

// The name, title and weight of a flag, the same wherever it is shown; in the order of FlagId.
struct FlagKind {
  FlagId id;
  std::string_view name;   // in JSON and on the command line
  std::string_view title;  // in the window and in reports
  Severity severity;
  Trust trust;  // in the throughput of a run that has it
};
inline constexpr std::array flag_kinds{
    FlagKind{FlagId::impossible_throughput, "impossible-throughput", "Throughput above the hardware's peak",
             Severity::grave, Trust::impossible},
    FlagKind{FlagId::suspicious_throughput, "suspicious-throughput", "Throughput above 70 % of the peak",
             Severity::warning, Trust::doubtful},
    FlagKind{FlagId::unit_tokens_per_ms, "unit-tokens-per-ms", "Tokens/ms labelled tokens/s", Severity::warning,
             Trust::trusted},
    FlagKind{FlagId::unit_doubted, "unit-doubted", "Times may be in another unit", Severity::warning, Trust::doubtful},
    FlagKind{FlagId::dt_throughput_mismatch, "dt-throughput-mismatch", "Step time and throughput disagree",
             Severity::warning, Trust::doubtful},
    FlagKind{FlagId::wall_clock_mismatch, "wall-clock-mismatch", "Step time and wall clock disagree", Severity::warning,
             Trust::doubtful},
    FlagKind{FlagId::uneven_steps, "uneven-steps", "The median hides slower steps", Severity::warning, Trust::doubtful},
    FlagKind{FlagId::nonfinite_loss, "nonfinite-loss", "NaN or infinite loss", Severity::grave, Trust::doubtful},
    FlagKind{FlagId::missing_steps, "missing-steps", "Missing steps", Severity::grave, Trust::doubtful},
    FlagKind{FlagId::step_overlap, "step-overlap", "Steps recorded twice", Severity::warning, Trust::trusted},
    FlagKind{FlagId::clock_backwards, "clock-backwards", "Clock ran backwards", Severity::warning, Trust::doubtful},
    FlagKind{FlagId::missing_dt, "missing-dt", "Steps without a time", Severity::warning, Trust::trusted},
    FlagKind{FlagId::other_machine, "other-machine", "Unlike the baseline", Severity::warning, Trust::trusted},
    FlagKind{FlagId::busy_machine, "busy-machine", "Busy machine", Severity::warning, Trust::doubtful},
    FlagKind{FlagId::fell_back, "fell-back", "Stage fell back to a plainer step", Severity::warning, Trust::doubtful},
    FlagKind{FlagId::no_sync, "no-sync", "Timed without device sync", Severity::warning, Trust::doubtful},
    FlagKind{FlagId::not_repeated, "not-repeated", "Not repeated", Severity::note, Trust::trusted},
    FlagKind{FlagId::unknown_hardware, "unknown-hardware", "Hardware peak unknown", Severity::note, Trust::trusted}};
static_assert(flag_kinds.size() == enum_count<FlagId>());
constexpr const FlagKind& kind_of(FlagId id) {
  return flag_kinds[static_cast<std::size_t>(id)];
}
std::string_view to_string(FlagId id);  // its name

// The reader's remedy for a flag. Each front end words it for itself.
enum class Remedy { give_params, probe_again };

struct Flag {
  FlagId id;
  std::string why;  // one sentence or two
  std::optional<Remedy> remedy = {};
  bool doubts = false;  // in a run whose flag is so grave that its throughput is doubtful, though its kind's isn't

  Trust trust() const { return doubts ? std::max(kind_of(id).trust, Trust::doubtful) : kind_of(id).trust; }
};

// Whether other programs disturbed so many of a run's steps that it is flagged `busy-machine`.
bool is_disturbed(const Summary& summary);

// The flag of a rung whose throughput is `factor` times the baseline's, where neither was measured here: a factor near
// 1,000, 1,000,000 or 60, or its inverse, is most likely that of two units. Nullopt: it is none of these.
std::optional<Flag> doubt_unit(double factor);

// The worst trust of all flags.
Trust trust_of(std::span<const Flag> flags);

inline constexpr double suspicious_share = 0.7;

// N for 6 N: the run's own; else that of the GPT-2 that its recipe or its names mention; else, if its first loss is
// that of an untrained model with GPT-2's vocabulary (ln 50,257 = 10.8), that of the smallest GPT-2. `why` explains an
// N that isn't the run's own, `condition` is the same in a few words. 0: unknown.
struct AssumedParams {
  std::int64_t count = 0;
  std::string why;
  std::string condition;  // "if this is GPT-2 124M"
  bool from_loss_alone = false;
};
AssumedParams params_of(const Run& run, const Summary& summary);

// The shape that the conventions of storage/analysis/mfu.h need: the recipe's values or, if it has none, those of the
// published GPT-2 with as many parameters as params_of gives. 0: not known.
ModelShape shape_of(const Run& run, const Summary& summary);

// The peak of all devices of a run together.
Peak peak_of(const Run& run, const HardwareTable& hardware);

// The flags of a run, in the order of FlagId. `repeats`: how many runs its rung has, itself included; `baseline`: where
// the runs that it is compared with were measured. A run that is not over yet, or has neither steps nor a reported
// figure, gets no flags.
std::vector<Flag> flags_of(const Run& run, const Summary& summary, int repeats, const HardwareTable& hardware,
                           std::span<const RunPlace> baseline = {});

// Flags, and the trust that follows from them: a run's own flags, or those of all repeats of a rung
// (storage/analysis/judgement.h).
struct Plausibility {
  std::vector<Flag> flags;  // in the order of FlagId, each at most once
  Trust trust = Trust::trusted;
  bool is_checked = false;  // a physical limit is known, and the clock waited for the device
};
Plausibility plausibility_of(const Run& run, const Summary& summary, int repeats, const HardwareTable& hardware,
                             std::span<const RunPlace> baseline = {});

// Stopped, failed or, of those launched here, interrupted. Such a run is no repeat beside one that reached its end.
bool was_cut_short(const Run& run);

// Counts the measured runs of each rung, so that each run knows whether it was repeated: the finished ones or, if none
// finished, those that began. A run outside a ladder has no repeats. Also keeps where the runs of each ladder's lowest
// rung were measured.
class RepeatCounts {
 public:
  void add(const Run& run);
  int of(const Run& run) const;
  std::span<const RunPlace> baseline_places(const Run& run) const;

 private:
  struct Baseline {
    int rung = 0;
    std::vector<RunPlace> places;
  };
  struct Counts {
    int finished = 0;
    int cut_short = 0;
  };
  std::map<std::pair<LadderId, int>, Counts> counts_;
  std::map<LadderId, Baseline> baselines_;
};

// The data that a run's plausibility depends on besides the run: the hardware table and the number of repeats of its
// rung.
struct PlausibilityContext {
  HardwareTable hardware;
  RepeatCounts repeats;
};
Plausibility plausibility_of(const Run& run, const Summary& summary, const PlausibilityContext& context);

// 6 N x tokens/s and the dense peak that flags_of compares it with. N may be assumed (params_of). Missing if unknown.
struct PhysicalLimit {
  double tflops = missing;
  double peak_tflops = missing;   // of all devices together
  double tokens_per_s = missing;  // at that peak
  std::string condition;          // AssumedParams::condition; views then mark the figures with ~
  std::string peak_in;            // "fp32, as its name says", "bf16, its fastest: the run's precision is unknown"
};
PhysicalLimit limit_of(const Run& run, const Summary& summary, const HardwareTable& hardware);

// A run's share of the peak that `hardware` knows. Missing if N, another value that the convention needs, the
// throughput or the peak is unknown. `convention` names the peak if the run's own precision has none.
struct RunUtilisation {
  double flops_per_token = missing;
  double mfu = missing;
  std::string convention;  // empty if there is no mfu
  std::string assumed;     // sentences that name what it rests on besides the run's own facts; empty: nothing
  std::string condition;   // AssumedParams::condition
};

// By 6 N; an N that only the first loss suggests is not enough.
RunUtilisation utilisation_of(const Run& run, const Summary& summary, const HardwareTable& hardware);

// The same for views, which mark an assumption with ~: by any convention, and from such an N too.
RunUtilisation assumed_utilisation_of(const Run& run, const Summary& summary, const HardwareTable& hardware,
                                      MfuConvention convention = MfuConvention::six_n);

}  // namespace stepladder
