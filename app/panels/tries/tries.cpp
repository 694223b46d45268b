// Tries: a series of changes judged one after the other by `stepladder try` (docs/try.md): the metric by try, and for
// the chosen one its patch, the curves of its runs beside those of what was kept, and its output. The view only reads;
// the command line runs and reverts.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/import_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/models/run_points.h"
#include "app/desktop/models/tries_view.h"
#include "app/desktop/panel.h"
#include "app/desktop/panel_events.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/run/parts.h"
#include "app/panels/tries/chart.h"
#include "app/panels/tries/parts.h"
#include "app/panels/tries/patch.h"
#include "app/runs/examples.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {
namespace {

enum class Part { patch, runs, console, parts };

struct State {
  LadderId series = 0;         // 0: the newest
  std::int64_t chosen = -1;    // a try's number; -1: the newest one
  bool only_kept = false;      // in the list
  bool scrolls_to_it = false;  // the list, to the chosen one
  Part part = Part::patch;
  RunId console = 0;  // of which run; 0: the last one
  SharedX x;
  std::pair<LadderId, std::int64_t> rows_of{0, -1};  // series and try whose patch `rows` are
  std::vector<PatchRow> rows;
  std::pair<LadderId, std::size_t> reloaded_for;  // series, and how many runs it had
};

constexpr std::array begin_lines{"cd my-checkout", "stepladder try begin --metric val_bpb -- python train.py",
                                 "stepladder try -m \"what I changed\" || stepladder try revert", "stepladder try end"};
constexpr std::array begin_notes{"a git checkout that holds your training script",
                                 "runs the unchanged script six times, to measure its noise",
                                 "after each change: keeps it if the gain is real, else takes it back",
                                 "measures the sum of all kept changes once more"};

Tone verdict_tone(const std::string& verdict) {
  if (verdict == "kept") return Tone::good;
  if (verdict == "failed" || verdict == "invalid") return Tone::bad;
  if (verdict == "guard") return Tone::warning;
  return verdict == "running" ? Tone::accent : Tone::neutral;
}

void draw_empty(const Workspace& workspace, Commands& commands) {
  text_quiet("Is each change to your script a real gain, or noise?");
  spacing(10);
  begin_card("##begin", ImVec2(0, px(222)));
  text_strong("No tries yet");
  text_quiet(
      "A try is one change that you or an agent made. Run these lines in a shell, with any command that prints a "
      "number; each try appears here.");
  spacing(6);
  const float notes = std::min(px(560), ImGui::GetContentRegionAvail().x * 0.62f);
  for (std::size_t i = 0; i < begin_lines.size(); ++i) {
    text_in(begin_lines[i], fonts().mono, 13.5f);
    ImGui::SameLine(notes);
    text_cut(begin_notes[i], ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
  }
  spacing(4);
  if (quiet_button("Copy these lines", "tries.copy")) {
    std::string text;
    for (const char* line : begin_lines) text += std::string(line) + "\n";
    commands.push_back(CopyText{text, "four lines for a shell"});
  }
  same_line(8);
  const ExampleFile& night = example_files.back();
  if (change_button(workspace, "Open an example of a hundred tries", "tries.example", night.what))
    commands.push_back(OpenExample{path_of(night)});
  end_card();
  mark("tries.empty");
}

void draw_head(State& state, const TriesView& view) {
  const float top = ImGui::GetCursorPosY(), combo = view.all.size() > 1 ? px(320) : 0;
  text_title("Tries");
  const std::string status = try_text(view.status, "state");
  text_cut(
      view.shown.series.checkout + "  \xE2\x80\x93  " + (status == "waiting" ? "waits for the next change" : status),
      ImGui::GetContentRegionAvail().x - combo - px(16), palette().quiet, fonts().regular, small_size, Cut::middle);
  if (combo == 0) return;
  const float below = ImGui::GetCursorPosY();
  const auto name = [](const TrySeries& series) {
    return series.checkout + ", " + local_time_text(series.begun_at) + "##" + std::to_string(series.ladder);
  };
  ImGui::SetCursorPos(ImVec2(ImGui::GetContentRegionMax().x - combo, top));
  ImGui::SetNextItemWidth(combo);
  if (ImGui::BeginCombo("##series", combo_text(view.shown.series.checkout, combo).c_str())) {
    for (auto series = view.all.rbegin(); series != view.all.rend(); ++series)
      if (ImGui::Selectable(name(*series).c_str(), series->ladder == view.shown.series.ladder)) {
        state.series = series->ladder;
        state.chosen = -1;
      }
    ImGui::EndCombo();
  }
  mark("tries.series");
  ImGui::SetCursorPosY(below);
}

void draw_figures(const TriesView& view) {
  const auto tries = std::max<std::int64_t>(std::ssize(view.shown.tries) - 1, 0);
  double wall_s = 0, first_s = 0;
  std::int64_t runs = 0;
  for (std::size_t i = 0; i < view.figures.size(); ++i) {
    wall_s += view.figures[i].wall_s;
    if (i == 0) first_s = view.figures[i].wall_s;
    if (i > 0) runs += view.figures[i].runs;
  }
  const auto each = static_cast<double>(std::max<std::int64_t>(tries, 1));
  const auto kept = static_cast<double>(view.kept);
  const std::string left = view.status.contains("runs_left") && view.status["runs_left"].is_number()
                               ? ", " + grouped(view.status["runs_left"].get<std::int64_t>()) + " left"
                               : "";
  const std::array<FigureTile, 5> tiles{{
      {view.metric.empty() ? "metric" : view.metric, metric_text(try_number(view.status, "value")),
       metric_text(try_number(view.status, "mean")) + " at first"},
      {"Kept", grouped(view.kept) + " of " + grouped(tries),
       tries == 0 ? "no try yet" : percent_text(kept / each) + " of the tries"},
      {"Expected false keeps", view.strict ? "none" : "at most " + significant(0.05 * kept, 2),
       view.strict ? "in the whole series, with 95 %" : "5 % of what is kept"},
      {"Runs", grouped(static_cast<std::int64_t>(view.shown.runs.size())),
       (tries == 0 ? "for the noise" : significant(static_cast<double>(runs) / each, 2) + " a try") + left},
      {"Time", duration_text(wall_s),
       tries == 0 ? "for the noise" : rough_duration_text((wall_s - first_s) / each) + " a try"},
  }};
  figure_tiles(tiles);
}

void choose(State& state, std::int64_t number) {
  if (state.chosen == number) return;
  state.chosen = number;
  state.console = 0;
  state.scrolls_to_it = true;
}

// With as many decimals as the noise leaves meaning, the same in all rows: two digits of the band.
std::string value_text(const TriesView& view, double value) {
  if (is_missing(value)) return "-";
  if (!(view.half_band > 0) || !std::isfinite(view.half_band) || !std::isfinite(value)) return metric_text(value);
  return decimals(value, std::clamp(1 - static_cast<int>(std::floor(std::log10(view.half_band))), 0, 6));
}

void draw_row(State& state, const TriesView& view, std::size_t i) {
  const Try& it = view.shown.tries[i];
  const TryFigures& figures = view.figures[i];
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const std::string number = std::to_string(it.number);
  if (ImGui::Selectable(("##" + number).c_str(), it.number == state.chosen, ImGuiSelectableFlags_SpanAllColumns,
                        ImVec2(0, px(19))))
    state.chosen = it.number, state.console = 0;
  mark("tries.row." + number);
  if (state.scrolls_to_it && it.number == state.chosen) ImGui::SetScrollHereY(0.5f), state.scrolls_to_it = false;
  ImGui::SameLine(0, 0);
  text_right(number, ImGui::GetCursorPosX() + px(30), fonts().regular, small_size, &palette().quiet);
  ImGui::TableNextColumn();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_try_mark(ImGui::GetWindowDrawList(), ImVec2(at.x + px(6), at.y + ImGui::GetTextLineHeight() / 2),
                figures.verdict, px(4));
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + px(17));
  const Tone tone = verdict_tone(figures.verdict);
  text_in(try_verdict_word(figures.verdict), fonts().regular, 13.5f);
  ImGui::TableNextColumn();
  const bool is_kept = tone == Tone::good || it.number == 0;
  text_right(in_print(value_text(view, figures.value)), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x,
             is_kept ? fonts().semibold : fonts().regular, 13.5f, is_kept ? &palette().text : &palette().quiet);
  ImGui::TableNextColumn();
  text_right(std::to_string(figures.runs), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, fonts().regular,
             small_size, &palette().quiet);
  ImGui::TableNextColumn();
  text_cut(it.number == 0 ? "the unchanged state" : it.message, ImGui::GetContentRegionAvail().x, palette().text,
           fonts().regular, 13.5f);
}

void draw_list(State& state, const TriesView& view) {
  if (chip("All", !state.only_kept)) state.only_kept = false;
  same_line(6);
  if (chip("Kept", state.only_kept)) state.only_kept = true, state.scrolls_to_it = false;
  mark("tries.kept");
  spacing(2);
  std::vector<std::size_t> rows;  // newest first
  for (std::size_t i = view.figures.size(); i-- > 0;)
    if (!state.only_kept || view.figures[i].verdict == "kept" || i == 0) rows.push_back(i);
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_PadOuterX;
  const bool is_narrow = ImGui::GetContentRegionAvail().x < px(480);
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(5), px(3)));
  const bool is_open = ImGui::BeginTable("##list", 5, flags);
  ImGui::PopStyleVar();
  if (!is_open) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, px(32));
  ImGui::TableSetupColumn("verdict", ImGuiTableColumnFlags_WidthFixed, px(90));
  ImGui::TableSetupColumn(view.metric.empty() ? "value" : view.metric.c_str(), ImGuiTableColumnFlags_WidthFixed,
                          px(68));
  ImGui::TableSetupColumn("runs", ImGuiTableColumnFlags_WidthFixed | (is_narrow ? ImGuiTableColumnFlags_Disabled : 0),
                          px(32));
  ImGui::TableSetupColumn("change", ImGuiTableColumnFlags_WidthStretch);
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int column = 0; column < 5; ++column) {
    if (!ImGui::TableSetColumnIndex(column)) continue;
    const std::string title = ImGui::TableGetColumnName(column);
    if (column == 2 || column == 3)
      text_right(title, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, fonts().regular, small_size,
                 &palette().quiet);
    else
      ImGui::TextUnformatted(title.c_str());
  }
  ImGui::PopStyleColor();
  ImGui::PopFont();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  if (state.scrolls_to_it)
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (view.shown.tries[rows[i]].number == state.chosen) clipper.IncludeItemByIndex(static_cast<int>(i));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_row(state, view, rows[static_cast<std::size_t>(i)]);
  state.scrolls_to_it = false;
  ImGui::EndTable();
}

