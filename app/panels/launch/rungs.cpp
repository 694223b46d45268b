// Draws Launch's rung editor: rows to type, drag, duplicate and remove. A change to the list is carried out after all
// rows are drawn; a row keeps its id when it moves, so focus and selection follow it.
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace/launch_state.h"
#include "app/panels/launch/parts.h"
#include "app/text/format.h"
#include "engine/ladder_presets.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

// A change that a row asks for; carried out after the rows are drawn, since it changes their list.
struct RowChange {
  enum class Kind { none, move, duplicate, remove } kind = Kind::none;
  std::size_t row = 0;
  std::size_t to = 0;  // of a move
};

// A row's name for tests.
std::string row_mark(const std::string& what, std::size_t row) {
  return "launch." + what + "." + std::to_string(row);
}

// The words of the only stage of a row without values; null for other rows.
const Stage* plain_stage(const std::string& text) {
  return find_stage(text);
}

// The reason why a row isn't or wouldn't be on the ladder; empty if it is, and while the hardware is being detected.
std::string left_out(const RungRow& row, int asked, const CheckedForm& checked, const Workspace& workspace) {
  if (asked >= 0) {
    const SkippedRung* skipped = checked.plan ? checked.plan->skipped(asked) : nullptr;
    return skipped ? skipped->reason.worded(label_of) : "";
  }
  const Stage* stage = plain_stage(row.text);
  if (!stage || !workspace.device) return "";
  const Recipe& base = checked.request.base;
  return stage->unavailable(base, *workspace.device, workspace.device->resolve(base.device)).worded(label_of);
}

// The row's rung; null if it isn't on the ladder, or until the ladder is planned.
const Rung* planned_rung(const CheckedForm& checked, int asked) {
  if (asked < 0 || !checked.plan) return nullptr;
  const std::vector<Rung>& rungs = checked.plan->plan.rungs;
  const auto found = std::ranges::find(rungs, asked, &Rung::asked);
  return found == rungs.end() ? nullptr : &*found;
}

// The rung's predicted step; null: it was measured, or there is no trace of the baseline, or no law for it.
const PredictedStep* predicted_step_of(const CheckedForm& checked, const Rung& rung, const Workspace& workspace) {
  const PlanForecast* forecast = workspace.launch->forecast.get();
  if (!forecast || !checked.plan || forecast->asked != checked.plan->asked) return nullptr;
  const auto place = static_cast<std::size_t>(&rung - checked.plan->plan.rungs.data());
  if (place >= forecast->ladder.rungs.size()) return nullptr;
  const PredictedStep& step = forecast->ladder.rungs[place];
  return step.bound == Bound::unknown ? nullptr : &step;
}

// Six dots that are dragged; returns the place that the row moves to, or `row`.
std::size_t draw_handle(std::size_t row, float height, const std::vector<float>& tops) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("##drag", ImVec2(px(14), height));
  mark(row_mark("drag", row));
  const bool active = ImGui::IsItemActive();
  if (active || ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNS);
  if (!active) ImGui::SetItemTooltip("Drag, or press Alt+Up and Alt+Down, to move the rung");
  for (int dot = 0; dot < 6; ++dot) {
    const ImVec2 centre(at.x + px(3.5f + 5.0f * static_cast<float>(dot % 2)),
                        at.y + height / 2 + px(5.0f * static_cast<float>(dot / 2 - 1)));
    ImGui::GetWindowDrawList()->AddCircleFilled(centre, px(1.4f), u32(active ? palette().accent : palette().quiet));
  }
  if (!active && !ImGui::IsItemDeactivated()) return row;  // a fast mouse is released where it was moved to
  const float mouse = ImGui::GetIO().MousePos.y;
  const auto middle = [&](std::size_t of) { return (tops[of] + tops[of + 1]) / 2; };
  std::size_t to = row;
  while (to > 0 && to < tops.size() && mouse < middle(to - 1)) --to;
  while (to + 2 < tops.size() && mouse > middle(to + 1)) ++to;
  return to;
}

// The throughput in somebody else's log, which nobody has checked.
std::string claimed(double tokens_per_s) {
  return "its log claims " + tokens_per_s_text(tokens_per_s) + " tokens/s";
}

// The words behind a row's title: why it isn't on the ladder, what is predicted of it, or what it changes.
struct Explanation {
  std::string words;
  const char* anchor = "";    // of the words, for tests; empty: they need none
  std::string details;        // what hovering shows; empty: the words
  bool is_important = false;  // drawn beneath the row where there is no room beside it
};

