// The frame of the window. Between frames it hands out events and results, and carries out what panels asked for.
#include "app/desktop/desktop_app.h"

#include <imgui.h>
#include <imgui_internal.h>  // windows, keys

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "app/desktop/actions.h"
#include "app/desktop/charts/charts.h"
#include "app/desktop/commands/curation_commands.h"
#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/import_commands.h"
#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/machines/machine_commands.h"
#include "app/desktop/models/import_preview.h"
#include "app/desktop/models/record_view.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/desktop/profile/profile_state.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/side_bar/side_bar.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/views/view_commands.h"
#include "app/desktop/workspace/launch_state.h"
#include "app/desktop/workspace/machines_state.h"
#include "app/desktop/workspace/verification.h"
#include "app/launch/recipe_fields.h"
#include "app/text/format.h"
#include "engine/device.h"
#include "engine/open_trainer.h"
#include "storage/database/not_stored_now.h"
#include "storage/errors.h"
#include "storage/traces/trace_file.h"

namespace stepladder {
namespace {

constexpr std::chrono::milliseconds short_patience{50};    // for other programs' locks
constexpr std::chrono::milliseconds usual_patience{5000};  // a store's own (upkeep.h)
constexpr std::chrono::milliseconds between_attempts{500};

// When Alt is released, ImGui moves the keyboard focus to a window's menu. No window has one, and views have keys with
// Alt: a key that is owned doesn't do this.
void keep_focus_at_alt() {
  for (const ImGuiKey key : {ImGuiKey_LeftAlt, ImGuiKey_RightAlt}) ImGui::SetKeyOwner(key, ImHashStr("alt"));
}

}  // namespace

void DesktopApp::take_dropped(std::vector<std::string> files) {
  std::erase_if(files, [this](const std::string& file) {
    if (!file.ends_with(".stepladder")) return false;
    state_.messages.show_error(file + " is a project, not a log. Open it with `stepladder " + file + "`.");
    return true;
  });
  if (std::error_code error; files.size() == 1 && state_.panels.is_open("record") && !state_.panels.is_open("import") &&
                             std::filesystem::is_directory(files.front(), error))
    return state_.panels.send("record", {FolderDropped{files.front()}});
  std::vector<std::string> traces;
  std::erase_if(files, [&](const std::string& file) {
    if (!looks_like_trace(file)) return false;
    traces.push_back(file);
    return true;
  });
  if (!traces.empty()) {
    show("profile");
    commands_.push_back(ImportTraces{std::move(traces)});
  }
  if (files.empty()) return;
  show("import");
  commands_.push_back(PreviewImport{{.paths = std::move(files), .options = state_.workspace.import->asked.options}});
}

void DesktopApp::open_view(const std::string& name) {
  stepladder::open_view(state_, name);
}

void DesktopApp::empty_bin(double deleted_before) {
  stepladder::empty_bin(state_, deleted_before);
}

double DesktopApp::seconds_to_next_frame(double frame_seconds) const {
  constexpr double for_the_eye = 0.1, longest_in_live = 1, elsewhere = 2;
  const bool works = keeps_drawing_ || !waiting_.empty() || state_.messages.has_notice() ||
                     state_.workspace.import->is_reading() || state_.exports.is_busy() || state_.metrics.is_pending() ||
                     state_.records.is_pending() || state_.tries.is_pending() || state_.profiles.is_pending() ||
                     state_.forecasts.is_pending() || state_.trace_imports.is_busy() || state_.peak_probe.is_active() ||
                     state_.theme.is_asking() ||
                     (state_.session && !state_.workspace.device && state_.workspace.device_problem.empty());
  const bool trains = state_.workspace.running() || !state_.workspace.waiting().empty() || !state_.unstored.empty() ||
                      state_.workspace.verification->open;
  if (!trains) return works ? for_the_eye : trainer_is_coming_ ? 1 : std::numeric_limits<double>::infinity();
  if (!works && !state_.panels.is_open("live")) return elsewhere;
  return std::clamp(32 * frame_seconds, works ? for_the_eye : 0.25, longest_in_live);
}

void DesktopApp::ingest() {
  const ImGuiIO& io = ImGui::GetIO();
  state_.messages.drop_expired(io.MouseDelta.x != 0 || io.MouseDelta.y != 0 || any_key_pressed());
  if (std::exchange(open_before_, state_.panels.open()) != state_.panels.open()) state_.messages.leave_view();
  state_.theme.take_answer();
  take_export(state_, [this](const std::exception& error) {
    state_.messages.drop_notices();
    state_.messages.show_error(error.what());
  });
  take_curves(state_, std::chrono::milliseconds(0));
  take_import(state_);
  read_project_metrics();
  state_.records.update(state_.workspace.record, state_.workspace.database, state_.panels.is_open("record"),
                        state_.workspace.patience);
  state_.tries.update(state_.workspace.tries, state_.store, state_.tries_asked, state_.workspace.patience);
  take_trace(state_);
  take_peak(state_);
  state_.profiles.update(state_.workspace.profile_state->view, state_.store, state_.workspace.patience);
  if (LaunchState& launch = *state_.workspace.launch; state_.panels.is_open("launch") && state_.workspace.device)
    state_.forecasts.update(launch.forecast, launch.plan, state_.workspace.device->cpu_cores, state_.store,
                            state_.workspace.version, state_.workspace.patience);
  take_machine_news(state_);
  store_waiting();
  if (state_.session) ingest_session();
}

void DesktopApp::ingest_session() {
  for (const RunEvent& event : state_.session->drain()) {
    if (const auto* saved = std::get_if<CheckpointSaved>(&event); saved && !saved->error.empty()) {
      state_.messages.show_error("The checkpoint of step " + grouped(saved->step) +
                                 " could not be saved: " + saved->error);
    }
    if (state_.workspace.ingest(event)) {
      const auto& ended = std::get<RunEnded>(event);
      const RunEntry* entry = state_.workspace.find(ended.run);
      if (entry && ended.status == RunStatus::failed && !state_.panels.is_open("live"))  // which says it itself
        state_.messages.show_error(entry->run.name + " failed: " + ended.reason);
    }
  }
  show_confirmation(state_);
  follow_others();
  if (state_.panels.is_open("launch") && !state_.workspace.running()) state_.load.update(state_.workspace.launch->load);
  if (const RunEntry* running = state_.workspace.running(); running && state_.workspace.is_ours(running->run.id)) {
    state_.workspace.order_queue(state_.session->queue());
    state_.workspace.pause(state_.session->paused(running->run.id));
  }
  const bool had_waited = !state_.unstored.empty();
  const Unstored unstored = state_.session->unstored();
  state_.unstored = unstored_text(unstored);
  if (unstored.kept_apart != std::exchange(kept_apart_, unstored.kept_apart))
    state_.messages.show_error(unstored.kept_apart);
  if (had_waited && state_.unstored.empty()) state_.messages.notice("All steps are stored again");
  take_device();
}

// Detection begins after the first frame, so that the window is visible before LibTorch loads. Without a trainer the
// window says why, and looks again: ./run may be building it, or the user may be setting it up.
void DesktopApp::take_device() {
  using namespace std::chrono_literals;
  std::string& problem = state_.workspace.device_problem;
  if (!probe_.valid()) {
    const auto now = std::chrono::steady_clock::now();
    if (ImGui::GetFrameCount() <= 1 || now < next_look_at_trainer_) return;
    next_look_at_trainer_ = now + 1s;
    problem = missing_trainer();
    trainer_is_coming_ = !trainer_progress().empty();
    if (!problem.empty()) {
      state_.workspace.device = describe_cpu();
      return;
    }
    state_.workspace.device.reset();
    probe_ = state_.session->probe();
  } else if (!state_.workspace.device && problem.empty() && probe_.wait_for(0s) == std::future_status::ready) {
    try {
      state_.workspace.device = probe_.get();
    } catch (const std::exception& error) {
      problem = error.what();
      state_.messages.show_error(std::string("This machine cannot launch runs: ") + error.what());
    }
  }
}

// Only History shows figures of all runs.
void DesktopApp::read_project_metrics() {
  if (state_.panels.is_open("history") || state_.metrics.is_pending())
    state_.metrics.update(state_.store, state_.workspace);
  const std::string problem = state_.workspace.project_metrics ? state_.workspace.project_metrics->problem : "";
  if (problem != std::exchange(metrics_problem_, problem) && !problem.empty()) state_.messages.show_error(problem);
}

// Follows runs that other processes train: a window that was closed meanwhile, or the command line.
void DesktopApp::follow_others() {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_check_of_others_) return;
  next_check_of_others_ = now + 500ms;
  try {
    if (!state_.workspace.others().empty() && now >= next_check_for_dead_) {
      next_check_for_dead_ = now + 5s;
      state_.store.processes().close_dead_runs();
    }
    if (!state_.store.processes().others_have_written()) return;
    state_.workspace.views = state_.store.views().names();
    reload_traces(state_);
    state_.workspace.follow_others(state_.store, state_.store.processes().runs_under_way());
    if (const RunEntry* running = state_.workspace.running(); running && !state_.workspace.is_ours(running->run.id))
      state_.workspace.pause(state_.store.processes().is_paused(running->run.id));
  } catch (const StorageError& error) {  // a lock passes; damage is reported by whatever needs the file next
    if (state_.messages.empty()) state_.messages.show_error(error.what());
  }
}

