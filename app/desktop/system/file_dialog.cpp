#include "app/desktop/system/file_dialog.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/desktop/system/portal_dialog.h"
#include "app/process/run_program.h"

namespace stepladder {
namespace {

using Kind = FileQuestion::Kind;
using Words = std::vector<std::string>;

constexpr std::chrono::hours dialog_patience{24};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

Words zenity(const FileQuestion& question) {
  Words command{"zenity", "--file-selection", "--title=" + question.title};
  if (question.kind == Kind::folder) command.emplace_back("--directory");
  if (question.kind == Kind::files) {
    command.emplace_back("--multiple");
    command.emplace_back("--separator=\n");
  }
  return command;
}

Words kdialog(const FileQuestion& question) {
  Words command{"kdialog", "--title", question.title};
  if (question.kind == Kind::folder) {
    command.insert(command.end(), {"--getexistingdirectory", "."});
  } else {
    command.insert(command.end(), {"--getopenfilename", "."});
    if (question.kind == Kind::files) command.insert(command.end(), {"--multiple", "--separate-output"});
  }
  return command;
}

}  // namespace

FileAnswer ask_for_file(const FileQuestion& question, const std::atomic<bool>& cancelled) {
  if (const auto answer = ask_portal_for_file(question, cancelled)) return *answer;
  for (const Words& command : {zenity(question), kdialog(question)}) {
    const ProgramResult end = run_program(command, std::chrono::steady_clock::now() + dialog_patience, Afterwards::kill,
                                          [&] { return cancelled.load(); });
    if (!end.started) continue;
    // Both exit with 1 if the user cancels.
    return {.paths = end.succeeded() ? lines_of(end.output) : std::vector<std::string>{}, .problem = {}};
  }
  return {.paths = {},
          .problem =
              "This desktop has no dialog for files: there is no portal (xdg-desktop-portal), zenity or kdialog. "
              "Drop the file on the window instead, or type its path where there is a field for it."};
}

void open_dialog(FileDialog& dialog, FileQuestion question) {
  if (dialog.is_active()) return;
  dialog.start(
      [question = std::move(question)](const JobControl& job) { return ask_for_file(question, job.interrupted()); });
}

}  // namespace stepladder
