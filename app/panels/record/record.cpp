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
  text_cut("Whether a pool of runs is a record under a speed run's rule, and what speaks against it",
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
  const std::string shown = state.question.rule.empty() ? "No rule" : state.question.rule;
  if (ImGui::BeginCombo("##rule", combo_text(shown, width).c_str())) {
    std::vector<std::string> rules{""};
    if (view) rules.insert(rules.end(), view->rules.begin(), view->rules.end());
    for (const std::string& rule : rules) {
      if (!ImGui::Selectable(rule.empty() ? "No rule" : rule.c_str(), rule == state.question.rule)) continue;
      state.question.rule = rule;
      ask(state, commands);
    }
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
  const float rungs = button_width("Rungs"), rule = px(180), judge = px(80), space = px(8);
  const bool narrow = room < px(900);
  const float path = narrow ? room - rungs - space : (room - 2 * rungs - rule - judge - 5 * space) / 2;
  bool entered = state.pool.draw("##pool", "Folder of logs", path, "record.pool", commands.data);
  ImGui::SameLine(0, space);
  draw_rungs(state.pool, "Rungs##pool", "record.pool.rungs", workspace, state, commands);
  if (!narrow) ImGui::SameLine(0, space);
  entered |= state.baseline.draw("##baseline", "Baseline: the record so far", path, "record.baseline", commands.data);
  ImGui::SameLine(0, space);
  draw_rungs(state.baseline, "Rungs##baseline", "record.baseline.rungs", workspace, state, commands);
  if (!narrow) ImGui::SameLine(0, space);
  draw_rules(state, workspace.record.get(), rule, commands);
  ImGui::SameLine(0, space);
  const bool pressed = ImGui::Button("Judge", ImVec2(judge, 0));
  mark("record.judge");
  if (entered || pressed) ask(state, commands);
}

// --- verdict ---------------------------------------------------------------------------------------------------------

struct Words {
  const char* word;
  Tone tone;
};

Words words_of(RecordVerdict verdict) {
  return by_enum<RecordVerdict>(Words{"A record", Tone::good}, Words{"Misses the target", Tone::bad},
                                Words{"Inconclusive", Tone::warning}, Words{"Flagged", Tone::warning})[verdict];
}

void draw_verdict(const RecordView& view) {
  const RecordClaim& claim = view.claim;
  const Words words = words_of(claim.verdict);
  pill(words.word, words.tone);
  mark("record.verdict." + std::string(to_string(claim.verdict)));
  same_line(10);
  std::string reason = claim.reason.empty() ? "" : capitalised(claim.reason) + ".";
  if (!claim.flags.empty() && claim.verdict == RecordVerdict::flagged)
    reason += claim.flags.size() == 1 ? " One flag must be explained."
                                      : " " + std::to_string(claim.flags.size()) + " flags must be explained.";
  text_sentence(reason);
  gap(10);
  const std::string metric = view.rule ? view.rule->metric : "val_loss";
  const std::array tiles{
      FigureTile{"Runs", std::to_string(claim.metric.n),
                 claim.needed_n > 0 ? std::to_string(claim.needed_n) + " needed for a power of 90 %" : ""},
      FigureTile{"Mean " + (metric == "val_loss" ? "validation loss" : metric), figure(claim.metric.mean, "%.5f"),
                 interval_text(claim.metric_ci95, "%.4f")},
      FigureTile{"p", figure(claim.p, "%.3g"),
                 view.rule && !is_missing(view.rule->alpha) ? "level " + figure(view.rule->alpha, "%.3g") : ""},
      FigureTile{"Mean time", is_missing(claim.time_s.mean) ? "-" : figure(claim.time_s.mean, "%.2f") + " s",
                 is_missing(claim.time_s.mean)
                     ? ""
                     : figure(claim.time_s.low, "%.2f") + " to " + figure(claim.time_s.high, "%.2f") + " s"},
      FigureTile{"Speed-up", is_missing(claim.speedup) ? "-" : in_print(figure(claim.speedup, "%.4f") + " x"),
                 is_missing(claim.speedup) ? "needs a timed baseline" : interval_text(claim.speedup_ci95, "%.4f")}};
  figure_tiles(tiles);
}

// "Unfinished logs" of "unfinished-logs".
std::string in_words(std::string id) {
  std::ranges::replace(id, '-', ' ');
  return capitalised(std::move(id));
}

void draw_flags(const RecordView& view) {
  const RecordClaim& claim = view.claim;
  text_strong("Flags");
  if (claim.flags.empty()) text_quiet("None: nothing in the logs speaks against the claim");
  for (std::size_t i = 0; i < claim.flags.size(); ++i) {
    text_toned(in_words(claim.flags[i].id), Tone::warning);
    mark("record.flag." + std::to_string(i));
    text_sentence(claim.flags[i].why);
  }
  if (claim.excluded.empty()) return;
  gap(12);
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

void draw_claim(const RecordView& view) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float space = px(14);
  const float lines = ImGui::GetTextLineHeightWithSpacing();
  card("##verdict", 0, lines * 4 + px(78), false, [&] { draw_verdict(view); });
  gap(14);
  if (room.x < px(900) || room.y < px(460)) {
    card("##losses", 0, px(260), false, [&] { draw_losses(view, ImGui::GetContentRegionAvail()); });
    gap(14);
    card("##p", 0, px(260), false, [&] { draw_p(view, ImGui::GetContentRegionAvail()); });
    gap(14);
    card("##flags", 0, px(220), true, [&] { draw_flags(view); });
    return;
  }
  const float rest = ImGui::GetContentRegionAvail().y;
  const float charts = std::max(px(200), (rest - space) * 0.58f);
  card("##losses", (room.x - space) * 0.6f, charts, false, [&] { draw_losses(view, ImGui::GetContentRegionAvail()); });
  ImGui::SameLine(0, space);
  card("##p", 0, charts, false, [&] { draw_p(view, ImGui::GetContentRegionAvail()); });
  gap(14);
  card("##flags", 0, 0, true, [&] { draw_flags(view); });
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
  ImGui::TableHeadersRow();
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

void draw_no_pool(State& state, const Workspace& workspace, Commands& commands) {
  if (state.pools_at != workspace.version) {
    state.pools_at = workspace.version;
    state.pools = own_pools(workspace);
  }
  if (!state.pools.empty()) {
    constexpr std::size_t most = 6;
    begin_tall_card("##pools");
    text_strong("Rungs of this project with several runs");
    text_quiet("A pool is what a rule judges: repeats of one configuration");
    spacing(4);
    for (std::size_t i = 0; i < std::min(state.pools.size(), most); ++i) {
      const OwnPool& pool = state.pools[i];
      ImGui::PushID(static_cast<int>(i));
      if (quiet_button("Judge", "record.own." + std::to_string(i))) {
        state.pool.show(pool.pool);
        ask(state, commands);
      }
      same_line(12);
      ImGui::AlignTextToFramePadding();
      text_cut(pool.name, ImGui::GetContentRegionAvail().x - px(120), palette().text, fonts().regular, text_size,
               Cut::middle);
      same_line(12);
      text_quiet(plural(pool.runs, "run"));
      ImGui::PopID();
    }
    end_card();
  }
  text_quiet_wrapped(
      "Name a folder of logs or pick a rung, and a rule: the verdict, its figures and flags appear here. Until then, "
      "the "
      "published records:");
  gap(6);
  if (const RecordView* view = workspace.record.get()) draw_history(*view, state);
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
  draw_question(state, workspace, commands);
  gap(14);
  const bool is_current = view && view->asked == state.question;
  if (!is_current) {
    commands.data.next_frame = true;
    if (!state.question.pool.empty()) return empty_state("Reading the logs...", "");
  }
  if (!view || view->asked.pool.empty()) return draw_no_pool(state, workspace, commands);
  if (!view->problem.empty()) {
    text_toned("The pool can't be judged", Tone::bad);
    mark("record.problem");
    text_sentence(view->problem);
    return;
  }
  draw_claim(*view);
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
      .remember = [state] { return state_of(*state).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); },
      .recall = [state](const std::string& text) { show_state(*state, nlohmann::json::parse(text, nullptr, false)); },
      .view = [state](const Workspace&) { return state_of(*state); },
      .show_view = [state](const nlohmann::json& json, const Workspace&) { show_state(*state, json); },
      .least_width = 560,
      .least_height = 0};
}

}  // namespace stepladder
