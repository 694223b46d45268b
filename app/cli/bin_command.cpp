// `stepladder bin` and `restore`: list the bin, move runs into it or back, and empty it. A run that is still queued or
// running is refused, and then none of the named runs is moved.
#include <unistd.h>

#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/progress.h"
#include "app/exit_status.h"
#include "app/runs/bin.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

struct BinFlags {
  std::vector<std::string> runs;
  bool empty = false;
  bool is_agreed = false;
  bool restore = false;
  Limit limit;
};

int empty_it(RunStore& store, const CommonOptions& common) {
  const EmptiedBin emptied = empty_bin(store, unix_now() + 1, say_deletions());
  if (common.json) {
    print({{"runs", emptied.runs},
           {"finished_deletions", emptied.finished},
           {"freed_bytes", emptied.freed_bytes},
           {"file_bytes_before", emptied.before.file_bytes},
           {"file_bytes", emptied.after.file_bytes},
           {"unused_bytes", emptied.after.free_bytes},
           {"problems", emptied.problems}});
  } else {
    std::cout << notes_text(emptied_text(emptied));
    if (!emptied.runs.empty() || emptied.finished > 0) std::cout << notes_text(space_text(common.database, emptied));
  }
  for (const std::string& problem : emptied.problems) std::cerr << "stepladder: " << problem << "\n";
  if (interrupted()) return exit_interrupted;
  return emptied.problems.empty() ? exit_done : exit_failed;
}

Json binned_json(const BinnedRun& binned) {
  return {{"id", binned.run.id},
          {"name", binned.run.name},
          {"deleted_at", time_json(binned.deleted_at)},
          {"checkpoint_bytes", binned.checkpoint_bytes}};
}

std::string binned_table(const std::vector<BinnedRun>& binned) {
  std::vector<std::vector<std::string>> rows = {{"run", "name", "deleted", "checkpoints"}};
  for (const auto& [run, deleted_at, bytes] : binned)
    rows.push_back({std::to_string(run.id), run.name, local_time_text(deleted_at),
                    bytes > 0 ? bytes_text(static_cast<double>(bytes)) : "-"});
  return table(rows, {true, false, false, true});
}

// Shows what would go, and asks for it on a terminal.
bool agrees_to_empty(const std::vector<BinnedRun>& binned, bool is_agreed, const CommonOptions& common) {
  if (binned.empty()) return true;
  if (!common.json || ::isatty(STDIN_FILENO) == 1) std::cerr << binned_table(binned);
  if (is_agreed) return true;
  const std::string what = plural(std::ssize(binned), "run") + " permanently, with " +
                           (binned.size() == 1 ? "its checkpoints" : "their checkpoints");
  if (::isatty(STDIN_FILENO) != 1)
    throw UsageError("--yes is needed to delete " + what,
                     {.code = "missing-argument", .argument = "--yes", .hint = "`stepladder bin` lists what goes"});
  return agrees("Delete " + what + "?");
}

int show_bin(const BinFlags& flags, const CommonOptions& common) {
  auto store = open_to_list(common);
  std::vector<BinnedRun> binned = store ? runs_in_bin(*store) : std::vector<BinnedRun>{};
  if (flags.empty && store)
    return agrees_to_empty(binned, flags.is_agreed, common) ? empty_it(*store, common)
                                                            : report_error("nothing was deleted: not agreed to");
  flags.limit.keep_newest(binned, "more run", common);
  if (const std::size_t left = store ? store->bin().left_to_delete() : 0; left > 0)
    std::cerr << "stepladder: a killed process has left " << plural(left, "run")
              << " half deleted or half imported; `stepladder bin --empty` removes the rest\n";
  return print_list(common, binned, binned_json, "the bin is empty", binned_table);
}

// Moves runs into the bin, or back.
int move_runs(const std::vector<std::string>& words, bool restores, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const std::vector<Run> runs = find_runs(store, words, restores ? Among::binned : Among::listed);
  store.in_one_transaction([&] {
    for (const Run& run : runs) {
      if (!restores && !is_over(run.status))
        throw UsageError(fmt::format("run {} is {}: stop it before you delete it", run.id, to_string(run.status)));
      store.curation().change(run.id, {.deleted_at = restores ? missing : unix_now()});
    }
  });
  const std::vector<RunId> ids = ids_of(runs);
  if (common.json)
    print({{restores ? "restored" : "deleted", ids}});
  else
    std::cout << notes_text(restores
                                ? "Restored " + plural(std::ssize(runs), "run")
                                : "Moved " + plural(std::ssize(runs), "run") + " to the bin; `stepladder restore " +
                                      list_text(ids) + "` brings " + (runs.size() == 1 ? "it" : "them") + " back");
  return exit_done;
}

}  // namespace

Subcommand bin_command(CLI::App& app, CommonOptions& common) {
  auto flags = std::make_shared<BinFlags>();
  CLI::App* command =
      add_with_json(app, common, "bin", "List deleted runs, or move runs there; they are kept for 30 days");
  CLI::Option* runs = command->add_option("runs", flags->runs, runs_help);
  command->add_flag("--restore", flags->restore, "Bring these runs back instead, as `restore` does")->needs(runs);
  CLI::Option* empty =
      command->add_flag("--empty", flags->empty, "Delete them permanently, with their checkpoints")->excludes(runs);
  command->add_flag("--yes", flags->is_agreed, "Without asking")->needs(empty);
  flags->limit.add_to(*command, "List only the newest, this many")->excludes(runs)->excludes(empty);
  return {command, [flags, &common] {
            return flags->runs.empty() ? show_bin(*flags, common) : move_runs(flags->runs, flags->restore, common);
          }};
}

Subcommand delete_command(CLI::App& app, CommonOptions& common) {
  auto runs = std::make_shared<std::vector<std::string>>();
  CLI::App* command = add_with_json(app, common, "delete", "Move runs into the bin, which keeps them for 30 days");
  command->add_option("runs", *runs, runs_help)->required();
  return {command, [runs, &common] { return move_runs(*runs, false, common); }};
}

Subcommand restore_command(CLI::App& app, CommonOptions& common) {
  auto runs = std::make_shared<std::vector<std::string>>();
  CLI::App* command = add_with_json(app, common, "restore", "Bring runs back from the bin");
  command->add_option("runs", *runs, runs_help)->required();
  return {command, [runs, &common] { return move_runs(*runs, true, common); }};
}

}  // namespace stepladder