// The runs that were made for a try, and a few of the state it was judged against.
struct TryCurves {
  std::vector<RunId> own, kept;
};
TryCurves curves_of(const TriesView& view, const Try& it) {
  constexpr std::size_t most = 8;
  TryCurves curves;
  for (auto run = view.shown.runs.rbegin(); run != view.shown.runs.rend(); ++run) {
    if (run->run == 0) continue;
    if (run->state == it.number && curves.own.size() < most) curves.own.push_back(run->run);
    if (it.number > 0 && run->state == it.parent && run->during <= it.number && curves.kept.size() < most)
      curves.kept.push_back(run->run);
  }
  return curves;
}

void draw_runs(State& state, const Workspace& workspace, const TryCurves& curves, const Try& it, Commands& commands) {
  Chart chart{.id = "tries.runs", .title = "Loss", .x_label = "step", .shared = &state.x, .commands = &commands};
  const auto add = [&](const std::vector<RunId>& runs, const std::string& label, const ImVec4& colour, int order) {
    bool is_first = true;
    for (const RunId id : runs) {
      const RunEntry* entry = workspace.find(id);
      if (!entry) continue;
      Curve curve{.label = label + "##" + std::to_string(id),
                  .colour = colour,
                  .weight = order == 0 ? 1.2f : 1.8f,
                  .in_legend = is_first,
                  .order = order,
                  .number = order};
      const RunPoints points = run_points(workspace, *entry, Quantity::loss, &state.x, commands.data, Reads::overview);
      if (!points.levels || points.y.empty()) continue;
      points.draw_as(curve);
      chart.curves.push_back(std::move(curve));
      is_first = false;
    }
  };
  add(curves.kept, "kept before", palette().quiet, 0);
  add(curves.own, it.number == 0 ? "unchanged" : "try " + std::to_string(it.number), palette().accent, 1);
  if (chart.curves.empty())
    return text_quiet_wrapped("These runs print no loss by step; their values are in the chart.");
  chart.note = plural(std::ssize(curves.own), "run") +
               (curves.kept.empty() ? "" : " beside " + std::to_string(curves.kept.size()) + " of what was kept");
  draw_chart(chart);
}

