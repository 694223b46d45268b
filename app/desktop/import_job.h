// Reads files for the Import view on a thread of its own: first into memory for the preview, then into the database.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "app/desktop/workspace.h"
#include "storage/thread_safety.h"

namespace stepladder {

// Lives on the UI thread; `wake` is called on the job's thread when it is done.
class ImportJob {
 public:
  explicit ImportJob(std::function<void()> wake) : wake_(std::move(wake)) {}
  ~ImportJob() { cancel(); }
  ImportJob(const ImportJob&) = delete;
  ImportJob& operator=(const ImportJob&) = delete;

  // Stops reading, if it is; an import into the database keeps nothing of the path that it was reading.
  void cancel();

  // Both leave out what `database` has already, unless asked otherwise, through a connection of their own. Previews
  // need none.
  void preview(const std::filesystem::path& database, PreviewImport asked);
  void keep(const std::filesystem::path& database, PreviewImport asked);

  // Moves the result into `into`, once. Returns whether there was one.
  bool take(ImportPreview& into);

  // Fills in the file that is being read.
  void tell_progress(ImportPreview& shown);

 private:
  void start(PreviewImport asked, const std::filesystem::path& database, bool keeps);
  void read(const std::filesystem::path& database, bool keeps);  // on the thread

  std::function<void()> wake_;
  std::thread thread_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> done_ = false;
  ImportPreview result_;  // owned by the thread until done_
  int readings_ = 0;
  Mutex progress_mutex_;
  std::string file_ GUARDED_BY(progress_mutex_);
  int files_begun_ GUARDED_BY(progress_mutex_) = 0;
};

}  // namespace stepladder
