// Imports a profiler's trace on a thread of its own. Lives on the UI thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "storage/database/traces/trace_store.h"

namespace stepladder {

struct ImportedTrace {
  TraceId id = 0;  // 0: it failed, or was stopped
  std::string name;
  std::vector<std::string> notes;
  std::string problem;
  bool is_stopped = false;
};

class TraceImportJob {
 public:
  explicit TraceImportJob(std::function<void()> wake) : wake_(std::move(wake)) {}
  ~TraceImportJob();  // stops reading; keeps nothing then
  TraceImportJob(const TraceImportJob&) = delete;
  TraceImportJob& operator=(const TraceImportJob&) = delete;

  // Each file becomes a trace of its own, one after the other; files of one trace's ranks are one.
  void add(const std::filesystem::path& database, std::vector<std::string> files);
  // Stops reading, unless the trace is being kept by now, and forgets the files that wait.
  void stop();
  bool is_busy() const { return thread_.joinable(); }
  std::string file() const { return is_busy() ? reading_ : ""; }
  std::size_t waiting() const { return waiting_.size(); }
  double share() const { return share_; }  // that has been read

  // The next result, once. `wake` was called when it was there.
  std::optional<ImportedTrace> take();

 private:
  struct Asked {
    std::filesystem::path database;
    std::vector<std::string> files;
  };
  void start_next();

  std::function<void()> wake_;
  std::vector<Asked> waiting_;
  std::string reading_;
  std::thread thread_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> done_ = false;
  std::atomic<double> share_ = 0;
  ImportedTrace result_;  // owned by the thread until done_
};

}  // namespace stepladder
