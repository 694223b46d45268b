// Draws kept call times, one or two compared, with their exports. Choosing other ones changes the question; reading is
// on another thread (profile_view.h).
#include "app/panels/profile/passes.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <string>

#include "app/desktop/commands/export_commands.h"
#include "app/desktop/frames/frames.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/desktop/profile/profile_state.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/profile/tables.h"
#include "app/profile/pass_report.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

const StoredPasses* find(const ProfileView& view, std::int64_t id) {
  const auto found = std::ranges::find(view.all_passes, id, &StoredPasses::id);
  return found == view.all_passes.end() ? nullptr : &*found;
}

// `none`: the entry for no passes; null: one must be chosen. `other` isn't offered. Returns whether another one was
// chosen.
bool choose(const char* id, const char* none, const ProfileView& view, std::int64_t& chosen, std::int64_t other,
            float width) {
  const StoredPasses* now = find(view, chosen);
  ImGui::SetNextItemWidth(width);
  if (!ImGui::BeginCombo(id,
                         combo_text(now    ? now->name
                                    : none ? none
                                           : "-",
                                    width)
                             .c_str(),
                         ImGuiComboFlags_HeightLargest))
    return false;
  const std::int64_t before = chosen;
  bool takes_first = false;
  const std::string typed = list_search("Search passes", view.all_passes.size(), &takes_first);
  bool marks_first = !typed.empty();
  if (none && typed.empty() && chosen != 0 && ImGui::Selectable(none)) chosen = 0;
  const float row = std::max(width, px(440));
  for (const StoredPasses& each : view.all_passes) {
    if (each.id == other || !holds(each.name + " " + each.hardware + " " + each.host, typed)) continue;
    ImGui::PushID(static_cast<int>(each.id));
    const ImVec2 corner = ImGui::GetCursorPos();
    const bool is_taken = std::exchange(takes_first, false);
    if (ImGui::Selectable("##passes", &each == now, 0, ImVec2(row, px(36))) || is_taken) chosen = each.id;
    if (is_taken) ImGui::CloseCurrentPopup();
    if (std::exchange(marks_first, false)) mark_taken_by_enter();
    const ImVec2 below = ImGui::GetCursorPos();
    ImGui::SetCursorPos(corner);
    text_cut(each.name, row, palette().text, fonts().regular, text_size, Cut::middle);
    text_cut(setting_of(each), row, palette().quiet, fonts().regular, small_size);
    ImGui::SetCursorPos(below);
    ImGui::Dummy(ImVec2(0, 0));
    ImGui::PopID();
  }
  ImGui::EndCombo();
  return chosen != before;
}

void draw_table(const char* id, const TextTable& table) {
  const float width = std::min(ImGui::GetContentRegionAvail().x, px(1150));
  if (!ImGui::BeginTable(id, static_cast<int>(table.heads.size()),
                         ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchProp, ImVec2(width, 0)))
    return;
  for (std::size_t i = 0; i < table.heads.size(); ++i) {
    // Words need more room than numbers.
    const float weight = i == 0 ? 1.7f : table.heads[i].empty() ? 1.4f : 1.0f;
    ImGui::TableSetupColumn(("##" + std::to_string(i)).c_str(), ImGuiTableColumnFlags_WidthStretch, weight);
  }
  const auto draw_row = [&](const std::vector<std::string>& cells, bool is_head) {
    ImGui::TableNextRow();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      ImGui::TableNextColumn();
      const float size = is_head ? small_size : 13.5f;
      const ImVec4& colour = is_head ? palette().quiet : palette().text;
      const float room = ImGui::GetContentRegionAvail().x - px(4);
      if (table.right[i])
        text_right(in_print(cells[i]), ImGui::GetCursorPosX() + room, fonts().regular, size, &colour);
      else
        text_cut(in_print(cells[i]), room, colour, fonts().regular, size);
    }
  };
  draw_row(table.heads, true);
  for (const auto& cells : table.rows) draw_row(cells, false);
  ImGui::EndTable();
}

void draw_sentences(const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences) {
    const bool is_warning = sentence.starts_with("Warning") || sentence.starts_with("Flagged") ||
                            sentence.starts_with("The rows do not") || sentence.starts_with("These have different");
    gap(6);
    text_sentence(in_print(sentence), is_warning ? Tone::warning : Tone::neutral);
  }
}

