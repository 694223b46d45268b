#include "app/panels/history/curation.h"

#include <imgui.h>

#include <algorithm>
#include <utility>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"

namespace stepladder {
namespace {

template <class Change>
void curate(const std::string& done, const std::vector<const RunEntry*>& entries, Commands& commands, Change change) {
  Curate asked{.what = done + " " + (entries.size() == 1 ? entries.front()->run.name : runs_text(entries.size())),
               .changes = {}};
  for (const RunEntry* entry : entries) {
    Curation curation = entry->curation;
    change(curation);
    asked.changes.emplace_back(entry->run.id, std::move(curation));
  }
  if (!asked.changes.empty()) commands.push_back(std::move(asked));
}

}  // namespace

std::vector<const RunEntry*> selected_entries(const Workspace& workspace) {
  std::vector<const RunEntry*> entries;
  for (const RunId id : workspace.selected_runs) {
    if (const RunEntry* entry = workspace.find(id)) entries.push_back(entry);
  }
  return entries;
}

void delete_runs(const std::vector<const RunEntry*>& entries, Commands& commands) {
  const double now = unix_now();
  curate("Deleted", entries, commands, [now](Curation& curation) { curation.deleted_at = now; });
}

void archive_runs(const std::vector<const RunEntry*>& entries, Commands& commands) {
  const bool all = std::all_of(entries.begin(), entries.end(), [](const RunEntry* e) { return e->curation.archived; });
  curate(all ? "Unarchived" : "Archived", entries, commands, [all](Curation& curation) { curation.archived = !all; });
}

void pin_runs(const std::vector<const RunEntry*>& entries, Commands& commands) {
  const bool all = std::all_of(entries.begin(), entries.end(), [](const RunEntry* e) { return e->curation.pinned; });
  curate(all ? "Unpinned" : "Pinned", entries, commands, [all](Curation& curation) { curation.pinned = !all; });
}

void TagPopup::draw(const std::vector<const RunEntry*>& entries, Commands& commands) {
  if (std::exchange(open, false)) ImGui::OpenPopup("##tag");
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  if (ImGui::BeginPopup("##tag")) {
    text_quiet("Tag " + runs_text(entries.size()) + "; a tag that all of them have is removed");
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(px(260));
    const bool done = ImGui::InputTextWithHint("##tag", "e.g. night, good", tag.data(), tag.size(),
                                               ImGuiInputTextFlags_EnterReturnsTrue);
    mark("history.tag.field");
    if (done) {
      for (const std::string& wanted : tags_from(tag.data())) {
        const auto has = [&](const RunEntry* e) {
          return std::find(e->curation.tags.begin(), e->curation.tags.end(), wanted) != e->curation.tags.end();
        };
        const bool all = std::all_of(entries.begin(), entries.end(), has);
        curate(all ? "Removed tag " + wanted + " from" : "Added tag " + wanted + " to", entries, commands,
               [&](Curation& curation) {
                 std::erase(curation.tags, wanted);
                 if (!all) curation.tags.push_back(wanted);
               });
      }
      tag[0] = 0;
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace stepladder
