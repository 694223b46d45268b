// A window with one card, so that a start from an icon never ends without a word. It draws without a project: no view
// and no command exist yet.
#include "app/desktop/problem_window.h"

#include <imgui.h>

#include <algorithm>
#include <exception>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "app/desktop/desktop_theme.h"
#include "app/desktop/frames/frames.h"
#include "app/desktop/system/file_dialog.h"
#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"
#include "app/job.h"
#include "app/text/format.h"
#include "storage/database/rescue/rescue.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

// "runs.rescued.db" beside runs.db, numbered if it is there.
fs::path rescued_file(const fs::path& damaged) {
  const fs::path stem = damaged.parent_path() / damaged.stem();
  fs::path out = stem.string() + ".rescued" + damaged.extension().string();
  std::error_code unknown;  // the rescue will say why
  for (int number = 2; fs::exists(out, unknown); ++number)
    out = stem.string() + ".rescued-" + std::to_string(number) + damaged.extension().string();
  return out;
}

std::string rescued_text(const RescueReport& report, const fs::path& out) {
  return out.string() + " has " + plural(report.runs_saved, "run") + " with " + plural(report.steps_saved, "step") +
         (report.is_whole() ? "; nothing is lost." : "; this is lost:");
}

// What is lost, a line each: "run 3, tf32: 40 of 1,000 steps".
std::vector<std::string> losses_of(const RescueReport& report) {
  constexpr std::size_t most = 10;
  std::vector<std::string> lines;
  for (const DamagedRun& run : report.runs) {
    std::string what = run.missing_steps > 0
                           ? grouped(run.missing_steps) + " of " + plural(run.steps + run.missing_steps, "step") +
                                 (run.more_may_be_missing ? " or more" : "")
                       : run.more_may_be_missing ? "an unknown number of steps"
                                                 : "";
    if (run.row_is_lost) what += std::string(what.empty() ? "" : "; ") + "its name, settings and status";
    lines.push_back("run " + std::to_string(run.id) + ", " + run.name + ": " + what);
  }
  for (const RescuedTable& each : report.tables)
    if (each.is_damaged() && each.name != "steps" && each.name != "runs")
      lines.push_back("the table " + each.name + ": " +
                      (each.damaged_rows > 0 ? plural(each.damaged_rows, "row") : plural(each.damaged_pages, "page")));
  if (report.lost_transactions > 0)
    lines.push_back(plural(report.lost_transactions, "transaction") + " of its log, as far as they can't be read");
  if (lines.size() <= most) return lines;
  const std::string more =
      "and " + std::to_string(lines.size() - most + 1) + " more: `stepladder doctor --rescue` lists all";
  lines.resize(most - 1);
  lines.push_back(more);
  return lines;
}

class ProblemCard {
 public:
  ProblemCard(const fs::path& file, const StorageError& error)
      : file_(file), why_(error_text(error)), is_damaged_(dynamic_cast<const DamagedFile*>(&error) != nullptr) {}

  bool is_decided() const { return is_decided_; }
  const std::optional<fs::path>& next() const { return next_; }
  bool is_working() const { return rescue_.is_active() || dialog_.is_active(); }
  void quit() { is_decided_ = true; }

  void take_rescue() {
    try {
      if (const auto report = rescue_.take()) rescued_ = *report;
    } catch (const std::exception& error) {
      if (!std::exchange(is_stopping_, false)) rescue_problem_ = error_text(error);
    }
  }

  void take_other() {
    const auto answer = dialog_.take();
    if (!answer) return;
    if (!answer->paths.empty()) decide(answer->paths.front());
    rescue_problem_ = answer->problem;
  }

  void draw() {
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    ImGui::SetNextWindowPos(viewport->WorkPos);
    ImGui::SetNextWindowSize(viewport->WorkSize);
    ImGui::Begin("##problem", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoBackground);
    const float width = std::min(px(680), ImGui::GetContentRegionAvail().x - px(32));
    ImGui::SetCursorPos(ImVec2((viewport->WorkSize.x - width) / 2, viewport->WorkSize.y * 0.28f));
    ImGui::BeginChild("##place", ImVec2(width, 0), ImGuiChildFlags_AutoResizeY);
    begin_tall_card("##card");
    rescued_ ? draw_rescued() : draw_choices();
    end_card();
    ImGui::EndChild();
    ImGui::End();
    ui_test_anchors::write_frame();
  }

