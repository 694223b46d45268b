// Runs the window frame by frame: takes in events, draws the side bar, the messages and the open panels, then carries
// out the panels' commands. UI thread.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/bin.h"
#include "app/curves/curve_reader.h"
#include "app/desktop/adoption_popup.h"
#include "app/desktop/closing_popup.h"
#include "app/desktop/machines/ssh_popup.h"
#include "app/desktop/models/import_preview.h"
#include "app/desktop/models/machine_load_reader.h"
#include "app/desktop/palette_popup.h"
#include "app/desktop/panel.h"
#include "app/desktop/profile/imported_trace.h"
#include "app/desktop/profile/profile_view.h"
#include "app/desktop/settings.h"
#include "app/desktop/workspace.h"
#include "app/machines/machine_watch.h"
#include "app/saved_view.h"
#include "app/session.h"

namespace stepladder {

class DesktopApp {
 public:
  // `session` must outlive the app; null shows `store` without an engine (screenshots, tests).
  DesktopApp(RunStore& store, Session* session, DesktopSettings settings);

  void ingest();   // top of the frame; never blocks
  void draw();     // inside the frame
  bool execute();  // after the frame; may touch the disk; returns whether there were commands other than KeepDrawing

  // After how many seconds the screen may change without input: a run trains, another thread is working for the window,
  // a notice is shown, or the hardware is being detected. Infinite if it doesn't. While a run trains, a frame that
  // takes `frame_seconds` is drawn so seldom that drawing takes a thirty-second of the time, and only Live shows each
  // second.
  double seconds_to_next_frame(double frame_seconds) const;

  // Looks whether another process trains now, or has written what a view shows; may touch the disk.
  bool has_news();

  void show(const std::string& panel_id);   // throws std::out_of_range for an unknown one
  void open_view(const std::string& name);  // a saved one; throws StorageError or DataError if it can't be read
  void set_display_scale(float scale);
  void take_dropped(std::vector<std::string> files);  // shows the Import view with them
  void empty_bin(double deleted_before);              // on another thread; a notice follows, unless nothing was deleted

  // The user wants to close the window: asks what becomes of the runs that train here. The window stays until may_close
  // says so; then `closing` says whether they are trained on without it.
  void ask_to_close();
  bool may_close() const;
  Closing closing() const { return closing_; }

  // After the last frame: stores typed text that isn't stored yet, and waits for exports. If they take a while, says so
  // in the terminal and in the window, for which it calls `frame` ten times a second.
  void close(const std::function<void()>& frame = [] {});

  // With the current layout and the state that panels remember. Inside the ImGui context.
  DesktopSettings settings();
  Workspace& workspace() { return workspace_; }

 private:
  bool is_open(const std::string& panel) const;
  void start_import();
  void take_import();  // that has been read, if any has
  void take_trace();
  // Handles a finished export. Returns whether there was one.
  bool take_export(const std::function<void(const std::exception&)>& fail, std::chrono::milliseconds patience = {});
  void hear_machines();
  bool asks_machine(RunId run, const char* signal);  // whether the run trains on one
  void say_of_bin(const EmptiedBin& emptied);
  void draw_messages();
  void draw_error(std::size_t i);  // of the messages
  void draw_notice();
  void draw_panels();
  void draw_closing();
  void draw_ssh_question();
  void draw_adoption();
  void follow_others();
  bool take_curves(std::chrono::milliseconds patience);  // returns whether there were any
  void read_project_metrics();
  void lay_out(unsigned dockspace);
  void handle_keys();
  void apply_theme_and_scale();
  void ask_portal();  // if the theme follows the system; the answer arrives in a later frame
  void take_portal_answer();
  void complain(const std::string& text);
  void notice(const std::string& text);                 // for some seconds
  void file_notice(const std::filesystem::path& file);  // that it was saved, with buttons
  void wait_notice(const std::string& text);            // until the next one
  void can_undo(std::string what, std::function<void()> undo);
  void save(const std::string& name, const std::string& ending,
            std::function<void(const std::filesystem::path&)> write);  // `write` runs on another thread
  const DeviceReport& device() const;  // throws std::runtime_error while it is being detected
  void show_confirmation();            // adds the session's answer and its new runs to the workspace

  SavedView present_view() const;
  void replace_view(const std::string& name, const std::optional<std::string>& content);  // nullopt: removes it

