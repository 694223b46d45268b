// Record: is a pool of runs a record under a speed run's rule, and why not; and the published history of records.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/commands/record_commands.h"
#include "app/desktop/fields.h"
#include "app/desktop/frames/frames.h"
#include "app/desktop/panel.h"
#include "app/desktop/panel_events.h"
#include "app/desktop/system/path_field.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/record/charts.h"
#include "app/text/format.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

// A rung with several finished runs, which can be judged as a pool.
struct OwnPool {
  std::string name;
  std::string pool;  // "rung:3/1"
  std::size_t runs = 0;
};

struct State {
  PathField pool{{.title = "Choose a folder of logs", .kind = FileQuestion::Kind::folder}};
  PathField baseline{{.title = "Choose the record's folder of logs", .kind = FileQuestion::Kind::folder}};
  RecordQuestion question;
  bool shows_published = false;
  bool asked = false;
  int hovered = -1;  // record of the list or the chart
  std::vector<OwnPool> pools;
  std::uint64_t pools_at = 0;  // Workspace::version
};

void ask(State& state, Commands& commands) {
  state.question.pool = state.pool.path();
  state.question.baseline = state.baseline.path();
  state.asked = true;
  commands.push_back(JudgeRecord{state.question});
}

std::string figure(double value, const char* format) {
  if (is_missing(value)) return "-";
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string interval_text(const Interval& interval, const char* format) {
  return interval.known() ? figure(interval.low, format) + " to " + figure(interval.high, format) : "";
}

// --- head ------------------------------------------------------------------------------------------------------------

void draw_head(State& state) {
  const float top = ImGui::GetCursorPosY();
  text_title("Record");
  text_cut("Is a folder of logs a speed-run record, and what speaks against it?",
           ImGui::GetContentRegionAvail().x - px(280), palette().quiet, fonts().regular, small_size);
  const float below = ImGui::GetCursorPosY();
  const float buttons = button_width("Your runs") + px(8) + button_width("Published records");
  ImGui::SetCursorPos(ImVec2(ImGui::GetContentRegionMax().x - buttons, top));
  if (chip("Your runs", !state.shows_published)) state.shows_published = false;
  mark("record.yours");
  same_line(8);
  if (chip("Published records", state.shows_published)) state.shows_published = true;
  mark("record.published");
  ImGui::SetCursorPosY(below);
}

void draw_rules(State& state, const RecordView* view, float width, Commands& commands) {
  ImGui::SetNextItemWidth(width);
  const std::string nearest = view && view->rule ? view->rule->name : "choose it";
  const std::string shown = state.question.rule.empty() ? "Rule: " + nearest : "Rule: " + state.question.rule;
  if (ImGui::BeginCombo("##rule", combo_text(shown, width).c_str())) {
    const auto entry = [&](const std::string& name, const std::string& title) {
      const char* label = name.empty() ? "The one nearest to the logs" : name.c_str();
      const bool is_chosen = ImGui::Selectable(label, name == state.question.rule);
      if (!title.empty()) wrapped_tooltip(title, 360);
      if (!is_chosen) return;
      state.question.rule = name;
      ask(state, commands);
    };
    entry("", "");
    if (view)
      for (const RecordRule& rule : view->rules) entry(rule.name, rule.title);
    ImGui::EndCombo();
  }
  mark("record.rule");
}

// The rungs of all ladders, for a pool of the project's own runs.
void draw_rungs(PathField& field, const char* id, const std::string& anchor, const Workspace& workspace, State& state,
                Commands& commands) {
  if (quiet_button(id, anchor)) {
    ImGui::OpenPopup(id);
  }
  popup_at_item();
  if (!ImGui::BeginPopup(id)) return;
  std::size_t entries = 0;
  for (const Ladder& ladder : workspace.ladders()) entries += workspace.runs_of(ladder.id).size();
  bool takes_first = false;
  const std::string typed = list_search("Search rungs", entries, &takes_first);
  bool marks_first = !typed.empty();
  if (entries == 0) text_quiet("The project has no ladder yet");
  for (const Ladder& ladder : workspace.ladders()) {
    int last = -1;
    for (const RunEntry* entry : workspace.runs_of(ladder.id)) {
      if (entry->run.rung == std::exchange(last, entry->run.rung)) continue;
      const std::string name = ladder.name + ": " + (entry->run.stage.empty() ? "baseline" : entry->run.stage);
      if (!holds(name, typed)) continue;
      const std::string item = name + "##" + std::to_string(ladder.id) + "/" + std::to_string(entry->run.rung);
      const bool is_taken = std::exchange(takes_first, false);
      const bool is_chosen = ImGui::Selectable(item.c_str()) || is_taken;
      if (std::exchange(marks_first, false)) mark_taken_by_enter();
      if (!is_chosen) continue;
      ImGui::CloseCurrentPopup();
      field.show("rung:" + std::to_string(ladder.id) + "/" + std::to_string(entry->run.rung));
      ask(state, commands);
    }
  }
  ImGui::EndPopup();
}

void draw_question(State& state, const Workspace& workspace, Commands& commands) {
  const float room = ImGui::GetContentRegionAvail().x;
  const float rungs = button_width("Rungs"), rule = px(210), space = px(8);
  const bool narrow = room < px(900);
  const float path = narrow ? room - rungs - space : (room - 2 * rungs - rule - 4 * space) / 2;
  bool entered = state.pool.draw("##pool", "Folder of logs", path, "record.pool", commands.data);
  ImGui::SameLine(0, space);
  draw_rungs(state.pool, "Rungs##pool", "record.pool.rungs", workspace, state, commands);
  if (!narrow) ImGui::SameLine(0, space);
  entered |=
      state.baseline.draw("##baseline", "Baseline: the record's own logs", path, "record.baseline", commands.data);
  ImGui::SameLine(0, space);
  draw_rungs(state.baseline, "Rungs##baseline", "record.baseline.rungs", workspace, state, commands);
  if (!narrow) ImGui::SameLine(0, space);
  draw_rules(state, workspace.record.get(), rule, commands);
  if (entered) ask(state, commands);
}

// --- verdict ---------------------------------------------------------------------------------------------------------

Tone tone_of(RecordVerdict verdict) {
  return by_enum<RecordVerdict>(Tone::good, Tone::bad, Tone::warning, Tone::warning)[verdict];
}

// "A record: ...", "Flagged by 5 reasons below; apart from them: ..."
std::string headline_of(const RecordView& view) {
  const RecordClaim& claim = view.claim;
  if (claim.metric.n > 0 && !view.rule)
    return "The target of no rule, or of several, is near these logs. Choose the rule to judge them by.";
  if (claim.verdict != RecordVerdict::flagged) return capitalised(claim.finding) + ".";
  return plural(claim.flags.size(), "reason", "reasons") +
         " to distrust these runs, below. Apart from that: " + claim.finding + ".";
}

// The rule, and why this one.
std::string rule_text(const RecordView& view) {
  if (!view.rule) return "";
  return "By " + view.rule->title +
         (view.asked.rule.empty() ? " (chosen since its target is the nearest to these logs)" : "");
}

// What would settle it: the rule, the record's own logs, more runs.
void draw_next(const RecordView& view, State& state, Commands& commands) {
  const RecordClaim& claim = view.claim;
  if (claim.metric.n > 0 && !view.rule) {
    for (const RecordRule& rule : view.rules) {
      if (&rule != &view.rules.front()) flow_to(rule.name.c_str());
      if (quiet_button(rule.name.c_str(), "record.rule." + rule.name)) {
        state.question.rule = rule.name;
        ask(state, commands);
      }
      wrapped_tooltip(rule.title, 360);
    }
    return;
  }
  const auto runs = static_cast<std::int64_t>(claim.metric.n);
  if (claim.needed_n > runs)
    text_quiet_wrapped(plural(claim.needed_n - runs, "more run") +
                       " of the same would pass the test with a probability of 90 %.");
  if (runs > 0 && claim.flags.empty()) text_quiet("No flags: nothing in the logs speaks against the claim.");
}

void draw_verdict(const RecordView& view, State& state, Commands& commands) {
  const RecordClaim& claim = view.claim;
  pill(record_words[claim.verdict], tone_of(claim.verdict));
  mark("record.verdict." + std::string(to_string(claim.verdict)));
  same_line(10);
  ImGui::PushTextWrapPos(0);
  text_in(in_print(headline_of(view)), fonts().semibold, 16);
  ImGui::PopTextWrapPos();
  if (const std::string rule = rule_text(view); !rule.empty()) text_quiet_wrapped(rule);
  draw_next(view, state, commands);
  if (claim.metric.n == 0) return;
  gap(10);
  const std::string metric = view.rule ? view.rule->metric : "val_loss";
  const std::array tiles{
      FigureTile{"runs", std::to_string(claim.metric.n),
                 claim.needed_n > 0 ? std::to_string(claim.needed_n) + " needed for a power of 90 %" : ""},
      FigureTile{"mean " + (metric == "val_loss" ? "validation loss" : metric), figure(claim.metric.mean, "%.5f"),
                 interval_text(claim.metric_ci95, "%.4f")},
      FigureTile{"p", figure(claim.p, "%.3g"),
                 view.rule && !is_missing(view.rule->alpha) ? "level " + figure(view.rule->alpha, "%.3g") : ""},
      FigureTile{"mean time", is_missing(claim.time_s.mean) ? "-" : figure(claim.time_s.mean, "%.2f") + " s",
                 is_missing(claim.time_s.mean)
                     ? "the logs print no clock"
                     : figure(claim.time_s.low, "%.2f") + " to " + figure(claim.time_s.high, "%.2f") + " s"},
      FigureTile{
          "speed-up", is_missing(claim.speedup) ? "-" : in_print(figure(claim.speedup, "%.4f") + " x"),
          is_missing(claim.speedup) ? "needs the record's own logs" : interval_text(claim.speedup_ci95, "%.4f")}};
  figure_tiles(tiles);
}

// "Unfinished logs" of "unfinished-logs".
std::string in_words(std::string id) {
  std::ranges::replace(id, '-', ' ');
  return capitalised(std::move(id));
}

bool has_flags(const RecordView& view) {
  return !view.claim.flags.empty() || !view.claim.excluded.empty();
}

void draw_flags(const RecordView& view) {
  const RecordClaim& claim = view.claim;
  if (!claim.flags.empty()) text_strong("What speaks against it");
  for (std::size_t i = 0; i < claim.flags.size(); ++i) {
    text_toned(in_words(claim.flags[i].id), Tone::warning);
    mark("record.flag." + std::to_string(i));
    text_sentence(claim.flags[i].why);
  }
  if (claim.excluded.empty()) return;
  if (!claim.flags.empty()) gap(12);
  text_strong("Logs that don't count");
  constexpr std::size_t most_listed = 200;
  for (std::size_t i = 0; i < std::min(claim.excluded.size(), most_listed); ++i)
    text_quiet_wrapped(std::filesystem::path(claim.excluded[i].file).filename().string() + " " + claim.excluded[i].why);
  if (claim.excluded.size() > most_listed) text_quiet("and " + grouped(claim.excluded.size() - most_listed) + " more");
}

template <class Draw>
void card(const char* id, float width, float height, bool scrolls, Draw draw) {
  begin_card(id, ImVec2(width, height), scrolls);
  draw();
  end_card();
}

void draw_claim(const RecordView& view, State& state, Commands& commands) {
  begin_tall_card("##verdict");
  draw_verdict(view, state, commands);
  end_card();
  gap(14);
  const ImVec2 room(ImGui::GetContentRegionAvail().x, ImGui::GetContentRegionAvail().y - px(2));
  const float space = px(14);
  const auto flags = [&](float width, float height) {
    card("##flags", width, height, true, [&] { draw_flags(view); });
  };
  if (view.claim.metric.n == 0)  // there is nothing to plot
    return has_flags(view) ? flags(0, room.y) : void();
  const auto losses = [&](float width, float height) {
    card("##losses", width, height, false, [&] { draw_losses(view, ImGui::GetContentRegionAvail()); });
  };
  const auto p = [&](float height) {
    card("##p", 0, height, false, [&] { draw_p(view, ImGui::GetContentRegionAvail()); });
  };
  if (room.x < px(900) || room.y < px(400)) {
    if (has_flags(view)) {
      flags(0, px(220));
      gap(14);
    }
    losses(0, px(260));
    gap(14);
    return p(px(260));
  }
  if (!has_flags(view)) {
    losses((room.x - space) * 0.6f, room.y);
    ImGui::SameLine(0, space);
    return p(room.y);
  }
  // What speaks against it is beside the charts, so that neither needs scrolling.
  flags((room.x - space) * 0.42f, room.y);
  ImGui::SameLine(0, space);
  ImGui::BeginGroup();
  losses(0, (room.y - space) / 2);
  gap(14);
  p((room.y - space) / 2 - px(2));
  ImGui::EndGroup();
}

// --- published records -----------------------------------------------------------------------------------------------

void draw_record_row(const PublishedRecord& record, int place, State& state) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const std::string number = std::to_string(record.number);
  ImGui::Selectable(number.c_str(), state.hovered == place, ImGuiSelectableFlags_SpanAllColumns);
  if (ImGui::IsItemHovered()) state.hovered = place;
  ImGui::TableNextColumn();
  const auto right = [](const std::string& text) {
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x -
                         ImGui::CalcTextSize(text.c_str()).x);
    ImGui::TextUnformatted(text.c_str());
  };
  right(figure(record.minutes, "%.4g"));
  ImGui::TableNextColumn();
  right(is_missing(record.factor) ? "" : in_print(figure(record.factor, "%.3f") + " x"));
  ImGui::TableNextColumn();
  text_quiet(record.date);
  ImGui::TableNextColumn();
  text_cut(record.what.empty() ? "-" : record.what, ImGui::GetContentRegionAvail().x,
           record.what.empty() ? palette().quiet : palette().text, fonts().regular, text_size);
}

