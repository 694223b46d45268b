#include "app/desktop/desktop_app.h"

#include <imgui.h>
#include <imgui_internal.h>  // DockBuilder, windows

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <utility>

#include "app/desktop/actions.h"
#include "app/desktop/charts/charts.h"
#include "app/desktop/side_bar/side_bar.h"
#include "app/desktop/system/portal.h"
#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"
#include "app/desktop/window.h"
#include "app/environment.h"
#include "app/format.h"
#include "app/unstored_text.h"
#include "engine/files/tokens.h"
#include "storage/traces/trace_file.h"

namespace stepladder {
namespace {

// A view in a smaller window keeps its least size and scrolls.
ImGuiWindowFlags keep_least_size(const Panel& panel, const char* name, ImVec2 padding) {
  const ImGuiWindow* window = ImGui::FindWindowByName(name);
  if (!window) return 0;
  const ImGuiWindowFlags background = window->DockIsActive ? ImGuiWindowFlags_NoBackground : ImGuiWindowFlags_None;
  const float width = window->Size.x - 2 * padding.x;
  const float height = window->Size.y - window->DecoOuterSizeY1 - 2 * padding.y;
  const ImVec2 least(px(panel.least_width), px(panel.least_height));
  const bool narrow = width < least.x;
  ImGui::SetNextWindowContentSize(ImVec2(narrow ? least.x : 0, height < least.y ? least.y : 0));
  return background | (narrow ? ImGuiWindowFlags_HorizontalScrollbar : ImGuiWindowFlags_None);
}

// When Alt is released, ImGui moves the keyboard focus to a window's menu. No window has one, and views have keys with
// Alt: a key that is owned doesn't do this.
void keep_focus_at_alt() {
  for (const ImGuiKey key : {ImGuiKey_LeftAlt, ImGuiKey_RightAlt}) ImGui::SetKeyOwner(key, ImHashStr("alt"));
}

constexpr double notice_seconds = 6;
constexpr double file_notice_seconds = 20;  // it has buttons

}  // namespace

std::vector<Panel> all_panels() {
  return {
#define PANEL(name) panels::name(),
#include "app/panels/panels.def"
#undef PANEL
  };
}

DesktopApp::DesktopApp(RunStore& store, Session* session, DesktopSettings settings)
    : store_(store),
      session_(session),
      settings_(std::move(settings)),
      panels_(all_panels()),
      wake_(session ? std::function<void()>(Window::wake) : [] {}),
      curves_(store, wake_),
      exports_(wake_),
      load_reader_(wake_),
      trace_imports_(wake_) {
  workspace_.database = store.file().string();
  workspace_.hardware = HardwareTable::load(assets_folder());
  workspace_.saved_ladders = saved_ladders();
  workspace_.load(store);
  try {
    for (const Machine& machine : store.machines().machines())
      workspace_.machines.push_back({.machine = machine, .lost_at = machine.lost_at, .why = machine.lost_why});
    workspace_.machines_in_file = store.machines().machines_in_file();
  } catch (const StorageError& error) {  // the order book can't be read: everything else works
    complain(error.what());
  }
  if (session && !store.read_only()) machines_ = std::make_unique<MachineWatch>(store.file(), wake_);
  for (const std::string& left : store.processes().left_behind()) complain(left);
  for (const std::string& problem : workspace_.hardware.problems()) complain(problem);
  workspace_.device = std::nullopt;
  workspace_.line_styles = settings_.line_styles;
  workspace_.exports_folder = settings_.exports_folder;
  // A screenshot waits until everything is complete.
  workspace_.patience = session ? std::chrono::milliseconds(4) : std::chrono::hours(1);
  if (const auto view = settings_.projects.find(workspace_.database); view != settings_.projects.end()) {
    workspace_.selected_ladder = view->second.ladder;
    for (const RunId run : view->second.runs) {
      if (workspace_.find(run)) workspace_.selected_runs.insert(run);
    }
    for (const auto& [run, colour] : view->second.colours) {
      if (const RunId id = std::atoll(run.c_str()); workspace_.find(id))
        workspace_.run_colours[id] = std::max(colour, 0);
    }
  }
  for (const std::string& id : settings_.panels) {  // skips panels that this version doesn't have
    const bool known = std::any_of(panels_.begin(), panels_.end(), [&](const Panel& panel) { return panel.id == id; });
    if (known && !is_open(id)) open_.push_back(id);
  }
  if (open_.empty()) open_ = {panels_.front().id};
  if (!settings_.layout.empty()) {
    ImGui::LoadIniSettingsFromMemory(settings_.layout.c_str(), settings_.layout.size());
    layout_is_stale_ = false;
  }
  for (Panel& panel : panels_) {
    const auto view = settings_.views.find(panel.id);
    if (panel.recall && view != settings_.views.end()) panel.recall(view->second);
  }
  ask_portal();
}

DesktopSettings DesktopApp::settings() {
  settings_.panels = open_;
  settings_.layout = ImGui::SaveIniSettingsToMemory();
  settings_.line_styles = workspace_.line_styles;
  settings_.exports_folder = workspace_.exports_folder;
  for (const Panel& panel : panels_) {
    if (panel.remember) settings_.views[panel.id] = panel.remember();
  }
  ProjectView& project = settings_.projects[workspace_.database];
  project = {.ladder = workspace_.selected_ladder,
             .runs = {workspace_.selected_runs.begin(), workspace_.selected_runs.end()}};
  for (const auto& [run, colour] : workspace_.run_colours) project.colours[std::to_string(run)] = colour;
  return settings_;
}

bool DesktopApp::is_open(const std::string& panel) const {
  return std::find(open_.begin(), open_.end(), panel) != open_.end();
}

void DesktopApp::show(const std::string& panel_id) {
  const auto found = std::find_if(panels_.begin(), panels_.end(), [&](const Panel& p) { return p.id == panel_id; });
  if (found == panels_.end()) throw std::out_of_range(panel_id);
  focus_is_stale_ = true;
  if (open_ == std::vector{panel_id}) return;
  open_ = {panel_id};
  layout_is_stale_ = true;
}

void DesktopApp::take_dropped(std::vector<std::string> files) {
  std::erase_if(files, [this](const std::string& file) {
    if (!file.ends_with(".stepladder")) return false;
    complain(file + " is a project, not a log. Open it with `stepladder " + file + "`.");
    return true;
  });
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
  commands_.push_back(PreviewImport{{.paths = std::move(files), .options = workspace_.import.asked.options}});
}

void DesktopApp::set_display_scale(float scale) {
  display_scale_ = scale;
  apply_theme_and_scale();
}

void DesktopApp::ask_portal() {
  if (settings_.theme != ThemeChoice::system || portal_job_.is_active()) return;
  portal_job_.start([](JobControl&) { return portal_prefers_dark(); }, wake_);
}

void DesktopApp::take_portal_answer() {
  const auto answer = portal_job_.take();
  if (!answer) return;
  portal_prefers_dark_ = *answer;
  apply_theme_and_scale();
}

void DesktopApp::apply_theme_and_scale() {
  const bool dark = settings_.theme == ThemeChoice::system ? system_prefers_dark(portal_prefers_dark_)
                                                           : settings_.theme == ThemeChoice::dark;
  apply_theme(dark, display_scale_ * settings_.scale);
}

double DesktopApp::seconds_to_next_frame(double frame_seconds) const {
  constexpr double for_the_eye = 0.1, longest_in_live = 1, elsewhere = 2;
  const bool notices = std::any_of(workspace_.messages.begin(), workspace_.messages.end(),
                                   [](const Message& message) { return !message.is_error; });
  const bool works = keeps_drawing_ || notices || import_job_.is_active() || exports_.is_busy() ||
                     metrics_reader_.is_pending() || records_.is_pending() || profiles_.is_pending() ||
                     trace_imports_.is_busy() || portal_job_.is_active() ||
                     (session_ && !workspace_.device && workspace_.device_problem.empty());
  const bool trains = workspace_.running() || !workspace_.waiting().empty() || !workspace_.unstored.empty() ||
                      workspace_.verification.open;
  if (!trains) return works ? for_the_eye : std::numeric_limits<double>::infinity();
  if (!works && !is_open("live")) return elsewhere;
  return std::clamp(32 * frame_seconds, works ? for_the_eye : 0.25, longest_in_live);
}

void DesktopApp::complain(const std::string& text) {
  workspace_.messages.push_back({.text = text});
}

void DesktopApp::notice(const std::string& text) {
  std::erase_if(workspace_.messages, [](const Message& message) { return !message.is_error; });
  workspace_.messages.push_back({.text = text, .is_error = false, .until = ImGui::GetTime() + notice_seconds});
}

void DesktopApp::file_notice(const std::filesystem::path& file) {
  notice("Saved " + file.string());
  workspace_.messages.back().file = file.string();
  workspace_.messages.back().until = ImGui::GetTime() + file_notice_seconds;
}

void DesktopApp::wait_notice(const std::string& text) {
  notice(text);
  workspace_.messages.back().until = std::numeric_limits<double>::infinity();
}

void DesktopApp::ingest() {
  std::erase_if(workspace_.messages,
                [](const Message& message) { return !message.is_error && message.until < ImGui::GetTime(); });
  take_portal_answer();
  take_export([this](const std::exception& error) {
    std::erase_if(workspace_.messages, [](const Message& message) { return !message.is_error; });
    complain(error.what());
  });
  take_curves(std::chrono::milliseconds(0));
  take_import();
  read_project_metrics();
  records_.update(workspace_.record, workspace_.database, is_open("record"), workspace_.patience);
  take_trace();
  profiles_.update(workspace_.profile_view, store_, workspace_.patience);
  hear_machines();
  if (!session_) return;
  for (const RunEvent& event : session_->drain()) {
    if (const auto* saved = std::get_if<CheckpointSaved>(&event); saved && !saved->error.empty()) {
      complain("The checkpoint of step " + grouped(saved->step) + " could not be saved: " + saved->error);
    }
    if (const auto* note = std::get_if<ConsoleText>(&event)) {
      const RunEntry* entry = workspace_.find(note->run);
      complain((entry ? entry->run.name + ": " : "") + note->text.substr(0, note->text.find('\n')));
    }
    if (workspace_.ingest(event)) {
      const auto& ended = std::get<RunEnded>(event);
      const RunEntry* entry = workspace_.find(ended.run);
      if (entry && ended.status == RunStatus::failed) complain(entry->run.name + " failed: " + ended.reason);
    }
  }
  show_confirmation();
  follow_others();
  if (is_open("launch") && !workspace_.running()) load_reader_.update(workspace_.machine_load);
  if (const RunEntry* running = workspace_.running(); running && workspace_.is_ours(running->run.id)) {
    workspace_.order_queue(session_->queue());
    workspace_.pause(session_->paused(running->run.id));
  }
  const bool had_waited = !workspace_.unstored.empty();
  const Unstored unstored = session_->unstored();
  workspace_.unstored = unstored_text(unstored);
  if (unstored.kept_apart != std::exchange(kept_apart_, unstored.kept_apart)) complain(unstored.kept_apart);
  if (had_waited && workspace_.unstored.empty()) notice("All steps are stored again");
  // Asked for after the first frame, so that the window is visible before LibTorch loads.
  if (!probe_.valid()) {
    if (ImGui::GetFrameCount() > 1) probe_ = session_->probe();
  } else if (!workspace_.device && workspace_.device_problem.empty() &&
             probe_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    try {
      workspace_.device = probe_.get();
    } catch (const std::exception& error) {
      workspace_.device_problem = error.what();
      complain(std::string("This machine cannot launch runs: ") + error.what());
    }
  }
}

bool DesktopApp::take_curves(std::chrono::milliseconds patience) {
  const std::vector<CurveRead> read = curves_.take(patience);
  for (const CurveRead& each : read) {
    workspace_.keep(each);
    if (!each.problem.empty() && workspace_.messages.empty()) complain(each.problem);  // charts ask in every frame
  }
  return !read.empty();
}

// Only History shows figures of all runs.
void DesktopApp::read_project_metrics() {
  if (is_open("history") || metrics_reader_.is_pending()) metrics_reader_.update(store_, workspace_);
  const std::string problem = workspace_.project_metrics ? workspace_.project_metrics->problem : "";
  if (problem != std::exchange(metrics_problem_, problem) && !problem.empty()) complain(problem);
}

// Runs that other processes train: a window that was closed meanwhile, or the command line.
void DesktopApp::follow_others() {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_at_others_) return;
  next_look_at_others_ = now + 500ms;
  try {
    if (!workspace_.others().empty() && now >= next_look_for_dead_) {
      next_look_for_dead_ = now + 5s;
      store_.processes().close_dead_runs();
    }
    if (!store_.processes().others_have_written()) return;
    workspace_.views = store_.views().names();
    profiles_.read_again();
    workspace_.follow_others(store_, store_.processes().runs_under_way());
    if (const RunEntry* running = workspace_.running(); running && !workspace_.is_ours(running->run.id))
      workspace_.pause(store_.processes().is_paused(running->run.id));
  } catch (const StorageError& error) {  // a lock passes; damage is reported by whatever needs the file next
    if (workspace_.messages.empty()) complain(error.what());
  }
}

