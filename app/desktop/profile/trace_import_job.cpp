#include "app/desktop/profile/trace_import_job.h"

#include <utility>

#include "app/import/trace_import.h"
#include "storage/database/traces/trace_details.h"

namespace stepladder {
namespace {

struct Cancelled {};

}  // namespace

TraceImportJob::~TraceImportJob() {
  cancelled_ = true;
  if (thread_.joinable()) thread_.join();
}

void TraceImportJob::add(const std::filesystem::path& database, std::vector<std::string> files) {
  for (std::string& file : files) waiting_.push_back({database, {std::move(file)}});
  if (!is_busy()) start_next();
}

void TraceImportJob::stop() {
  waiting_.clear();
  cancelled_ = true;
}

void TraceImportJob::start_next() {
  if (waiting_.empty()) return;
  const Asked asked = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  reading_ = std::filesystem::path(asked.files.front()).filename().string();
  share_ = 0;
  cancelled_ = false;
  result_ = {};
  thread_ = std::thread([this, asked] {
    try {
      const ReadTrace read = read_traces({.files = asked.files}, [this](double share) {
        share_ = share;
        if (cancelled_) throw Cancelled();
      });
      if (cancelled_) throw Cancelled();
      RunStore store = RunStore::open(asked.database);
      result_.id = keep_trace(store.traces(), read.trace, read.process);
      result_.name = read.trace.name;
      result_.notes = read.process.profile.notes;
    } catch (const Cancelled&) {
      result_.is_stopped = true;
    } catch (const std::exception& error) {  // StorageError: the file, or the disk
      result_.problem = error.what();
    }
    done_ = true;
    wake_();
  });
}

std::optional<ImportedTrace> TraceImportJob::take() {
  if (!done_) return std::nullopt;
  thread_.join();
  done_ = false;
  ImportedTrace result = std::exchange(result_, {});
  start_next();
  return result;
}

}  // namespace stepladder
