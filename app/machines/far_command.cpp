#include "app/machines/far_command.h"

#include <utility>

namespace stepladder {

FarCommand stepladder_there(const Machine& machine, const std::vector<std::string>& words, bool writes_journals) {
  const std::string script =
      "PATH=\"$HOME/.local/bin:${STEPLADDER_DIR%/runs/*}/venv/bin:$PATH\"; export PATH; exec \"$0\" \"$@\"" +
      std::string(writes_journals ? " --journal \"$STEPLADDER_DIR\"" : "");
  FarCommand command{
      .kind = words.front(),
      .name = words.front() + " on " + machine.alias.text(),
      .command = {"/bin/sh", "-c", script, machine.program.empty() ? "stepladder" : machine.program.text()}};
  command.command.insert(command.command.end(), words.begin(), words.end());
  return command;
}

std::vector<std::string> words_of(std::string_view command_line) {
  std::vector<std::string> words;
  std::string word;
  bool is_quoted = false, has_word = false;
  for (std::size_t i = 0; i < command_line.size(); ++i) {
    const char c = command_line[i];
    if (c == '\'') {
      is_quoted = !is_quoted;
      has_word = true;
    } else if (!is_quoted && c == '\\' && i + 1 < command_line.size()) {
      word += command_line[++i];
      has_word = true;
    } else if (!is_quoted && c == ' ') {
      if (has_word) words.push_back(std::exchange(word, {}));
      has_word = false;
    } else {
      word += c;
      has_word = true;
    }
  }
  if (has_word) words.push_back(word);
  return words;
}

std::vector<std::string> words_of(const LadderRequest& request, const std::vector<SweptValue>& swept) {
  std::vector<std::string> words = words_of(swept.empty() ? command_line_of(request) : command_line_of(request, swept));
  words.erase(words.begin());
  return words;
}

FarLadder ladder_there(const Machine& machine, LadderRequest request, const std::vector<SweptValue>& swept,
                       const std::filesystem::path& shipped_text) {
  const bool sends_text = !request.base.data.empty() && request.base.data == shipped_text.string();
  if (sends_text) request.base.data = shipped_text.filename().string();
  FarLadder ladder{.command = stepladder_there(machine, words_of(request, swept)), .files = std::nullopt};
  if (machine.uses_slurm) ladder.command.slurm = machine.slurm;
  if (!sends_text) return ladder;
  ladder.files.emplace(PackedFiles::of(shipped_text.parent_path(), shipped_text.filename().string() + '\0'));
  ladder.command.tree = ladder.files->archive();
  return ladder;
}

}  // namespace stepladder
