// The desktop's own dialog for choosing a file: the portal's (org.freedesktop.portal.FileChooser), else that of zenity
// or kdialog.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

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

// The same on a thread of its own. Used by one thread, the UI thread; its destructor closes the dialog.
class FileDialog {
 public:
  FileDialog() = default;
  ~FileDialog();
  FileDialog(const FileDialog&) = delete;
  FileDialog& operator=(const FileDialog&) = delete;

  void open(FileQuestion question);  // does nothing while one is open
  bool is_open() const { return thread_.joinable(); }
  std::optional<FileAnswer> take();  // once, after the dialog was closed

 private:
  std::thread thread_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> done_ = false;
  FileAnswer answer_;  // owned by the thread until done_
};

}  // namespace stepladder
