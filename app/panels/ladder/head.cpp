// Draws Ladder's head: title, picker of ladders, facts, buttons with their popups, and the state of a verification.
// Continue appears only if runs are left to train, and a sweep shown by its values hides what concerns rungs.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/desktop/charts/chart_export.h"
#include "app/desktop/commands/curation_commands.h"
#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/fields.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace/verification.h"
#include "app/launch/recipe_fields.h"
#include "app/panels/ladder/parts.h"
#include "app/session/launched_runs.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {
namespace {

// " of 2,048 tokens", " of 2,048 - 6,144 tokens" if rungs differ; empty if none is known.
std::string tokens_text(const LadderModel& model) {
  std::set<std::int64_t> tokens;
  for (const LadderRung& rung : model.rungs) {
    if (rung.first.tokens_per_step > 0) tokens.insert(rung.first.tokens_per_step);
  }
  if (tokens.empty()) return "";
  return " of " + grouped(*tokens.begin()) + (tokens.size() == 1 ? "" : " \xE2\x80\x93 " + grouped(*tokens.rbegin())) +
         " tokens";
}

// Whether a rung's run was asked for a number of steps that it need not have reached yet.
bool ours_of(const LadderRung& rung) {
  return rung.first.source == "launched" && rung.first.planned_steps > 0;
}

std::string ladder_line(const Ladder& ladder, const LadderModel& model) {
  const LadderRung& rung = model.rungs.front();
  const Run& first = rung.first;
  std::string line = plural(std::ssize(model.rungs), "rung");
  const auto range = [&](auto value) {
    std::int64_t low = value(rung), high = low;
    for (const LadderRung& each : model.rungs) {
      low = std::min<std::int64_t>(low, value(each));
      high = std::max<std::int64_t>(high, value(each));
    }
    return std::pair(low, high);
  };
  const auto range_text = [](std::pair<std::int64_t, std::int64_t> of) {
    return grouped(of.first) + (of.first == of.second ? "" : " \xE2\x80\x93 " + grouped(of.second));
  };
  if (const auto repeats = range([](const LadderRung& each) { return each.judged.count.all; }); repeats.second > 1)
    line += " \xC3\x97 " + range_text(repeats) + " repeats";
  line += " \xC3\x97 " + range_text(range([](const LadderRung& each) {
            return ours_of(each) ? each.first.planned_steps : each.summary.steps;
          })) +
          " steps";
  line += tokens_text(model);
  if (!first.hardware.empty()) line += "  \xE2\x80\x93  " + hardware_text(first);
  line += ladder.source == "launched" ? "  \xE2\x80\x93  measured here, " + local_time_text(ladder.created_at)
                                      : "  \xE2\x80\x93  " + ladder.source + ", from " + ladder.source_path;
  return line;
}

bool ladder_combo(const char* id, const char* words, const Workspace& workspace, LadderId chosen, LadderId* picked) {
  ImGui::SetNextWindowSizeConstraints(ImVec2(px(320), 0), ImVec2(px(640), px(420)));
  if (!ImGui::BeginCombo(id, words)) return false;
  bool takes_first = false;
  const std::string typed = list_search("Search ladders", workspace.ladders().size(), &takes_first);
  std::vector<const Ladder*> found;  // newest first
  for (auto other = workspace.ladders().rbegin(); other != workspace.ladders().rend(); ++other)
    if (holds(other->name, typed)) found.push_back(&*other);
  if (found.empty()) text_quiet("No matches");
  std::optional<LadderId> taken;
  draw_rows(found.size(), [&](std::size_t i) {
    const Ladder& other = *found[i];
    const std::string item = other.name + "   " + local_time_text(other.created_at) + "##" + std::to_string(other.id);
    if (ImGui::Selectable(item.c_str(), other.id == chosen)) taken = other.id;
    mark("ladder.pick." + std::to_string(other.id));
  });
  if (takes_first && !found.empty()) {
    taken = found.front()->id;
    ImGui::CloseCurrentPopup();
  }
  ImGui::EndCombo();
  if (taken) *picked = *taken;
  return taken.has_value();
}

void draw_name(LadderHead& head, const Ladder& ladder, float width, Commands& commands) {
  if (!head.renaming) {
    text_cut(ladder.name, width, palette().text, fonts().display, title_size);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) {  // beside it: the facts are beneath
      ImGui::SetNextWindowPos(ImVec2(ImGui::GetItemRectMax().x + px(12), ImGui::GetItemRectMin().y - px(2)));
      ImGui::SetTooltip("Double-click to rename");
    }
    if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
      head.rename(ladder.name);
    }
    return;
  }
  ImGui::SetNextItemWidth(width);
  ImGui::SetKeyboardFocusHere();
  const bool done = ImGui::InputText("##name", head.name.data(), head.name.size(),
                                     ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  if (done) commands.push_back(RenameLadder{ladder.id, head.name.data()});
  if (done || ImGui::IsKeyPressed(ImGuiKey_Escape)) head.renaming = false;
}