 private:
  void decide(std::optional<fs::path> next) {
    next_ = std::move(next);
    is_decided_ = true;
  }

  void draw_choices() {
    text_title(is_damaged_ ? "This project is damaged" : "This project cannot be opened");
    spacing(2);
    text_sentence(capitalised(why_) + (why_.ends_with('.') ? "" : "."));
    mark("problem.why");
    spacing(4);
    if (rescue_.is_active()) return draw_rescue();
    if (is_damaged_)
      text_quiet_wrapped("What can be read of a project will be saved in " + rescued_file(file_).string() +
                         "; the damaged file stays as it is.");
    if (!rescue_problem_.empty()) text_sentence(capitalised(rescue_problem_) + ".", Tone::bad);
    spacing(6);
    if (is_damaged_) {
      if (primary_button("Save what can be read", true, "problem.rescue")) {
        out_ = rescued_file(file_);
        rescue_problem_.clear();
        rescue_.start(
            [file = file_, out = out_](JobControl& control) {
              return rescue(file, out, [&control] { return control.is_interrupted(); });
            },
            Window::wake);
      }
      same_line(10);
      if (quiet_button("Try again", "problem.again")) decide(file_);
    } else if (primary_button("Try again", true, "problem.again")) {
      decide(file_);
    }
    same_line(10);
    if (quiet_button("Open another project", "problem.other"))
      open_dialog(dialog_, {.title = "Choose a project's file", .kind = FileQuestion::Kind::file});
    draw_quit(why_);
  }

  void draw_rescue() {
    text_quiet_wrapped("Saving what can be read in " + out_.string() + "...");
    spacing(6);
    if (!quiet_button("Stop", "problem.stop") && !ImGui::IsKeyPressed(ImGuiKey_Escape, false)) return;
    is_stopping_ = true;
    rescue_.interrupt();
  }

  void draw_rescued() {
    const std::string text = rescued_text(*rescued_, out_);
    text_title("Saved what could be read");
    spacing(2);
    text_sentence(text);
    mark("problem.rescued");
    for (const std::string& line : losses_of(*rescued_)) text_quiet_wrapped(line);
    if (!rescued_->is_whole()) text_quiet_wrapped(file_.string() + " stays as it is.");
    spacing(6);
    if (primary_button("Open it", true, "problem.open")) decide(out_);
    draw_quit(text);
  }

  void draw_quit(const std::string& text) {
    same_line(10);
    if (quiet_button("Copy this text", "problem.copy")) ImGui::SetClipboardText(text.c_str());
    same_line(10);
    if (quiet_button("Quit", "problem.quit") || ImGui::IsKeyPressed(ImGuiKey_Escape, false)) decide(std::nullopt);
  }

  const fs::path file_;
  const std::string why_;
  const bool is_damaged_;
  bool is_decided_ = false;
  std::optional<fs::path> next_;
  fs::path out_;
  Job<RescueReport> rescue_;
  FileDialog dialog_;
  bool is_stopping_ = false;
  std::optional<RescueReport> rescued_;
  std::string rescue_problem_;
};

}  // namespace

std::optional<fs::path> ask_about_problem(Window& window, const fs::path& file, const StorageError& error,
                                          const DesktopSettings& settings, const std::function<bool()>& is_over) {
  DesktopSettings own = settings;
  DesktopTheme theme(own, Window::wake);
  theme.set_display_scale(window.display_scale());
  ProblemCard card(file, error);
  int frames_to_settle = 3;  // a card learns its height from the frame before
  while (!card.is_decided()) {
    if (!window.is_open() || is_over()) {
      window.stay_open();
      card.quit();
      break;
    }
    theme.take_answer();
    card.take_rescue();
    card.take_other();
    if (window.is_visible()) window.frame([&] { card.draw(); });
    const bool has_input = frames_to_settle > 0
                               ? window.poll_input()
                               : window.wait_for_input(card.is_working() || theme.is_asking() ? 0.05 : 0.5);
    frames_to_settle = has_input || card.is_working() ? 3 : std::max(frames_to_settle - 1, 0);
  }
  return card.next();
}

}  // namespace stepladder