bool DesktopApp::has_news() {
  if (session_) follow_others();
  if (machines_ && is_open("machines")) machines_->look();  // a frame follows once one has answered
  return !workspace_.others().empty() || profiles_.is_pending() ||
         (is_open("record") && workspace_.record && !workspace_.record->asked.pool.empty() && records_.is_due());
}

void DesktopApp::ask_to_close() {
  if (!workspace_.trains_here())
    closing_ = Closing::after_step;
  else
    closing_popup_.open();
}

bool DesktopApp::may_close() const {
  return closing_ == Closing::in_background || (closing_ == Closing::after_step && !workspace_.trains_here());
}

void DesktopApp::draw_closing() {
  const std::vector<const RunEntry*> waiting = workspace_.waiting();
  const RunEntry* running = workspace_.running();
  std::string what = running ? running->run.name + " is at step " + grouped(running->series().size()) + " of " +
                                   grouped(running->run.planned_steps)
                             : "No run trains at this moment";
  if (!waiting.empty()) what += ", and " + plural(std::ssize(waiting), "run waits", "runs wait");
  const Closing answer = closing_popup_.draw(what + ".");
  if (answer == Closing::no) return;
  closing_ = answer;
  if (answer != Closing::after_step) return;
  session_->stop_confirming();
  session_->stop_all();
  wait_notice("Stepladder closes when this step is done");
}

