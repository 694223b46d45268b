// The state of the window: the project's runs and ladders, what is selected of them, and parts that single features
// write. Used on the UI thread; panels read it and never change it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "app/curves/curve_reader.h"
#include "app/curves/overview_curve.h"
#include "app/desktop/workspace/part.h"
#include "app/desktop/workspace/run_entry.h"
#include "app/desktop/workspace/selection.h"
#include "app/runs/bin.h"
#include "engine/device.h"
#include "engine/rungs.h"
#include "storage/analysis/hardware.h"
#include "storage/analysis/judgement.h"
#include "storage/database/run_store.h"
#include "storage/database/traces/trace_store.h"
#include "storage/records.h"

namespace stepladder {

struct ImportPreview;   // app/desktop/models/import_preview.h
struct LaunchState;     // app/desktop/workspace/launch_state.h
struct MachinesState;   // app/desktop/workspace/machines_state.h
struct ProjectMetrics;  // app/desktop/models/project_metrics.h
struct ProfileState;    // app/desktop/profile/profile_state.h
struct RecordView;      // app/desktop/models/record_view.h
struct TriesView;       // app/desktop/models/tries_view.h
struct Verification;    // app/desktop/workspace/verification.h

// Names of metrics that are read of a run, or of the project: the first, by name.
inline constexpr std::size_t most_listed_metrics = 50'000;

class Workspace {
 public:
  Workspace();

  // Loads everything but the steps, which are read when a panel asks for them. Another call adds other programs'
  // changes since then, and keeps the data of runs that are over.
  void load(RunStore& store);
  void load_series(RunStore& store, RunId run);
  void load_excerpt(RunStore& store, RunId run, std::int64_t most);
  void load_detail(RunStore& store, RunId run);
  void load_metrics(RunStore& store, RunId run);  // their names
  void load_bin(RunStore& store);                 // if the runs have changed since
  // A request for a curve, to be read on another thread (CurveReader), and its result, which is dropped if the run's
  // data was loaded again meanwhile.
  using Steps = std::pair<std::int64_t, std::int64_t>;
  CurveWanted wanted(RunId run, Quantity quantity, std::optional<Steps> zoom) const;
  void keep(const CurveRead& read);
  // The steps of scripts' running runs that may have got values since they were read, such as a validation's result a
  // minute later. Reading them takes at most a twentieth of the time.
  std::vector<CurveWanted> late_steps() const;
  void add_ladder(RunStore& store, LadderId ladder, const std::vector<RunId>& runs);
  void add_runs(RunStore& store, const std::vector<RunId>& runs);  // of this session

  void continue_run(RunStore& store, RunId run);  // that this session resumed

  // Reads what other processes have written about the runs that they train: new runs, steps and ends. Call it now and
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
  // True if the run has logged more since a metric's curve was loaded, so that it should be loaded again.
  enum class Extent { whole, zoomed };
  bool is_outdated(RunId id, Quantity metric, Extent extent) const;
  // The metrics that a run logged beside its steps' fields, by name; null until it has been loaded.
  const std::vector<Metric>* metrics(RunId id) const;
  std::int64_t logged_so_far() const;  // a number that changes when a run under way logs or steps
  // A metric's figure; nullopt until it has been read, `missing` if the run has none.
  std::optional<double> figure(RunId run, const MetricFigure& figure) const;
  const std::vector<RunEntry>& runs() const { return runs_; }  // oldest first
  const std::vector<Ladder>& ladders() const { return ladders_; }
  const Ladder* ladder(LadderId id) const;
  std::vector<const RunEntry*> runs_of(LadderId ladder) const;  // by rung, then repeat
  // Why nothing can be measured into the project now, as a sentence; empty: it can.
  std::string why_not_measure() const;
  const RunEntry* running() const;                              // the run that is training now, here or elsewhere
  bool is_ours(RunId run) const;                                // this session trains it, or will
  bool trains_here() const;                                     // any run is ours
  const std::vector<RunId>& others() const { return others_; }  // those that other processes train, or will
  // The running one, or the last one that was launched here or that another program ended while this window looked on.
  const RunEntry* shown_live() const;
  std::vector<const RunEntry*> waiting() const;  // queued, in order

  // The runs that Compare overlays: the selected ones, else those of the shown ladder, else the newest with steps.
  std::vector<const RunEntry*> compared() const;
  // The selected one, else the newest that isn't a series of tries; null without one.
  const Ladder* shown_ladder() const;

  // The run that Run and MFU are about: the current run; until one was chosen the first selected one, else
  // the shown ladder's chosen rung or its fastest run with a possible speed, else the newest with steps. Null without
  // runs.
  const RunEntry* current_run() const;
  // The run that stands for the selected rung of this ladder, if it has it, else for the ladder; null: none has steps.
  const RunEntry* run_of_ladder(LadderId ladder) const;

  // A run's colour in every view, as an index of rung_colour: the one that the user chose, else its rung's.
  int colour_of(const Run& run) const;
  // The colours of several lines in one chart, each named by its first run: a colour that the user chose stays. Each
  // other line gets its rung's, or a free one if that is taken, and keeps it from then on: another line beside it never
  // changes it.
  std::vector<int> colours_of(const std::vector<RunId>& lines) const;