Explanation explanation_of(const RungRow& row, std::size_t place, const CheckedForm& checked,
                           const Workspace& workspace) {
  const int asked = checked.asked[place];
  if (const std::string reason = left_out(row, asked, checked, workspace); !reason.empty())
    return {.words = (asked >= 0 ? "Left out: " : "Unavailable: ") + reason,
            .anchor = "rung_left_out",
            .details = "",
            .is_important = true};
  const Stage* stage = plain_stage(row.text);
  const Rung* rung = planned_rung(checked, asked);
  std::string change = in_print(stage ? stage->why : rung ? rung->changed : "");
  if (row.seed_tokens_per_s) change = claimed(*row.seed_tokens_per_s);
  if (const PredictedStep* step = rung ? predicted_step_of(checked, *rung, workspace) : nullptr)
    return {.words = in_print("Predicted: " + step_text(*step)),
            .anchor = "rung_predicted",
            .details = in_print(gain_text(*step) + " the baseline, from a trace of it") +
                       (change.empty() ? "" : "\n" + change),
            .is_important = true};
  if (!row.not_proposed.empty())
    return {.words = in_print("Not proposed: " + row.not_proposed),
            .anchor = "rung_not_proposed",
            .details = "",
            .is_important = true};
  return {.words = std::move(change), .anchor = "", .details = "", .is_important = false};
}

void draw_explanation(const Explanation& explained, std::size_t place, float width) {
  if (explained.words.empty()) return;
  text_cut(explained.words, width, palette().quiet, fonts().regular, small_size);
  if (*explained.anchor) mark(row_mark(explained.anchor, place));
  if (!explained.details.empty()) wrapped_tooltip(explained.details, px(420));
}

// True if the mouse is over the row, by the row's place in the last frame.
bool is_hovered(const RungEditor& editor, std::size_t row) {
  if (row + 1 >= editor.tops.size() || !ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem))
    return false;
  const float mouse = ImGui::GetIO().MousePos.y;
  return mouse >= editor.tops[row] && mouse < editor.tops[row + 1];
}

void draw_row_buttons(std::size_t place, float right, float duplicate, float remove, RowChange& change) {
  ImGui::SameLine(right - duplicate - remove - px(6));
  if (ImGui::Button("Duplicate", ImVec2(duplicate, 0))) change = {RowChange::Kind::duplicate, place};
  mark(row_mark("rung_duplicate", place));
  ImGui::SameLine(0, px(6));
  if (ImGui::Button("Remove", ImVec2(remove, 0))) change = {RowChange::Kind::remove, place};
  mark(row_mark("rung_remove", place));
}