void DesktopApp::draw() {
  keep_focus_at_alt();
  handle_keys();
  use_line_styles(workspace_.line_styles);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->WorkPos);
  ImGui::SetNextWindowSize(viewport->WorkSize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  ImGui::Begin("##frame", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoNavFocus |
                   ImGuiWindowFlags_NoBackground);
  ImGui::PopStyleVar();
  draw_side_bar({.panels = panels_,
                 .open = open_,
                 .workspace = workspace_,
                 .width = side_bar_width(viewport->WorkSize.x, settings_.side_bar_folded),
                 .is_folded = settings_.side_bar_folded,
                 .is_detecting = session_ && workspace_.device_problem.empty()},
                commands_);
  ImGui::SameLine(0, 0);
  ImGui::BeginGroup();
  const ImGuiID dockspace = ImGui::GetID("dock");
  if (layout_is_stale_) lay_out(dockspace);
  ImGui::DockSpace(dockspace, ImVec2(0, 0));
  ImGui::EndGroup();
  ImGui::End();
  draw_panels();
  palette_.draw(commands_);
  draw_messages();
  draw_closing();
  draw_ssh_question();
  draw_adoption();
  draw_notice();
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (window->Active && !window->Hidden && (window->Flags & ImGuiWindowFlags_Tooltip) != 0)
      ui_test_anchors::note("tooltip", window->Pos.x, window->Pos.y, window->Pos.x + window->Size.x,
                            window->Pos.y + window->Size.y);
  }
  ui_test_anchors::write_frame();
}

