// Carries out the commands of a frame about views, selection, curation, imports and exports.
#include <imgui.h>
#include <imgui_internal.h>  // ClearIniSettings

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/desktop/charts/chart_export.h"
#include "app/desktop/desktop_app.h"
#include "app/desktop/system/open_file.h"
#include "app/desktop/theme.h"
#include "app/figures/export.h"
#include "app/figures/run_figures.h"
#include "app/figures/step_pair.h"
#include "app/figures/tables.h"
#include "app/figures/tex.h"
#include "app/format.h"
#include "app/launch/recipe_fields.h"
#include "storage/error_text.h"
#include "storage/traces/trace_file.h"

namespace stepladder {
namespace {

constexpr std::size_t most_undoable = 100;

// Reading steps may take this long between two frames. Panels ask in every frame for data that isn't loaded yet, so the
// rest is read after later frames. Curves are read on another thread.
constexpr std::chrono::milliseconds reading_time{30};

bool reads_steps(const Command& command) {
  return std::holds_alternative<LoadSeries>(command) || std::holds_alternative<LoadExcerpt>(command) ||
         std::holds_alternative<LoadMetrics>(command);
}

// A report, its table or its bars, by the file's ending. Blocks while it reads, draws and writes.
void save_ladder(RunStore& store, const Ladder& ladder, const std::filesystem::path& file) {
  const std::string origin = ladder.source == "launched" ? "measured here, " + local_time_text(ladder.created_at)
                                                         : ladder.source + ", from " + ladder.source_path;
  const std::vector<Run> runs = store.runs_of(ladder.id);
  if (runs.empty()) throw DataError(ladder.name + " has no runs to export.");  // they may be in the bin
  const PlausibilityContext context = load_plausibility_context(&store);
  Study study = make_study(ladder.name, origin, load_runs(store, runs), context.hardware);
  const std::string ending = file.extension().string();
  if (ending == ".html") {
    study.steps = step_pair(study, store);
    write_report(study, file);
  } else if (ending == ".md") {
    write_file(file, study_markdown(study));
  } else if (ending == ".csv") {
    write_file(file, summaries_csv(study, context));
  } else if (ending == ".tex") {
    write_file(file, to_tex(ladder_figure(study), study));
  } else {
    export_figure(ladder_figure(study), file);
  }
}

}  // namespace

bool DesktopApp::execute() {
  const Commands asked = std::exchange(commands_, {});
  keeps_drawing_ = false;
  bool anything = false;
  const auto reading_ends = std::chrono::steady_clock::now() + reading_time;
  std::vector<CurveWanted> wanted;
  for (const Command& command : asked) {
    if (std::holds_alternative<KeepDrawing>(command)) {
      keeps_drawing_ = true;
      continue;
    }
    if (const auto* load = std::get_if<LoadCurve>(&command)) {
      wanted.push_back(workspace_.wanted(load->run, load->quantity, load->zoom));
      continue;
    }
    anything = true;
    if (reads_steps(command) && std::chrono::steady_clock::now() > reading_ends) continue;
    try {
      std::visit([this](const auto& asked_for) { execute(asked_for); }, command);
    } catch (const NotLaunchedHere& error) {
      adoption_.popup.open(error.what_it_does);
      adoption_.runs = error.runs;
      adoption_.command = command;
    } catch (const RecipeError& error) {
      complain(error.sentence().worded(label_of));
    } catch (const std::exception& error) {  // DataError, StorageError: the window stays open
      complain(error_text(error));
    }
  }
  const std::vector<CurveWanted> late = workspace_.late_steps();
  wanted.insert(wanted.end(), late.begin(), late.end());
  curves_.want(wanted);
  // Short ones appear in the next frame.
  if (take_curves(wanted.empty() ? std::chrono::milliseconds(0) : workspace_.patience)) anything = true;
  if (curves_.is_busy()) keeps_drawing_ = true;
  return anything;
}

void DesktopApp::execute(const ShowPanel& panel) {
  if (!panel.beside) {
    show(panel.id);
  } else if (std::find(open_.begin(), open_.end(), panel.id) == open_.end()) {
    open_.push_back(panel.id);
    layout_is_stale_ = true;
  }
}

void DesktopApp::execute(const SelectLadder& select) {
  workspace_.selected_ladder = select.ladder;
  workspace_.selected_rung = -1;
  workspace_.baseline_rung = 0;
  if (std::find(open_.begin(), open_.end(), "ladder") == open_.end()) show("ladder");
}

void DesktopApp::execute(const SelectRung& select) {
  workspace_.selected_rung = select.rung;
  const Ladder* ladder = workspace_.shown_ladder();
  if (!ladder) return;
  for (const RunEntry* entry : workspace_.runs_of(ladder->id)) {  // the first repeat comes first
    if (entry->run.rung != select.rung) continue;
    workspace_.shown_run = entry->run.id;
    return;
  }
}

void DesktopApp::execute(const ColourRun& chosen) {
  if (chosen.colour < 0) {
    workspace_.run_colours.erase(chosen.run);
  } else {
    workspace_.run_colours[chosen.run] = chosen.colour;
  }
}

void DesktopApp::execute(const SelectBaseline& select) {
  workspace_.baseline_rung = select.rung;
}

void DesktopApp::execute(const SelectRun& select) {
  if (select.selected) {
    workspace_.selected_runs.insert(select.run);
    workspace_.shown_run = select.run;
  } else {
    workspace_.selected_runs.erase(select.run);
  }
}

void DesktopApp::execute(const SelectRuns& select) {
  workspace_.selected_runs = {select.runs.begin(), select.runs.end()};
  if (!select.runs.empty() && !workspace_.selected_runs.contains(workspace_.shown_run))
    workspace_.shown_run = select.runs.front();
}

void DesktopApp::execute(const ClearSelection&) {
  workspace_.selected_runs.clear();
}

void DesktopApp::execute(const OpenRun& open) {
  workspace_.shown_run = open.run;
  const RunEntry* entry = workspace_.find(open.run);
  if (entry && entry->run.ladder && workspace_.ladder(*entry->run.ladder)) {
    const Ladder* shown = workspace_.shown_ladder();
    if (!shown || shown->id != *entry->run.ladder) workspace_.baseline_rung = 0;
    workspace_.selected_ladder = *entry->run.ladder;
    workspace_.selected_rung = entry->run.rung;
  }
  show("run");
}

void DesktopApp::can_undo(std::string what, std::function<void()> undo) {
  if (undoable_.size() == most_undoable) undoable_.erase(undoable_.begin());
  undoable_.push_back({what, std::move(undo)});
  workspace_.undoable = what;
  notice(what);
}

void DesktopApp::execute(const Curate& asked) {
  std::vector<std::pair<RunId, Curation>> before;
  bool lists_change = false;
  store_.in_one_transaction([&] {
    for (const auto& [run, curation] : asked.changes) {
      const RunEntry* entry = workspace_.find(run);
      if (!entry) continue;
      if (curation.deleted() && !is_over(entry->run.status))
        throw std::runtime_error(entry->run.name + " is still running: stop it before you delete it.");
      before.emplace_back(run, entry->curation);
      lists_change = lists_change || curation.deleted() != entry->curation.deleted();
      store_.curation().set(run, curation);
    }
  });
  std::vector<RunId> selected;  // deleting deselects them; undo selects them again
  for (const auto& [run, curation] : before) {
    if (workspace_.selected_runs.contains(run)) selected.push_back(run);
  }
  for (const auto& [run, curation] : asked.changes) workspace_.curate(run, curation);
  if (lists_change) workspace_.load(store_);
  can_undo(asked.what, [this, before, selected, lists_change] {
    store_.in_one_transaction([&] {
      for (const auto& [run, curation] : before) {
        if (!store_.run(run))
          throw std::runtime_error("Another program has emptied the bin: a run was deleted permanently.");
        store_.curation().set(run, curation);
      }
    });
    workspace_.load(store_);
    if (lists_change) workspace_.selected_runs.insert(selected.begin(), selected.end());
  });
}

void DesktopApp::execute(const RenameRun& rename) {
  const RunEntry* entry = workspace_.find(rename.run);
  if (!entry || rename.name.empty() || rename.name == entry->run.name) return;
  const std::string before = entry->run.name;
  const auto call = [this, run = rename.run](const std::string& name) {
    store_.rename_run(run, name);
    workspace_.rename(run, name);
  };
  call(rename.name);
  can_undo("Renamed " + before + " to " + rename.name, [call, before] { call(before); });
}

void DesktopApp::execute(const RenameLadder& rename) {
  const Ladder* ladder = workspace_.ladder(rename.ladder);
  if (!ladder || rename.name.empty() || rename.name == ladder->name) return;
  const std::string before = ladder->name;
  const auto call = [this, id = rename.ladder](const std::string& name) {
    store_.rename_ladder(id, name);
    workspace_.load(store_);
  };
  call(rename.name);
  can_undo("Renamed " + before + " to " + rename.name, [call, before] { call(before); });
}

void DesktopApp::execute(const DeleteLadder& asked) {
  const Ladder* ladder = workspace_.ladder(asked.ladder);
  if (!ladder) return;
  Curate curate{.what = "Deleted ladder " + ladder->name, .changes = {}};
  for (const RunEntry* entry : workspace_.runs_of(asked.ladder)) {
    Curation changed = entry->curation;
    changed.deleted_at = unix_now();
    curate.changes.emplace_back(entry->run.id, std::move(changed));
  }
  execute(curate);
  if (workspace_.selected_ladder != asked.ladder) return;
  workspace_.selected_ladder = 0;
  workspace_.selected_rung = -1;
  workspace_.baseline_rung = 0;
}

void DesktopApp::execute(const Undo&) {
  if (undoable_.empty()) return notice("Nothing to undo");
  const Undoable last = std::move(undoable_.back());
  undoable_.pop_back();
  workspace_.undoable = undoable_.empty() ? "" : undoable_.back().what;
  last.undo();
  notice("Undone: " + last.what);
}

void DesktopApp::say_of_bin(const EmptiedBin& emptied) {
  constexpr std::int64_t much = 1 << 20;
  const bool is_much = emptied.before.file_bytes >= emptied.after.file_bytes + much || emptied.after.free_bytes >= much;
  if (!emptied.runs.empty() || emptied.finished > 0 || emptied.freed_bytes > 0)
    notice(emptied_text(emptied) + (is_much ? ". " + space_text(store_.file(), emptied) : ""));
  for (const std::string& problem : emptied.problems) complain(problem);
}

void DesktopApp::execute(const EmptyBin& bin) {
  const std::vector<BinnedRun> binned = runs_in_bin(store_);
  if (binned.empty()) return notice("The bin is empty");
  if (!bin.sure) {
    std::int64_t bytes = 0;
    for (const BinnedRun& run : binned) bytes += run.checkpoint_bytes;
    const std::string what = plural(std::ssize(binned), "run") +
                             (bytes > 0 ? " and " + bytes_text(static_cast<double>(bytes)) + " of checkpoints" : "");
    return palette_.open({{.title = "Keep the runs in the bin", .command = ShowPalette{}},
                          {.title = "Permanently delete " + what, .command = EmptyBin{.sure = true}}});
  }
  empty_bin(unix_now() + 1);
}

void DesktopApp::empty_bin(double deleted_before) {
  // Deleting the rows of long runs takes seconds.
  exports_.add([this, file = store_.file(), deleted_before](JobControl&) -> Then {
    RunStore store = RunStore::open(file);
    const auto keep_deleting = [this](std::size_t) { return !closes_.load(); };
    return [this, emptied = stepladder::empty_bin(store, deleted_before, keep_deleting)] {
      if (!emptied.runs.empty()) {
        // Earlier changes may concern runs that no longer exist.
        undoable_.clear();
        workspace_.undoable.clear();
        workspace_.load(store_);
      }
      say_of_bin(emptied);
    };
  });
}

void DesktopApp::execute(const JudgeRecord& judge) {
  records_.ask(judge.question);
}

void DesktopApp::execute(const PreviewImport& preview) {
  const auto is_trace = [](const std::string& file) { return looks_like_trace(file); };
  const std::vector<std::string>& paths = preview.question.paths;
  if (!paths.empty() && std::all_of(paths.begin(), paths.end(), is_trace)) {
    execute(ImportTraces{paths});
    return show("profile");
  }
  workspace_.import = {.state = ImportPreview::State::reading, .asked = preview.question};
  start_import();
}

void DesktopApp::execute(const KeepImport&) {
  if (workspace_.database.empty()) throw std::runtime_error("There isn't a database to import into.");
  workspace_.import.state = ImportPreview::State::keeping;
  start_import();
}

// Reads the files again if they are being read; what was read of them is dropped.
void DesktopApp::start_import() {
  import_job_.cancel();
  import_job_.start([asked = workspace_.import.asked, database = workspace_.database,
                     keeps = workspace_.import.state == ImportPreview::State::keeping](
                        JobControl& job) { return read_import(asked, database, keeps, job); },
                    wake_);
}

// The result of a preview or an import. All runs of an import can be undone together.
void DesktopApp::take_import() {
  if (import_job_.is_active()) workspace_.import.progress = import_job_.progress();
  std::optional<ImportPreview> read = import_job_.take();
  if (!read) return;
  read->number = ++imports_read_;
  workspace_.import = std::move(*read);
  if (workspace_.import.state != ImportPreview::State::kept) return;
  workspace_.load(store_);
  std::vector<RunId> runs;
  for (const ImportPreview::PreviewRun& imported : workspace_.import.runs) runs.push_back(imported.run.id);
  if (runs.empty()) return;
  can_undo("Imported " + plural(std::ssize(runs), "run"), [this, runs, number = workspace_.import.number] {
    store_.in_one_transaction([&] {
      for (const RunId run : runs) {
        const RunEntry* entry = workspace_.find(run);
        if (!entry) continue;  // deleted meanwhile
        Curation curation = entry->curation;
        curation.deleted_at = unix_now();
        store_.curation().set(run, curation);
      }
    });
    workspace_.load(store_);
    if (workspace_.import.state == ImportPreview::State::kept && workspace_.import.number == number)
      workspace_.import = {};
  });
}

void DesktopApp::execute(const ForgetImport&) {
  import_job_.cancel();
  workspace_.import = {};
}

bool DesktopApp::take_export(const std::function<void(const std::exception&)>& fail,
                             std::chrono::milliseconds patience) {
  try {
    const std::optional<Then> then = exports_.take(patience);
    if (!then) return false;
    if (*then) (*then)();
  } catch (const std::exception& error) {  // DataError, StorageError: the disk
    fail(error);
  }
  return true;
}

void DesktopApp::save(const std::string& name, const std::string& ending,
                      std::function<void(const std::filesystem::path&)> write) {
  const std::filesystem::path file = export_path(store_.file(), workspace_.exports_folder, name, ending);
  exports_.add([this, file, write = std::move(write)](JobControl&) -> Then {
    write(file);
    return [this, file] { file_notice(file); };
  });
  wait_notice("Saving " + file.filename().string() + "...");
}

void DesktopApp::execute(const CopyText& copy) {
  ImGui::SetClipboardText(copy.text.c_str());
  notice(copy.what + " copied");
}

void DesktopApp::execute(const CopyPoints& copy) {
  exports_.add([this, copy](JobControl&) -> Then {
    return [this, text = points_csv(copy.points), what = copy.what] { execute(CopyText{text, what}); };
  });
  wait_notice("Copying...");
}

void DesktopApp::execute(const SaveText& asked) {
  save(asked.name, asked.ending, [text = asked.text](const auto& file) { write_file(file, text); });
}

void DesktopApp::execute(const SavePoints& asked) {
  save(asked.name, ".csv", [points = asked.points](const auto& file) { write_file(file, points_csv(points)); });
}

// Figures are light even in a dark window, since they are for paper and pages.
void DesktopApp::execute(const SaveFigure& asked) {
  save(asked.figure.title, asked.ending, [figure = asked.figure](const auto& file) { export_figure(figure, file); });
}

void DesktopApp::execute(const SaveLadder& asked) {
  const Ladder* ladder = workspace_.ladder(asked.ladder);
  if (!ladder) return;
  if (store_.file().empty()) throw std::runtime_error("There isn't a database to export from.");
  save(ladder->name, asked.ending, [ladder = *ladder, database = store_.file()](const std::filesystem::path& file) {
    RunStore store = RunStore::open(database, RunStore::Mode::read_only);
    save_ladder(store, ladder, file);
  });
}

void DesktopApp::execute(const OpenFile& open) {
  exports_.add([open](JobControl&) -> Then {
    open.in == OpenFile::In::program ? open_file(open.file) : show_in_folder(open.file);
    return [] {};
  });
}

void DesktopApp::execute(const SetExportsFolder& set) {
  std::error_code error;
  if (!set.folder.empty() && !std::filesystem::is_directory(set.folder, error))
    throw std::runtime_error(set.folder.string() + " isn't a folder, so exports cannot be saved there.");
  workspace_.exports_folder = set.folder.string();
}

void DesktopApp::execute(const SetTheme& choice) {
  settings_.theme = choice.theme;
  ask_portal();
  apply_theme_and_scale();
}

void DesktopApp::execute(const ToggleTheme&) {
  settings_.theme = theme_is_dark() ? ThemeChoice::light : ThemeChoice::dark;
  apply_theme_and_scale();
}

void DesktopApp::execute(const ToggleLineStyles&) {
  workspace_.line_styles = !workspace_.line_styles;
}

void DesktopApp::execute(const ToggleWaterfall&) {
  ++workspace_.waterfall_toggles;
  if (std::find(open_.begin(), open_.end(), "ladder") == open_.end()) show("ladder");
}

void DesktopApp::execute(const FoldSideBar&) {
  settings_.side_bar_folded = !settings_.side_bar_folded;
}

void DesktopApp::execute(const ChangeScale& change) {
  settings_.scale =
      change.direction == 0 ? 1 : std::clamp(settings_.scale + 0.1f * static_cast<float>(change.direction), 0.6f, 3.0f);
  apply_theme_and_scale();
}

void DesktopApp::execute(const ResetLayout&) {
  open_ = {open_.front()};
  ImGui::ClearIniSettings();
  settings_.scale = 1;
  apply_theme_and_scale();
  layout_is_stale_ = true;
  notice("Layout reset");
}

void DesktopApp::execute(const Reload&) {
  workspace_.load(store_);
  profiles_.read_again();
}

void DesktopApp::execute(const ShowPalette&) {
  std::vector<Action> actions = window_actions(panels_, workspace_);
  std::vector<Action> places = places_to_go(workspace_);
  actions.insert(actions.end(), std::make_move_iterator(places.begin()), std::make_move_iterator(places.end()));
  palette_.open(std::move(actions));
}

void DesktopApp::execute(const DismissMessage& dismiss) {
  if (dismiss.index < workspace_.messages.size()) {
    workspace_.messages.erase(workspace_.messages.begin() + static_cast<std::ptrdiff_t>(dismiss.index));
  }
}

void DesktopApp::execute(const KeepDrawing&) {}

void DesktopApp::execute(const LoadCurve&) {}

}  // namespace stepladder