void draw_row(RungEditor& editor, LaunchForm& form, std::size_t place, int rung_number, const CheckedForm& checked,
              const Workspace& workspace, RowChange& change) {
  RungRow& row = form.rows[place];
  ImGui::PushID(row.id);
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  ImGui::PushFont(fonts().regular, small_size);
  const float duplicate = button_width("Duplicate");
  const float remove = button_width("Remove");
  if (const std::size_t to = draw_handle(place, ImGui::GetFrameHeight(), editor.tops); to != place)
    change = {RowChange::Kind::move, place, to};
  if (ImGui::IsItemActivated()) editor.selected = row.id;
  ImGui::SameLine(0, px(6));
  if (ImGui::Checkbox("##on", &row.on)) row.is_usual = false;
  const Stage* stage = plain_stage(row.text);
  mark("launch.rung." + (stage ? stage->id : std::to_string(place)));
  ImGui::SameLine();
  const float text_left = ImGui::GetCursorPosX();
  const bool is_wrong = !checked.row_problems[place].empty();
  const bool is_there = row.on && !is_wrong && left_out(row, checked.asked[place], checked, workspace).empty();
  ImGui::AlignTextToFramePadding();
  colour_square(is_there ? rung_colour(rung_number) : palette().line);
  ImGui::SameLine();
  const bool has_buttons = editor.selected == row.id || is_hovered(editor, place);
  const float buttons = duplicate + remove + px(18);
  const float room = right - ImGui::GetCursorPosX();
  const bool is_wide = room > px(480);  // the explanation is beside the title
  ImGui::SetNextItemWidth(is_wide ? std::clamp(room * 0.2f, px(130), px(170))
                                  : std::clamp((room - buttons) * 0.55f, px(120), px(480)));
  if (editor.follow == row.id) {
    ImGui::SetScrollHereY();
    editor.follow = -1;
  }
  if (editor.focus == row.id) {
    ImGui::SetKeyboardFocusHere();
    editor.focus = -1;
  }
  if (is_wrong && row.on) ImGui::PushStyleColor(ImGuiCol_Border, palette().bad);
  ImGui::PushStyleColor(ImGuiCol_Text, is_there ? palette().text : palette().quiet);
  if (text_input("##text", "bf16:batch=24", row.text)) {
    row.is_usual = false;
    row.not_proposed.clear();
  }
  ImGui::PopStyleColor(is_wrong && row.on ? 2 : 1);
  mark(row_mark("rung_text", place));
  if (ImGui::IsItemActive()) {
    editor.selected = row.id;
    ImGui::SetItemKeyOwner(ImGuiKey_UpArrow);  // else the focus would move instead of the row
    ImGui::SetItemKeyOwner(ImGuiKey_DownArrow);
  }
  ImGui::SameLine();
  const Rung* rung = planned_rung(checked, checked.asked[place]);
  const std::string title = stage ? stage->title : rung ? rung->title : "";
  const float after_field = right - (has_buttons ? buttons : 0) - ImGui::GetCursorPosX();
  const float title_width = is_wide ? std::min(std::clamp(room * 0.22f, px(120), px(150)), after_field) : after_field;
  const float title_left = ImGui::GetCursorPosX();
  text_cut(title, title_width, is_there ? palette().text : palette().quiet, fonts().semibold, 13.5f);
  const Explanation explained = is_wrong ? Explanation{} : explanation_of(row, place, checked, workspace);
  if (is_wide && !explained.words.empty()) {
    ImGui::SameLine(title_left + title_width + px(12));
    draw_explanation(explained, place, right - (has_buttons ? buttons : 0) - ImGui::GetCursorPosX());
  } else if (!explained.words.empty()) {
    wrapped_tooltip(explained.words, px(420));
  }
  if (has_buttons) draw_row_buttons(place, right, duplicate, remove, change);
  ImGui::PopFont();
  if (is_wrong) {
    ImGui::SetCursorPosX(text_left);
    ImGui::BeginGroup();
    text_sentence(checked.row_problems[place], row.on ? Tone::bad : Tone::neutral);
    mark(row_mark("rung_error", place));
    ImGui::EndGroup();
  } else if (!is_wide && explained.is_important) {
    ImGui::SetCursorPosX(text_left);
    draw_explanation(explained, place, right - text_left);
  }
  ImGui::PopID();
}

// The baseline isn't a row: it is the recipe, which the form edits.
void draw_baseline(const LaunchForm& form) {
  ImGui::PushFont(fonts().regular, small_size);
  const float box = ImGui::GetFrameHeight();
  ImGui::PopFont();
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + px(20) + box + ImGui::GetStyle().ItemSpacing.x);  // as in the rows
  colour_square(rung_colour(0));
  ImGui::SameLine();
  text_strong("Baseline");
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
  text_quiet(!form.baseline_seed_tokens_per_s ? "the recipe, without the stages of the rungs"
                                              : claimed(*form.baseline_seed_tokens_per_s));
  ImGui::Dummy(ImVec2(0, px(3)));
}

void carry_out(const RowChange& change, RungEditor& editor, LaunchForm& form) {
  switch (change.kind) {
    case RowChange::Kind::none:
      return;
    case RowChange::Kind::move: {
      const auto from = form.rows.begin() + static_cast<std::ptrdiff_t>(change.row);
      const auto to = form.rows.begin() + static_cast<std::ptrdiff_t>(change.to);
      if (from < to) std::rotate(from, from + 1, to + 1);
      if (to < from) std::rotate(to, from, from + 1);
      return;
    }
    case RowChange::Kind::duplicate: {
      const RungRow copied = form.rows[change.row];
      editor.selected = editor.focus = editor.follow = form.insert_row(change.row + 1, copied.text, copied.on).id;
      return;
    }
    case RowChange::Kind::remove:
      form.rows.erase(form.rows.begin() + static_cast<std::ptrdiff_t>(change.row));
  }
}

void move_selected(RungEditor& editor, LaunchForm& form) {
  if (!ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows)) return;
  const auto selected = std::ranges::find(form.rows, editor.selected, &RungRow::id);
  if (selected == form.rows.end()) return;
  if (ImGui::IsKeyChordPressed(ImGuiMod_Alt | ImGuiKey_UpArrow) && selected != form.rows.begin())
    std::iter_swap(selected, selected - 1);
  else if (ImGui::IsKeyChordPressed(ImGuiMod_Alt | ImGuiKey_DownArrow) && selected + 1 != form.rows.end())
    std::iter_swap(selected, selected + 1);
  else
    return;
  editor.follow = editor.selected;
}

