// `stepladder import`: runs app/import/import.h and prints its outcome. The database is opened for the first run only,
// so a failed import creates no file. The run numbers that it prints are what `bin` needs to undo it.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/profile/trace_commands.h"
#include "app/cli/profile/trace_report.h"
#include "app/cli/progress.h"
#include "app/exit_status.h"
#include "app/host/scratch_folder.h"
#include "app/import/file_input.h"
#include "app/import/import.h"
#include "app/profile/pass_report.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"
#include "storage/traces/trace_file.h"

namespace stepladder {
namespace {

constexpr std::size_t most_notes_shown = 40;  // on a terminal; JSON has all of them

struct ImportFlags {
  ImportRequest request;
  bool repeats = false;
  bool flat = false;
  bool again = false;
  bool is_dry = false;
};

Json outcome_json(const std::vector<RunAndSummary>& rows, const ImportOutcome& outcome,
                  const std::vector<std::string>& failures, const RunContext& context) {
  Json runs = Json::array(), notes = Json::array(), groupings = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Json run = run_json(rows[i].run, rows[i].summary, context);
    run["unit"] = text_or_null(outcome.runs[i].printed.unit);
    runs.push_back(std::move(run));
  }
  for (const ImportNote& note : outcome.notes)
    notes.push_back({{"file", note.file}, {"line", note.line > 0 ? Json(note.line) : Json()}, {"text", note.text}});
  Json json = {{"runs", runs}, {"notes", notes}, {"traces", Json::array()}, {"passes", Json::array()}};
  for (const ImportGrouping& it : outcome.groupings) {
    groupings.push_back({{"folder", it.folder},
                         {"files", it.files},
                         {"decision", to_string(it.decision.files)},
                         {"asked", it.asked},
                         {"reason", it.decision.reason}});
  }
  json["groupings"] = groupings;
  Json skipped = Json::array();
  for (const SkippedImport& it : outcome.skipped) skipped.push_back({{"file", it.file}, {"runs", it.runs}});
  json["skipped"] = skipped;
  json["errors"] = failures;
  return json;
}

void print_notes(const ImportOutcome& outcome, bool is_dry) {
  for (const ImportGrouping& grouping : outcome.groupings) {
    // Files of known configurations aren't repeats, whatever one asks for.
    const bool are_known = !grouping.decision.titles.empty();
    std::cerr << notes_text("stepladder: " + grouping_text(grouping) +
                            (grouping.asked || are_known                    ? ""
                             : grouping.decision.files != FilesAre::repeats ? " (--as-repeats overrides this)"
                                                                            : " (--flat overrides this)"));
  }
  for (std::size_t i = 0; i < std::min(outcome.notes.size(), most_notes_shown); ++i) {
    const ImportNote& note = outcome.notes[i];
    const std::string remedy = !note.text.starts_with(unknown_tokens_note) ? ""
                               : is_dry                                    ? "; --tokens-per-step N gives them"
                                        : "; --again --tokens-per-step N imports it with them";
    std::cerr << notes_text(note.file + (note.line > 0 ? fmt::format(":{}", note.line) : "") + ": " + note.text +
                            remedy);
  }
  if (outcome.notes.size() > most_notes_shown)
    std::cerr << "and " << outcome.notes.size() - most_notes_shown << " more notes; --json lists all\n";
}

// Prints the runs' numbers, since these undo the import.
void print_numbers(const ImportOutcome& outcome) {
  if (outcome.runs.empty()) return;
  std::vector<RunId> ids = ids_of(outcome.runs);
  std::ranges::sort(ids);
  const std::string range = ids.size() > 2 && ids.back() - ids.front() + 1 == std::ssize(ids)
                                ? fmt::format("{}-{}", ids.front(), ids.back())
                                : std::string();
  std::string numbers = range;
  for (std::size_t i = 0; range.empty() && i < ids.size(); ++i) numbers += (i ? " " : "") + std::to_string(ids[i]);
  std::cerr << "stepladder: imported " << run_numbers_text(ids) << "; `stepladder bin " << numbers << "` undoes it\n";
}

// Finishes deletions, of killed imports for example. The import itself is complete, so an error here isn't reported.
void finish_deletions(std::optional<RunStore>& store) {
  try {
    if (store) store->bin().finish_deletions(say_deletions());
  } catch (const StorageError&) {  // a later call tries again
  }
}

int report_failures(const std::vector<std::string>& failures) {
  for (const std::string& sentence : failures) report_error(harmless(sentence));
  return failures.empty() ? exit_done : exit_failed;
}

// Standard input that is a trace, in a file: traces are read twice.
std::filesystem::path trace_in_file(ImportInput& input, const ScratchFolder& folder) {
  const std::filesystem::path file = folder.path() / "standard input";
  std::ofstream out(file, std::ios::binary);
  for (std::string_view piece = input.next(); !piece.empty() && out; piece = input.next())
    out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
  if (!out.flush()) throw StorageError(file.string() + " can't be written: is the disk full?");
  return file;
}

// Takes the profilers' traces out of the paths.
std::vector<std::string> traces_of(std::vector<std::string>& paths) {
  std::vector<std::string> traces;
  std::erase_if(paths, [&](const std::string& path) {
    const bool is_trace = path != "-" && looks_like_trace(path);
    if (is_trace) traces.push_back(path);
    return is_trace;
  });
  return traces;
}

// Keeps each as a trace, or says that it would. Returns false if it was interrupted.
bool take_traces(const std::vector<std::string>& files, bool again, bool is_dry, const CommonOptions& common,
                 std::vector<StoredTrace>& traces, std::vector<std::string>& failures, bool are_temporary = false) {
  for (const std::string& file : files) {
    const std::string shown = are_temporary ? "standard input" : harmless(file);
    if (is_dry) {
      std::cerr << "stepladder: " << shown << " would be imported as a profiler's trace\n";
      continue;
    }
    try {
      std::optional<StoredTrace> trace =
          import_trace({.files = {file}, .are_temporary = are_temporary}, "", again, common);
      if (!trace) return false;
      if (!common.json && files.size() == 1)
        std::cout << trace_text(*trace, false, false);
      else
        std::cerr << "stepladder: trace " << trace->id << " is of " << shown << "; `stepladder profile show "
                  << trace->id << "` shows it\n";
      traces.push_back(std::move(*trace));
    } catch (const StorageError& error) {
      failures.emplace_back(error.what());
    }
  }
  return true;
}

// Standard input that can't be read, or is a trace, isn't left for the importers. False if the user interrupted.
bool take_standard_input(ImportRequest& request, std::optional<FileInput>& input, bool again, bool is_dry,
                         const CommonOptions& common, std::vector<StoredTrace>& traces,
                         std::vector<std::string>& failures) {
  const auto piped = std::ranges::find(request.paths, "-");
  if (piped == request.paths.end()) return true;
  request.standard_input = &input.emplace(STDIN_FILENO, request.interrupted);
  try {
    if (!begins_like_trace(input->head())) return true;
    request.paths.erase(piped);
    const ScratchFolder folder("stepladder-import");
    return take_traces({trace_in_file(*input, folder).string()}, again, is_dry, common, traces, failures, true);
  } catch (const InputInterrupted&) {
    return false;
  } catch (const ImportError& error) {
    failures.push_back(std::string("standard input: ") + error.what());
    std::erase(request.paths, "-");
  } catch (const StorageError& error) {
    failures.emplace_back(error.what());
  }
  return true;
}

// A dry run imports into memory, and gives the runs no numbers.
int run_import(ImportRequest request, bool again, bool is_dry, const CommonOptions& common) {
  std::vector<std::string> failures;
  std::vector<StoredTrace> traces;
  if (!take_traces(traces_of(request.paths), again, is_dry, common, traces, failures)) return exit_interrupted;
  std::optional<FileInput> input;
  if (!take_standard_input(request, input, again, is_dry, common, traces, failures)) return exit_interrupted;
  if (request.paths.empty() && !common.json) return report_failures(failures);
  std::optional<RunStore> store;
  const auto open = [&]() -> RunStore& {
    if (!store) store.emplace(is_dry ? RunStore::in_memory() : RunStore::open(common.database));
    return *store;
  };
  if (const std::string unknown = unknown_hardware(request.options.hardware); !unknown.empty())
    std::cerr << "stepladder: " << unknown << "\n";
  if (!again && std::filesystem::exists(common.database)) {
    std::optional<RunStore> read = is_dry ? open_to_read(common.database) : std::nullopt;
    request.in_project = imported_contents(read ? *read : open());
  }
  const ImportOutcome outcome = request.paths.empty() ? ImportOutcome{} : import_into(open, request);
  if (outcome.error) {
    if (!is_dry && !common.json) print_numbers(outcome);
    std::rethrow_exception(outcome.error);
  }
  failures.insert(failures.end(), outcome.failures.begin(), outcome.failures.end());
  if (!outcome.interrupted && !take_traces(outcome.traces, again, is_dry, common, traces, failures))
    return exit_interrupted;
  report_failures(failures);
  const RunContext context = load_run_context(store ? &*store : nullptr);
  std::vector<RunAndSummary> rows;
  std::vector<Summary> summaries;
  if (!outcome.runs.empty()) summaries = store->summaries(outcome.runs);
  for (std::size_t i = 0; i < outcome.runs.size(); ++i) rows.push_back({outcome.runs[i], std::move(summaries[i])});
  if (common.json) {
    Json json = outcome_json(rows, outcome, failures, context);
    for (Json& run : json["runs"])
      if (is_dry) run["id"] = run["ladder"] = nullptr;
    json["dry_run"] = is_dry;
    for (const StoredTrace& trace : traces) json["traces"].push_back(trace_json(trace));
    for (const StoredPasses& passes : outcome.passes) json["passes"].push_back(passes_json(passes));
    print(json);
  } else {
    if (!rows.empty()) std::cout << runs_table(rows, context);
    print_notes(outcome, is_dry);
    for (const SkippedImport& skipped : outcome.skipped)
      std::cerr << "stepladder: " << harmless(skipped_text(skipped)) << "; --again imports it once more\n";
    for (const StoredPasses& passes : outcome.passes)
      std::cerr << "stepladder: " << harmless(passes.name) << ": " << plural(std::ssize(passes.rows), "row")
                << " of call times; `stepladder profile passes " << passes.id << "` shows them\n";
    if (is_dry && !rows.empty())
      std::cerr << "stepladder: " << plural(std::ssize(rows), "run")
                << " would be imported; nothing was, and the ids above aren't final\n";
    else if (is_dry)
      std::cerr << "stepladder: no run would be imported\n";
    else
      print_numbers(outcome);
  }
  if (outcome.interrupted) {
    std::cerr << "stepladder: interrupted; nothing of the file or folder that was being read was imported\n";
    return exit_interrupted;
  }
  if (!is_dry) finish_deletions(store);
  return failures.empty() ? exit_done : exit_failed;
}

std::vector<std::string> importer_ids() {
  std::vector<std::string> ids;
  for (const Importer& importer : all_importers())
    if (importer.has_runs) ids.push_back(importer.id);
  return ids;
}

}  // namespace