void draw_console(State& state, const Workspace& workspace, const TryCurves& curves, Commands& commands) {
  if (curves.own.empty()) return text_quiet("No run");
  if (std::ranges::find(curves.own, state.console) == curves.own.end()) state.console = curves.own.front();
  for (std::size_t i = 0; i < curves.own.size(); ++i) {
    if (i > 0) same_line(6);
    if (chip(("run " + std::to_string(curves.own[i])).c_str(), state.console == curves.own[i]))
      state.console = curves.own[i];
  }
  spacing(2);
  if (const RunDetail* detail = workspace.detail(state.console))
    draw_run_console(*detail);
  else if (workspace.find(state.console))
    commands.data.details.push_back(state.console);
}

void draw_patch_of(State& state, const TriesView& view, const Try& it) {
  if (it.number == 0) return text_quiet_wrapped("The state that the series began with.");
  if (it.patch.empty())
    return text_quiet_wrapped(
        it.patch_bytes > 0 ? "The patch is too long to be kept: " + bytes_text(static_cast<double>(it.patch_bytes)) +
                                 ". `stepladder try diff` shows it."
                           : "No change.");
  if (const std::pair now{view.shown.series.ladder, it.number}; state.rows_of != now) {
    state.rows = patch_rows(it.patch);
    state.rows_of = now;
  }
  draw_patch(state.rows);
}

