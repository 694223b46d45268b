// The vocabulary of the whole program: plain values that cross threads and layers by copy.
// None of them owns a resource, locks, or depends on how a run was made.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stepladder {

using RunId = std::int64_t;
using LadderId = std::int64_t;

// "Not recorded", as opposed to a loss that really was NaN: one NaN bit pattern set aside, as R does for NA.
// Compare with is_missing, never with ==.
inline constexpr std::uint64_t missing_bits = 0x7ff8'0000'0000'07a2;
inline constexpr double missing = std::bit_cast<double>(missing_bits);
constexpr bool is_missing(double value) {
  return std::bit_cast<std::uint64_t>(value) == missing_bits;
}

// Wall clock in unix seconds, for all *_at. Step times come from engine/trainer/step_timer.h.
double unix_now();

// finished: it took every step. stopped: a person stopped it. failed: it could not continue. interrupted: its process
// has exited.
// `reported`: a text states the run, and perhaps a figure, without steps.
enum class RunStatus { queued, running, finished, stopped, failed, interrupted, reported };
std::string_view to_string(RunStatus status);
RunStatus run_status_from(std::string_view text);  // throws std::invalid_argument

// Whether no further step will be added, unless somebody resumes the run.
constexpr bool is_over(RunStatus status) {
  return status != RunStatus::queued && status != RunStatus::running;
}

// A request of one process about another's run. The owner looks for requests about twice a second.
enum class RunRequest { pause, resume, stop };
std::string_view to_string(RunRequest request);      // "pause", "continue", "stop"
RunRequest run_request_from(std::string_view text);  // throws std::invalid_argument

// The way in which a run was timed: with events on its stream, after the whole device had finished, without waiting, or
// not known. A CPU's work is done when the call returns, so its steady clock counts as `device`.
enum class Sync { event, device, none, unknown };
std::string_view to_string(Sync sync);
Sync sync_from(std::string_view text);  // throws std::invalid_argument

// What a step holds by the figures of its log besides its time; the rates are times that time.
namespace per_step {

inline constexpr const char* mfu = "mfu";
inline constexpr const char* tflops = "tflops";
inline constexpr const char* samples_rate = "samples by rate";
inline constexpr const char* steps_rate = "steps by rate";
inline constexpr const char* samples = "consumed samples";
inline constexpr const char* tokens = "consumed tokens";
inline constexpr const char* configured = "configured sequences";
inline constexpr const char* parts_ms = "parts in ms";      // forward, backward ...
inline constexpr const char* untimed_ms = "untimed in ms";  // of the training's own total, its share beside the steps

}  // namespace per_step

// The times and throughput as a log printed them: evidence of the units of an imported run.
struct PrintedUnits {
  std::string unit;               // "tokens/ms printed as tokens/sec"; in words if none was printed or it is unknown
  double tokens_per_s = missing;  // the median of the printed values, in tokens/s
  bool times_from_clock =
      false;  // step times are differences of a printed clock (storage/analysis/verdict/step_grain.h)

  bool steps_are_counted = false;       // no step number is printed; not stored
  std::int64_t clock_starts_after = 0;  // the step behind which the program set its clock to zero: the end of a warm-up
  std::map<std::string, double> per_step = {};  // by the names above

  bool known() const {
    return !unit.empty() || !is_missing(tokens_per_s) || times_from_clock || clock_starts_after > 0 ||
           !per_step.empty();
  }
};