  // The finished runs, for estimates of steps (app/launch/step_estimate.h). They point into this.
  std::vector<MeasuredRun> measured_runs() const;

  // The step time of a run that has not three steps yet: that of earlier runs of its recipe on this machine; missing
  // without one.
  double expected_step_seconds(const RunEntry& run) const;

  // Estimated seconds until the run, or everything queued, is done: by its own steps from the third on, else by
  // expected_step_seconds, else missing (a queued run then takes the running one's step time). seconds_off is the
  // estimate's uncertainty, missing before the tenth step: 2.3 standard errors of the mean over ten blocks of the later
  // half, or the difference between that half and all steps if it is larger, since a pace that has changed may change
  // again.
  double seconds_left(const RunEntry& run) const;
  bool has_pace(const RunEntry& run) const;  // whether that is by its own steps
  double seconds_off(const RunEntry& run) const;
  double seconds_left_of_all() const;

  void pause(bool paused);  // the running run is paused, or no longer

  // Sorts the waiting runs by the session's order; runs that have begun or ended stay before them.
  void order_queue(const std::vector<RunId>& waiting);

  std::uint64_t version = 1;  // counts changes: runs added, removed, started, ended, renamed or curated
  bool is_paused = false;     // the running run; of another process, only if this one has asked for it
  HardwareTable hardware;     // peaks to compare throughput with
  std::string published_mfu;  // imported tables of published utilisation
  std::optional<DeviceReport> device;
  std::string device_problem;  // why nothing can be trained here: no trainer, or no hardware detected
  std::string read_only;       // why nothing can be changed in this project; empty: it can
  std::string damage;          // of its file: what was found; empty: none, or not known yet
  Selection selection;
  std::vector<MetricFigure> wanted_figures;               // of all runs, by the view that lists them
  std::shared_ptr<const ProjectMetrics> project_metrics;  // null until a view wants them and they have been read
  std::map<LadderId, std::vector<SkippedRung>> left_out;  // rungs that ladders of this project were asked for and lack
  std::map<LadderId, std::set<std::int64_t>> kept_tries;  // of ladders that are series of tries: the kept rungs, and 0
  std::vector<BinnedRun> bin;                             // the last deleted first; read while a view lists it
  std::string undoable;                                   // what Undo reverts, in the past tense; empty: nothing
  Part<ImportPreview> import;
  Part<Verification> verification;
  Part<LaunchState> launch;
  Part<MachinesState> machines;
  double measures_peak_since = missing;  // Unix seconds, while MeasurePeak is carried out
  Part<ProfileState> profile_state;
  std::shared_ptr<const RecordView> record;  // null until the view Record has asked
  std::shared_ptr<const TriesView> tries;    // null until the view Tries has asked
  std::vector<StoredTrace> traces;           // of profilers, oldest first, without steps and operators
  std::vector<std::string> views;            // names of the project's saved views
  std::string open_view;                     // the one that was opened or saved last; empty: none
  bool line_styles = false;                  // dashes besides colours
  std::string exports_folder;                // chosen for exports; empty: the default
  std::string database;
  std::string environment;                // JSON of this program and machine; loaded with a run's detail
  std::chrono::milliseconds patience{0};  // how long a frame waits for other threads (Background)

 private:
  RunEntry* entry(RunId id);
  RunEntry& add_entry(const Run& run);
  void update_spreads();       // of the runs that are over, for verdicts on single runs
  void fit_profile(RunId id);  // call when its profile or its summary has changed
  void read_new_steps(RunStore& store, RunEntry& followed);
  void count_pause(RunEntry& run, double at, double dt_ms);  // before a step is appended
  void end_followed(RunStore& store, RunId id);
  void forget_curves(RunId id);  // the run has ended

  std::uint64_t bin_read_at_ = 0;                               // the version
  mutable std::map<LadderId, RunId> fastest_;                   // 0: none has steps
  mutable std::uint64_t fastest_at_ = 0;                        // the version
  mutable std::map<RunId, std::pair<int, int>> given_colours_;  // of lines: when given (a count), and the hue
  mutable std::map<RunId, double> expected_steps_;
  mutable std::uint64_t expected_at_ = 0;  // the version
  bool was_paused_ = false;                // since the last step
  std::vector<RunEntry> runs_;
  std::map<RunId, std::size_t> index_;
  std::map<RunId, RunDetail> details_;
  std::map<std::pair<RunId, Quantity>, std::shared_ptr<const OverviewCurve>> overviews_;
  std::map<std::pair<RunId, Quantity>, std::shared_ptr<const OverviewCurve>> zoomed_overviews_;
  std::uint64_t curves_forgotten_ = 0;  // counts how often, so that a late reading isn't kept
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
  std::vector<RunId> queue_;    // of this session, in the order in which they run
  std::set<RunId> just_ended_;  // of this session: the file still has them as running, until the end is written
  std::set<RunId> followed_;    // that this window has seen under way in other processes
  std::vector<RunId> others_;   // under way in other processes, in the order in which they train
};

}  // namespace stepladder
