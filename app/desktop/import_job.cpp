#include "app/desktop/import_job.h"

#include <optional>
#include <utility>

namespace stepladder {

void ImportJob::cancel() {
  cancelled_ = true;
  if (thread_.joinable()) thread_.join();
  cancelled_ = done_ = false;
}

void ImportJob::preview(PreviewImport asked) {
  start(std::move(asked), nullptr);
}

void ImportJob::keep(const std::filesystem::path& database, PreviewImport asked) {
  start(std::move(asked), &database);
}

void ImportJob::start(PreviewImport asked, const std::filesystem::path* database) {
  cancel();
  result_ = {};
  result_.asked = asked;
  result_.number = ++readings_;
  {
    const MutexLock lock(progress_mutex_);
    file_.clear();
    files_begun_ = 0;
  }
  result_.state = database ? ImportPreview::State::kept : ImportPreview::State::understood;
  const std::filesystem::path file = database ? *database : std::filesystem::path();
  thread_ = std::thread([this, file, into_file = database != nullptr] {
    try {
      std::optional<RunStore> store;
      const auto open = [&]() -> RunStore& {
        if (!store) store.emplace(into_file ? RunStore::open(file) : RunStore::in_memory());
        return *store;
      };
      ImportOutcome outcome = import_into(open, {.paths = result_.asked.paths,
                                                 .text = result_.asked.text,
                                                 .options = result_.asked.options,
                                                 .interrupted = [this] { return cancelled_.load(); },
                                                 .begins =
                                                     [this](const std::string& name) {
                                                       const MutexLock lock(progress_mutex_);
                                                       file_ = name;
                                                       ++files_begun_;
                                                     }});
      for (Run& imported : outcome.runs) {
        ImportPreview::PreviewRun run{.run = std::move(imported)};
        run.summary = store->summary(run.run);
        if (!into_file) run.series = store->series(run.run.id);
        for (const std::int64_t step : run.series.step) run.steps.push_back(static_cast<double>(step));
        result_.runs.push_back(std::move(run));
      }
      result_.notes = std::move(outcome.notes);
      result_.groupings = std::move(outcome.groupings);
      result_.formats = std::move(outcome.formats);
      result_.failures = std::move(outcome.failures);
    } catch (const std::exception& error) {  // StorageError: the disk
      result_.failures.push_back(error.what());
    }
    done_ = true;
    wake_();
  });
}

void ImportJob::tell_progress(ImportPreview& shown) {
  const MutexLock lock(progress_mutex_);
  shown.file = file_;
  shown.files_begun = files_begun_;
}

bool ImportJob::take(ImportPreview& into) {
  if (!done_) return false;
  thread_.join();
  done_ = false;
  into = std::exchange(result_, {});
  return true;
}

}  // namespace stepladder
