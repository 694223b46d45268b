// The desktop's own dialog for choosing a file: the portal's (org.freedesktop.portal.FileChooser), else that of zenity
// or kdialog.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "app/job.h"

namespace stepladder {

struct FileQuestion {
  enum class Kind { file, files, folder };
  std::string title;  // "Choose a log"
  Kind kind = Kind::file;
};

struct FileAnswer {
  std::vector<std::string> paths;  // empty: cancelled, or see `problem`
  std::string problem;             // a sentence: no dialog could be opened
};

// Blocks until the dialog is closed or `cancelled` becomes true, which closes it.
FileAnswer ask_for_file(const FileQuestion& question, const std::atomic<bool>& cancelled);

// The same on another thread: active while the dialog is open; its destructor closes the dialog.
using FileDialog = Job<FileAnswer>;
void open_dialog(FileDialog& dialog, FileQuestion question);  // does nothing while it is open

}  // namespace stepladder