// A name for a rung of one's own that no row has yet.
std::string own_rung(const LaunchForm& form, const Recipe& base) {
  for (int number = 1;; ++number) {
    const std::string name = "mine" + (number > 1 ? std::to_string(number) : std::string());
    const bool taken =
        std::ranges::any_of(form.rows, [&](const RungRow& row) { return row.text.starts_with(name + ":"); });
    if (!taken) return name + ":batch=" + std::to_string(2 * base.batch);
  }
}

void draw_add(RungEditor& editor, LaunchForm& form, const CheckedForm& checked) {
  const auto add = [&](std::string text) {
    editor.selected = editor.focus = editor.follow = form.insert_row(form.rows.size(), std::move(text)).id;
  };
  flow_to("Add rung");
  if (quiet_button("Add rung")) ImGui::OpenPopup("##add");
  mark("launch.add");
  ImGui::SetNextWindowPos(ImVec2(ImGui::GetItemRectMin().x, ImGui::GetItemRectMax().y + px(4)), ImGuiCond_Appearing);
  if (!ImGui::BeginPopup("##add")) return;
  if (ImGui::Selectable("A rung of your own")) add(own_rung(form, checked.request.base));
  mark("launch.add.own");
  ImGui::Separator();
  for (const Stage& stage : all_stages()) {
    if (ImGui::Selectable((stage.title + "##" + stage.id).c_str())) add(stage.id);
    mark("launch.add." + stage.id);
    ImGui::SetItemTooltip("%s", stage.why.c_str());
  }
  ImGui::EndPopup();
}

void draw_presets(RungEditor& editor, LaunchForm& form, const CheckedForm& checked, const Workspace& workspace,
                  Commands& commands) {
  flow_to("Presets");
  ImGui::BeginDisabled(!workspace.device);
  if (quiet_button("Presets")) {
    editor.preset_name = form.name;
    ImGui::OpenPopup("##presets");
  }
  ImGui::EndDisabled();
  mark("launch.presets");
  ImGui::SetNextWindowPos(ImVec2(ImGui::GetItemRectMin().x, ImGui::GetItemRectMax().y + px(4)), ImGuiCond_Appearing);
  if (!ImGui::BeginPopup("##presets")) return;
  text_quiet("Measured elsewhere");
  for (const LadderPreset& preset : ladder_presets()) {
    if (ImGui::Selectable(preset.name.c_str())) commands.push_back(OpenLadderPreset{preset.name, true});
    mark("launch.preset." + preset.name);
    ImGui::SetItemTooltip("%s", preset.note.c_str());
  }
  text_quiet("Saved");
  for (const std::string& name : workspace.launch->presets) {
    if (ImGui::Selectable((name + "##saved").c_str())) commands.push_back(OpenLadderPreset{name});
    std::string word = name;
    std::ranges::replace(word, ' ', '_');
    mark("launch.preset.saved." + word);
  }
  if (workspace.launch->presets.empty()) text_quiet("Ladders that you save appear here.");
  ImGui::Separator();
  ImGui::SetNextItemWidth(px(180));
  text_input("##preset", "name", editor.preset_name);
  close_popup_at_escape();
  mark("launch.preset_name");
  ImGui::SameLine();
  ImGui::BeginDisabled(editor.preset_name.empty() || !checked.can_be_saved);
  if (quiet_button("Save")) {
    commands.push_back(SaveLadderPreset{editor.preset_name, draft_of(form, checked)});
    ImGui::CloseCurrentPopup();
  }
  ImGui::EndDisabled();
  mark("launch.preset_save");
  if (!checked.can_be_saved) text_quiet("Correct the rungs marked in red first.");
  ImGui::EndPopup();
}

// Draws the choices of which rungs there are and how they build on each other.
void draw_rung_choices(RungEditor& editor, LaunchForm& form, const CheckedForm& checked) {
  ImGui::SameLine();
  int climb = form.climb == Climb::alone ? 1 : 0;
  if (choice("##climb", "", climb, {"cumulative", "each alone"}, px(110)))
    form.climb = climb == 1 ? Climb::alone : Climb::together;
  mark("launch.climb");
  ImGui::SetItemTooltip(
      "Cumulative: each rung adds to the previous ones.\nEach alone: each rung changes the baseline only.");
  const auto choose = [&](const char* words, const std::string& id, const std::function<bool(const Stage*)>& wanted) {
    flow_to(words);
    if (quiet_button(words)) {
      for (RungRow& row : form.rows) {
        row.on = wanted(plain_stage(row.text));
        row.is_usual = false;
      }
    }
    mark("launch.rungs." + id);
  };
  choose("All", "all", [](const Stage*) { return true; });
  choose("Loss-preserving", "systems",
         [](const Stage* stage) { return stage && stage->kind == StageKind::systems_only; });
  choose("None", "none", [](const Stage*) { return false; });
  draw_add(editor, form, checked);
}