void draw_one(const char* id, const ShownPasses& passes, const char* what) {
  begin_tall_card(id);
  text_strong((what ? std::string(what) + ": " : "") + passes.kept.name);
  text_quiet_wrapped(in_print(setting_of(passes.kept)));
  gap(10);
  draw_table("##calls", passes.table);
  gap(8);
  draw_sentences(passes.sentences);
  end_card();
  mark(std::string("profile.passes.") + (id + 2));
  gap(14);
}

void draw_exports(const ProfileView& view, const ShownPasses& after, Commands& commands) {
  const PassComparison* compared = view.compared_passes ? &*view.compared_passes : nullptr;
  const StoredPasses* before = compared ? &view.passes_before->kept : nullptr;
  const std::string name = compared ? before->name + " and " + after.kept.name : after.kept.name;
  flow_to("Copy table", 16);
  if (quiet_button("Copy table"))
    commands.push_back(CopyText{passes_markdown(after.kept, before, compared), "the table"});
  wrapped_tooltip("As Markdown, with its sentences", 360);
  mark("profile.passes.copy");
  flow_to("CSV");
  if (quiet_button("CSV", "profile.passes.csv"))
    commands.push_back(SaveText{name, ".csv", passes_csv(after.rows, compared)});
  flow_to("JSON");
  if (quiet_button("JSON", "profile.passes.json")) {
    const Json json =
        compared ? comparison_json(*before, after.kept, *compared) : passes_with_rows(after.kept, after.rows);
    commands.push_back(SaveText{name, ".json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"});
  }
  flow_to("Remove");
  if (quiet_button("Remove")) commands.push_back(RemovePasses{after.kept.id});
  ImGui::SetItemTooltip("Removes %s; Ctrl+Z brings it back", after.kept.name.c_str());
  mark("profile.passes.remove");
}

}  // namespace

bool draw_passes(ProfileQuestion& question, const ProfileView& view, const Workspace& workspace, Commands& commands) {
  const bool is_timing = !workspace.profile_state->reading.empty();
  const bool can_time = !is_timing && workspace.why_not_measure().empty() && workspace.read_only.empty();
  if (!view.passes) {
    const std::array time{EmptyButton{
        .label = "Time the passes", .anchor = "profile.passes.time", .is_main = true, .is_enabled = can_time}};
    if (!view.problem.empty())
      text_sentence(view.problem, Tone::bad);
    else if (empty_state("No passes yet",
                         "Times a GPT-2's forward and backward pass on this machine, call by call, in about a minute. "
                         "The table appears here, to be compared with that of another machine.",
                         time) == 0)
      commands.push_back(TimePasses{});
    mark("profile.passes.empty");
    return false;
  }
  const ProfileQuestion asked = question;
  std::int64_t after = view.passes->kept.id, before = view.passes_before ? view.passes_before->kept.id : 0;
  const float width = std::clamp((ImGui::GetContentRegionAvail().x - px(420)) / 2, px(150), px(320));
  if (choose("##passes", nullptr, view, after, before, width)) question.passes = after;
  mark("profile.passes.after");
  same_line(12);
  field_name("against");
  if (choose("##passes_before", "No other passes", view, before, after, width)) question.passes_before = before;
  mark("profile.passes.before");
  draw_exports(view, *view.passes, commands);
  gap(12);
  ImGui::BeginChild("##shown");
  if (view.compared_passes) {
    begin_tall_card("##compared");
    text_strong("Medians of a call");
    text_cut("before: " + view.passes_before->kept.name + "; after: " + view.passes->kept.name,
             ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
    gap(10);
    draw_table("##compared", view.compared_table);
    gap(8);
    draw_sentences(view.compared_passes->sentences);
    end_card();
    mark("profile.passes.compared");
    gap(14);
  }
  draw_one("##one", *view.passes, view.compared_passes ? "After" : nullptr);
  if (view.compared_passes) draw_one("##other", *view.passes_before, "Before");
  ImGui::EndChild();
  return !(asked == question);
}

}  // namespace stepladder