  // One per command (commands.h): desktop_run_commands.cpp has those of runs and ladders, views/ those of saved views,
  // desktop_commands.cpp the others.
  void execute(const LaunchLadder& launch);
  void execute(const PlanLadder& asked);
  void execute(const SaveLadderPreset& save);
  void execute(const OpenLadderPreset& open);
  void execute(const StopRun& stop);
  void execute(const StopAll&);
  void execute(const PauseRun& pause);
  void execute(const MoveInQueue& move);
  void execute(const LoadSeries& load);
  void execute(const LoadExcerpt& load);
  void execute(const LoadDetail& load);
  void execute(const LoadMetrics& load);
  void execute(const WantFigures& wanted);
  void execute(const LoadAdvice& load);
  void execute(const JudgeRecord& judge);
  void execute(const ShowProfile& show);
  void execute(const ExplainSpeedup& explain);
  void execute(const ImportTraces& import);
  void execute(const StopTraceImport&);
  void execute(const RemoveTrace& remove);
  void execute(const RemovePasses& remove);
  void execute(const SaveView& save);
  void execute(const SaveViewAs& save);
  void execute(const OpenView& open);
  void execute(const RenameView& rename);
  void execute(const DeleteView& asked);
  void execute(const ShowPanel& panel);
  void execute(const SelectLadder& select);
  void execute(const SelectRung& select);
  void execute(const SelectRun& select);
  void execute(const SelectRuns& select);
  void execute(const ClearSelection&);
  void execute(const ColourRun& chosen);
  void execute(const SelectBaseline& select);
  void execute(const OpenRun& open);
  void execute(const Curate& asked);
  void execute(const RenameRun& rename);
  void execute(const RenameLadder& rename);
  void execute(const DeleteLadder& asked);
  void execute(const Undo&);
  void execute(const PreviewImport& preview);
  void execute(const KeepImport&);
  void execute(const ForgetImport&);
  void execute(const Repeat& repeat);
  void execute(const ConfirmSpeedup& asked);
  void execute(const StopVerification&);
  void execute(const MeasureNoise&);
  void execute(const VerifyBest& asked);
  void execute(const ProposeLadder& propose);
  void execute(const ProposeStage& propose);
  void execute(const ResumeRun& resume);
  void execute(const LoadResumable&);
  void execute(const ContinueLadder& ladder);
  void execute(const ForkRun& fork);
  void execute(const CopyText& copy);
  void execute(const CopyPoints& copy);
  void execute(const SaveText& asked);
  void execute(const SavePoints& asked);
  void execute(const SaveFigure& asked);
  void execute(const SaveLadder& asked);
  void execute(const OpenFile& open);
  void execute(const SetExportsFolder& set);
  void execute(const SetTheme& choice);
  void execute(const ToggleTheme&);
  void execute(const ToggleLineStyles&);
  void execute(const ToggleWaterfall&);
  void execute(const FoldSideBar&);
  void execute(const ChangeScale& change);
  void execute(const ResetLayout&);
  void execute(const Reload&);
  void execute(const ShowPalette&);
  void execute(const EmptyBin& bin);
  void execute(const KeepDrawing&);
  void execute(const LoadCurve&);
  void execute(const DismissMessage& dismiss);
  void execute(const AddMachine& add);
  void execute(const RemoveMachine& remove);
  void execute(const AdoptMachine& adopt);
  void execute(const AskMachine& ask);

  RunStore& store_;
  Session* session_;
  DesktopSettings settings_;
  Workspace workspace_;
  Commands commands_;
  std::vector<Panel> panels_;
  std::vector<std::string> open_;  // panels on the screen, left to right; never empty
  bool keeps_drawing_ = false;
  bool layout_is_stale_ = true;
  bool focus_is_stale_ = true;  // the newest panel gets the keyboard focus
  float display_scale_ = 1;
  std::shared_future<DeviceReport> probe_;
  std::string kept_apart_;  // Unstored::kept_apart, as shown
  PalettePopup palette_;
  ClosingPopup closing_popup_;
  SshPopup ssh_popup_;
  struct {
    AdoptionPopup popup;
    std::vector<RunId> runs;
    std::optional<Command> command;  // that trains them
  } adoption_;
  Closing closing_ = Closing::no;
  std::atomic<bool> closes_ = false;  // then deletions end, which the next opening continues
  std::chrono::steady_clock::time_point next_look_at_others_{};
  std::chrono::steady_clock::time_point next_look_for_dead_{};
  std::function<void()> wake_;
  CurveReader curves_;
  Job<ImportPreview> import_job_;
  int imports_read_ = 0;
  // Makes files and texts for the clipboard; the result is what the UI thread does with them.
  using Then = std::function<void()>;
  JobQueue<Then> exports_;
  std::unique_ptr<MachineWatch> machines_;  // null without a session
  ProjectMetricsReader metrics_reader_;
  RecordReader records_;
  ProfileReader profiles_;
  MachineLoadReader load_reader_;
  JobQueue<ImportedTrace> trace_imports_;
  std::string metrics_problem_;  // ProjectMetrics::problem, as shown
  Job<std::optional<bool>> portal_job_;
  std::optional<bool> portal_prefers_dark_;  // its last answer
  struct Undoable {
    std::string what;
    std::function<void()> undo;
  };
  std::vector<Undoable> undoable_;
};

}  // namespace stepladder
