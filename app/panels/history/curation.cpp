// Curates runs by one command each, so that Undo reverts an action on many runs at once. Nothing is stored here.
#include "app/panels/history/curation.h"

#include <imgui.h>

#include <algorithm>
#include <utility>

#include "app/desktop/commands/curation_commands.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

void curate(const std::string& done, const std::vector<const RunEntry*>& entries, CurationChange change,
            Commands& commands) {
  if (entries.empty()) return;
  Curate asked{
      .what = done + " " + (entries.size() == 1 ? entries.front()->run.name : plural(std::ssize(entries), "run")),
      .runs = {},
      .change = std::move(change)};
  for (const RunEntry* entry : entries) asked.runs.push_back(entry->run.id);
  commands.push_back(std::move(asked));
}

}  // namespace

HistorySelection selection_of(const Workspace& workspace, const HistoryRows& list) {
  HistorySelection selection;
  for (const RunId id : workspace.selection.runs) {
    const RunEntry* entry = workspace.find(id);
    if (!entry) continue;
    if (list.listed.contains(id)) {
      selection.listed.push_back(entry);
    } else {
      ++selection.hidden;
    }
  }
  return selection;
}

void delete_runs(const std::vector<const RunEntry*>& entries, Commands& commands) {
  curate("Deleted", entries, {.deleted_at = unix_now()}, commands);
}

void archive_runs(const std::vector<const RunEntry*>& entries, Commands& commands) {
  const bool all = std::ranges::all_of(entries, [](const RunEntry* e) { return e->curation.archived; });
  curate(all ? "Unarchived" : "Archived", entries, {.archived = !all}, commands);
}

void pin_runs(const std::vector<const RunEntry*>& entries, Commands& commands) {
  const bool all = std::ranges::all_of(entries, [](const RunEntry* e) { return e->curation.pinned; });
  curate(all ? "Unpinned" : "Pinned", entries, {.pinned = !all}, commands);
}

void tag_runs(const std::vector<const RunEntry*>& entries, const std::string& words, Commands& commands) {
  std::vector<std::string> added;
  std::vector<std::string> removed;
  for (const std::string& tag : tags_from(words)) {
    const bool all = std::ranges::all_of(entries, [&](const RunEntry* entry) {
      const std::vector<std::string>& tags = entry->curation.tags;
      return std::ranges::find(tags, tag) != tags.end();
    });
    (all ? removed : added).push_back(tag);
  }
  const auto named = [](const std::vector<std::string>& tags) {
    return (tags.size() == 1 ? "tag " : "tags ") + tags_text(tags);
  };
  if (added.empty() && removed.empty()) return;
  const std::string done = removed.empty() ? "Added " + named(added) + " to"
                           : added.empty() ? "Removed " + named(removed) + " from"
                                           : "Added " + named(added) + " and removed " + named(removed) + " on";
  curate(done, entries, {.added_tags = std::move(added), .removed_tags = std::move(removed)}, commands);
}

void BinPopup::draw(const Workspace& workspace, Commands& commands) {
  if (quiet_button("Bin", "history.bin")) ImGui::OpenPopup("##bin");
  popup_at_item();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  if (ImGui::BeginPopup("##bin")) {
    commands.data.bin = true;
    const std::vector<BinnedRun>& runs = workspace.bin;
    text_quiet(runs.empty() ? "The bin is empty" : plural(std::ssize(runs), "deleted run") + ", kept for 30 days");
    const float row = ImGui::GetFrameHeightWithSpacing(), width = px(440);
    ImGui::BeginChild("##list", ImVec2(width, std::min(px(360), row * static_cast<float>(runs.size()) + px(2))),
                      ImGuiChildFlags_NavFlattened);
    draw_rows(runs.size(), row, [&](std::size_t i) {
      const BinnedRun& binned = runs[i];
      ImGui::PushID(static_cast<int>(i));
      if (change_button(workspace, "Restore", "history.restore." + std::to_string(binned.run.id)))
        commands.push_back(RestoreRuns{{binned.run.id}});
      same_line(8);
      ImGui::AlignTextToFramePadding();
      text_cut(binned.run.name, width - px(240), palette().text, fonts().regular, text_size, Cut::middle);
      ImGui::SameLine(width - px(125));
      text_quiet(local_time_text(binned.deleted_at));
      ImGui::PopID();
    });
    ImGui::EndChild();
    if (!runs.empty()) {
      std::vector<RunId> all;
      for (const BinnedRun& binned : runs) all.push_back(binned.run.id);
      if (change_button(workspace, "Restore all", "history.restore_all"))
        commands.push_back(RestoreRuns{std::move(all)});
      same_line(8);
      if (change_button(workspace, "Empty bin", "history.empty_bin")) commands.push_back(EmptyBin{});
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void TagPopup::draw(const std::vector<const RunEntry*>& entries, Commands& commands) {
  if (std::exchange(open, false)) ImGui::OpenPopup("##tag");
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  if (ImGui::BeginPopup("##tag")) {
    text_quiet("Tag " + plural(std::ssize(entries), "run") + "; a tag that all of them have is removed");
    hold_keyboard();
    ImGui::SetNextItemWidth(px(260));
    const bool done = ImGui::InputTextWithHint("##tag", "e.g. night, good", tag.data(), tag.size(),
                                               ImGuiInputTextFlags_EnterReturnsTrue);
    mark("history.tag.field");
    close_popup_at_escape();
    if (done) {
      tag_runs(entries, tag.data(), commands);
      tag[0] = 0;
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace stepladder