// Puts the panels side by side, in the order in which they were opened. The user may drag them from there.
void DesktopApp::lay_out(unsigned dockspace) {
  layout_is_stale_ = false;
  focus_is_stale_ = true;
  ImGui::DockBuilderRemoveNode(dockspace);
  ImGui::DockBuilderAddNode(dockspace, ImGuiDockNodeFlags_DockSpace);
  ImVec2 size = ImGui::GetContentRegionAvail();
  ImGui::DockBuilderSetNodeSize(dockspace, ImVec2(std::max(size.x, 1.0f), std::max(size.y, 1.0f)));
  ImGuiID rest = dockspace;
  for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
    ImGuiID left = 0;
    ImGui::DockBuilderSplitNode(rest, ImGuiDir_Left, 1.0f / static_cast<float>(open_.size() - i), &left, &rest);
    ImGui::DockBuilderDockWindow(open_[i].c_str(), left);
  }
  ImGui::DockBuilderDockWindow(open_.back().c_str(), rest);
  // One panel needs no tab; several are dragged and closed by their tabs.
  if (open_.size() == 1) ImGui::DockBuilderGetNode(rest)->LocalFlags |= ImGuiDockNodeFlags_NoTabBar;
  // ImGui would keep an empty central node when its last panel is dragged away.
  if (ImGuiDockNode* central = ImGui::DockBuilderGetCentralNode(dockspace); central && open_.size() > 1)
    central->SetLocalFlags(central->LocalFlags & ~ImGuiDockNodeFlags_CentralNode);
  ImGui::DockBuilderFinish(dockspace);
}

