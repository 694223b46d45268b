// Runs the window frame by frame: handles events, draws the side bar, the messages and the open panels, then executes
// the panels' commands. UI thread.
#pragma once

#include <imgui.h>

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/desktop_state.h"
#include "app/desktop/models/project_metrics.h"
#include "app/desktop/popups/questions.h"

namespace stepladder {

class DesktopApp {
 public:
  // `session` must outlive the app; null shows `store` without an engine (screenshots, tests).
  DesktopApp(RunStore& store, Session* session, DesktopSettings settings) : state_(store, session, settings) {}

  void ingest();   // top of the frame; never blocks
  void draw();     // inside the frame
  bool execute();  // after the frame; may touch the disk; returns whether the next frame may differ

  // The seconds after which the screen may change without input: a run trains, another thread is working for the
  // window, a notice is shown, or the hardware is being detected. Infinite if it doesn't change. While a run trains, a
  // frame that takes `frame_seconds` is drawn so seldom that drawing takes a thirty-second of the time, and only Live
  // shows each second.
  double seconds_to_next_frame(double frame_seconds) const;

  // Checks whether another process trains now, or has written what a view shows; may touch the disk.
  bool has_news();

  void show(const std::string& panel_id) { state_.panels.show(panel_id); }  // throws std::out_of_range
  void open_view(const std::string& name);  // a saved one; throws StorageError or DataError if it can't be read
  void fit_window(int width, int height) { state_.theme.fit_window(width, height); }
  void set_display_scale(float scale) { state_.theme.set_display_scale(scale); }
  void take_dropped(std::vector<std::string> files);  // shows the Import view with them
  void empty_bin(double deleted_before);              // on another thread; a notice follows, unless nothing was deleted
  void show_error(const std::string& text) { state_.messages.show_error(text); }

  // Called when the user wants to close the window: asks whether the runs that train here continue. The window stays
  // until may_close returns true; then `closing` has the answer.
  void ask_to_close();
  bool may_close() const;
  Closing closing() const { return closing_; }
  bool take_rescue() { return std::exchange(state_.leaves_for_rescue, false); }  // asked for since the last call

  // After the last frame: stores typed text that isn't stored yet, and waits for exports. If they take a while, says so
  // in the terminal and in the window, for which it calls `frame` ten times a second.
  void close(const std::function<void()>& frame = [] {});

  DesktopSettings settings() const { return state_.current_settings(); }
  Workspace& workspace() { return state_.workspace; }
  const std::vector<Message>& messages() const { return state_.messages.list(); }

 private:
  void execute(const Command& command);
  void store_waiting();                             // the changes that wait for a locked file
  std::chrono::milliseconds patience_left() const;  // with a lock, at closing
  void ingest_session();
  void take_device();  // that was detected
  void follow_others();
  void read_project_metrics();
  void draw_closing();
  void draw_ssh_question();
  void draw_adoption();
  void handle_keys();

  DesktopState state_;
  std::vector<Command> waiting_;  // changes that another program's lock has held up, in their order
  std::string waits_for_;         // why
  std::chrono::steady_clock::time_point next_attempt_{};
  std::chrono::steady_clock::time_point gives_up_{};  // at closing
  Commands commands_;                                 // of this frame
  bool keeps_drawing_ = false;
  bool hides_tooltips_ = false;           // after a key, until the mouse moves: the view under it may be another one
  std::vector<std::string> open_before_;  // the views of the last frame
  ImGuiID clicked_item_ = 0;              // without a tooltip until the mouse leaves it; 0: none
  std::shared_future<DeviceReport> probe_;
  std::chrono::steady_clock::time_point next_look_at_trainer_{};
  bool trainer_is_coming_ = false;  // ./run builds it in the background
  std::string kept_apart_;          // Unstored::kept_apart, as shown
  ClosingPopup closing_popup_;
  SshPopup ssh_popup_;
  struct {
    AdoptionPopup popup;
    std::vector<RunId> runs;
    std::optional<Command> command;  // that trains them
  } adoption_;
  Closing closing_ = Closing::no;
  std::chrono::steady_clock::time_point next_check_of_others_{};
  std::chrono::steady_clock::time_point next_check_for_dead_{};
  std::string metrics_problem_;  // ProjectMetrics::problem, as shown
};

}  // namespace stepladder
