// The state of the window: runs, ladders, selection, the engine's activity. Used on the UI thread; panels read it and
// never change it.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "app/curves/curve_reader.h"
#include "app/curves/min_max_pyramid.h"
#include "app/curves/overview_curve.h"
#include "app/desktop/commands.h"
#include "app/desktop/models/project_metrics.h"
#include "app/desktop/models/record_view.h"
#include "app/excerpt.h"
#include "app/import/import.h"
#include "app/launch/step_estimate.h"
#include "app/machine_load.h"
#include "app/machines/machine_status.h"
#include "app/machines/ssh_questions.h"
#include "engine/device.h"
#include "engine/files/run_checkpoints.h"
#include "storage/analysis/advice.h"
#include "storage/analysis/hardware.h"
#include "storage/analysis/judgement.h"
#include "storage/analysis/step_profile.h"
#include "storage/analysis/summary.h"
#include "storage/database/curation.h"
#include "storage/database/run_store.h"
#include "storage/records.h"

namespace stepladder {

struct ProfileView;  // app/desktop/profile/profile_view.h

// A run, with the loaded part of its data.
struct RunEntry {
  Run run;
  Summary summary;
  Curation curation;
  bool loaded = false;        // the series has every step
  std::vector<double> steps;  // the series' columns as plots need them
  std::vector<double> tokens_per_s;
  double last_step_at = missing;          // unix seconds
  double paused_seconds = 0;              // between steps, while this window looked on
  std::shared_ptr<const Series> excerpt;  // of a run that is too long to read whole (RunStore::excerpt)
  int rewritten = 0;                      // how often the series changed other than by growing

  const Series& series() const { return *series_; }
  // The same for other threads, once the run is over.
  std::shared_ptr<const Series> shared_series() const { return series_; }
  bool goes_on() const { return !is_over(run.status); }
  bool is_long() const { return !loaded && summary.steps > most_steps_read_whole; }
  std::span<const double> values(Quantity quantity) const;
  const MinMaxPyramid& levels(Quantity quantity) const;  // of these values, up to now
  void set_series(Series read);
  void append(const StepRecord& record);
  void take_again(const Series& read);  // consecutive steps of it, as they are now

 private:
  std::shared_ptr<Series> series_ = std::make_shared<Series>();
  mutable std::array<MinMaxPyramid, step_quantities.size()> levels_;  // of the quantities that were asked for
};

// A run's data besides its steps.
struct RunDetail {
  std::vector<SystemMetrics> metrics;
  std::vector<TextSample> samples;
  std::vector<Checkpoint> checkpoints;
  StepParts parts;
  std::vector<std::string> console;  // lines, without terminal escape sequences
  StepProfile profile;               // of no steps if the run has no profile
  FittedProfile fitted;              // the same beside the run's step
};

struct Message {
  std::string text;
  bool is_error = true;    // errors stay until they are dismissed; notices disappear
  double until = missing;  // ImGui's clock
  std::string file = {};   // that was saved; the message offers to open it
};

// The Advisor's suggestions for a run.
struct AdviceView {
  RunId about = 0;
  std::uint64_t made_for = 0;  // Workspace::version
  std::vector<Advice> list;
  std::vector<AdviceOutcome> outcomes;
};

// A factor that is being repeated until it is clear (ConfirmSpeedup). `answers` has its interval after each
// round.
struct Verification {
  ConfirmSpeedup asked;
  std::vector<Gain> answers;
  bool open = false;
};

// A run that is over and has a checkpoint: the step of its newest one.
struct ResumableRun {
  RunId run = 0;
  std::int64_t step = 0;
};

// The rungs that the Launch view's form becomes.
struct LaunchPlan {
  std::string asked;  // text_of the request
  LadderPlan plan;
  std::string problem;       // why there is none
  StepEstimate first_step;   // of the baseline
  double seconds = missing;  // that one run of each rung takes, as estimated

