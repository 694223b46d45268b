// Import: reads another program's runs, previews them, lets the user correct them, and then stores them.
#include <imgui.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/charts/charts.h"
#include "app/desktop/commands/curation_commands.h"
#include "app/desktop/commands/import_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/models/import_preview.h"
#include "app/desktop/models/run_points.h"
#include "app/desktop/panel.h"
#include "app/desktop/step_source.h"
#include "app/desktop/system/path_field.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/import/parts.h"
#include "app/text/format.h"
#include "storage/analysis/plausibility.h"

namespace stepladder {
namespace {

struct State {
  PathField path{{.title = "Choose logs or tables", .kind = FileQuestion::Kind::files}};
  ImportForm form;
  ImportMemory memory;

  // Derived from the reading with this number.
  int number = 0;
  bool was_kept = false;
  std::vector<std::vector<Flag>> flags;  // of each run
  std::set<std::size_t> selected;
  ImportNotes notes;
  ImportFile file;
  bool shows_steps = false;  // instead of the notes
  std::size_t steps_of = 0;  // a run
  StepSource steps;
};

constexpr std::size_t most_selected_at_first = 12;

void derive(State& state, const Workspace& workspace) {
  const ImportPreview& import = *workspace.import;
  if (import.state == ImportPreview::State::reading || import.state == ImportPreview::State::keeping) return;
  if (state.number == import.number) return;
  state.number = import.number;
  state.flags.clear();
  state.selected.clear();
  state.notes = notes_of(import);
  state.steps_of = 0;
  state.form.show(import.asked.options);
  if (import.state == ImportPreview::State::nothing) state.path.show("");
  if (import.asked.paths.size() == 1) {
    state.path.show(import.asked.paths.front());
    state.memory.last_path = import.asked.paths.front();
  }
  state.form.as_last_time.reset();
  if (import.state == ImportPreview::State::understood && import.asked.options == ImportOptions{}) {
    if (const ImportOptions* then = state.memory.said_last_time(import)) state.form.as_last_time = *then;
  }
  RepeatCounts repeats;
  for (const ImportPreview::PreviewRun& run : import.runs) repeats.add(run.run);
  for (const ImportPreview::PreviewRun& run : import.runs) {
    state.flags.push_back(
        flags_of(run.run, run.summary, repeats.of(run.run), workspace.hardware, repeats.baseline_places(run.run)));
    if (state.selected.size() < most_selected_at_first) state.selected.insert(state.flags.size() - 1);
  }
}

void draw_path(State& state, bool enabled, Commands& commands) {
  ImGui::BeginDisabled(!enabled);
  const float read = px(80);
  const bool chosen = state.path.draw("##path", "Path of a file or folder",
                                      ImGui::GetContentRegionAvail().x - read - px(8), "import.path", commands.data);
  same_line(8);
  const bool pressed = ImGui::Button("Read", ImVec2(read, 0));
  mark("import.read");
  ImGui::EndDisabled();
  const std::vector<std::string> paths = chosen ? state.path.chosen() : std::vector{state.path.path()};
  if ((!chosen && !pressed) || paths.front().empty()) return;
  state.path.show(paths.front());
  commands.push_back(PreviewImport{{.paths = paths, .options = state.form.options}});
}

// A change reads the source again.
void draw_form(ImportForm& form, const Workspace& workspace, Commands& commands) {
  const ImportQuestion& asked = workspace.import->asked;
  if (!draw_import_form(form, workspace.hardware) || form.options == asked.options) return;
  ImportQuestion again = asked;
  again.options = form.options;
  commands.push_back(PreviewImport{std::move(again)});
}

// Says what was skipped, since the project has it.
void draw_skipped(const Workspace& workspace, Commands& commands) {
  const ImportPreview& import = *workspace.import;
  if (import.skipped.empty()) return;
  gap(14);
  begin_card("##skipped", ImVec2(0, ImGui::GetFrameHeight() + px(30)));
  const bool can_repeat = import.state == ImportPreview::State::understood;
  const std::string text = import.skipped.size() == 1
                               ? skipped_text(import.skipped.front())
                               : grouped(std::ssize(import.skipped)) + " files are in the project already";
  ImGui::AlignTextToFramePadding();
  text_cut(text + " and not imported again.", ImGui::GetContentRegionAvail().x - px(can_repeat ? 260 : 130),
           palette().text, fonts().regular, text_size);
  if (ImGui::IsItemHovered() && import.skipped.size() > 1) {
    std::string all;
    for (std::size_t i = 0; i < std::min<std::size_t>(import.skipped.size(), 30); ++i)
      all += (all.empty() ? "" : "\n") + skipped_text(import.skipped[i]);
    ImGui::SetTooltip("%s", all.c_str());
  }
  ImGui::SameLine();
  if (quiet_button("Show runs##skipped", "import.skipped.runs")) {
    std::vector<RunId> ids;
    for (const SkippedImport& skipped : import.skipped) ids.insert(ids.end(), skipped.runs.begin(), skipped.runs.end());
    commands.push_back(SelectRuns{std::move(ids)});
    commands.push_back(ShowPanel{"history"});
  }
  if (can_repeat) {
    ImGui::SameLine();
    if (quiet_button("Import again", "import.skipped.again")) {
      ImportQuestion again = import.asked;
      again.again = true;
      commands.push_back(PreviewImport{std::move(again)});
    }
  }
  end_card();
}

void draw_loss(const State& state, const Workspace& workspace, Commands& commands) {
  const ImportPreview& import = *workspace.import;
  Chart chart{.id = "loss", .title = "Loss", .x_label = "step"};
  std::size_t wanted = 0;
  for (const std::size_t i : state.selected) {
    if (i >= import.runs.size()) break;
    ++wanted;
    const ImportPreview::PreviewRun& run = import.runs[i];
    std::span<const double> x = run.steps;
    std::span<const double> y = run.series.loss;
    if (state.was_kept) {  // if so, the steps are in the database
      const RunEntry* entry = workspace.find(run.run.id);
      if (!entry) continue;
      const RunPoints kept = run_points(workspace, *entry, Quantity::loss, nullptr, commands.data);
      x = kept.x;
      y = kept.y;
    }
    if (x.empty()) continue;
    chart.curves.push_back({.label = (run.run.title.empty() ? run.run.name : run.run.title) + "##" + std::to_string(i),
                            .x = x,
                            .y = y,
                            .colour = rung_colour(static_cast<int>(i)),
                            .weight = state.selected.size() > 12 ? 1.0f : 1.6f,
                            .in_legend = state.selected.size() <= 7});
  }
  if (wanted == 0) {
    empty_state("No run selected", "Click runs in the table to plot their loss here.");
    return;
  }
  if (wanted < import.runs.size()) chart.note = grouped(wanted) + " of " + plural(std::ssize(import.runs), "run");
  draw_chart(chart);
}

// The imported runs, and buttons to open them.
void draw_kept(const Workspace& workspace, Commands& commands) {
  const ImportPreview& import = *workspace.import;
  begin_card("##kept", ImVec2(0, ImGui::GetFrameHeight() + px(30)));
  ImGui::AlignTextToFramePadding();
  const bool is_empty = import.runs.empty() && import.tables == 0 && import.traces.empty();
  text_toned(is_empty ? "Nothing was imported." : "Imported " + contents_text(import) + ".",
             is_empty ? Tone::bad : Tone::good);
  std::vector<RunId> ids;
  std::vector<LadderId> ladders;
  for (const ImportPreview::PreviewRun& run : import.runs) {
    ids.push_back(run.run.id);
    if (run.run.ladder && std::find(ladders.begin(), ladders.end(), *run.run.ladder) == ladders.end())
      ladders.push_back(*run.run.ladder);
  }
  constexpr std::size_t most_buttons = 3;
  for (std::size_t i = 0; i < std::min(ladders.size(), most_buttons); ++i) {
    const Ladder* ladder = workspace.ladder(ladders[i]);
    if (!ladder) continue;
    ImGui::SameLine();
    const std::string label = ladders.size() == 1 ? "Open ladder" : "Ladder " + ladder->name;
    const bool pressed = i == 0 ? primary_button(label.c_str()) : quiet_button(label.c_str());
    mark("import.ladder." + std::to_string(i));
    if (pressed) commands.push_back(SelectLadder{ladders[i]});
  }
  if (!ids.empty()) {
    ImGui::SameLine();
    if (quiet_button("Show runs", "import.runs")) {
      commands.push_back(SelectRuns{ids});
      commands.push_back(ShowPanel{"history"});
    }
  }
  if (!import.undo.empty()) {
    ImGui::SameLine();
    if (quiet_button("Undo import", "import.undo")) commands.push_back(UndoImport{});
    ImGui::SetItemTooltip("Its runs go to the bin");
  }
  end_card();
}

// Chooses the run whose steps are shown, on the line of the chips.
void draw_steps_of(State& state, const ImportPreview& import) {
  std::vector<std::string> names;
  for (const ImportPreview::PreviewRun& run : import.runs)
    names.push_back(run.run.title.empty() ? run.run.name : run.run.title);
  auto run = static_cast<int>(std::min(state.steps_of, names.size() - 1));
  if (names.size() > 1) {
    same_line(12);
    choice("##steps_of", "of", run, names, std::min(px(420), ImGui::GetContentRegionAvail().x - px(30)));
    mark("import.steps.run");
  }
  state.steps_of = static_cast<std::size_t>(run);
}

// Draws the steps of that run, and the lines that they were read from.
void draw_steps(State& state, const ImportPreview& import, Commands& commands) {
  const ImportPreview::PreviewRun& shown = import.runs[state.steps_of];
  state.steps.draw(shown.run, shown.series,
                   {.file = shown.run.source_path, .text = import.asked.text, .options = import.asked.options},
                   import.number, commands.data);
}

// The notes or, before the import, the steps. A chip counts from the next frame on: this one has no room for the steps.
void draw_notes_or_steps(bool shows_steps, State& state, const ImportPreview& import, Commands& commands) {
  if (import.state == ImportPreview::State::understood) {
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(8), px(4)));
    if (chip("Notes", !shows_steps)) state.shows_steps = false;
    mark("import.show.notes");
    same_line(6);
    if (chip("Steps and source", shows_steps)) state.shows_steps = true;
    mark("import.show.steps");
    if (shows_steps) draw_steps_of(state, import);
    ImGui::PopStyleVar();
    if (shows_steps) return draw_steps(state, import, commands);
    same_line(8);
  }
  draw_notes(state.notes, import, commands);
}