// One training, launched here or imported. Empty strings and `missing` mean "not known".
struct Run {
  RunId id = 0;
  std::string uid;  // 32 random hex digits, also written into its checkpoints; empty: recorded before runs had one
  std::string name;
  std::optional<LadderId> ladder;
  int rung = 0;                  // place in its ladder; 0 is the baseline
  int repeat = 0;                // which of several runs of the same rung
  std::int64_t stands_on = -1;   // the rung below that its own was built on, as it was launched; -1: not known
  std::int64_t looks_up_to = 0;  // runs of each side that the verification which launched it allows; 0: none did
  int loss_against = 0;  // the rung that its loss is compared with: the last one below that changes training results
  std::optional<RunId> parent;      // the run whose checkpoint it started from
  std::int64_t forked_at_step = 0;  // the parent's last step that counts; 0: not forked
  std::string stage;                // the stage's id; for an import the name in its log
  std::string title;                // the stage in words
  std::string changed;              // the difference from the previous rung, in words
  RunStatus status = RunStatus::queued;
  std::string reason;  // why it failed, stopped or was interrupted
  std::string source;  // "launched", "import" or "example"
  std::string source_path;
  double created_at = missing;  // unix seconds, as all *_at
  double started_at = missing;
  double ended_at = missing;
  std::int64_t planned_steps = 0;
  std::int64_t tokens_per_step = 0;        // 0: not known
  std::int64_t warmup_steps = -1;          // set by hand; -1: by rule (see storage/analysis/summary.h)
  std::int64_t params = 0;                 // 0: not known
  double model_flops_per_token = missing;  // 6 x params
  double loss_floor = missing;             // entropy of a synthetic source, in nats per token
  std::string device;                      // "cpu", "cuda", "mps"
  std::string hardware;                    // "NVIDIA A100-SXM4-40GB"
  std::string precision;                   // "fp32", "tf32", "bf16"
  std::string attention;                   // its implementation: "explicit", "flash", "cudnn", "efficient", "math"
  double setup_ms = missing;               // compiling or capturing before the first step
  std::int64_t peak_memory_bytes = 0;      // of the device (a CPU run: of the process); 0: not known
  Sync sync = Sync::unknown;
  std::string recipe;       // JSON: every value that defines the run
  std::string environment;  // JSON: versions, git state, command line, host
  PrintedUnits printed;     // of an import
  bool is_claimed = false;  // the file alone says that it was launched here: no order of this user does; not stored

  // Whether this program timed it here.
  bool is_ours() const { return source == "launched" && !is_claimed; }
};

// Several runs measured together, rung after rung.
struct Ladder {
  LadderId id = 0;
  std::string uid;  // as Run::uid
  std::string name;
  std::string source;  // as Run::source
  std::string source_path;
  std::string notes;
  double created_at = missing;
  std::int64_t binned_runs = 0;  // of its runs, how many are in the bin; counted when it is read
};

// The parts of a step's dt in ms; the rest is time between them. Communication is the time that the step waited, not
// the time that overlapped with the backward pass.
struct StepParts {
  double data_ms = missing;
  double forward_ms = missing;
  double backward_ms = missing;
  double optimizer_ms = missing;
  double communication_ms = missing;
};
struct NamedStepPart {
  std::string_view name;
  double StepParts::*ms;
};
inline constexpr std::array<NamedStepPart, 5> all_step_parts{{{"data", &StepParts::data_ms},
                                                              {"forward", &StepParts::forward_ms},
                                                              {"backward", &StepParts::backward_ms},
                                                              {"communication", &StepParts::communication_ms},
                                                              {"optimizer", &StepParts::optimizer_ms}}};

// One optimiser update. `step` counts from 1. Written once, never changed.
struct StepRecord {
  RunId run = 0;
  std::int64_t step = 0;
  double loss = missing;      // nats per token, mean over the step's tokens, before the update
  double val_loss = missing;  // after the update, if the step was evaluated
  double dt_ms = missing;     // the whole step, device synchronised before the clock was read (Run::sync)
  std::int64_t tokens = 0;    // 0: not known
  double lr = missing;
  double grad_norm = missing;  // L2 norm over all gradients, before clipping
  double at = missing;         // unix seconds at the step's end
  StepParts parts;
};

// Sent when the engine has built a run's model; fields as in Run.
struct RunStarted {
  RunId run = 0;
  double at = missing;
  std::int64_t tokens_per_step = 0;
  std::int64_t params = 0;
  double loss_floor = missing;
  std::string device;
  std::string hardware;
  std::string precision;
  std::string attention;
  double setup_ms = missing;
  Sync sync = Sync::unknown;
  std::string recipe;  // with every "auto" resolved
  std::string torch_version;
};

// The use that other programs made of what a run needs, as means over some time. Missing or 0: not known.
// storage/contention.h judges it.
struct Contention {
  double other_cores = missing;     // that others kept busy, of `cores`
  double program_cores = missing;   // of these, by the program that trained it: its window, its recorder
  double other_gpu_load = missing;  // 0..1, of the run's GPU
  int cores = 0;                    // that the run may use
  int needed_cores = 0;             // its computing threads; on a GPU, one for each process
};

