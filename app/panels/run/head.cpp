// Draws the Run view's head, actions and figures. The interval of the throughput is judged on another thread, as in
// Compare, and only for runs that have changed.
#include "app/panels/run/head.h"

#include <imgui.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/commands/curation_commands.h"
#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/commands/run_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/models/run_columns.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"
#include "storage/analysis/judgement.h"
#include "storage/analysis/plausibility.h"

namespace stepladder {
namespace {

std::string origin(const Workspace& workspace, const Run& run) {
  std::string line = "run " + std::to_string(run.id);
  if (run.ladder) {
    if (const Ladder* ladder = workspace.ladder(*run.ladder))
      line += "  \xE2\x80\x93  rung " + std::to_string(run.rung) + " of " + ladder->name;
  }
  if (run.repeat > 0) line += ", repeat " + std::to_string(run.repeat + 1);
  if (run.parent) {
    const RunEntry* parent = workspace.find(*run.parent);
    line += "  \xE2\x80\x93  forked from " + (parent ? parent->run.name : "run " + std::to_string(*run.parent)) +
            " at step " + grouped(run.forked_at_step);
  }
  line += run.source == "launched" ? "  \xE2\x80\x93  trained here, " + local_time_text(run.created_at)
                                   : (run.source.empty() ? "" : "  \xE2\x80\x93  " + run.source) +
                                         (run.source_path.empty() ? "" : ", from " + run.source_path);
  return line;
}

bool is_lost(const Summary& summary) {
  return summary.nonfinite_steps > 0 && !std::isfinite(summary.loss_last);
}

// Of a lost loss: "The loss is NaN or infinite at 4 steps, first at step 7. The last finite loss is 3.2100, at step 6."
// Without the first sentence if the run's end says so.
std::string lost_text(const RunEntry& shown, bool is_said) {
  const Summary& summary = shown.summary;
  std::string text = is_said ? ""
                             : "The loss is NaN or infinite at " + plural(summary.nonfinite_steps, "step") +
                                   ", first at step " + grouped(summary.first_nonfinite_step) + ". ";
  if (!shown.loaded || shown.is_long()) return text;
  const Series& series = shown.series();
  for (std::size_t i = series.size(); i-- > 0;)
    if (std::isfinite(series.loss[i]) && series.step[i] < summary.first_nonfinite_step)
      return text + "The last finite loss is " + loss_text(series.loss[i]) + ", at step " + grouped(series.step[i]) +
             ".";
  return text;
}

// The newest checkpoint before the loss was lost; null without one.
const Checkpoint* good_checkpoint(const RunEntry& shown, const RunDetail& detail, bool is_lost) {
  const Checkpoint* found = nullptr;
  for (const Checkpoint& each : detail.checkpoints)
    if ((!is_lost || each.step < shown.summary.first_nonfinite_step) && (!found || each.step > found->step))
      found = &each;
  return found;
}

}  // namespace

void RunHead::draw(const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  const float right = ImGui::GetContentRegionMax().x;
  const float top = ImGui::GetCursorPosY();
  const float name_width = right - px(300);
  if (renaming) {
    ImGui::SetNextItemWidth(name_width);
    ImGui::SetKeyboardFocusHere();
    const bool done = ImGui::InputText("##name", name.data(), name.size(),
                                       ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
    mark("run.name.field");
    if (done) commands.push_back(RenameRun{shown.run.id, name.data()});
    if (done || ImGui::IsKeyPressed(ImGuiKey_Escape)) renaming = false;
  } else {
    text_cut(shown.run.name, name_width, palette().text, fonts().display, title_size, Cut::middle);
    mark("run.name");
    const bool can_rename = workspace.read_only.empty();
    if (can_rename) wrapped_tooltip("Double-click to rename", 360);
    if (can_rename && ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
      std::snprintf(name.data(), name.size(), "%s", shown.run.name.c_str());
      renaming = true;
    }
  }
  const float below = ImGui::GetCursorPosY();
  ImGui::SetCursorPos(ImVec2(right - px(240), top));
  if (const auto picked = run_combo("##other", "Switch run", workspace, shown.run.id, px(240)))
    commands.push_back(OpenRun{*picked});
  mark("run.picker");
  ImGui::SetCursorPosY(below);
  text_cut(origin(workspace, shown.run), right - px(300), palette().quiet, fonts().regular, small_size);
}

void draw_run_actions(const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  pill_beside_buttons(std::string(to_string(shown.run.status)), status_tone(shown.run.status));
  if (const SpeedDoubt doubt = speed_doubt(shown, workspace.hardware); doubt.trust != Trust::trusted)
    pill_beside_buttons(std::string(to_string(doubt.trust)),
                        doubt.trust == Trust::impossible ? Tone::bad : Tone::warning);
  const bool over = is_over(shown.run.status);
  if (shown.run.source == "launched" && over) {
    flow_to("Repeat run");
    const std::string tooltip = std::string("Trains the same recipe again") +
                                (shown.run.ladder ? ", as a repeat of its rung" : "") +
                                "; Environment shows what has changed since";
    if (change_button(workspace, "Repeat run", "run.again", tooltip.c_str()))
      commands.push_back(Repeat{{shown.run.id}, 1});
    if (shown.run.ladder && shown.run.rung > 0) {
      flow_to("Verify gain");
      const int below = static_cast<int>(std::max<std::int64_t>(0, shown.run.stands_on));
      const std::string pair = "Repeats this rung and " +
                               (below == 0 ? "the baseline" : "rung " + std::to_string(below)) +
                               " in turns until the verdict is clear, at most six times";
      if (change_button(workspace, "Verify gain", "run.real", pair.c_str()))
        commands.push_back(ConfirmSpeedup{*shown.run.ladder, below, shown.run.rung});
    }
  }
  trace_button(workspace, shown.run, "run.trace", commands);
  flow_to("Compare");
  if (quiet_button("Compare", "run.compare")) {
    std::vector<RunId> both{shown.run.id};
    if (const RunId other = compared_with(shown, workspace); other != 0) both.push_back(other);
    commands.push_back(SelectRuns{both});
    commands.push_back(ShowPanel{"compare"});
  }
  flow_to("Unpinned");
  const bool pinned = shown.curation.pinned;
  begin_change(workspace);
  if (chip(pinned ? "Pinned" : "Pin", pinned))
    commands.push_back(
        Curate{(pinned ? "Unpinned " : "Pinned ") + shown.run.name, {shown.run.id}, {.pinned = !pinned}});
  mark("run.pin");
  end_change(workspace);
  if (over) {
    flow_to("Delete");
    if (change_button(workspace, "Delete", "run.delete", "Moves to the bin; recoverable for 30 days"))
      commands.push_back(Curate{"Deleted " + shown.run.name, {shown.run.id}, {.deleted_at = unix_now()}});
  }
}

bool draw_run_end(const Workspace& workspace, const RunEntry& shown, const RunDetail& detail, Commands& commands) {
  const std::string end = end_text(shown);
  const bool has_lost = is_lost(shown.summary);
  if ((end.empty() && !has_lost) || !is_over(shown.run.status)) return false;
  spacing(2);
  if (!end.empty()) text_toned_wrapped(end, shown.run.status == RunStatus::failed ? Tone::bad : Tone::warning);
  mark("run.end");
  if (has_lost) {
    const std::string lost = lost_text(shown, end.find("NaN") != std::string::npos);
    if (!lost.empty()) text_toned_wrapped(lost, Tone::bad);
    mark("run.lost");
    text_quiet_wrapped("A lower learning rate, a longer warm-up or a limit of the gradient norm often prevents it.");
  }
  bool is_first = true;
  const auto place = [&is_first](const char* label) {
    if (!std::exchange(is_first, false)) flow_to(label);
  };
  if (const Checkpoint* good = good_checkpoint(shown, detail, has_lost);
      good && shown.run.source == "launched" && shown.run.status != RunStatus::finished) {
    const bool is_newest = good->step == detail.checkpoints.back().step && good->step < shown.run.planned_steps;
    const std::string label = (is_newest ? "Resume from step " : "Fork from step ") + grouped(good->step);
    place(label.c_str());
    if (change_button(workspace, label.c_str(), "run.end.resume",
                      is_newest ? "Continues this run and its curves" : "Starts a new run from this checkpoint")) {
      if (is_newest)
        commands.push_back(ResumeRun{shown.run.id, shown.run.planned_steps});
      else
        commands.push_back(ForkRun{shown.run.id, good->step});
    }
  }
  if (detail.console.empty()) return false;
  place("Show its console");
  return quiet_button("Show its console", "run.end.console");
}

RunId compared_with(const RunEntry& run, const Workspace& workspace) {
  if (run.run.parent && workspace.find(*run.run.parent)) return *run.run.parent;
  const RunEntry* base = baseline_of(run, {&workspace, 0});
  return base && base != &run ? base->run.id : 0;
}

Interval throughput_ci95(const RunSnapshot& run, std::span<const RunSnapshot> repeats, const HardwareTable& hardware) {
  const Summary summary = run.summary();
  Subject subject{.rung = run.run.rung, .runs = {{&run.run, &summary, run.series.get()}}};
  for (const RunSnapshot& repeat : repeats)
    subject.siblings.push_back({&repeat.run, &repeat.known, repeat.series.get()});
  const RungJudgement judged = judge(std::array{subject}, 0, hardware).front();
  return judged.rate_ci95(judged.tokens_per_s);
}

void RunFigures::judge_run(const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  judging_.take(tokens_per_s_, std::chrono::milliseconds(0));
  const std::size_t asked_before = commands.data.size();
  snapshots_.expect(1);
  snapshots_.ask(shown, commands.data);
  const bool is_growing = shown.is_active() || commands.data.size() > asked_before;
  Basis basis{.asked = {shown.run.id, static_cast<std::int64_t>(workspace.version)}, .data = {fingerprint(shown)}};
  if (judging_.is_stale(basis, is_growing)) {
    std::vector<RunSnapshot> repeats;  // only their summaries count
    if (shown.run.ladder) {
      for (const RunEntry* other : workspace.runs_of(*shown.run.ladder)) {
        if (other->run.rung == shown.run.rung && other != &shown && other->run.status == RunStatus::finished)
          repeats.push_back({.run = other->run, .known = other->summary, .series = std::make_shared<Series>()});
      }
    }
    judging_.start(std::move(basis),
                   [run = snapshots_.of(shown), repeats = std::move(repeats), hardware = workspace.hardware](
                       JobControl&) { return std::pair(run.run.id, throughput_ci95(run, repeats, hardware)); });
    judging_.take(tokens_per_s_, workspace.patience);
  }
  if (judging_.is_pending()) commands.data.next_frame = true;
}

void RunFigures::draw(const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  judge_run(workspace, shown, commands);
  const Summary& summary = shown.summary;
  const RunUtilisation use = assumed_utilisation_of(shown.run, summary, workspace.hardware);
  std::array<char, 48> mfu{};
  if (!is_missing(use.mfu))
    std::snprintf(mfu.data(), mfu.size(), "%s%.*f %%", use.assumed.empty() ? "" : "~", use.mfu < 10 ? 1 : 0,
                  use.mfu * 100);
  const std::string doubt = speed_doubt(shown, workspace.hardware).why;
  const Interval ci95 = tokens_per_s_.first == shown.run.id ? tokens_per_s_.second : Interval{};
  const std::array<FigureTile, 6> tiles{{
      {"tokens/s", tokens_per_s_text(summary.tokens_per_s),
       ci95.known() ? "95 %: " + tokens_per_s_text(ci95.low) + " \xE2\x80\x93 " + tokens_per_s_text(ci95.high)
       : is_missing(summary.tokens_per_s)
           ? (is_missing(summary.dt_ms_median) ? "no step times" : "tokens per step unknown")
           : "no interval",
       doubt},
      {"step time", milliseconds_text(summary.dt_ms_median),
       is_missing(summary.dt_ms_p95) ? "" : "p95 " + milliseconds_text(summary.dt_ms_p95), doubt},
      {"loss", loss_text(summary.loss_last),
       is_missing(summary.loss_first) ? "" : "from " + loss_text(summary.loss_first)},
      {"validation loss", loss_text(summary.val_loss_last),
       is_missing(summary.val_loss_min) ? "not evaluated" : "min " + loss_text(summary.val_loss_min)},
      {"MFU", mfu[0] ? mfu.data() : "-",
       mfu[0]                                ? use.convention + (use.condition.empty() ? "" : ", " + use.condition)
       : is_missing(summary.tokens_per_s)    ? "no throughput"
       : shown.run.model_flops_per_token > 0 ? "unknown peak"
                                             : "unknown model",
       doubt},
      {"steps", grouped(summary.steps), grouped(summary.warmup_steps) + " warm-up"},
  }};
  figure_tiles(tiles);
}

}  // namespace stepladder