void draw_title(LadderHead& head, const Workspace& workspace, const Ladder& ladder, const LadderModel& model,
                Commands& commands) {
  const float picker = px(200);
  const float right = ImGui::GetContentRegionMax().x;
  const float top = ImGui::GetCursorPosY();
  std::vector<std::pair<std::string, Tone>> pills;
  if (workspace.selection.baseline_rung != 0)
    pills.emplace_back("baseline: rung " + std::to_string(workspace.selection.baseline_rung), Tone::neutral);
  if (model.impossible > 0 && head.is_sweep) {  // else the answer says it
    pills.emplace_back(
        std::to_string(model.impossible) + " of " + std::to_string(model.rungs.size()) + " rungs impossible",
        Tone::bad);
  }
  float taken = picker + px(16);
  for (const auto& [text, tone] : pills) taken += pill_size(text).x + px(8);
  draw_name(head, ladder, std::max(px(80), right - ImGui::GetCursorPosX() - taken), commands);
  const float below = ImGui::GetCursorPosY();
  float at = right - picker;
  ImGui::SetCursorPos(ImVec2(at, top));
  ImGui::SetNextItemWidth(picker);
  LadderId chosen = ladder.id;
  if (ladder_combo("##ladder", "Switch ladder", workspace, ladder.id, &chosen))
    commands.push_back(SelectLadder{chosen});
  mark("ladder.picker");
  for (const auto& [text, tone] : pills) {
    at -= pill_size(text).x + px(8);
    ImGui::SetCursorPos(ImVec2(at, top + (ImGui::GetFrameHeight() - pill_size(text).y) / 2));
    pill(text, tone);
    if (tone == Tone::neutral) mark("ladder.baseline." + std::to_string(workspace.selection.baseline_rung));
  }
  ImGui::SetCursorPosY(below);
  if (model.rungs.empty()) return;
  text_cut(ladder_line(ladder, model), right - ImGui::GetCursorPosX(), palette().quiet, fonts().regular, small_size);
  const auto left_out = workspace.left_out.find(ladder.id);
  if (left_out == workspace.left_out.end() || left_out->second.empty()) return;
  std::string line;
  for (const SkippedRung& rung : left_out->second)
    line += (line.empty() ? "Left out: " : "; ") + rung.stage + ", " + rung.reason.worded(label_of);
  text_cut(in_print(line), right - ImGui::GetCursorPosX(), palette().quiet, fonts().regular, small_size);
  mark("ladder.left_out");
}

// Draws the folder of exports, and a field that changes it.
void draw_exports_folder(PathField& field, const Workspace& workspace, Commands& commands) {
  if (ImGui::IsWindowAppearing()) field.show(workspace.exports_folder);
  const std::string folder = default_exports_folder(workspace.database).string();
  text_quiet("Saved in");
  if (field.draw("##folder", folder.c_str(), px(360), "ladder.export.folder", commands.data))
    commands.push_back(SetExportsFolder{field.path()});
}