void draw_head(RungEditor& editor, LaunchForm& form, const CheckedForm& checked, const Workspace& workspace,
               Commands& commands) {
  ImGui::PushFont(fonts().regular, small_size);
  const ImVec2 corner = ImGui::GetCursorPos();
  const float height = ImGui::GetFrameHeight();
  ImGui::SetCursorPosY(corner.y + (height - px(text_size)) / 2 - px(1));
  text_strong(checked.is_sweep ? "Combinations" : "Rungs");
  const float width = ImGui::GetItemRectSize().x;
  ImGui::SetCursorPos(corner);
  ImGui::Dummy(ImVec2(width, height));  // as high as the next items
  if (!checked.is_sweep) draw_rung_choices(editor, form, checked);
  draw_presets(editor, form, checked, workspace, commands);
  flow_to("Copy command line");
  ImGui::BeginDisabled(!checked.can_be_saved || !checked.field_problems.empty());
  if (quiet_button("Copy command line"))
    commands.push_back(
        CopyText{checked.is_sweep ? command_line_of(checked.request, checked.swept) : command_line_of(checked.request),
                 "the command line"});
  ImGui::EndDisabled();
  mark("launch.copy_command");
  ImGui::PopFont();
  ImGui::Dummy(ImVec2(0, px(2)));
}

// The rungs of a sweep, which the lists in the recipe decide.
void draw_combinations(const CheckedForm& checked) {
  const LadderRequest& request = checked.request;
  text_quiet_wrapped(
      "Every combination of the lists at the left, each on the recipe alone. The rungs return when no value but the "
      "seed is a list.");
  const auto columns = static_cast<int>(request.rungs.front().values.size()) + 1;
  if (columns < 2 ||
      !ImGui::BeginTable(table_id("##combinations", columns).c_str(), columns,
                         ImGuiTableFlags_SizingStretchSame | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, px(40));
  ImGui::TableNextRow();
  for (int i = 1; i < columns; ++i) {
    ImGui::TableSetColumnIndex(i);
    text_quiet(request.rungs.front().values[static_cast<std::size_t>(i) - 1].first);
  }
  draw_rows(request.rungs.size(), [&](std::size_t row) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text_quiet(std::to_string(row));
    for (const auto& [name, value] : request.rungs[row].values) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(value.c_str());
    }
    mark("launch.combination." + std::to_string(row));
  });
  ImGui::EndTable();
}

}  // namespace

void draw_rungs(RungEditor& editor, LaunchForm& form, const CheckedForm& checked, const Workspace& workspace,
                Commands& commands) {
  const std::size_t rows = form.rows.size();
  draw_head(editor, form, checked, workspace, commands);
  // The head may have added a row or taken another ladder; the next frame checks and draws it.
  if (form.rows.size() != rows || checked.asked.size() != rows) return;
  editor.height = 0;
  if (checked.is_sweep) return draw_combinations(checked);
  draw_baseline(form);
  const float rows_top = ImGui::GetCursorPosY();
  // Whole rows: the lowest isn't cut.
  ImGui::PushFont(fonts().regular, small_size);
  const float row = ImGui::GetFrameHeight() + px(3);
  ImGui::PopFont();
  const float seen = std::max(1.0f, std::floor((ImGui::GetContentRegionAvail().y + px(3)) / row)) * row - px(3);
  ImGui::BeginChild("##rows", ImVec2(0, seen), ImGuiChildFlags_NavFlattened);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, px(3)));
  std::vector<float> tops;
  RowChange change;
  int rung_number = 1;
  for (std::size_t i = 0; i < rows; ++i) {
    tops.push_back(ImGui::GetCursorScreenPos().y);
    draw_row(editor, form, i, rung_number, checked, workspace, change);
    const bool is_left_out = checked.plan && checked.plan->skipped(checked.asked[i]);
    rung_number += checked.asked[i] >= 0 && !is_left_out ? 1 : 0;
  }
  tops.push_back(ImGui::GetCursorScreenPos().y);
  editor.height = rows_top + tops.back() - tops.front() + px(16);
  editor.tops = std::move(tops);
  ImGui::PopStyleVar();
  ImGui::EndChild();
  carry_out(change, editor, form);
  if (change.kind == RowChange::Kind::none) move_selected(editor, form);
}

}  // namespace stepladder