Subcommand import_command(CLI::App& app, CommonOptions& common) {
  auto flags = std::make_shared<ImportFlags>();
  ImportRequest& request = flags->request;
  CLI::App* command = add_with_json(app, common, "import", "Import runs from the logs and tables of other programs");
  command->add_option("paths", request.paths, "Files, folders, or - for standard input")->required();
  command->add_option("--format,--as", request.options.format, "Format (default: detected from the content)")
      ->check(one_of(importer_ids()));
  add_import_options(*command, request.options);
  command->add_flag("--again", flags->again, "Also import what is in the project already");
  command->add_flag("--dry-run", flags->is_dry, "Say what would be imported");
  CLI::Option* repeats =
      command->add_flag("--as-repeats,--repeats", flags->repeats, "Treat the files of a folder as repeats of one rung");
  command->add_flag("--flat", flags->flat, "Treat each file of a folder as a rung (default: by their differences)")
      ->excludes(repeats);
  return {command, [flags, &common] {
            flags->request.interrupted = interrupted;
            if (flags->repeats) flags->request.options.files = FilesAre::repeats;
            if (flags->flat) flags->request.options.files = FilesAre::rungs;
            return run_import(flags->request, flags->again, flags->is_dry, common);
          }};
}

}  // namespace stepladder
