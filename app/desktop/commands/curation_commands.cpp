// Changes the runs and ladders of the project, each with an undo, and empties the bin.
#include "app/desktop/commands/curation_commands.h"

#include <map>
#include <utility>

#include "app/desktop/commands/window_commands.h"
#include "app/desktop/desktop_state.h"
#include "app/desktop/models/run_columns.h"
#include "app/runs/bin.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

void report_bin(DesktopState& desktop, const EmptiedBin& emptied) {
  constexpr std::int64_t much = 1 << 20;
  const bool is_much = emptied.before.file_bytes >= emptied.after.file_bytes + much || emptied.after.free_bytes >= much;
  if (!emptied.runs.empty() || emptied.finished > 0 || emptied.freed_bytes > 0)
    desktop.messages.notice(emptied_text(emptied) + (is_much ? ". " + space_text(desktop.store.file(), emptied) : ""));
  for (const std::string& problem : emptied.problems) desktop.messages.show_error(problem);
}

// By ladder of these runs, the run that factors in it are relative to.
std::map<LadderId, RunId> baselines_of(const Workspace& workspace, const std::vector<RunId>& runs) {
  std::map<LadderId, RunId> baselines;
  for (const RunId run : runs) {
    const RunEntry* entry = workspace.find(run);
    if (!entry || !entry->run.ladder || baselines.contains(*entry->run.ladder)) continue;
    if (const RunEntry* baseline = baseline_of(*entry, {&workspace, 0}))
      baselines[*entry->run.ladder] = baseline->run.id;
  }
  return baselines;
}

// "; factors are now against B"; empty if no baseline has changed.
std::string new_baselines_text(const Workspace& workspace, const std::map<LadderId, RunId>& before) {
  std::vector<std::string> names;
  for (const auto& [ladder, baseline] : before) {
    const std::vector<const RunEntry*> left = workspace.runs_of(ladder);
    const RunEntry* now = left.empty() ? nullptr : baseline_of(*left.front(), {&workspace, 0});
    if (now && now->run.id != baseline) names.push_back(now->run.name);
  }
  if (names.empty()) return "";
  return "; factors are now against " +
         (names.size() == 1 ? names.front() : "other baselines in " + plural(std::ssize(names), "ladder"));
}

}  // namespace

std::function<void()> curate_runs(DesktopState& desktop, const Curate& asked) {
  std::vector<std::pair<RunId, CurationChange>> back;
  desktop.store.in_one_transaction([&] {
    for (const RunId run : asked.runs) {
      const RunEntry* entry = desktop.workspace.find(run);
      if (!entry) continue;
      if (asked.change.deletes() && !is_over(entry->run.status))
        throw std::runtime_error(entry->run.name + " is still running: stop it before you delete it.");
      back.emplace_back(run, desktop.store.curation().change(run, asked.change));
    }
  });
  const bool lists_change = asked.change.deleted_at.has_value();
  std::vector<RunId> selected;  // deleting deselects them; undo selects them again
  for (const auto& [run, change] : back) {
    if (desktop.workspace.selection.runs.contains(run)) selected.push_back(run);
    desktop.workspace.curate(run, desktop.store.curation().of(run));
  }
  if (lists_change) desktop.workspace.load(desktop.store);
  return [&desktop, back, selected, lists_change] {
    desktop.store.in_one_transaction([&] {
      for (const auto& [run, change] : back) {
        if (!desktop.store.run(run))
          throw std::runtime_error("Another program has emptied the bin: a run was deleted permanently.");
        desktop.store.curation().change(run, change);
      }
    });
    desktop.workspace.load(desktop.store);
    if (lists_change) desktop.workspace.selection.runs.insert(selected.begin(), selected.end());
  };
}

void commands::execute(DesktopState& desktop, const Curate& asked) {
  const std::map<LadderId, RunId> baselines = baselines_of(desktop.workspace, asked.runs);
  std::function<void()> undo = curate_runs(desktop, asked);
  const bool lists_change = asked.change.deleted_at.has_value();
  desktop.can_undo(asked.what + (lists_change ? new_baselines_text(desktop.workspace, baselines) : ""),
                   std::move(undo));
}