// What the files of a folder become: the first thing to check before they are imported.
void draw_groupings(const ImportPreview& import) {
  constexpr std::size_t most = 2;  // the notes have all
  for (std::size_t i = 0; i < std::min(import.groupings.size(), most); ++i)
    text_cut(in_print(grouping_text(import.groupings[i])), ImGui::GetContentRegionAvail().x, palette().text,
             fonts().semibold, text_size);
  if (import.groupings.empty()) return;
  mark("import.groupings");
  gap(10);
}

void draw_result(State& state, const Workspace& workspace, Commands& commands) {
  draw_groupings(*workspace.import);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (workspace.import->runs.empty()) {
    begin_card("##notes", ImVec2(0, 0));
    draw_notes(state.notes, *workspace.import, commands);
    end_card();
    return;
  }
  for (const ImportPreview::ReadTries& series : workspace.import->tries) {
    text_sentence("A series of " + plural(series.tries, "try", "tries") + ", " + grouped(series.kept) + " kept, in " +
                  plural(series.runs, "run") + " of one value each: the view Tries shows it.");
    mark("import.tries");
  }
  const float space = px(14);
  const bool is_low = room.y < px(330);
  // The cards scroll in a window that is too small for them.
  const float lower = std::clamp(room.y * 0.42f, px(150), px(380));
  const float wanted = import_rows_height(workspace.import->runs.size());
  begin_card("##runs", ImVec2(0, is_low ? px(170) : std::min(wanted, room.y - lower - space)));
  std::optional<std::size_t> edited;
  draw_import_rows(workspace.import->runs, state.flags, state.selected,
                   workspace.import->state == ImportPreview::State::understood ? &edited : nullptr);
  if (edited) state.file.open(*workspace.import, *edited);
  draw_import_file(state.file, *workspace.import, commands);
  end_card();
  gap(14);
  const float rest = is_low ? px(150) : ImGui::GetContentRegionAvail().y;
  const float notes = std::clamp(room.x * 0.42f, px(120), px(640));
  // Steps and their lines need the whole width.
  const bool shows_steps = state.shows_steps;
  if (!shows_steps || workspace.import->state != ImportPreview::State::understood) {
    begin_card("##loss", ImVec2(room.x - notes - space, rest));
    draw_loss(state, workspace, commands);
    end_card();
    ImGui::SameLine(0, space);
  }
  begin_card("##notes", ImVec2(0, rest));
  draw_notes_or_steps(shows_steps, state, *workspace.import, commands);
  end_card();
}

