// `stepladder try`: judges the changes of a checkout one after the other against the state that was kept last. A series
// is a ladder of the project, try N its rung N. Each run is stored as soon as it has ended, and what to do next follows
// from the stored runs alone, so a killed program continues where it was. Files, in FILE.tries/UID beside the project:
//   .state/plan.json, 0001.json ...   the plan, and how each run ended         runs/0001.log ...   what it printed
//   store/, a/, b/                    the states (app/record/try_trees.h)
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/host/held_folder.h"
#include "app/record/far_copies.h"
#include "app/record/measured_command.h"
#include "app/record/try_parts.h"
#include "app/record/try_plan.h"
#include "app/record/try_trees.h"
#include "app/runs/loaded_runs.h"
#include "storage/analysis/verdict/factorial.h"
#include "storage/database/run_store.h"

namespace stepladder {

enum class TryVerdict { kept, worse, cannot_tell, invalid, guard, failed };
const char* to_string(TryVerdict verdict);  // "cannot-tell"
std::optional<TryVerdict> try_verdict_from(const std::string& text);

inline constexpr std::int64_t at_the_end = -1, held_out = -2;  // TryRun::during

struct TryAnswer {
  TryVerdict verdict = TryVerdict::cannot_tell;
  double difference = missing;  // of the metric, in its unit; shrunk if it is kept
  double factor = missing;      // above 1 is faster for times; else the ratio of the metric's means
  Interval ci95;                // of the factor for times, else of the difference
  double e_value = missing;
  double needed_e_value = missing;
  std::int64_t needed_runs = 0;
  std::string reason;
};

struct TryPreview {
  std::int64_t number = 0;            // that the try would have
  std::vector<std::string> changed;   // files, against the state that was kept last
  const Try* tried_before = nullptr;  // the same change
  std::string refused;                // why it would be: a sealed path changed
  double run_s = missing;             // a run of this series in the mean
};

class TrySeriesRunner {
 public:
  using Report = std::function<void(const std::string&)>;  // a line about what happens

  // The newest series of the checkout that contains the folder; nothing runs yet. Throws UsageError if there is none,
  // if it has ended and `which` asks for an open one, or if this user hasn't begun it here.
  enum class Which { open, any };
  TrySeriesRunner(RunStore& store, const std::filesystem::path& folder, Report report, std::function<bool()> stop,
                  Which which = Which::open);

  // Begins a series, or continues a beginning with the same plan, and measures the unchanged state. `plan.checkout`,
  // `folder`, `links` and the seals' contents are filled in. False if it was stopped.
  static std::optional<TrySeriesRunner> begin(RunStore& store, TryPlan plan, const std::filesystem::path& folder,
                                              Report report, std::function<bool()> stop);

  const TrySeries& series() const { return series_; }
  const TryPlan& plan() const { return plan_; }
  const std::vector<Try>& tries() const { return tries_; }
  const std::vector<TryRun>& runs() const { return runs_; }
  const Try& kept() const;  // the state that was kept last

  std::string metric() const;  // "val_bpb", "tokens_per_s"
  // Why the unchanged runs don't show what another seed does to the metric; empty: they do.
  std::string seed_doubt() const;
  std::string unit() const;
  std::optional<std::int64_t> runs_left() const;
  std::vector<double> values_of(std::int64_t state) const;  // in the metric's unit, in order
  double shown(double value) const;                         // a stored value in the metric's unit

  // Judges the checkout as it is. Nullopt if it was stopped. Throws UsageError if nothing has changed. An answer that a
  // killed program had stored, and hadn't reported, is given again.
  std::optional<TryAnswer> judge(const std::string& message);
  // What judge() would judge, without running it.
  TryPreview preview();
  // To remove once an answer of begin() or judge() is given, as late as can be.
  std::filesystem::path unreported_file() const { return folder_ / ".state" / "unreported"; }
  std::int64_t runs_of_try(std::int64_t number) const;

  // Sets the checkout to the state that was kept last, or to that of a try. What was there and is no try is kept as a
  // patch, whose name is returned.
  std::string revert(std::optional<std::int64_t> to);
  // Whether the checkout is as it was when this was tried.
  bool checkout_is(const Try& it) const { return trees_->take().tree == it.tree; }

  // Whether its state isn't that of its commit, but for files that runs write and git doesn't track.
  bool is_dirty(const Try& it) const;

  // Commits the checkout, where try N was just kept and it is as it was tried. Throws UsageError if it isn't.
  void commit(std::int64_t number);

  // Also of a series that has ended. Runs the change of a kept try in parts, in a fractional factorial; `flags`: words
  // for the command line instead. Returns what `try parts` prints. Nullopt if it was stopped. Throws UsageError.
  std::optional<Json> take_apart(std::int64_t number, const std::vector<std::string>& flags);

  // Measures the first state against the last one in turns, as far as the budget goes, by the held-out command too, and
  // ends the series. Nullopt if it was stopped.
  std::optional<TryAnswer> end(std::int64_t rounds);
  const std::optional<TryAnswer>& held_out_answer() const { return held_out_; }  // of end()