void commands::execute(DesktopState& desktop, const RestoreRuns& asked) {
  const auto set_deleted = [&desktop, runs = asked.runs](double at) {
    desktop.store.in_one_transaction([&] {
      for (const RunId run : runs) {
        if (!desktop.store.run(run))
          throw std::runtime_error("Another program has emptied the bin: a run was deleted permanently.");
        desktop.store.curation().change(run, {.deleted_at = at});
      }
    });
    desktop.workspace.load(desktop.store);
  };
  set_deleted(missing);
  desktop.can_undo("Restored " + plural(std::ssize(asked.runs), "run"), [set_deleted] { set_deleted(unix_now()); });
}

void commands::execute(DesktopState& desktop, const RenameRun& rename) {
  const RunEntry* entry = desktop.workspace.find(rename.run);
  if (!entry || rename.name.empty() || rename.name == entry->run.name) return;
  const std::string before = desktop.store.existing_run(rename.run).name;
  const auto call = [&desktop, run = rename.run](const std::string& name) {
    desktop.store.rename_run(run, name);
    desktop.workspace.rename(run, name);
  };
  call(rename.name);
  desktop.can_undo("Renamed " + before + " to " + rename.name, [call, before] { call(before); });
}

void commands::execute(DesktopState& desktop, const RenameLadder& rename) {
  const Ladder* ladder = desktop.workspace.ladder(rename.ladder);
  if (!ladder || rename.name.empty() || rename.name == ladder->name) return;
  const std::string before = ladder->name;
  const auto call = [&desktop, id = rename.ladder](const std::string& name) {
    desktop.store.rename_ladder(id, name);
    desktop.workspace.load(desktop.store);
  };
  call(rename.name);
  desktop.can_undo("Renamed " + before + " to " + rename.name, [call, before] { call(before); });
}

void commands::execute(DesktopState& desktop, const DeleteLadder& asked) {
  const Ladder* ladder = desktop.workspace.ladder(asked.ladder);
  if (!ladder) return;
  Curate curate{.what = "Deleted ladder " + ladder->name, .runs = {}, .change = {.deleted_at = unix_now()}};
  for (const RunEntry* entry : desktop.workspace.runs_of(asked.ladder)) curate.runs.push_back(entry->run.id);
  commands::execute(desktop, curate);
  if (desktop.workspace.selection.ladder == asked.ladder) desktop.workspace.selection.show_ladder(0);
}

void empty_bin(DesktopState& desktop, double deleted_before) {
  // Deleting the rows of long runs takes seconds.
  desktop.exports.add([&desktop, file = desktop.store.file(), deleted_before](JobControl&) -> DesktopState::Then {
    RunStore store = RunStore::open(file);
    const auto keep_deleting = [&desktop](std::size_t) { return !desktop.closes.load(); };
    return [&desktop, emptied = empty_bin(store, deleted_before, keep_deleting)] {
      if (!emptied.runs.empty()) {
        desktop.forget_changes();
        desktop.workspace.load(desktop.store);
      }
      report_bin(desktop, emptied);
    };
  });
}

void commands::execute(DesktopState& desktop, const EmptyBin& bin) {
  const std::vector<BinnedRun> binned = runs_in_bin(desktop.store);
  if (binned.empty()) return desktop.messages.notice("The bin is empty");
  if (!bin.sure) {
    std::int64_t bytes = 0;
    for (const BinnedRun& run : binned) bytes += run.checkpoint_bytes;
    const std::string what = plural(std::ssize(binned), "run") +
                             (bytes > 0 ? " and " + bytes_text(static_cast<double>(bytes)) + " of checkpoints" : "");
    return desktop.palette.open({{.title = "Keep the runs in the bin", .command = ShowPalette{}},
                                 {.title = "Permanently delete " + what, .command = EmptyBin{.sure = true}}});
  }
  empty_bin(desktop, unix_now() + 1);
}

void commands::execute(DesktopState& desktop, const Undo&) {
  desktop.undo_last();
}

}  // namespace stepladder