void draw_records_table(const PublishedRecords& published, State& state) {
  if (!ImGui::BeginTable("##records", 5, ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit, ImVec2(0, 0)))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("#", 0, px(34));
  ImGui::TableSetupColumn("minutes", 0, px(64));
  ImGui::TableSetupColumn("factor", 0, px(70));
  ImGui::TableSetupColumn("date", 0, px(84));
  ImGui::TableSetupColumn("change", ImGuiTableColumnFlags_WidthStretch);
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int column = 0; column < 5; ++column) {
    if (!ImGui::TableSetColumnIndex(column)) continue;
    column_head(ImGui::TableGetColumnName(column), column == 1 || column == 2);
  }
  ImGui::PopStyleColor();
  ImGui::PopFont();
  // The newest first.
  for (int i = static_cast<int>(published.records.size()) - 1; i >= 0; --i)
    draw_record_row(published.records[static_cast<std::size_t>(i)], i, state);
  ImGui::EndTable();
}

void draw_history(const RecordView& view, State& state) {
  const PublishedRecords& published = view.published;
  if (published.records.empty()) {
    empty_state("The history of records can't be read", view.published_problem);
    return;
  }
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float space = px(14);
  const auto chart = [&] {
    text_strong(published.title);
    text_cut(grouped(published.records.size()) + " records, " +
                 in_print(figure(published.total_factor(), "%.1f") + " x") + " in all; from " + published.source +
                 " (" + published.read + ")",
             ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
    float foot = 0;
    for (const std::string& note : published.notes)
      foot += ImGui::CalcTextSize(note.c_str(), nullptr, false, ImGui::GetContentRegionAvail().x).y + px(4);
    ImVec2 size = ImGui::GetContentRegionAvail();
    size.y -= foot;
    if (const int hovered = draw_published(published, state.hovered, size); hovered >= 0) state.hovered = hovered;
    for (const std::string& note : published.notes) text_quiet_wrapped(note);
  };
  const auto table = [&] { draw_records_table(published, state); };
  if (room.x < px(860)) {
    card("##chart", 0, px(340), false, chart);
    gap(14);
    card("##table", 0, px(360), false, table);
    return;
  }
  card("##chart", (room.x - space) * 0.52f, 0, false, chart);
  ImGui::SameLine(0, space);
  card("##table", 0, 0, false, table);
}

// --- panel -----------------------------------------------------------------------------------------------------------

// Those with most runs first.
std::vector<OwnPool> own_pools(const Workspace& workspace) {
  std::vector<OwnPool> pools;
  for (const Ladder& ladder : workspace.ladders()) {
    std::map<int, OwnPool> rungs;
    for (const RunEntry* entry : workspace.runs_of(ladder.id)) {
      if (entry->run.status != RunStatus::finished) continue;
      OwnPool& rung = rungs[entry->run.rung];
      rung.name = ladder.name + ": " + (entry->run.stage.empty() ? "baseline" : entry->run.stage);
      rung.pool = "rung:" + std::to_string(ladder.id) + "/" + std::to_string(entry->run.rung);
      ++rung.runs;
    }
    for (auto& [place, rung] : rungs)
      if (rung.runs > 1) pools.push_back(std::move(rung));
  }
  std::ranges::stable_sort(pools, std::greater{}, &OwnPool::runs);
  return pools;
}

// The way in: a folder, or a rung of this project that has several runs.
void draw_no_pool(State& state, const Workspace& workspace, Commands& commands) {
  if (state.pools_at != workspace.version) {
    state.pools_at = workspace.version;
    state.pools = own_pools(workspace);
  }
  begin_tall_card("##way in");
  text_in("Is it a record? Choose the folder of its logs.", fonts().semibold, 17);
  text_quiet_wrapped(
      "The folder has one log per run. The answer is a record, misses the target, inconclusive, or flagged, with its "
      "reasons and the test's numbers. Stepladder takes the rule with the nearest target; you can choose another.");
  spacing(4);
  const float width = std::min(ImGui::GetContentRegionAvail().x, px(720));
  if (state.pool.draw("##pool", "Drop the folder here, or type its path", width, "record.pool", commands.data))
    ask(state, commands);
  constexpr std::size_t most = 4;
  if (!state.pools.empty()) {
    spacing(6);
    text_quiet("Or judge the repeats of a rung of this project:");
  }
  for (std::size_t i = 0; i < std::min(state.pools.size(), most); ++i) {
    const OwnPool& pool = state.pools[i];
    const std::string label = pool.name + ", " + plural(pool.runs, "run");
    if (i > 0) flow_to(label.c_str());
    if (!quiet_button(label.c_str(), "record.own." + std::to_string(i))) continue;
    state.pool.show(pool.pool);
    ask(state, commands);
  }
  end_card();
  gap(14);
  if (const RecordView* view = workspace.record.get()) draw_history(*view, state);
}

// Why it can't be judged, and what can be instead.
void draw_problem(const RecordView& view, State& state, Commands& commands) {
  begin_tall_card("##problem");
  text_toned("This can't be judged", Tone::bad);
  mark("record.problem");
  text_sentence(capitalised(view.problem) + ".");
  if (!view.instead.empty()) {
    spacing(4);
    text_quiet("These folders in it hold logs:");
  }
  for (std::size_t i = 0; i < view.instead.size(); ++i) {
    const std::string name = std::filesystem::path(view.instead[i]).filename().string() + "/";
    if (i > 0) flow_to(name.c_str());
    if (!quiet_button(name.c_str(), "record.instead." + std::to_string(i))) continue;
    state.pool.show(view.instead[i]);
    ask(state, commands);
  }
  spacing(4);
  if (quiet_button("Start again", "record.again")) {
    state.pool.show("");
    state.question = {};
    ask(state, commands);
  }
  end_card();
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  if (!state.asked) ask(state, commands);
  draw_head(state);
  gap(16);
  const RecordView* view = workspace.record.get();
  if (state.shows_published) {
    if (view) draw_history(*view, state);
    return;
  }
  const bool is_asked = !state.question.pool.empty();
  if (is_asked) {
    draw_question(state, workspace, commands);
    gap(14);
  }
  const bool is_current = view && view->asked == state.question;
  if (!is_current) {
    commands.data.next_frame = true;
    if (is_asked) return empty_state("Reading the logs...", "");
  }
  if (!view || !is_asked) return draw_no_pool(state, workspace, commands);
  if (!view->problem.empty()) return draw_problem(*view, state, commands);
  draw_claim(*view, state, commands);
}

nlohmann::json state_of(const State& state) {
  return {{"pool", state.question.pool},
          {"baseline", state.question.baseline},
          {"rule", state.question.rule},
          {"published", state.shows_published}};
}

void show_state(State& state, const nlohmann::json& json) {
  if (!json.is_object()) return;
  const auto text = [&](const char* key, std::string& into) {
    if (json.contains(key) && json[key].is_string()) into = json[key].get<std::string>().substr(0, 4'000);
  };
  text("pool", state.question.pool);
  text("baseline", state.question.baseline);
  text("rule", state.question.rule);
  if (json.contains("published") && json["published"].is_boolean()) state.shows_published = json["published"];
  state.pool.show(state.question.pool);
  state.baseline.show(state.question.baseline);
  state.asked = false;
}

}  // namespace

Panel panels::record() {
  const auto state = std::make_shared<State>();
  return {
      .id = "record",
      .title = "Record",
      .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
      .receive =
          [state](const PanelEvent& event) {
            if (const auto* dropped = event.as<FolderDropped>())
              show_state(*state, {{"pool", dropped->folder}, {"baseline", ""}, {"rule", ""}, {"published", false}});
          },
      .remember = [state] { return state_of(*state).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); },
      .recall = [state](const std::string& text) { show_state(*state, nlohmann::json::parse(text, nullptr, false)); },
      .view = [state](const Workspace&) { return state_of(*state); },
      .show_view = [state](const nlohmann::json& json, const Workspace&) { show_state(*state, json); },
      .least_width = 560,
      .least_height = 0};
}

}  // namespace stepladder
