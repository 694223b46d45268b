// "Verify gain": repeats a run and its base in turns until it is clear which one is faster, or a limit is reached.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "app/runs/loaded_runs.h"
#include "engine/training_job.h"
#include "storage/analysis/judgement.h"
#include "storage/analysis/metric_comparison.h"
#include "storage/database/run_store.h"
#include "storage/metric_figure.h"

namespace stepladder {

// Any repeat names its rung; all finished repeats of the rung count, but those that others disturbed only if a side has
// no others.
struct SpeedupQuestion {
  RunId run = 0;
  RunId base = 0;
  int max_repeats = 6;                                     // of each side, including existing ones
  double noise_floor = default_noise_floor;                // the smallest difference that is to be detected
  QuietPatience quiet_patience = std::chrono::minutes(5);  // before each repeat; then it runs anyway
  // Judged in place of the speed; repeats then get seeds of their own, the same on both sides, since runs with one seed
  // are copies.
  std::optional<MetricFigure> metric = {};
  Direction direction = Direction::higher;  // of the metric
};

// The repeats of each side, existing ones included, that "Verify gain" allows: six, or as many as the gain over the
// rung below needs by its judgement, up to fifty.
int repeats_to_verify(const RungJudgement& rung);

// How a verification repeats a run.
struct Repeats {
  std::optional<std::uint64_t> seed = {};  // in place of its own
  std::int64_t looks_up_to = 0;            // Run::looks_up_to
};

struct SpeedupAnswer {
  Gain speedup;             // `cannot_tell` unless the verdict is clear and both sides can be trusted
  MetricComparison metric;  // what the question's metric says
  int repeats = 0;          // finished runs of each side that count; the smaller number
  std::string reason;       // a sentence: why the repeats ended
};

// Used by one thread. A round is one more run of each side; `look` judges it after it has ended.
class SpeedupConfirmation {
 public:
  // open: a round is under way. answered: see the verdict. failed: a repeat did not finish. stopped: by `stop`.
  enum class State { open, answered, failed, stopped };

  using Repeat = std::function<RunId(RunId, const Repeats&)>;

  // `repeat` launches a run once more and returns the new one. Throws RecipeError for an
  // impossible question (one rung twice, a side that was not launched here or has no finished run) and StorageError.
  // `store` outlives this.
  SpeedupConfirmation(RunStore& store, SpeedupQuestion question, HardwareTable hardware, Repeat repeat);

  // Judges the runs if every run of the round is over in the database, then answers or begins another round. Never
  // throws: a failure ends the question with its reason. Reads the steps of runs that ended since the last look.
  void look();

  // Begins no further round. The runs of the current one continue.
  void stop(const std::string& reason = "Stopped before the verdict was clear.") { end(State::stopped, reason); }
  void fail(const std::string& reason) { end(State::failed, reason); }

  State state() const { return state_; }
  bool is_open() const { return state_ == State::open; }
  const SpeedupQuestion& question() const { return question_; }
  const std::vector<RunId>& round() const { return round_; }         // the latest, in launching order; empty: none yet
  const std::vector<Gain>& estimates() const { return estimates_; }  // before the first round, and after each
  const SpeedupAnswer& answer() const { return answer_; }            // final when not open

 private:
  struct Side {
    Run asked;
    std::vector<RunId> repeated;  // by us
    std::vector<LoadedRun> runs;  // finished
  };

  bool round_is_over();
  void load_finished(Side& side);
  void load_others();
  PairJudgement judged_pair() const;
  void judge_runs();
  void judge_values();  // of the question's metric
  void decide();
  bool is_futile() const;
  void begin_round();
  void end(State state, const std::string& reason);

  RunStore& store_;
  const SpeedupQuestion question_;
  const Looks looks_;
  const HardwareTable hardware_;
  const Repeat repeat_;
  Side base_;
  Side run_;
  bool is_in_one_ladder_ = false;
  std::vector<LoadedRun> others_;  // of their ladder
  std::vector<RunId> round_;
  std::vector<Gain> estimates_;
  std::uint64_t next_seed_ = 0;
  SpeedupAnswer answer_;
  Verdict arithmetic_ = Verdict::cannot_tell;  // the verdict before trust and the number of repeats are considered
  std::string doubt_;                          // why a side cannot be trusted
  bool is_only_busy_ = false;                  // another repeat, on a quiet machine, may be trusted
  double needed_run_seconds_ = missing;        // of one more run of each side
  int left_out_ = 0;                           // runs of both sides that other programs disturbed
  State state_ = State::open;
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace stepladder