std::string head_line(const ImportPreview& import, bool is_read_only) {
  std::string line;
  for (const std::string& format : import.formats) {
    for (const Importer& importer : all_importers()) {
      if (importer.id == format) line += (line.empty() ? "" : ", ") + importer.title;
    }
  }
  if (line.empty()) line = import.skipped.empty() ? "unrecognised format" : "in the project already";
  line += "  \xE2\x80\x93  " + source_words(import.asked);
  if (import.runs.empty() && !import.skipped.empty()) return line;
  if (import.state == ImportPreview::State::kept) return line;
  return (is_read_only ? "A preview: the project is open for reading only  \xE2\x80\x93  "
                       : "Not imported yet  \xE2\x80\x93  ") +
         line;
}

// The buttons that import or discard the shown runs.
struct Ending {
  std::string forget;
  std::string keep;  // empty: nothing can be imported
  float width = 0;
};

Ending ending_of(const ImportPreview& import) {
  Ending ending{.forget = import.state == ImportPreview::State::kept ? "Import more" : "Discard"};
  ending.width = button_width(ending.forget);
  if (import.state == ImportPreview::State::kept || (import.runs.empty() && import.tables == 0)) return ending;
  ending.keep = "Import " + contents_text(import);
  ImGui::PushFont(fonts().semibold, text_size);
  ending.width += button_width(ending.keep) + px(8);
  ImGui::PopFont();
  return ending;
}