void DesktopApp::draw_panels() {
  const bool focus = std::exchange(focus_is_stale_, false);
  for (Panel& panel : panels_) {
    const auto place = std::find(open_.begin(), open_.end(), panel.id);
    if (place == open_.end()) {
      if (panel.leave) panel.leave(commands_);
      continue;
    }
    bool keep = true;
    // The id is the window's name for docking; the tab shows the title.
    const ImVec2 padding(px(26), px(20));
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, padding);
    const std::string name = panel.title + "###" + panel.id;
    const ImGuiWindowFlags flags = ImGuiWindowFlags_NoCollapse | keep_least_size(panel, name.c_str(), padding);
    if (focus && panel.id == open_.back()) ImGui::SetNextWindowFocus();
    const bool is_visible = ImGui::Begin(name.c_str(), open_.size() > 1 ? &keep : nullptr, flags);
    ImGui::PopStyleVar();
    if (is_visible) {
      panel.draw(workspace_, commands_);
    } else if (panel.leave) {
      panel.leave(commands_);
    }
    ImGui::End();
    if (!keep) {
      open_.erase(place);
      layout_is_stale_ = true;
    }
  }
}

void DesktopApp::close(const std::function<void()>& frame) {
  for (const Panel& panel : panels_) {
    if (panel.leave) panel.leave(commands_);
  }
  execute();
  closes_ = true;
  bool said = false;
  const auto waiting = [&] {
    if (!std::exchange(said, true)) {
      wait_notice("Stepladder will close once exports are written...");
      std::fputs("stepladder: writing exports before closing\n", stderr);
    }
    frame();
  };
  const auto fail = [](const std::exception& error) {
    std::fprintf(stderr, "stepladder: %s\n", harmless(error.what()).c_str());
  };
  while (exports_.is_busy()) {
    if (!take_export(fail, std::chrono::milliseconds(100))) waiting();
  }
}

// Shows errors, and what couldn't be stored yet, at the bottom of the window: over the views, so that nothing moves
// that somebody is about to click.
void DesktopApp::draw_messages() {
  const bool any_error = std::any_of(workspace_.messages.begin(), workspace_.messages.end(),
                                     [](const Message& message) { return message.is_error; });
  if (!any_error && workspace_.unstored.empty()) return;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float bar = side_bar_width(viewport->WorkSize.x, settings_.side_bar_folded);
  const float width = std::min(px(900), viewport->WorkSize.x - bar - px(32));
  const float above_notice = px(24 + 56);
  ImGui::SetNextWindowPos(ImVec2(viewport->WorkPos.x + bar + (viewport->WorkSize.x - bar) / 2,
                                 viewport->WorkPos.y + viewport->WorkSize.y - above_notice),
                          ImGuiCond_Always, ImVec2(0.5f, 1));
  ImGui::SetNextWindowSizeConstraints(ImVec2(width, 0), ImVec2(width, viewport->WorkSize.y * 0.4f));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, palette().card);
  ImGui::PushStyleColor(ImGuiCol_Border, palette().bad);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(8));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, px(1));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(16), px(8)));
  ImGui::Begin("##messages", nullptr,
               ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_AlwaysAutoResize |
                   ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::PopStyleVar(3);
  ImGui::PopStyleColor(2);
  if (!workspace_.unstored.empty()) {
    ImGui::TextWrapped("%s%s", workspace_.unstored.c_str(), workspace_.running() ? " Training goes on." : "");
    mark("message.unstored");
  }
  for (std::size_t i = 0; i < workspace_.messages.size(); ++i) {
    if (workspace_.messages[i].is_error) draw_error(i);
  }
  ImGui::End();
}

