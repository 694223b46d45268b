// Reads files for the Import view. The lines that notes are about are read again at the end, since importers pass on
// their numbers only.
#include "app/desktop/models/import_preview.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "app/text/format.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace {

constexpr std::int64_t last_line_looked_up = 1'000'000;  // further lines of a huge log aren't worth reading it again
constexpr std::size_t longest_source_line = 400;

// The line of its file that each note is about; empty without one.
std::vector<std::string> lines_of_notes(const std::vector<ImportNote>& notes) {
  std::vector<std::string> lines(notes.size());
  std::map<std::string, std::multimap<std::int64_t, std::size_t>> wanted;  // by file and line: indices of notes
  for (std::size_t i = 0; i < notes.size(); ++i)
    if (notes[i].line > 0 && notes[i].line <= last_line_looked_up) wanted[notes[i].file].emplace(notes[i].line, i);
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

// Their runs print a value each and no steps, so that the rows alone don't say what they are.
void read_tries(ImportPreview& into, RunStore& store) {
  for (const auto& [ladder, kept] : store.tries().kept()) {
    const auto runs = std::ranges::count_if(
        into.runs, [&](const ImportPreview::PreviewRun& run) { return run.run.ladder == ladder; });
    if (runs > 0)
      into.tries.push_back(
          {.tries = std::ssize(store.tries().tries(ladder)) - 1, .kept = std::ssize(kept) - 1, .runs = runs});
  }
}

void read_into(ImportPreview& into, const std::filesystem::path& database, bool keeps, JobControl& job) {
  const ImportQuestion& asked = into.asked;
  ImportRequest request{.paths = asked.paths,
                        .text = asked.text,
                        .options = asked.options,
                        .choices = asked.choices,
                        .interrupted = [&job] { return job.is_interrupted(); },
                        .begins = [&job](const std::string& file) { job.begin_item(file); }};
  if (!asked.again && !database.empty()) {
    RunStore project = RunStore::open(database, RunStore::Mode::read_only);
    request.in_project = imported_contents(project);
  }
  std::optional<RunStore> store;
  const auto open = [&]() -> RunStore& {
    if (!store) store.emplace(keeps ? RunStore::open(database) : RunStore::in_memory());
    return *store;
  };
  ImportOutcome outcome = import_into(open, request);
  for (Run& imported : outcome.runs) into.runs.push_back({.run = std::move(imported)});
  for (ImportPreview::PreviewRun& run : into.runs) {
    run.summary = store->summary(run.run);
    if (!keeps) run.series = store->series(run.run.id);
    for (const std::int64_t step : run.series.step) run.steps.push_back(static_cast<double>(step));
  }
  if (store && !into.runs.empty()) read_tries(into, *store);
  into.notes = std::move(outcome.notes);
  into.source_lines = lines_of_notes(into.notes);
  into.groupings = std::move(outcome.groupings);
  into.formats = std::move(outcome.formats);
  into.failures = std::move(outcome.failures);
  into.skipped = std::move(outcome.skipped);
  into.traces = std::move(outcome.traces);
  into.paths_done = outcome.paths_done;
  into.tables = std::ssize(outcome.passes) + outcome.has_published;
  if (outcome.error) std::rethrow_exception(outcome.error);
}

}  // namespace

std::string contents_text(const ImportPreview& import) {
  std::vector<std::string> parts;
  std::int64_t tries = 0;
  for (const ImportPreview::ReadTries& series : import.tries) tries += series.tries;
  const std::string of_tries = tries > 0 ? " of " + plural(tries, "try", "tries") : "";
  if (!import.runs.empty()) parts.push_back(plural(std::ssize(import.runs), "run") + of_tries);
  if (import.tables > 0) parts.push_back(plural(import.tables, "table"));
  if (!import.traces.empty()) parts.push_back(plural(std::ssize(import.traces), "trace"));
  if (parts.empty()) return "nothing";
  std::string text = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) text += (i + 1 < parts.size() ? ", " : " and ") + parts[i];
  return text;
}

ImportPreview read_import(const ImportQuestion& asked, const std::filesystem::path& database, bool keeps,
                          JobControl& job) {
  ImportPreview preview{.state = keeps ? ImportPreview::State::kept : ImportPreview::State::understood, .asked = asked};
  try {
    read_into(preview, database, keeps, job);
  } catch (const std::exception& error) {  // StorageError: the disk
    preview.failures.push_back(error_text(error));
    if (keeps) preview.not_stored = preview.failures.back();
  }
  preview.progress = job.progress();
  return preview;
}

}  // namespace stepladder
