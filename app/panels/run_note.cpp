#include "app/panels/run_note.h"

#include <imgui.h>

#include <cstdio>
#include <string>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"

namespace stepladder {

void RunNote::show(const Curation& curation) {
  std::snprintf(tags.data(), tags.size(), "%s", tags_text(curation.tags).c_str());
  std::snprintf(note.data(), note.size(), "%s", curation.note.c_str());
}

void RunNote::draw(const RunEntry& shown, Commands& commands) {
  ImGui::AlignTextToFramePadding();
  text_quiet("tags");
  ImGui::SameLine(px(60));
  ImGui::SetNextItemWidth(-1);
  ImGui::InputTextWithHint("##tags", "separated by commas", tags.data(), tags.size());
  const bool tags_done = ImGui::IsItemDeactivatedAfterEdit();
  mark("run.tags");
  ImGui::AlignTextToFramePadding();
  text_quiet("note");
  ImGui::SameLine(px(60));
  ImGui::InputTextMultiline("##note", note.data(), note.size(), ImVec2(-1, ImGui::GetContentRegionAvail().y),
                            ImGuiInputTextFlags_WordWrap);
  const bool note_done = ImGui::IsItemDeactivatedAfterEdit();
  mark("run.note");
  if (!tags_done && !note_done) return;
  Curation changed = shown.curation;
  changed.tags = tags_from(tags.data());
  changed.note = note.data();
  commands.push_back(Curate{"Changed the " + std::string(tags_done ? "tags" : "note") + " of " + shown.run.name,
                            {{shown.run.id, changed}}});
}

}  // namespace stepladder