void DesktopApp::draw_error(std::size_t i) {
  ImGui::PushID(static_cast<int>(i));
  const float button = ImGui::CalcTextSize("Dismiss").x + 2 * ImGui::GetStyle().FramePadding.x;
  const float right = ImGui::GetContentRegionMax().x;
  ImGui::AlignTextToFramePadding();
  ImGui::PushTextWrapPos(right - button - px(16));
  ImGui::TextUnformatted(workspace_.messages[i].text.c_str());
  ImGui::PopTextWrapPos();
  ImGui::SameLine(right - button);
  if (quiet_button("Dismiss")) commands_.push_back(DismissMessage{i});
  mark("message.dismiss");
  ImGui::PopID();
}

// Shows the last action at the bottom of the window for some seconds.
void DesktopApp::draw_notice() {
  for (const Message& message : workspace_.messages) {
    if (message.is_error) continue;
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    ImGui::SetNextWindowPos(
        ImVec2(viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + viewport->WorkSize.y - px(24)),
        ImGuiCond_Always, ImVec2(0.5f, 1));
    ImGui::PushStyleColor(ImGuiCol_WindowBg, palette().text);
    ImGui::PushStyleColor(ImGuiCol_Text, palette().background);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(8));
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(16), px(8)));
    ImGui::Begin("##notice", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                     ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoNav |
                     ImGuiWindowFlags_NoFocusOnAppearing);
    ImGui::PopStyleVar(2);
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(message.text.c_str());
    if (!message.file.empty()) {
      ImGui::PushStyleColor(ImGuiCol_Button, faded(palette().background, 0.16f));
      ImGui::SameLine(0, px(16));
      if (ImGui::Button("Open")) commands_.push_back(OpenFile{message.file});
      mark("notice.open");
      ImGui::SameLine(0, px(8));
      if (ImGui::Button("Show in folder")) commands_.push_back(OpenFile{message.file, OpenFile::In::folder});
      mark("notice.folder");
      ImGui::PopStyleColor();
    }
    if (message.text == workspace_.undoable) {
      ImGui::SameLine(0, px(16));
      ImGui::PushStyleColor(ImGuiCol_Button, faded(palette().background, 0.16f));
      if (ImGui::Button("Undo")) commands_.push_back(Undo{});
      mark("notice.undo");
      ImGui::PopStyleColor();
    }
    ImGui::End();
    ImGui::PopStyleColor(2);
  }
}

void DesktopApp::handle_keys() {
  if (!any_key_pressed()) return;
  if (ImGui::IsKeyPressed(ImGuiKey_V, false) && ImGui::GetIO().KeyCtrl && !ImGui::GetIO().WantTextInput &&
      std::find(open_.begin(), open_.end(), "import") != open_.end()) {
    if (const char* text = ImGui::GetClipboardText(); text && *text)
      commands_.push_back(PreviewImport{{.text = text, .options = workspace_.import.asked.options}});
  }
  for (Action& action : window_actions(panels_, workspace_)) {
    const bool edits_text = action.key == (ImGuiMod_Ctrl | ImGuiKey_Z) && ImGui::GetIO().WantTextInput;
    bool pressed = action.key != 0 && !edits_text && ImGui::IsKeyChordPressed(action.key);
    for (const ImGuiKeyChord key : action.also) pressed = pressed || ImGui::IsKeyChordPressed(key);
    if (pressed) commands_.push_back(std::move(action.command));
  }
}

}  // namespace stepladder