bool DesktopApp::has_news() {
  if (state_.session) follow_others();
  if (state_.machines && state_.panels.is_open("machines"))
    state_.machines->look();  // a frame follows once one has answered
  if (state_.tries_asked && state_.tries.is_due()) return true;
  return !state_.workspace.others().empty() || state_.profiles.is_pending() ||
         (state_.panels.is_open("record") && state_.workspace.record && !state_.workspace.record->asked.pool.empty() &&
          state_.records.is_due());
}

void DesktopApp::ask_to_close() {
  if (!state_.workspace.trains_here())
    closing_ = Closing::after_step;
  else
    closing_popup_.open();
}

bool DesktopApp::may_close() const {
  return closing_ == Closing::in_background || (closing_ == Closing::after_step && !state_.workspace.trains_here());
}

void DesktopApp::draw_closing() {
  const std::vector<const RunEntry*> waiting = state_.workspace.waiting();
  const RunEntry* running = state_.workspace.running();
  std::string what = running ? running->run.name + " is at step " + grouped(running->series().size()) + " of " +
                                   grouped(running->run.planned_steps)
                             : "No run trains at this moment";
  if (!waiting.empty()) what += ", and " + plural(std::ssize(waiting), "run waits", "runs wait");
  const Closing answer = closing_popup_.draw(what + ".");
  if (answer == Closing::no) return;
  closing_ = answer;
  if (answer != Closing::after_step) return;
  state_.session->stop_confirming();
  state_.session->stop_all();
  state_.messages.wait_notice("Stepladder closes when this step is done");
}

