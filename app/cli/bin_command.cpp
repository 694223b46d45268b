// `stepladder bin`: lists the bin, moves runs into it or back, and empties it. A run that is still queued or running is
// refused, and then none of the named runs is moved.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/find_run.h"
#include "app/cli/progress.h"
#include "app/exit_status.h"
#include "app/runs/bin.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

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
    std::cout << emptied_text(emptied) << "\n";
    if (!emptied.runs.empty() || emptied.finished > 0)
      std::cout << harmless(space_text(common.database, emptied)) << "\n";
  }
  for (const std::string& problem : emptied.problems) std::cerr << "stepladder: " << problem << "\n";
  if (interrupted()) return exit_interrupted;
  return emptied.problems.empty() ? exit_done : exit_failed;
}

int show_bin(bool empty, const CommonOptions& common) {
  auto store = open_to_read(common.database);
  if (empty && store) return empty_it(*store, common);
  if (const std::size_t left = store ? store->bin().left_to_delete() : 0; left > 0)
    std::cerr << "stepladder: a killed process has left " << plural(left, "run")
              << " half deleted or half imported; `stepladder bin --empty` removes the rest\n";
  const std::vector<BinnedRun> binned = store ? runs_in_bin(*store) : std::vector<BinnedRun>{};
  if (common.json) {
    Json list = Json::array();
    for (const auto& [run, deleted_at, bytes] : binned)
      list.push_back(
          {{"id", run.id}, {"name", run.name}, {"deleted_at", number(deleted_at)}, {"checkpoint_bytes", bytes}});
    print(list);
    return exit_done;
  }
  if (binned.empty()) {
    std::cerr << "stepladder: the bin is empty\n";
    return exit_done;
  }
  std::vector<std::vector<std::string>> rows = {{"run", "name", "deleted", "checkpoints"}};
  for (const auto& [run, deleted_at, bytes] : binned)
    rows.push_back({std::to_string(run.id), run.name, local_time_text(deleted_at),
                    bytes > 0 ? bytes_text(static_cast<double>(bytes)) : "-"});
  std::cout << table(rows, {true, false, false, true});
  return exit_done;
}

// "3", "3-5" or a name.
std::vector<Run> runs_named(RunStore& store, const std::string& wanted) {
  const std::size_t dash = wanted.find('-');
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.size() < 18 && text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (dash == std::string::npos || !is_number(wanted.substr(0, dash)) || !is_number(wanted.substr(dash + 1)))
    return {find_run(store, wanted)};
  const RunId first = std::stoll(wanted.substr(0, dash)), last = std::stoll(wanted.substr(dash + 1));
  std::vector<Run> runs;
  for (Run& run : store.runs()) {
    if (run.id >= first && run.id <= last) runs.push_back(std::move(run));
  }
  if (runs.empty())
    throw UsageError("there is no run from " + wanted.substr(0, dash) + " to " + wanted.substr(dash + 1));
  return runs;
}

struct BinFlags {
  std::vector<std::string> runs;
  bool empty = false;
  bool restore = false;
};

// Moves runs into the bin, or back.
int move_runs(const BinFlags& flags, const CommonOptions& common) {
  RunStore store = RunStore::open(common.database);
  std::map<RunId, Curation> curations = store.curation().all();
  std::vector<Run> runs;
  const auto add = [&](Run run) {
    const auto is_it = [&](const Run& other) { return other.id == run.id; };
    if (std::none_of(runs.begin(), runs.end(), is_it)) runs.push_back(std::move(run));
  };
  for (const std::string& wanted : flags.runs) {
    if (flags.restore) {
      bool found = false;
      for (const BinnedRun& binned : runs_in_bin(store)) {
        if (binned.run.name != wanted && std::to_string(binned.run.id) != wanted) continue;
        add(binned.run);
        found = true;
      }
      if (!found) throw UsageError("the bin has no run '" + wanted + "'");
    } else {
      for (Run& run : runs_named(store, wanted)) add(std::move(run));
    }
  }
  store.in_one_transaction([&] {
    for (const Run& run : runs) {
      if (!flags.restore && !is_over(run.status))
        throw UsageError(fmt::format("run {} is {}: stop it before you delete it", run.id, to_string(run.status)));
      Curation curation = curations[run.id];
      curation.deleted_at = flags.restore ? missing : unix_now();
      store.curation().set(run.id, curation);
    }
  });
  Json ids = Json::array();
  for (const Run& run : runs) ids.push_back(run.id);
  if (common.json) {
    print({{flags.restore ? "restored" : "deleted", ids}});
  } else {
    std::cout << (flags.restore
                      ? "Restored " + plural(std::ssize(runs), "run")
                      : "Moved " + plural(std::ssize(runs), "run") + " to the bin; --restore brings them back")
              << "\n";
  }
  return exit_done;
}

}  // namespace

Subcommand bin_command(CLI::App& app, CommonOptions& common) {
  auto flags = std::make_shared<BinFlags>();
  CLI::App* command =
      add_with_json(app, common, "bin", "List deleted runs, or move runs there; they are kept for 30 days");
  CLI::Option* runs = command->add_option("runs", flags->runs, "Runs to move there: numbers, ranges (3-5) or names");
  command->add_flag("--restore", flags->restore, "Bring these runs back instead")->needs(runs);
  command->add_flag("--empty", flags->empty, "Delete them permanently, with their checkpoints")->excludes(runs);
  return {command, [flags, &common] {
            return flags->runs.empty() ? show_bin(flags->empty, common) : move_runs(*flags, common);
          }};
}

}  // namespace stepladder
