#include <iostream>
#include <memory>

#include "app/bin.h"
#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "app/format.h"
#include "app/open_store.h"

namespace stepladder {
namespace {

int empty_it(RunStore& store, const CommonOptions& common) {
  const EmptiedBin emptied = empty_bin(store, unix_now() + 1);
  if (common.json) {
    print({{"runs", emptied.runs}, {"freed_bytes", emptied.freed_bytes}, {"problems", emptied.problems}});
  } else {
    std::cout << emptied_text(emptied) << "\n";
  }
  for (const std::string& problem : emptied.problems) std::cerr << "stepladder: " << problem << "\n";
  return emptied.problems.empty() ? exit_done : exit_failed;
}

int show_bin(bool empty, const CommonOptions& common) {
  auto store = open_to_read(common.database);
  if (empty && store) return empty_it(*store, common);
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

}  // namespace

Subcommand bin_command(CLI::App& app, CommonOptions& common) {
  auto empty = std::make_shared<bool>(false);
  CLI::App* command = add_with_json(app, common, "bin", "List deleted runs; the desktop restores them for 30 days");
  command->add_flag("--empty", *empty, "Delete them permanently, with their checkpoints");
  return {command, [empty, &common] { return show_bin(*empty, common); }};
}

}  // namespace stepladder