void DesktopApp::draw_ssh_question() {
  std::vector<SshQuestion>& questions = state_.workspace.machines->ssh_questions;
  const SshQuestion* const question = questions.empty() ? nullptr : &questions.front();
  if (auto answer = ssh_popup_.draw(question); answer && state_.machines) {
    state_.machines->answer(answer->id, std::move(answer->text));
    std::erase_if(questions, [&](const SshQuestion& each) { return each.id == answer->id; });
  }
}

void DesktopApp::draw_adoption() {
  if (!adoption_.popup.draw() || !adoption_.command || !state_.session) return;
  state_.session->adopt(adoption_.runs);
  commands_.push_back(*std::exchange(adoption_.command, std::nullopt));
}

void DesktopApp::draw() {
  keep_focus_at_alt();
  handle_keys();
  use_line_styles(state_.workspace.line_styles);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float bar = side_bar_width(viewport->WorkSize.x, state_.settings.side_bar_folded);
  ImGui::SetNextWindowPos(viewport->WorkPos);
  ImGui::SetNextWindowSize(viewport->WorkSize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  ImGui::Begin("##frame", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoNavFocus |
                   ImGuiWindowFlags_NoBackground);
  ImGui::PopStyleVar();
  draw_side_bar({.panels = state_.panels.all(),
                 .open = state_.panels.open(),
                 .workspace = state_.workspace,
                 .width = bar,
                 .is_folded = state_.settings.side_bar_folded,
                 .is_detecting = state_.session && state_.workspace.device_problem.empty()},
                commands_);
  ImGui::SameLine(0, 0);
  ImGui::BeginGroup();
  project_strip(state_.workspace, commands_);
  const ImGuiID dockspace = ImGui::GetID("dock");
  state_.panels.lay_out(dockspace);
  ImGui::DockSpace(dockspace, ImVec2(0, 0));
  ImGui::EndGroup();
  ImGui::End();
  state_.panels.draw(state_.workspace, commands_);
  state_.palette.draw(commands_);
  const std::string unstored = state_.unstored.empty() || !state_.workspace.running()
                                   ? state_.unstored
                                   : state_.unstored + " Training continues.";
  const std::string held_up = waiting_.empty() ? ""
                                               : waits_for_ + ". " + plural(std::ssize(waiting_), "change") +
                                                     " of yours will be stored once that is over.";
  state_.messages.draw_errors({unstored, held_up}, bar, commands_);
  draw_closing();
  draw_ssh_question();
  draw_adoption();
  state_.messages.draw_notice(state_.workspace.undoable, commands_);
  const ImGuiContext& imgui = *ImGui::GetCurrentContext();
  if (imgui.IO.MouseDelta.x != 0 || imgui.IO.MouseDelta.y != 0) hides_tooltips_ = false;
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) clicked_item_ = imgui.HoveredId;
  if (imgui.HoveredId != clicked_item_) clicked_item_ = 0;
  for (ImGuiWindow* window : imgui.Windows) {
    if (!window->Active || (window->Flags & ImGuiWindowFlags_Tooltip) == 0) continue;
    window->Hidden = window->Hidden || hides_tooltips_ || clicked_item_ != 0;
    if (!window->Hidden)
      ui_test_anchors::note("tooltip", window->Pos.x, window->Pos.y, window->Pos.x + window->Size.x,
                            window->Pos.y + window->Size.y);
  }
  ui_test_anchors::write_frame();
}

