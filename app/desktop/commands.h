// Everything that panels may ask for. The app collects commands while it draws a frame and carries them out between
// frames (DesktopApp::execute).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/desktop/charts/points_table.h"
#include "app/desktop/models/import_preview.h"
#include "app/desktop/models/record_view.h"
#include "app/desktop/profile/profile_question.h"
#include "app/desktop/settings.h"
#include "app/figures/figure.h"
#include "app/launch/ladder_file.h"
#include "app/launch/sweep_results.h"
#include "app/session.h"
#include "storage/analysis/overview.h"
#include "storage/database/curation.h"
#include "storage/metric_figure.h"

namespace stepladder {

struct LaunchLadder {
  LadderRequest request;
  std::string on = {};                  // a machine's alias; empty: here
  std::vector<SweptValue> swept = {};   // of a sweep on a machine
  std::optional<LadderPlan> plan = {};  // the one that was shown; without, one is made
};
struct AddMachine {  // or change what it is asked for
  Machine machine;
};
struct RemoveMachine {
  MachineAlias alias;
};
struct AdoptMachine {  // one of Workspace::machines_in_file
  MachineInFile shown;
};
struct AskMachine {  // what it has, now
  MachineAlias alias;
};
struct PlanLadder {  // which rungs it would have
  LadderRequest request;
};
struct SaveLadderPreset {  // as one of the user's own, replacing one of that name
  std::string name;
  LadderDraft draft;
};
struct OpenLadderPreset {  // into the Launch view
  std::string name;
  bool is_shipped = false;  // one of ladder_presets(); else one of the user's own
};
struct StopRun {
  RunId run = 0;
};
struct StopAll {};
struct PauseRun {
  RunId run = 0;
  bool paused = true;
};
struct MoveInQueue {
  RunId run = 0;
  std::size_t place = 0;  // 0: the next
};
struct LoadSeries {
  RunId run = 0;
};
struct LoadExcerpt {  // of a run that isn't read whole
  RunId run = 0;
  std::int64_t most = 100'000;  // steps
};
struct LoadDetail {  // a run's data besides its steps: system metrics, samples, checkpoints
  RunId run = 0;
};
struct LoadMetrics {  // the names of what it logged beside its steps' fields
  RunId run = 0;
};
struct WantFigures {  // of metrics, of all runs: these, until a view wants others
  std::vector<MetricFigure> figures;
};
// A quantity's curve, on another thread: the whole run in a few hundred points, or the steps of `zoom` at a window's
// resolution. Push it in every frame in which a chart lacks it; what no chart asks for any more isn't read.
struct LoadCurve {
  RunId run = 0;
  Quantity quantity = Quantity::loss;
  std::optional<std::pair<std::int64_t, std::int64_t>> zoom = {};  // first and last step
};
struct JudgeRecord {  // a pool, on another thread
  RecordQuestion question;
};
struct ShowProfile {  // reads it on another thread
  ProfileQuestion question;
};
struct ExplainSpeedup {  // in the view Profile: the difference of two rungs, by the first repeats that have a profile
  std::vector<RunId> before, after;
};
struct ImportTraces {  // of profilers, on another thread
  std::vector<std::string> files;
};
struct StopTraceImport {};  // and of those that wait; traces that were kept stay
struct RemoveTrace {        // with an undo
  std::int64_t trace = 0;
};
struct RemovePasses {  // with an undo
  std::int64_t passes = 0;
};
struct LoadAdvice {
  RunId about = 0;
  bool chosen = false;  // by the user: it becomes the current run
};
struct SaveView {  // what the window shows, replacing a view of that name
  std::string name;
};
struct SaveViewAs {  // this text, unless there is a view of that name
  std::string name;
  std::string content;
};
struct OpenView {
  std::string name;
};
struct RenameView {
  std::string from;
  std::string to;
};
struct DeleteView {  // with an undo
  std::string name;
};
struct ShowPanel {
  std::string id;
  bool beside = false;  // next to the open ones instead of replacing them
};
struct SelectLadder {
  LadderId ladder = 0;
};
struct SelectRung {
  int rung = 0;
};
struct SelectRun {
  RunId run = 0;
  bool selected = true;
};
struct SelectRuns {  // only these
  std::vector<RunId> runs;
};
struct ClearSelection {};
struct ColourRun {  // in every view
  RunId run = 0;
  int colour = -1;  // an index of rung_colour; -1: its rung's again
};
struct SelectBaseline {  // of the shown ladder
  int rung = 0;
};
struct OpenRun {  // in the Run view
  RunId run = 0;
};

// A change that can be undone; `what` is in the past tense ("Archived 3 runs").
struct Curate {
  std::string what;
  std::vector<std::pair<RunId, Curation>> changes;  // the new values of each
};
struct RenameRun {
  RunId run = 0;
  std::string name;
};
struct RenameLadder {
  LadderId ladder = 0;
  std::string name;
};
struct DeleteLadder {  // its runs go to the bin, with an undo
  LadderId ladder = 0;
};
struct Undo {};

// Reads files or pasted text without storing anything; the Import view shows the result.
struct PreviewImport {
  ImportQuestion question;
};
struct KeepImport {};  // reads the same input again, into the database
struct ForgetImport {};

// Trains runs again by their own recipes, as repeats of their rungs.
struct Repeat {
  std::vector<RunId> runs;
  int times = 1;
};
// Repeats a rung and the baseline in turns until the verdict on the factor is clear, or until this many repeats.
struct ConfirmSpeedup {
  LadderId ladder = 0;
  int baseline = 0;
  int rung = 0;
  int max_repeats = 6;
};
struct StopVerification {};
// Trains a sweep's best combination again, against another one (verification_of_best).
struct VerifyBest {
  SweepResults results;
  SweepResult result = SweepResult::loss_last;
  LadderId ladder = 0;
};
struct MeasureNoise {};  // trains equal runs in turns for about a minute
struct ProposeLadder {   // fills the Launch view with this ladder's rungs, in sizes that fit this machine
  LadderId ladder = 0;
};
struct ProposeStage {  // fills the Launch view with a run's recipe as the baseline, and this rung on top
  RunId run = 0;
  PlannedRung rung;
  std::string words;  // its description: "bf16", "batch 16"
};
struct ResumeRun {  // from its newest checkpoint, to this many steps in total
  RunId run = 0;
  std::int64_t steps = 0;
};
struct LoadResumable {};  // which runs have a checkpoint to continue from
struct ContinueLadder {   // its runs that were interrupted or never began
  LadderId ladder = 0;
};
struct ForkRun {  // a child that starts from the checkpoint of `step`
  RunId run = 0;
  std::int64_t step = 0;
};

struct CopyText {
  std::string text;
  std::string what;  // "The table"
};
struct CopyPoints {  // of a chart, as CSV
  PointsTable points;
  std::string what;
};
// Into the folder of exports (chart_export.h), on another thread; a notice names the file once it is there.
struct SaveText {
  std::string name;
  std::string ending;  // ".csv"
  std::string text;
};
struct SavePoints {  // as CSV
  std::string name;
  PointsTable points;
};
struct SaveFigure {
  Figure figure;
  std::string ending;  // ".png", ".svg", ".pdf"
};
struct SaveLadder {  // a report (.html), its table (.md, .tex, .csv), its bars (.svg, .pdf, .png)
  LadderId ladder = 0;
  std::string ending;
};
struct OpenFile {  // in the desktop's program for it, or its folder in the file manager
  enum class In { program, folder };
  std::filesystem::path file;
  In in = In::program;
};
struct SetExportsFolder {  // empty: the default (chart_export.h)
  std::filesystem::path folder;
};
struct SetTheme {
  ThemeChoice theme = ThemeChoice::dark;
};
struct ToggleTheme {};
struct ToggleLineStyles {};
struct ToggleWaterfall {};  // in Ladder, which it shows
struct FoldSideBar {};      // or unfold it
struct ResetLayout {};
struct Reload {};  // the database, with other programs' changes
struct ShowPalette {};
struct KeepDrawing {};  // another thread is working for a view
struct EmptyBin {       // deletes its runs permanently, with their checkpoints; asks first unless `sure`
  bool sure = false;
};
struct ChangeScale {
  int direction = 0;  // 1 larger, -1 smaller, 0 the display's own
};
struct DismissMessage {
  std::size_t index = 0;
};

using Command = std::variant<
    LaunchLadder, PlanLadder, SaveLadderPreset, OpenLadderPreset, StopRun, StopAll, PauseRun, MoveInQueue, LoadSeries,
    LoadExcerpt, LoadDetail, LoadMetrics, WantFigures, LoadCurve, LoadAdvice, JudgeRecord, ShowProfile, ExplainSpeedup,
    ImportTraces, StopTraceImport, SaveView, SaveViewAs, OpenView, RenameView, DeleteView, ShowPanel, SelectLadder,
    SelectRung, SelectRun, SelectRuns, ClearSelection, ColourRun, SelectBaseline, OpenRun, Curate, RenameRun,
    RenameLadder, DeleteLadder, Undo, PreviewImport, KeepImport, ForgetImport, Repeat, ConfirmSpeedup, StopVerification,
    MeasureNoise, VerifyBest, ProposeLadder, ProposeStage, ResumeRun, LoadResumable, ContinueLadder, ForkRun, CopyText,
    CopyPoints, SaveText, SavePoints, SaveFigure, SaveLadder, OpenFile, SetExportsFolder, FoldSideBar, SetTheme,
    ToggleTheme, ToggleLineStyles, ToggleWaterfall, ChangeScale, ResetLayout, Reload, ShowPalette, EmptyBin,
    KeepDrawing, DismissMessage, AddMachine, RemoveMachine, AdoptMachine, AskMachine, RemoveTrace, RemovePasses>;
using Commands = std::vector<Command>;

}  // namespace stepladder
