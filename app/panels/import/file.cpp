// The popup for one previewed file: role, name, order, tokens per step. Each change is a new preview command with all
// choices, so what is shown is always what an import would store.
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "app/desktop/commands/import_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/import/parts.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

using Role = FileChoice::Role;

constexpr auto names_of_roles =
    by_enum<Role>("By the evidence", "A rung", "Repeat of the rung before it", "Apart, in no ladder");

FileChoice choice_of(const ImportPreview& import, const std::string& path) {
  const auto found = import.asked.choices.find(path);
  return found == import.asked.choices.end() ? FileChoice{} : found->second;
}

// The files of the same folder, in the order of the preview.
std::vector<std::string> files_beside(const ImportPreview& import, const std::string& path) {
  std::vector<std::string> files;
  for (const ImportPreview::PreviewRun& run : import.runs) {
    const std::string& file = run.run.source_path;
    if (run.run.ladder && std::filesystem::path(file).parent_path() == std::filesystem::path(path).parent_path())
      files.push_back(file);
  }
  return files;
}

void read_again(const ImportPreview& import, FileChoices choices, Commands& commands) {
  ImportQuestion again = import.asked;
  again.choices = std::move(choices);
  commands.push_back(PreviewImport{std::move(again)});
}

void choose(const ImportPreview& import, const std::string& path, const FileChoice& choice, Commands& commands) {
  FileChoices choices = import.asked.choices;
  choices[path] = choice;
  read_again(import, std::move(choices), commands);
}

void move(const ImportPreview& import, const std::string& path, int by, Commands& commands) {
  std::vector<std::string> files = files_beside(import, path);
  const auto at = std::ranges::find(files, path);
  if (at == files.end()) return;
  const std::ptrdiff_t to = at - files.begin() + by;
  if (to < 0 || to >= std::ssize(files)) return;
  std::iter_swap(at, files.begin() + to);
  FileChoices choices = import.asked.choices;
  for (std::size_t i = 0; i < files.size(); ++i) choices[files[i]].order = static_cast<int>(i);
  read_again(import, std::move(choices), commands);
}

}  // namespace

void ImportFile::open(const ImportPreview& import, std::size_t run) {
  const Run& shown = import.runs[run].run;
  path = shown.source_path;
  const std::string chosen = choice_of(import, path).name;
  std::snprintf(name.data(), name.size(), "%s",
                (!chosen.empty() ? chosen
                 : shown.ladder  ? shown.stage
                                 : shown.name)
                    .c_str());
  tokens.show(static_cast<double>(choice_of(import, path).tokens_per_step));
  opens = true;
}

void draw_import_file(ImportFile& file, const ImportPreview& import, Commands& commands) {
  if (std::exchange(file.opens, false)) ImGui::OpenPopup("##file");
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  if (ImGui::BeginPopup("##file")) {
    FileChoice choice = choice_of(import, file.path);
    text_quiet(std::filesystem::path(file.path).filename().string());
    ImGui::SetNextItemWidth(px(280));
    ImGui::InputTextWithHint("##name", "Name of the rung", file.name.data(), file.name.size());
    mark("import.file.name");
    if (ImGui::IsItemDeactivatedAfterEdit()) {
      choice.name = file.name.data();
      choose(import, file.path, choice, commands);
    }
    text_quiet("Tokens per step of this file");
    ImGui::SetNextItemWidth(px(280));
    double tokens = choice.tokens_per_step > 0 ? static_cast<double>(choice.tokens_per_step) : missing;
    if (file.tokens.draw("##file_tokens", "from the file", tokens)) {
      choice.tokens_per_step = is_missing(tokens) ? 0 : std::llround(tokens);
      choose(import, file.path, choice, commands);
    }
    mark("import.file.tokens");
    for (const Role role : enumerators<Role>()) {
      if (ImGui::RadioButton(names_of_roles[role], choice.role == role)) {
        choice.role = role;
        choose(import, file.path, choice, commands);
      }
      mark("import.file.role." + std::to_string(static_cast<int>(role)));
    }
    const std::vector<std::string> files = files_beside(import, file.path);
    ImGui::BeginDisabled(files.size() < 2 || files.front() == file.path);
    if (quiet_button("Move up", "import.file.up")) move(import, file.path, -1, commands);
    ImGui::EndDisabled();
    same_line(8);
    ImGui::BeginDisabled(files.size() < 2 || files.back() == file.path);
    if (quiet_button("Move down", "import.file.down")) move(import, file.path, 1, commands);
    ImGui::EndDisabled();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace stepladder
