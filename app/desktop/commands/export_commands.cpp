// Copies and saves what views show; files are made on another thread.
#include "app/desktop/commands/export_commands.h"

#include <imgui.h>

#include <optional>

#include "app/desktop/desktop_state.h"
#include "app/desktop/system/open_file.h"
#include "app/figures/export.h"
#include "app/figures/run_figures.h"
#include "app/figures/step_pair.h"
#include "app/figures/tables.h"
#include "app/figures/tex.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

// A report, its table or its bars, by the file's ending. Blocks while it reads, draws and writes.
void save_ladder(RunStore& store, const Ladder& ladder, const std::filesystem::path& file) {
  const std::string origin = ladder.source == "launched" ? "measured here, " + local_time_text(ladder.created_at)
                                                         : ladder.source + ", from " + ladder.source_path;
  const std::vector<Run> runs = store.runs_of(ladder.id);
  if (runs.empty()) throw DataError(ladder.name + " has no runs to export.");  // they may be in the bin
  const RunContext context = load_run_context(&store);
  Study study = make_study(ladder.name, origin, load_runs(store, runs), context.hardware);
  study.binned_runs = ladder.binned_runs;
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

void commands::execute(DesktopState& desktop, const CopyText& copy) {
  ImGui::SetClipboardText(copy.text.c_str());
  desktop.messages.notice("Copied " + copy.what);
}

void commands::execute(DesktopState& desktop, const CopyPoints& copy) {
  desktop.exports.add([&desktop, copy](JobControl&) -> DesktopState::Then {
    return [&desktop, text = points_csv(copy.points), what = copy.what] {
      commands::execute(desktop, CopyText{text, what});
    };
  });
  desktop.messages.wait_notice("Copying...");
}

void commands::execute(DesktopState& desktop, const SaveText& asked) {
  desktop.save(asked.name, asked.ending, [text = asked.text](const auto& file) { write_file(file, text); });
}

void commands::execute(DesktopState& desktop, const SavePoints& asked) {
  desktop.save(asked.name, ".csv", [points = asked.points](const auto& file) { write_file(file, points_csv(points)); });
}

// Figures are light even in a dark window, since they are for paper and pages.
void commands::execute(DesktopState& desktop, const SaveFigure& asked) {
  desktop.save(asked.figure.title, asked.ending,
               [figure = asked.figure](const auto& file) { export_figure(figure, file); });
}

void commands::execute(DesktopState& desktop, const SaveLadder& asked) {
  const Ladder* ladder = desktop.workspace.ladder(asked.ladder);
  if (!ladder) return;
  if (desktop.store.file().empty()) throw std::runtime_error("There isn't a database to export from.");
  desktop.save(ladder->name, asked.ending,
               [ladder = *ladder, database = desktop.store.file()](const std::filesystem::path& file) {
                 RunStore store = RunStore::open(database, RunStore::Mode::read_only);
                 save_ladder(store, ladder, file);
               });
}

void commands::execute(DesktopState& desktop, const OpenFile& open) {
  desktop.exports.add([open](JobControl&) -> DesktopState::Then {
    open.in == OpenFile::In::program ? open_file(open.file) : show_in_folder(open.file);
    return [] {};
  });
}

void commands::execute(DesktopState& desktop, const SetExportsFolder& set) {
  std::error_code error;
  if (!set.folder.empty() && !std::filesystem::is_directory(set.folder, error))
    throw std::runtime_error(set.folder.string() + " isn't a folder, so exports cannot be saved there.");
  desktop.workspace.exports_folder = set.folder.string();
}

bool take_export(DesktopState& desktop, const std::function<void(const std::exception&)>& fail,
                 std::chrono::milliseconds patience) {
  try {
    const std::optional<DesktopState::Then> then = desktop.exports.take(patience);
    if (!then) return false;
    if (*then) (*then)();
  } catch (const std::exception& error) {  // DataError, StorageError: the disk
    fail(error);
  }
  return true;
}

}  // namespace stepladder