  const SkippedRung* skipped(int asked) const;  // of the rungs asked for; null if it isn't left out
};
std::string text_of(const LadderRequest& request);  // equal texts give equal ladders

// Names of metrics that are read of a run, or of the project: the first, by name.
inline constexpr std::size_t most_listed_metrics = 50'000;

class Workspace {
 public:
  // Loads everything but the steps, which are read when a panel asks for them. Another call adds other programs'
  // changes since then, and keeps the data of runs that are over.
  void load(RunStore& store);
  void load_series(RunStore& store, RunId run);
  void load_excerpt(RunStore& store, RunId run, std::int64_t most);
  void load_detail(RunStore& store, RunId run);
  void load_metrics(RunStore& store, RunId run);  // their names
  // A curve to be read on another thread (CurveReader), and the same when it has been read: it is left out if the run's
  // data has been loaded anew meanwhile.
  using Steps = std::pair<std::int64_t, std::int64_t>;
  CurveWanted wanted(RunId run, Quantity quantity, std::optional<Steps> zoom) const;
  void keep(const CurveRead& read);
  // The steps of scripts' running runs that may have got values since they were read: a validation's result a minute
  // later. At most a twentieth of the time is spent on them.
  std::vector<CurveWanted> late_steps() const;
  void add_ladder(RunStore& store, LadderId ladder, const std::vector<RunId>& runs);
  void add_runs(RunStore& store, const std::vector<RunId>& runs);  // of this session

  void goes_on(RunStore& store, RunId run);  // a run that this session resumed

  // Takes in what other processes have written about the runs that they train: new runs, steps and ends. Call now and
  // then with the runs that are under way (RunStore::runs_under_way).
  void follow_others(RunStore& store, const std::vector<Run>& under_way);

  void curate(RunId run, const Curation& curation);
  void rename(RunId run, const std::string& name);

  // One event from the session. Returns whether it ended a run.
  bool ingest(const RunEvent& event);

  const RunEntry* find(RunId id) const;
  const RunDetail* detail(RunId id) const;       // null until it has been loaded
  const FittedProfile* profile(RunId id) const;  // null if it has none, or until it has been loaded
  // A quantity in a few hundred points, in finer resolution where the user zoomed in last; null until it has been
  // loaded.
  std::shared_ptr<const OverviewCurve> overview(RunId id, Quantity quantity) const;
  std::shared_ptr<const OverviewCurve> zoomed_overview(RunId id, Quantity quantity) const;
  // Whether the run has logged more since a metric's curve was loaded: it should be loaded again.
  enum class Extent { whole, zoomed };
  bool is_outdated(RunId id, Quantity metric, Extent extent) const;
  // What a run logged beside its steps' fields, by name; null until it has been loaded.
  const std::vector<Metric>* metrics(RunId id) const;
  std::int64_t logged_so_far() const;  // a number that changes when a run under way logs or steps
  // A metric's figure; nullopt until it has been read, `missing` if the run has none.
  std::optional<double> figure(RunId run, const MetricFigure& figure) const;
  const std::vector<RunEntry>& runs() const { return runs_; }  // oldest first
  const std::vector<Ladder>& ladders() const { return ladders_; }
  const Ladder* ladder(LadderId id) const;
  std::vector<const RunEntry*> runs_of(LadderId ladder) const;  // by rung, then repeat
  const RunEntry* running() const;                              // the run that is training now, here or elsewhere
  bool is_ours(RunId run) const;                                // this session trains it, or will
  bool trains_here() const;                                     // any run is ours
  const std::vector<RunId>& others() const { return others_; }  // those that other processes train, or will
  // The running one, or the last one that was launched here or that another program ended while this window looked on.
  const RunEntry* shown_live() const;
  std::vector<const RunEntry*> waiting() const;  // queued, in order

  // The runs that Compare and History overlay: the selected ones, else those of the shown ladder.
  std::vector<const RunEntry*> compared() const;
  const Ladder* shown_ladder() const;  // the selected one, else the newest; null without ladders

  // A run's colour in every view, as an index of rung_colour: the one that the user chose, else its rung's.
  int colour_of(const Run& run) const;
  // The colours of several lines in one chart, each named by its first run: a colour that the user chose stays; of
  // others that would be equal, the later one gets a free colour.
  std::vector<int> colours_of(const std::vector<RunId>& lines) const;

  // Estimated seconds until the run, or everything queued, is done; missing in the first ten steps. seconds_off is the
  // estimate's uncertainty: 2.3 standard errors of the mean over ten blocks of the later half, or the difference
  // between that half and all steps if it is larger, since a pace that has changed may change again.
  double seconds_left(const RunEntry& run) const;
  double seconds_off(const RunEntry& run) const;
  double seconds_left_of_all() const;

  void pause(bool paused);  // the running run is paused, or no longer

  // Sorts the waiting runs by the session's order; runs that have begun or ended stay before them.
  void order_queue(const std::vector<RunId>& waiting);

