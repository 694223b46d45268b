// Draws an import's notes, which may be many thousand: their heights are computed when the width changes, and only the
// visible ones are drawn. A note's tooltip shows its line of the file.
#include <imgui.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "app/desktop/commands/export_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/import/parts.h"
#include "app/text/format.h"

namespace stepladder {

namespace {

std::string note_text(const ImportNote& note, bool several_files) {
  std::string where = several_files ? std::filesystem::path(note.file).filename().string() : "";
  if (note.line > 0) where += (where.empty() ? "line " : ", line ") + grouped(note.line);
  const bool lacks_tokens = note.text.starts_with(unknown_tokens_note);
  return where + (where.empty() ? "" : ": ") + note.text + (lacks_tokens ? "; enter them above" : "");
}

// Computes where each note begins when wrapped at this width, so that only visible ones are drawn.
void lay_out(ImportNotes& notes, float width) {
  if (notes.width == width && notes.tops.size() == notes.lines.size() + 1) return;
  notes.width = width;
  notes.tops = {0};
  for (const std::string& note : notes.lines) {
    notes.tops.push_back(notes.tops.back() + px(7) + ImGui::CalcTextSize(note.c_str(), nullptr, false, width).y);
  }
}

// The title of the notes, their count, and the button that copies them.
void draw_head(const ImportNotes& notes, const ImportPreview& import, Commands& commands) {
  // In the preview the title is on a chip.
  const bool has_title =
      import.state != ImportPreview::State::understood || import.runs.empty() || !import.failures.empty();
  if (has_title) {
    text_strong(import.runs.empty() && import.skipped.empty() && import.tables == 0 ? "No runs found"
                : import.failures.empty()                                           ? "Notes"
                                                                                    : "Unreadable files");
  } else {
    ImGui::Dummy(ImVec2(0, ImGui::GetTextLineHeight()));
  }
  if (!notes.lines.empty() || !import.failures.empty()) {
    if (has_title) {
      ImGui::SameLine();
      ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
      text_quiet(import.failures.empty() ? grouped(notes.lines.size()) : grouped(import.failures.size()));
    }
    ImGui::SameLine(ImGui::GetContentRegionMax().x - px(64));
    if (has_title) ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(6));
    ImGui::PushFont(fonts().regular, small_size);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(8), px(4)));
    if (ImGui::Button("Copy all", ImVec2(px(64), 0))) {
      std::string all;
      for (const std::string& failure : import.failures) all += failure + "\n";
      for (const ImportGrouping& grouping : import.groupings) all += grouping_text(grouping) + "\n";
      for (const ImportNote& note : import.notes)
        all += note.file + (note.line > 0 ? ":" + std::to_string(note.line) : "") + ": " + note.text + "\n";
      commands.push_back(CopyText{all, "the list of notes"});
    }
    mark("import.copy");
    ImGui::PopStyleVar();
    ImGui::PopFont();
  }
}

// The line of the file that a note is about, as it was read.
void draw_source(const ImportPreview& import, std::size_t shown) {
  if (shown < import.groupings.size()) return;
  const std::size_t i = shown - import.groupings.size();
  if (i >= import.source_lines.size() || import.source_lines[i].empty()) return;
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(px(720));
  text_quiet(std::filesystem::path(import.notes[i].file).filename().string() + ", line " +
             grouped(import.notes[i].line));
  ImGui::TextUnformatted(import.source_lines[i].c_str());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
  mark("import.source");
}

}  // namespace

ImportNotes notes_of(const ImportPreview& import) {
  std::set<std::string> files;
  for (const ImportNote& note : import.notes) files.insert(note.file);
  ImportNotes notes;
  for (const ImportGrouping& grouping : import.groupings) notes.lines.push_back(grouping_text(grouping));
  for (const ImportNote& note : import.notes) notes.lines.push_back(in_print(note_text(note, files.size() > 1)));
  return notes;
}

void draw_notes(ImportNotes& notes, const ImportPreview& import, Commands& commands) {
  draw_head(notes, import, commands);
  ImGui::BeginChild("##lines", ImVec2(0, 0));
  ImGui::PushFont(fonts().regular, 13.5f);
  ImGui::PushTextWrapPos(0);
  for (const std::string& failure : import.failures) ImGui::TextColored(palette().bad, "%s", failure.c_str());
  ImGui::PopTextWrapPos();
  if (notes.lines.empty() && import.failures.empty() && import.skipped.empty())
    text_quiet_wrapped("Nothing was skipped, assumed or inferred.");
  const float width = ImGui::GetContentRegionAvail().x;
  lay_out(notes, width);
  const float top = ImGui::GetCursorPosY();
  const float from = ImGui::GetScrollY() - top;
  const auto begin = notes.tops.begin();
  auto first = std::upper_bound(begin, notes.tops.end(), from);
  if (first != begin) --first;
  for (auto i = static_cast<std::size_t>(first - begin); i < notes.lines.size(); ++i) {
    if (notes.tops[i] > from + ImGui::GetWindowHeight()) break;
    ImGui::SetCursorPosY(top + notes.tops[i]);
    text_wrapped(notes.lines[i]);
    if (ImGui::IsItemClicked()) commands.push_back(CopyText{notes.lines[i], "the note"});
    mark("import.note." + std::to_string(i));
    if (!ImGui::IsItemHovered()) continue;
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    draw_source(import, i);
  }
  ImGui::SetCursorPosY(top + notes.tops.back());
  ImGui::Dummy(ImVec2(0, 0));
  ImGui::PopFont();
  ImGui::EndChild();
}

}  // namespace stepladder