 private:
  TrySeriesRunner() = default;
  void open(RunStore& store, const TrySeries& series, Report report, std::function<bool()> stop);
  void load();
  struct Outcome {  // of a run
    double value = missing;
    std::string unit;
    std::string error;        // why it has no value
    std::size_t printed = 0;  // LogFigure's
  };
  Outcome outcome_of(const LoggedRun& logged, const CommandEnd& end) const;
  Run row_of(const Try& state, const std::string& name, const CommandEnd& end, const std::string& error) const;
  struct PartRuns {
    std::vector<PartSet> cells;
    std::vector<double> values;  // higher is better
    std::vector<MeasuredCommand> commands;
    std::vector<CommandEnd> ends;
    std::vector<Outcome> outcomes;
  };
  std::optional<PartRuns> run_parts(const Try& it, const std::vector<ChangePart>& parts,
                                    const std::vector<std::string>& flags);
  std::vector<LoadedRun> loaded_parts(const Try& it, const PartRuns& runs) const;
  // What forbids to call the part a gain, by its runs against those without it; empty: nothing.
  std::string doubt_of_part(std::size_t part, const PartRuns& runs, std::span<const LoadedRun> loaded) const;
  void store_parts(Try& it, const std::vector<ChangePart>& parts, const PartRuns& runs, const Json& shown);
  std::string tree_with(const Try& it, const std::vector<ChangePart>& parts, const PartSet& cell) const;
  Json effect_json(const Try& it, double gain, const Interval& ci95) const;
  bool measure_first();
  void fail_beginning(const std::string& why);
  void wait_until_quiet() const;
  std::vector<double> values_at_end(std::int64_t during, std::int64_t state) const;
  TryAnswer answer_of_turns(std::int64_t during, std::int64_t rounds) const;
  MeasuredCommand next_command() const;
  // What a command runs in, and how: here under a keeper, or on the plan's machine.
  bool prepare(MeasuredCommand& command, const std::string& tree, const std::string& beside, const std::string& commit,
               TryTrees::Leftovers leftovers);  // false if it was stopped
  bool is_begun(const MeasuredCommand& command) const;
  std::optional<CommandEnd> run_command(const MeasuredCommand& command);
  // Ends one that is under way. The end of one that has ended, and isn't stored yet.
  std::optional<CommandEnd> end_command(const MeasuredCommand& command);
  // Runs a state once more and stores it. Nullopt if it was stopped.
  std::optional<TryRun> run_state(std::int64_t during, std::int64_t state);
  // Waits for runs that a killed program left behind: they may be in the copy that is about to get another state. False
  // if it was stopped.
  bool wait_for_left_runs();
  TryRun store_run(std::int64_t during, std::int64_t state, const MeasuredCommand& command, const CommandEnd& end);
  RunPatch patch_of_runs(const Try& it) const;  // against its commit
  void abandon(Try& open);
  const Try* tried_before(const std::string& tree, const std::string& patch) const;  // the last one, or null
  Try& record_try(const std::string& message, const TakenState& state);
  TryAnswer answer_of(const Try& it, const TryOpinion& opinion, double threshold) const;
  std::optional<TryAnswer> measure(const Try& it);
  std::optional<TryAnswer> refused(const Try& it) const;            // a sealed path changed
  std::string shadow_of(const Try& it, const TrySeal& seal) const;  // a new file that is imported in its place
  std::string seals_stamp() const;
  bool wrote_sealed_ = false;  // a run of this process changed one, and perhaps put it back
  // Of the runs of `state` against the others that ran during the same try or at the end: the guards; physics and loss.
  void check_values(const Try& it, TryAnswer& answer) const;
  void check_guards(std::int64_t during, std::int64_t state, TryAnswer& answer) const;
  void check_runs(std::int64_t during, std::int64_t state, TryAnswer& answer) const;
  bool is_of_seeds() const;                        // whether the seed of a training moves the metric
  std::string scatter_doubt(const Try& it) const;  // why the change's runs may have one seed; empty: they haven't
  std::string noise_doubt(const Try& it) const;    // why a gain can't be told from noise; empty: it can
  std::string changed_facts(const Try& it) const;
  mutable std::vector<LoadedRun> first_runs_;  // of the first state, once check_runs has needed them
  TryRuns runs_for(const Try& it) const;
  std::vector<double> recent_runs(const Try& it) const;
  RunSpread noise_of(const std::function<bool(const TryRun&)>& counts) const;  // of single runs
  double utility(double value) const;                                          // higher is better
  bool is_spent() const;
  void finish(Try& it, const TryAnswer& answer);

  RunStore* store_ = nullptr;
  TrySeries series_;
  TryPlan plan_;
  bool is_unreported(std::int64_t number) const;
  void note_unreported(std::int64_t number) const;
  std::filesystem::path folder_;
  Report report_;
  std::function<bool()> stop_;
  std::optional<HeldFolder> held_;
  std::unique_ptr<TryTrees> trees_;
  std::unique_ptr<FarCopies> far_;  // null: the runs are done here
  std::vector<Try> tries_;
  std::vector<TryRun> runs_;
  std::optional<TryAnswer> held_out_;
};

// What the command's words say about the checkout's own folder is true of the copy that it runs in.
std::vector<std::string> words_in(const std::vector<std::string>& command, const std::string& top,
                                  const std::string& copy);

// What `try begin` prints: the unchanged state's figures and the noise between its runs.
Json begin_json(const TrySeriesRunner& series);

// The JSON line of a try: what `try -m` prints, and `log` lists.
Json try_json(const TrySeriesRunner& series, const Try& it, const TryAnswer& answer);

}  // namespace stepladder
