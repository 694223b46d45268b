#include "app/desktop/import_job.h"

#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "storage/regular_file.h"

namespace stepladder {
namespace {

constexpr std::int64_t last_line_looked_up = 1'000'000;  // further lines of a huge log aren't worth reading it again
constexpr std::size_t longest_source_line = 400;

// The line of its file that each note is about; empty without one.
std::vector<std::string> lines_of_notes(const std::vector<ImportNote>& notes) {
  std::vector<std::string> lines(notes.size());
  std::map<std::string, std::multimap<std::int64_t, std::size_t>> wanted;  // by file and line: indices of notes
  for (std::size_t i = 0; i < notes.size(); ++i) {
    if (notes[i].line > 0 && notes[i].line <= last_line_looked_up) wanted[notes[i].file].emplace(notes[i].line, i);
  }
  constexpr auto all = std::numeric_limits<std::streamsize>::max();
  for (const auto& [file, places] : wanted) {
    RegularFile in(file);
    std::int64_t next = 1;  // the line at which `in` is
    std::string text;       // the line before it
    for (const auto& [line, note] : places) {
      for (; next < line && in.ignore(all, '\n'); ++next) {
      }
      if (next == line) {
        std::array<char, longest_source_line> start{};
        in.get(start.data(), start.size(), '\n');
        text = start.data();
        if (text.ends_with('\r')) text.pop_back();
        if (text.empty()) in.clear();  // as `get` reports an empty line
        in.ignore(all, '\n');
        ++next;
      }
      if (next != line + 1) break;
      lines[note] = text;
    }
  }
  return lines;
}

}  // namespace

void ImportJob::cancel() {
  cancelled_ = true;
  if (thread_.joinable()) thread_.join();
  cancelled_ = done_ = false;
}

void ImportJob::preview(const std::filesystem::path& database, PreviewImport asked) {
  start(std::move(asked), database, false);
}

void ImportJob::keep(const std::filesystem::path& database, PreviewImport asked) {
  start(std::move(asked), database, true);
}

void ImportJob::start(PreviewImport asked, const std::filesystem::path& database, bool keeps) {
  cancel();
  result_ = {};
  result_.asked = std::move(asked);
  result_.number = ++readings_;
  {
    const MutexLock lock(progress_mutex_);
    file_.clear();
    files_begun_ = 0;
  }
  result_.state = keeps ? ImportPreview::State::kept : ImportPreview::State::understood;
  thread_ = std::thread([this, database, keeps] {
    try {
      read(database, keeps);
    } catch (const std::exception& error) {  // StorageError: the disk
      result_.failures.push_back(error.what());
    }
    done_ = true;
    wake_();
  });
}

void ImportJob::read(const std::filesystem::path& database, bool keeps) {
  ImportRequest request{.paths = result_.asked.paths,
                        .text = result_.asked.text,
                        .options = result_.asked.options,
                        .choices = result_.asked.choices,
                        .interrupted = [this] { return cancelled_.load(); },
                        .begins =
                            [this](const std::string& name) {
                              const MutexLock lock(progress_mutex_);
                              file_ = name;
                              ++files_begun_;
                            }};
  if (!result_.asked.again && !database.empty()) {
    RunStore project = RunStore::open(database, RunStore::Mode::read_only);
    request.in_project = imported_contents(project);
  }
  std::optional<RunStore> store;
  const auto open = [&]() -> RunStore& {
    if (!store) store.emplace(keeps ? RunStore::open(database) : RunStore::in_memory());
    return *store;
  };
  ImportOutcome outcome = import_into(open, request);
  for (Run& imported : outcome.runs) {
    ImportPreview::PreviewRun run{.run = std::move(imported)};
    run.summary = store->summary(run.run);
    if (!keeps) run.series = store->series(run.run.id);
    for (const std::int64_t step : run.series.step) run.steps.push_back(static_cast<double>(step));
    result_.runs.push_back(std::move(run));
  }
  result_.notes = std::move(outcome.notes);
  result_.source_lines = lines_of_notes(result_.notes);
  result_.groupings = std::move(outcome.groupings);
  result_.formats = std::move(outcome.formats);
  result_.failures = std::move(outcome.failures);
  result_.skipped = std::move(outcome.skipped);
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