// Whether lower or higher values are better.
enum class Direction { unknown, lower, higher };
std::string_view to_string(Direction direction);  // "", "lower", "higher"
Direction direction_from(std::string_view text);  // throws std::invalid_argument

// A number that a run logs beside its steps' own fields: "val/acc", "expert load".
struct Metric {
  std::string name;  // as logged; any text
  std::string unit;  // empty: not known
  Direction direction = Direction::unknown;
  std::string section;  // the group of charts that it was logged for; empty: not known
  // "loss" or "val_loss": its values are that field of the steps. Empty: they are its own (metric_store.h).
  std::string field;
};

struct MetricPoint {
  std::int64_t step = 0;
  double value = 0;     // NaN and infinities too
  double at = missing;  // unix seconds
};

// The values that a run logged for one step, by the metric's name.
struct MetricValues {
  RunId run = 0;
  std::int64_t step = 0;
  double at = missing;
  std::vector<std::pair<std::string, double>> values;
};

// The machine's state at one moment of a run, sampled about twice a second.
struct SystemMetrics {
  RunId run = 0;
  std::int64_t step = 0;  // the last one finished
  double at = missing;
  double cpu_load = missing;       // of all cores together, 0..1
  double process_cores = missing;  // kept busy by the run
  std::int64_t resident_bytes = 0;
  double gpu_load = missing;  // 0..1
  double gpu_clock_mhz = missing;
  double gpu_power_w = missing;
  double gpu_temperature_c = missing;
  std::int64_t gpu_memory_bytes = 0;  // in use, by all programs
  std::string throttle_reason;        // why the clock is lowered; empty: it isn't, or not known
  Contention contention;              // since the sample before
};

// A checkpoint was written or failed (`error`); the run continues. The folder holds everything about it, the database
// nothing.
struct CheckpointSaved {
  RunId run = 0;
  std::int64_t step = 0;
  double at = missing;
  std::string folder;
  std::int64_t bytes = 0;
  std::string error;
};

// Text that the model generated after `step` steps.
struct TextSample {
  RunId run = 0;
  std::int64_t step = 0;
  double at = missing;
  std::string text;  // the prompt and its continuation; bytes, not always UTF-8
};

// Output of a watched program, in order; bytes, cut anywhere.
struct ConsoleText {
  RunId run = 0;
  double at = missing;
  std::string text;
};

// The time of one operator in a step, without the operators that it called; means over the profiled steps.
struct OperatorTime {
  std::string part;    // of the step, a name of all_step_parts
  std::string name;    // LibTorch's name, "aten::addmm"; "autograd": between two; empty: in none
  std::string shapes;  // of a product's operands: "768x128 128x512"; else empty
  double calls = 0;
  double self_ms = 0;
  double flops = missing;  // floating point operations; known for products
};

// A run's step time by operator; the times add up to a step. Measured after the last step, so that profiling slows no
// recorded step.
struct StepProfile {
  RunId run = 0;
  double at = missing;
  int steps = 0;  // profiled; 0: no profile
  std::vector<OperatorTime> operators;
};

// The last event of each submitted run; sent exactly once.
struct RunEnded {
  RunId run = 0;
  double at = missing;
  RunStatus status = RunStatus::finished;
  std::string reason;
  std::int64_t peak_memory_bytes = 0;
};

using RunEvent = std::variant<RunStarted, StepRecord, RunEnded, SystemMetrics, CheckpointSaved, TextSample, ConsoleText,
                              StepProfile, MetricValues>;
RunId run_of(const RunEvent& event);

// A run's steps in memory, column by column, in the order of steps; all columns have the same length.
// For a step that was written twice (a resumed run), it holds only the newer record.
struct Series {
  std::vector<std::int64_t> step;
  std::vector<std::int64_t> tokens;
  std::vector<double> loss;
  std::vector<double> val_loss;
  std::vector<double> dt_ms;
  std::vector<double> lr;
  std::vector<double> grad_norm;
  std::vector<double> at;

  std::size_t size() const { return step.size(); }
  bool empty() const { return step.empty(); }
  void append(const StepRecord& record);
  double tokens_per_s(std::size_t i) const;  // missing if dt or tokens are
};

}  // namespace stepladder