void draw_export_popup(LadderHead& head, const Workspace& workspace, const Ladder& ladder, Commands& commands) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  popup_at_item();
  if (ImGui::BeginPopup("##export")) {
    constexpr std::array<std::array<const char*, 2>, 7> offers{{{"Report, one HTML file", ".html"},
                                                                {"Bars as SVG", ".svg"},
                                                                {"Bars as PDF", ".pdf"},
                                                                {"Bars as PNG", ".png"},
                                                                {"Table as Markdown", ".md"},
                                                                {"Table as CSV", ".csv"},
                                                                {"Figure and table for LaTeX", ".tex"}}};
    for (const auto& [words, ending] : offers) {
      if (ImGui::MenuItem(words, ending == std::string(".html") ? "Ctrl+R" : nullptr))
        commands.push_back(SaveLadder{ladder.id, ending});
      mark(std::string("ladder.export") + ending);
    }
    ImGui::Separator();
    draw_exports_folder(head.exports, workspace, commands);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void draw_more_popup(LadderHead& head, const Ladder& ladder, const LadderModel& model, Commands& commands) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  popup_at_item();
  if (ImGui::BeginPopup("##more")) {
    if (ImGui::MenuItem("Rename ladder")) head.rename(ladder.name);
    mark("ladder.rename");
    if (ImGui::MenuItem("Delete ladder", nullptr, false, model.is_over)) commands.push_back(DeleteLadder{ladder.id});
    mark("ladder.delete");
    ImGui::SetItemTooltip(model.is_over ? "Its runs go to the bin; Ctrl+Z brings them back" : "Stop its runs first");
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

// Draws the button that continues the ladder, if runs of it were interrupted or stopped.
void draw_continue(const Workspace& workspace, const Ladder& ladder, Commands& commands) {
  std::vector<Run> runs;
  for (const RunEntry* entry : workspace.runs_of(ladder.id)) runs.push_back(entry->run);
  const std::size_t left = runs_to_continue(runs).size();
  if (left == 0) return;
  flow_to("Continue");
  if (quiet_button("Continue", "ladder.continue")) commands.push_back(ContinueLadder{ladder.id});
  ImGui::SetItemTooltip("Trains the %s that %s interrupted or stopped", plural(left, "run").c_str(),
                        left == 1 ? "was" : "were");
}

void draw_bar(LadderHead& head, const Workspace& workspace, const Ladder& ladder, const LadderModel& model,
              Commands& commands) {
  if (head.is_sweep) {
    if (chip("Sweep", head.as_sweep)) head.as_sweep = !head.as_sweep;
    mark("ladder.sweep");
    ImGui::SetItemTooltip("Shows the results by the swept values, instead of the rungs");
    same_line(8);
  }
  if (!head.is_sweep || !head.as_sweep) {
    if (chip("Waterfall", head.waterfall)) head.waterfall = !head.waterfall;
    mark("ladder.waterfall");
    ImGui::SetItemTooltip("Each bar starts where the previous one ends (W)");
    same_line(8);
    ImGui::SetNextItemWidth(px(190));
    draw_beside_picker(head.beside, workspace, ladder.id);
  }
  flow_to("Reproduce here");
  if (quiet_button("Reproduce here", "ladder.again")) commands.push_back(ProposeLadder{ladder.id});
  ImGui::SetItemTooltip("Fills Launch with the same rungs, sized for this machine");
  flow_to("Compare runs");
  if (quiet_button("Compare runs", "ladder.compare")) {
    std::vector<RunId> runs;
    for (const LossCurve& curve : model.losses) runs.push_back(curve.run);
    commands.push_back(SelectRuns{std::move(runs)});
    commands.push_back(ShowPanel{"compare"});
  }
  flow_to("Export");
  if (quiet_button("Export", "ladder.export")) ImGui::OpenPopup("##export");
  draw_export_popup(head, workspace, ladder, commands);
  flow_to("More");
  if (quiet_button("More", "ladder.more")) ImGui::OpenPopup("##more");
  draw_more_popup(head, ladder, model, commands);
  draw_continue(workspace, ladder, commands);  // the last, so that it moves no other button when it appears
}

}  // namespace

void LadderHead::rename(const std::string& from) {
  std::snprintf(name.data(), name.size(), "%s", from.c_str());
  renaming = true;
}

void LadderHead::draw(const Workspace& workspace, const Ladder& ladder, const LadderModel& model, Commands& commands) {
  draw_title(*this, workspace, ladder, model, commands);
  if (model.rungs.empty()) return;
  spacing(2);
  if (const auto kept = workspace.kept_tries.find(ladder.id); kept != workspace.kept_tries.end()) {
    ImGui::AlignTextToFramePadding();
    text_strong("The " + plural(std::ssize(kept->second) - 1, "change") +
                " that `stepladder try` kept, by speed and loss; its own metric and verdicts are in");
    same_line(6);
    if (quiet_button("Tries", "ladder.tries")) commands.push_back(ShowPanel{"tries"});
  } else if (!is_sweep && !model.answer.empty()) {
    const std::string answer = in_print(model.answer);
    ImGui::PushFont(fonts().semibold, text_size);
    ImGui::PushTextWrapPos(ImGui::GetContentRegionMax().x);
    ImGui::TextUnformatted(cut_to(answer, 1.9f * ImGui::GetContentRegionAvail().x).c_str());  // two lines
    ImGui::PopTextWrapPos();
    ImGui::PopFont();
    mark("ladder.answer");
    wrapped_tooltip(answer, 560);
    spacing(2);
  }
  draw_bar(*this, workspace, ladder, model, commands);
  if (workspace.verification->ladder == ladder.id) verification_card(workspace, commands);
}

}  // namespace stepladder