bool DesktopApp::execute() {
  const Commands asked = std::exchange(commands_, {});
  for (const Command& command : asked.list) execute(command);
  const bool has_read = read_requested(state_, asked.data);
  keeps_drawing_ = asked.data.next_frame || state_.curves.is_busy();
  return has_read || !asked.list.empty();
}

void DesktopApp::execute(const Command& command) {
  if (command.can_wait() && !waiting_.empty()) return waiting_.push_back(command);  // those before it come first
  // No frame waits long for a lock; a change that isn't stored now is kept.
  const bool may_wait = command.can_wait() && !state_.closes;
  if (may_wait) state_.store.upkeep().set_patience(short_patience);
  if (command.can_wait() && state_.closes) state_.store.upkeep().set_patience(patience_left());
  const auto set_back = [&] {
    if (command.can_wait()) state_.store.upkeep().set_patience(usual_patience);
  };
  try {
    command.execute(state_);
    return set_back();
  } catch (const NotStoredNow& error) {
    if (may_wait) {
      waiting_.push_back(command);
      waits_for_ = error.what();
      next_attempt_ = std::chrono::steady_clock::now() + between_attempts;
    } else {
      state_.messages.show_error(error.what());
    }
  } catch (const NotLaunchedHere& error) {
    adoption_.popup.open(error.what_it_does);
    adoption_.runs = error.runs;
    adoption_.command = command;
  } catch (const RecipeError& error) {
    state_.messages.show_error(error.sentence().worded(label_of));
  } catch (const std::exception& error) {  // DataError, StorageError: the window stays open
    state_.messages.show_error(error_text(error));
  }
  set_back();
}

std::chrono::milliseconds DesktopApp::patience_left() const {
  using namespace std::chrono;
  return std::max(0ms, ceil<milliseconds>(gives_up_ - steady_clock::now()));
}

void DesktopApp::store_waiting() {
  if (waiting_.empty() || (!state_.closes && std::chrono::steady_clock::now() < next_attempt_)) return;
  for (const Command& command : std::exchange(waiting_, {})) execute(command);
}

void DesktopApp::close(const std::function<void()>& frame) {
  state_.panels.leave(commands_);
  execute();
  state_.closes = true;  // from now on all changes together wait for a lock as long as the store does
  gives_up_ = std::chrono::steady_clock::now() + usual_patience;
  const std::size_t before = state_.messages.list().size();
  store_waiting();
  for (std::size_t i = before; i < state_.messages.list().size(); ++i)
    if (state_.messages.list()[i].is_error)
      std::fprintf(stderr, "stepladder: a change was not stored: %s\n",
                   harmless(state_.messages.list()[i].text).c_str());
  bool said = false;
  const auto waiting = [&] {
    if (!std::exchange(said, true)) {
      state_.messages.wait_notice("Stepladder will close once exports are written...");
      std::fputs("stepladder: writing exports before closing\n", stderr);
    }
    frame();
  };
  const auto fail = [](const std::exception& error) {
    std::fprintf(stderr, "stepladder: %s\n", harmless(error.what()).c_str());
  };
  while (state_.exports.is_busy()) {
    if (!take_export(state_, fail, std::chrono::milliseconds(100))) waiting();
  }
}

void DesktopApp::handle_keys() {
  if (!any_key_pressed()) return;
  if (ImGui::IsKeyPressed(ImGuiKey_V, false) && ImGui::GetIO().KeyCtrl && !ImGui::GetIO().WantTextInput &&
      state_.panels.is_open("import")) {
    if (const char* text = ImGui::GetClipboardText(); text && *text)
      commands_.push_back(PreviewImport{{.text = text, .options = state_.workspace.import->asked.options}});
  }
  for (Action& action : window_actions(state_.panels.all(), state_.workspace)) {
    const bool edits_text = action.key == (ImGuiMod_Ctrl | ImGuiKey_Z) && ImGui::GetIO().WantTextInput;
    bool pressed = action.key != 0 && !edits_text && ImGui::IsKeyChordPressed(action.key);
    for (const ImGuiKeyChord key : action.also) pressed = pressed || ImGui::IsKeyChordPressed(key);
    if (!pressed) continue;
    commands_.push_back(std::move(action.command));
    hides_tooltips_ = true;
  }
}

}  // namespace stepladder