void draw_chosen(State& state, const Workspace& workspace, const TriesView& view, Commands& commands) {
  const auto found = std::ranges::find(view.shown.tries, state.chosen, &Try::number);
  if (found == view.shown.tries.end()) return;
  const Try& it = *found;
  const TryFigures& figures = view.figures[static_cast<std::size_t>(found - view.shown.tries.begin())];
  const Json answer = try_answer(it.answer);
  const float right = ImGui::GetContentRegionMax().x, top = ImGui::GetCursorPosY();
  ImGui::AlignTextToFramePadding();
  text_strong(it.number == 0 ? "The unchanged state" : "Try " + std::to_string(it.number));
  same_line(8);
  pill_beside_buttons(try_verdict_word(figures.verdict), verdict_tone(figures.verdict));
  mark("tries.verdict." + figures.verdict);
  constexpr std::array<std::pair<const char*, Part>, 4> parts{
      {{"Patch", Part::patch}, {"Runs", Part::runs}, {"Output", Part::console}, {"Parts", Part::parts}}};
  const char* copy = "Copy revert command";
  same_line(14);
  ImGui::SetCursorPosY(top);
  for (const auto& [title, part] : parts) {
    if (part == Part::parts && it.verdict != "kept") continue;
    if (chip(title, state.part == part)) state.part = part;
    mark(std::string("tries.part.") + title);
    same_line(6);
  }
  const bool is_here = view.shown.series.checkout.starts_with('/');  // else it is another project's
  if (it.number > 0 && is_here && right - ImGui::GetCursorPosX() > button_width(copy)) {
    ImGui::SetCursorPosX(right - button_width(copy));
    if (quiet_button(copy, "tries.revert"))
      commands.push_back(CopyText{"stepladder try revert " + std::to_string(it.number) + "\n", "the command"});
    ImGui::SetItemTooltip("The command sets the checkout to this state");
  } else {
    ImGui::NewLine();
  }
  if (!it.message.empty())
    text_cut(it.message, ImGui::GetContentRegionAvail().x, palette().text, fonts().regular, text_size);
  if (!figures.change.empty()) {
    text_cut(in_print(figures.change), ImGui::GetContentRegionAvail().x, palette().text, fonts().semibold, 13.5f);
    // The list has means of all runs of a state, which the machine's drift is part of.
    same_line(8);
    text_cut(figures.beside, ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
    mark("tries.beside");
  }
  const std::string reason = try_text(answer, "reason");
  text_quiet_wrapped((reason.empty() ? "" : capitalised(reason) + ". ") +
                     capitalised(plural(figures.runs, "run") + ", " + rough_duration_text(figures.wall_s) + "."));
  spacing(2);
  const TryCurves curves = curves_of(view, it);
  const Part part = it.verdict != "kept" && state.part == Part::parts ? Part::patch : state.part;
  if (part == Part::patch) draw_patch_of(state, view, it);
  if (part == Part::runs) draw_runs(state, workspace, curves, it, commands);
  if (part == Part::console) draw_console(state, workspace, curves, commands);
  if (part == Part::parts) draw_parts(answer.contains("parts") ? answer["parts"] : Json(), view.lower_is_better);
}

// Runs that arrived since the window has read the project.
void load_new_runs(State& state, const Workspace& workspace, const TriesView& view, Commands& commands) {
  const std::pair now{view.shown.series.ladder, view.shown.runs.size()};
  if (std::exchange(state.reloaded_for, now) == now) return;
  for (const TryRun& run : view.shown.runs)
    if (run.run != 0 && !workspace.find(run.run)) return commands.push_back(Reload{});
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  commands.data.tries = state.series;
  state.x.begin_frame();
  const TriesView* view = workspace.tries.get();
  if (!view || view->asked != state.series || !view->problem.empty() || view->shown.tries.empty()) {
    text_title("Tries");
    if (view && !view->problem.empty()) return text_toned_wrapped(view->problem, Tone::bad);
    if (view && view->asked == state.series) return draw_empty(workspace, commands);
    commands.data.next_frame = true;
    return empty_state("Reading the tries...", "");
  }
  load_new_runs(state, workspace, *view, commands);
  draw_head(state, *view);
  gap(14);
  begin_card("##figures", ImVec2(0, px(88)));
  draw_figures(*view);
  end_card();
  gap(12);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  begin_card("##chart", ImVec2(0, std::max(px(200), room.y * 0.43f)));
  const std::int64_t hovered = draw_tries(*view, state.chosen, ImGui::GetContentRegionAvail());
  if (hovered >= 0 && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) choose(state, hovered);
  end_card();
  mark("tries.chart");
  gap(12);
  if (state.chosen < 0) state.chosen = view->shown.tries.back().number;
  const float space = px(14);
  begin_card("##tries", ImVec2((room.x - space) * 0.44f, std::max(ImGui::GetContentRegionAvail().y, px(220))));
  draw_list(state, *view);
  end_card();
  ImGui::SameLine(0, space);
  begin_card("##chosen", ImVec2(0, std::max(ImGui::GetContentRegionAvail().y, px(220))));
  draw_chosen(state, workspace, *view, commands);
  end_card();
}

nlohmann::json state_of(const State& state) {
  return {{"series", state.series}, {"try", state.chosen}, {"only_kept", state.only_kept}};
}

void show_state(State& state, const nlohmann::json& json) {
  if (!json.is_object()) return;
  const auto number = [&](const char* key, std::int64_t& into) {
    if (json.contains(key) && json[key].is_number_integer()) into = json[key].get<std::int64_t>();
  };
  number("series", state.series);
  number("try", state.chosen);
  if (json.contains("only_kept") && json["only_kept"].is_boolean()) state.only_kept = json["only_kept"];
}

}  // namespace

Panel panels::tries() {
  const auto state = std::make_shared<State>();
  return {.id = "tries",
          .title = "Tries",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .receive =
              [state](const PanelEvent& event) {
                if (const auto* asked = event.as<TriesToShow>()) *state = State{.series = asked->series};
              },
          .view = [state](const Workspace&) { return state_of(*state); },
          .show_view = [state](const nlohmann::json& json, const Workspace&) { show_state(*state, json); },
          .least_width = 720,
          .least_height = 620};
}

}  // namespace stepladder
