#include <fmt/core.h>
#include <imgui.h>

#include <algorithm>
#include <string>

#include "app/desktop/commands/curation_commands.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/run/parts.h"

namespace stepladder {
namespace {

constexpr double pause_seconds = 3;

int grow(ImGuiInputTextCallbackData* data) {
  auto& text = *static_cast<std::string*>(data->UserData);
  text.resize(static_cast<std::size_t>(data->BufTextLen));
  data->Buf = text.data();
  return 0;
}

// A field for text of any length; `height` 0: one line. Escape keeps the typed text, which ImGui would revert. Returns
// whether the field is active.
bool text_field(const char* id, const char* hint, std::string& text, float height, double& typed_at) {
  const std::string typed = text;
  const bool changed = height > 0 ? ImGui::InputTextMultiline(
                                        id, text.data(), text.capacity() + 1, ImVec2(-1, height),
                                        ImGuiInputTextFlags_WordWrap | ImGuiInputTextFlags_CallbackResize, grow, &text)
                                  : ImGui::InputTextWithHint(id, hint, text.data(), text.capacity() + 1,
                                                             ImGuiInputTextFlags_CallbackResize, grow, &text);
  if (changed && ImGui::IsKeyPressed(ImGuiKey_Escape)) text = typed;
  if (changed) typed_at = ImGui::GetTime();
  return ImGui::IsItemActive();
}

}  // namespace

void RunNote::take(const Curation& curation) {
  seen_ = kept_ = curation;
  tags_ = tags_text(curation.tags);
  note_ = curation.note;
}

void RunNote::show(const RunEntry& run, Commands& commands) {
  keep(commands);
  run_ = run.run.id;
  name_ = run.run.name;
  take(run.curation);
}

void RunNote::keep(Commands& commands) {
  Curation typed = kept_;
  typed.tags = tags_from(tags_);
  typed.note = note_;
  const CurationChange change = change_between(kept_, typed);
  if (run_ == 0 || change.empty()) return;
  commands.push_back(Curate{fmt::format("Changed the {} of {}", change.note ? "note" : "tags", name_), {run_}, change});
  kept_ = std::move(typed);
}

void RunNote::draw(const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  const Curation& now = shown.curation;
  const auto shows = [&now](const Curation& other) { return now.tags == other.tags && now.note == other.note; };
  if (shows(kept_))
    seen_ = now;
  else if (!shows(seen_) && !is_typing_)  // else a change waits for a locked file
    take(now);                            // changed by Ctrl+Z, or in History
  ImGui::PushID(static_cast<int>(run_));  // so that typed text doesn't move to another run
  ImGui::AlignTextToFramePadding();
  text_quiet("tags");
  ImGui::SameLine(px(60));
  ImGui::SetNextItemWidth(-1);
  begin_change(workspace);
  is_typing_ = text_field("##tags", "comma-separated", tags_, 0, typed_at_);
  mark("run.tags");
  ImGui::AlignTextToFramePadding();
  text_quiet("note");
  ImGui::SameLine(px(60));
  is_typing_ |= text_field("##note", "", note_, std::max(px(60), ImGui::GetContentRegionAvail().y), typed_at_);
  mark("run.note");
  end_change(workspace);
  ImGui::PopID();
  if (!is_typing_ || ImGui::GetTime() - typed_at_ > pause_seconds) keep(commands);
}

}  // namespace stepladder