void draw_ending(const Ending& ending, State& state, const Workspace& workspace, Commands& commands) {
  if (quiet_button(ending.forget.c_str(), "import.forget")) commands.push_back(ForgetImport{});
  if (ending.keep.empty()) return;
  same_line(8);
  const bool can_keep = workspace.read_only.empty() && state.form.problem().empty();
  const bool is_pressed = primary_button(ending.keep.c_str(), can_keep, "import.keep");
  if (!workspace.read_only.empty()) ImGui::SetItemTooltip("The project is open for reading only");
  if (is_pressed) {
    state.memory.remember(*workspace.import);
    commands.push_back(KeepImport{});
  }
}

// Whether all that was imported has been deleted since.
bool is_gone(const Workspace& workspace) {
  const ImportPreview& import = *workspace.import;
  return !import.runs.empty() && import.traces.empty() && import.tables == 0 &&
         std::ranges::none_of(
             import.runs, [&](const ImportPreview::PreviewRun& run) { return workspace.find(run.run.id) != nullptr; });
}

// Title and source, with the buttons to their right or, if they don't fit, beneath.
void draw_head(State& state, const Workspace& workspace, Commands& commands) {
  const ImportPreview& import = *workspace.import;
  const bool is_open = import.state == ImportPreview::State::understood || import.state == ImportPreview::State::kept;
  const ImVec2 at = ImGui::GetCursorPos();
  const float right = ImGui::GetContentRegionMax().x;
  const Ending ending = is_open ? ending_of(import) : Ending{};
  const bool fits = right - ending.width > at.x + px(240);
  if (is_open && fits) {
    ImGui::SetCursorPosX(right - ending.width);
    draw_ending(ending, state, workspace, commands);
    ImGui::SetCursorPos(at);
  }
  text_title("Import");
  text_cut(is_open ? head_line(import, !workspace.read_only.empty())
                   : "Reads runs from logs, tables and other trackers' data",
           right - (fits ? ending.width : 0) - at.x - px(16), palette().quiet, fonts().regular, small_size);
  if (is_open && !fits) draw_ending(ending, state, workspace, commands);
}

}  // namespace

Panel panels::import() {
  const auto state = std::make_shared<State>();
  return {.id = "import",
          .title = "Import",
          .draw =
              [state](const Workspace& workspace, Commands& commands) {
                using S = ImportPreview::State;
                const S stage = workspace.import->state;
                derive(*state, workspace);
                if (stage != S::keeping) state->was_kept = stage == S::kept;
                if (stage == S::kept && is_gone(workspace)) commands.push_back(ForgetImport{});
                draw_head(*state, workspace, commands);
                gap(18);
                draw_path(*state, stage != S::reading && stage != S::keeping, commands);
                gap(18);
                if (stage == S::nothing)
                  return draw_nothing(state->memory.last_path, !workspace.read_only.empty(), commands);
                if (stage == S::reading || stage == S::keeping) return draw_reading(*workspace.import, commands);
                if (stage == S::understood) draw_form(state->form, workspace, commands);
                if (stage == S::kept) draw_kept(workspace, commands);
                draw_skipped(workspace, commands);
                gap(14);
                draw_result(*state, workspace, commands);
              },
          .remember = [state] { return state->memory.text(); },
          .recall = [state](const std::string& text) { state->memory.recall(text); }};
}

}  // namespace stepladder