  std::uint64_t version = 1;  // counts changes: runs added, removed, started, ended, renamed or curated
  bool is_paused = false;     // the running run; of another process, only if this one has asked for it
  HardwareTable hardware;     // peaks to compare throughput with
  std::optional<DeviceReport> device;
  std::string device_problem;    // why the hardware could not be detected
  LadderId selected_ladder = 0;  // 0: the newest
  int selected_rung = -1;        // -1: the fastest
  int baseline_rung = 0;         // of the shown ladder
  RunId shown_run = 0;           // the current run: the last one selected or opened, in any view; 0: the newest
  std::set<RunId> selected_runs;
  std::map<RunId, int> run_colours;                       // chosen by the user: indices of rung_colour
  std::vector<MetricFigure> wanted_figures;               // of all runs, by the view that lists them
  std::shared_ptr<const ProjectMetrics> project_metrics;  // null until a view wants them and they have been read
  std::uint64_t project_metrics_version = 0;              // counts readings
  std::vector<Message> messages;
  std::string unstored;  // says which steps wait to be stored, and why; empty: none
  std::string undoable;  // what Undo reverts, in the past tense; empty: nothing
  ImportPreview import;
  AdviceView advice;
  std::shared_ptr<const RecordView> record;         // null until the view Record has asked
  std::shared_ptr<const ProfileView> profile_view;  // null until the view Profile has asked
  std::string trace_import;                         // the trace that is being read; empty: none
  double trace_import_share = 0;                    // that has been read of it
  std::int64_t imported_trace = 0;                  // the last one of this window; 0: none
  ExplainSpeedup explained;                         // what was asked for last
  int explanations = 0;                             // asked for so far
  Verification verification;
  LaunchPlan launch_plan;
  MachineLoad machine_load;                     // read while Launch is open and nothing trains
  std::vector<ResumableRun> resumable;          // newest first; as of the last LoadResumable
  std::optional<LadderDraft> proposal;          // for the Launch view to take over
  int proposals = 0;                            // made so far
  std::vector<std::string> saved_ladders;       // names of the user's own presets
  std::vector<MachineStatus> machines;          // by alias
  std::vector<MachineInFile> machines_in_file;  // that came with it, and aren't the user's
  std::vector<SshQuestion> ssh_questions;       // that wait for an answer
  std::vector<std::string> views;               // names of the project's saved views
  std::string open_view;                        // the one that was opened or saved last; empty: none
  int waterfall_toggles = 0;                    // asked of Ladder so far
  bool line_styles = false;                     // dashes besides colours
  std::string exports_folder;                   // chosen for exports; empty: the default
  std::string database;
  std::string environment;                // JSON of this program and machine; loaded with a run's detail
  std::chrono::milliseconds patience{0};  // how long a frame waits for other threads (Background)

 private:
  RunEntry* entry(RunId id);
  RunEntry& add_entry(const Run& run);
  void learn_spreads();        // of the runs that are over, for verdicts on single runs
  void fit_profile(RunId id);  // call when its profile or its summary has changed
  void read_new_steps(RunStore& store, RunEntry& followed);
  void count_pause(RunEntry& run, double at, double dt_ms);  // before a step is appended
  void end_followed(RunStore& store, RunId id);
  void forget_curves(RunId id);  // the run has ended

  bool was_paused_ = false;  // since the last step
  std::vector<RunEntry> runs_;
  std::map<RunId, std::size_t> index_;
  std::map<RunId, RunDetail> details_;
  std::map<std::pair<RunId, Quantity>, std::shared_ptr<const OverviewCurve>> overviews_;
  std::map<std::pair<RunId, Quantity>, std::shared_ptr<const OverviewCurve>> zoomed_overviews_;
  std::uint64_t curves_forgotten_ = 0;  // counts how often, so that none comes back
  struct LoadedAt {
    std::uint64_t logged = 0;  // as logged_ was then
    std::chrono::steady_clock::time_point at;
    std::chrono::steady_clock::duration took{};
  };
  bool is_due(const LoadedAt& loaded, RunId run) const;
  std::map<std::tuple<RunId, Quantity, Extent>, LoadedAt> metrics_loaded_at_;
  std::map<RunId, LoadedAt> steps_read_at_;  // again, for late values
  std::map<RunId, std::vector<Metric>> metrics_;
  std::map<RunId, std::uint64_t> logged_;  // counts what running runs log
  std::vector<Ladder> ladders_;
  std::vector<RunId> queue_;   // of this session, in the order in which they run
  std::set<RunId> followed_;   // that this window has seen under way in other processes
  std::vector<RunId> others_;  // under way in other processes, in the order in which they train
};

}  // namespace stepladder
