// Run: all about one run. What it measured and whether to believe it, what it was (its recipe and environment, or only
// what differs from another's), what it wrote and saved, and the way to do it again.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/desktop/charts.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_points.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "storage/plausibility.h"

namespace stepladder {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

enum class Tab { recipe, environment, machine, console, samples, checkpoints, note };
constexpr std::array tab_names{"Recipe", "Environment", "Machine", "Console", "Samples", "Checkpoints", "Note"};

struct State {
  RunId shown = 0;
  Tab tab = Tab::recipe;
  RunId against = 0;  // whose recipe and environment are held against its own; 0: nobody's
  bool only_differences = false;
  SharedX x;
  std::array<char, 256> name{};
  bool renaming = false;
  std::array<char, 256> tags{};
  std::array<char, 4096> note{};
  int sample = -1;                                                           // -1: the newest
  std::map<int, std::pair<std::vector<double>, std::vector<double>>> lanes;  // columns, made anew when samples came
  std::size_t lanes_made_of = 0;
};

const RunEntry* shown_run(const Workspace& workspace) {
  if (const RunEntry* chosen = workspace.find(workspace.shown_run)) return chosen;
  if (!workspace.selected_runs.empty()) {
    if (const RunEntry* selected = workspace.find(*workspace.selected_runs.begin())) return selected;
  }
  for (auto entry = workspace.runs().rbegin(); entry != workspace.runs().rend(); ++entry) {
    if (entry->summary.steps > 0) return &*entry;
  }
  return workspace.runs().empty() ? nullptr : &workspace.runs().back();
}

void copy_into(std::span<char> field, const std::string& text) {
  const std::size_t count = std::min(field.size() - 1, text.size());
  std::copy_n(text.begin(), count, field.begin());
  field[count] = 0;
}

void take_run(State& state, const Workspace& workspace, const RunEntry& entry) {
  state.shown = entry.run.id;
  state.x = {};
  state.renaming = false;
  state.sample = -1;
  state.lanes_made_of = 0;
  copy_into(state.name, entry.run.name);
  copy_into(state.tags, tags_text(entry.curation.tags));
  copy_into(state.note, entry.curation.note);
  // The rung before says best what this one is; a fork's parent does the same.
  state.against = entry.run.parent.value_or(0);
  if (state.against == 0 && entry.run.ladder && entry.run.rung > 0) {
    for (const RunEntry* other : workspace.runs_of(*entry.run.ladder)) {
      if (other->run.rung < entry.run.rung && other->run.repeat == 0) state.against = other->run.id;
    }
  }
}

// "a.b" for what lies deeper.
void flatten(const nlohmann::json& json, const std::string& name, Facts& facts) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) flatten(value, name.empty() ? key : name + "." + key, facts);
  } else if (!name.empty()) {
    facts.emplace_back(name, json.is_string() ? json.get<std::string>() : json.dump());
  }
}

Facts facts_of(const std::string& text) {
  Facts facts;
  flatten(nlohmann::json::parse(text, nullptr, false), "", facts);
  return facts;
}

void figure_tile(const char* name, const std::string& value, const std::string& detail) {
  ImGui::BeginGroup();
  text_quiet(name);
  ImGui::PushFont(fonts().semibold, 19);
  ImGui::TextUnformatted(value.c_str());
  ImGui::PopFont();
  text_quiet(detail);
  ImGui::EndGroup();
}

std::string origin(const Workspace& workspace, const Run& run) {
  std::string line = "run " + std::to_string(run.id);
  if (run.ladder) {
    if (const Ladder* ladder = workspace.ladder(*run.ladder))
      line += "  -  rung " + std::to_string(run.rung) + " of " + ladder->name;
  }
  if (run.repeat > 0) line += ", repeat " + std::to_string(run.repeat + 1);
  if (run.parent) {
    const RunEntry* parent = workspace.find(*run.parent);
    line += "  -  forked from " + (parent ? parent->run.name : "run " + std::to_string(*run.parent)) + " at step " +
            grouped(run.forked_at_step);
  }
  line += run.source == "launched"
              ? "  -  trained here, " + local_time_text(run.created_at)
              : "  -  " + run.source + (run.source_path.empty() ? "" : ", from " + run.source_path);
  return line;
}

void draw_head(State& state, const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  const float right = ImGui::GetContentRegionMax().x;
  const float top = ImGui::GetCursorPosY();
  const float name_width = right - px(300);
  if (state.renaming) {
    ImGui::SetNextItemWidth(name_width);
    ImGui::SetKeyboardFocusHere();
    const bool done = ImGui::InputText("##name", state.name.data(), state.name.size(),
                                       ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
    mark("run.name.field");
    if (done) commands.push_back(RenameRun{shown.run.id, state.name.data()});
    if (done || ImGui::IsKeyPressed(ImGuiKey_Escape)) state.renaming = false;
  } else {
    text_cut(shown.run.name, name_width, palette().text, fonts().display, title_size);
    mark("run.name");
    ImGui::SetItemTooltip("Double click to rename");
    if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
      copy_into(state.name, shown.run.name);
      state.renaming = true;
    }
  }
  const float below = ImGui::GetCursorPosY();
  ImGui::SetCursorPos(ImVec2(right - px(240), top));
  if (const auto picked = run_combo("##other", "Other runs", workspace, shown.run.id, px(240)))
    commands.push_back(OpenRun{*picked});
  mark("run.picker");
  ImGui::SetCursorPosY(below);
  text_cut(origin(workspace, shown.run), right - px(300), palette().quiet, fonts().regular, small_size);
}

void draw_actions(const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  const float top = ImGui::GetCursorPosY();
  pill_beside_buttons(std::string(to_string(shown.run.status)), status_tone(shown.run.status));
  const bool over = shown.run.status != RunStatus::running && shown.run.status != RunStatus::queued;
  const auto next = [top] {
    ImGui::SameLine(0, px(8));
    ImGui::SetCursorPosY(top);
  };
  if (shown.run.source == "launched" && over) {
    next();
    if (quiet_button("Run again exactly")) commands.push_back(Repeat{{shown.run.id}, 1});
    mark("run.again");
    ImGui::SetItemTooltip("The same recipe once more%s. What differs now stands under Environment.",
                          shown.run.ladder ? ", as a repeat of its rung" : "");
    if (shown.run.ladder && shown.run.rung > 0) {
      next();
      if (quiet_button("Is it real?"))
        commands.push_back(AskWhetherReal{*shown.run.ladder, workspace.baseline_rung, shown.run.rung});
      mark("run.real");
      ImGui::SetItemTooltip(
          "Repeats this rung and the baseline in turns until the factor is clear, at most six times.");
    }
  }
  next();
  if (quiet_button("Compare")) {
    std::vector<RunId> both{shown.run.id};
    if (shown.run.ladder) {
      for (const RunEntry* other : workspace.runs_of(*shown.run.ladder)) {
        if (other->run.rung == 0 && other->run.repeat == 0 && other->run.id != shown.run.id)
          both.push_back(other->run.id);
      }
    }
    commands.push_back(SelectRuns{both});
    commands.push_back(ShowPanel{"compare"});
  }
  mark("run.compare");
  next();
  Curation changed = shown.curation;
  changed.pinned = !changed.pinned;
  if (chip(shown.curation.pinned ? "Pinned" : "Pin", shown.curation.pinned))
    commands.push_back(
        Curate{changed.pinned ? "Pinned " + shown.run.name : "Unpinned " + shown.run.name, {{shown.run.id, changed}}});
  mark("run.pin");
  if (over) {
    next();
    if (quiet_button("Delete")) {
      Curation deleted = shown.curation;
      deleted.deleted_at = unix_now();
      commands.push_back(Curate{"Deleted " + shown.run.name, {{shown.run.id, deleted}}});
    }
    mark("run.delete");
    ImGui::SetItemTooltip("Into the bin; Ctrl+Z takes it back, for 30 days any Stepladder can.");
  }
}

void draw_figures(const Workspace& workspace, const RunEntry& shown) {
  const Summary& summary = shown.summary;
  const RunUtilisation use = utilisation_of(shown.run, summary, workspace.hardware);
  std::array<char, 48> mfu{};
  if (!is_missing(use.mfu)) std::snprintf(mfu.data(), mfu.size(), "%.1f %%", use.mfu * 100);
  const bool known = !is_missing(summary.tokens_per_s_p25);
  const std::array<std::array<std::string, 3>, 6> tiles{{
      {"tokens/s", tokens_per_s_text(summary.tokens_per_s),
       known ? "quartiles " + tokens_per_s_text(summary.tokens_per_s_p25) + " - " +
                   tokens_per_s_text(summary.tokens_per_s_p75)
             : "not known"},
      {"step time", milliseconds_text(summary.dt_ms_median),
       is_missing(summary.dt_ms_p95) ? "not known" : "95 % under " + milliseconds_text(summary.dt_ms_p95)},
      {"loss", loss_text(summary.loss_last), "from " + loss_text(summary.loss_first)},
      {"validation loss", loss_text(summary.val_loss_last),
       is_missing(summary.val_loss_min) ? "not evaluated" : "least " + loss_text(summary.val_loss_min)},
      {"MFU", mfu[0] ? mfu.data() : "-", mfu[0] ? use.convention : "peak or model not known"},
      {"steps", grouped(summary.steps), grouped(summary.warmup_steps) + " are warm-up"},
  }};
  const float each = ImGui::GetContentRegionAvail().x / static_cast<float>(tiles.size());
  const float start = ImGui::GetCursorPosX();
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (i > 0) ImGui::SameLine(start + each * static_cast<float>(i));
    figure_tile(tiles[i][0].c_str(), tiles[i][1], tiles[i][2]);
  }
}

// What a step was spent on, as one bar.
void draw_parts(const StepParts& parts, double dt_ms) {
  struct Part {
    const char* name;
    double ms;
    int colour;
  };
  const std::array<Part, 5> known{{{"data", parts.data_ms, 5},
                                   {"forward", parts.forward_ms, 0},
                                   {"backward", parts.backward_ms, 2},
                                   {"optimiser", parts.optimizer_ms, 1},
                                   {"communication", parts.communication_ms, 3}}};
  double sum = 0;
  for (const Part& part : known) sum += is_missing(part.ms) ? 0 : part.ms;
  if (sum <= 0) return;
  text_quiet("What a step was spent on");
  const double whole = is_missing(dt_ms) ? sum : std::max(sum, dt_ms);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float height = px(14);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), u32(palette().line), px(3));
  float x = at.x;
  for (const Part& part : known) {
    if (is_missing(part.ms)) continue;
    const float end = x + width * static_cast<float>(part.ms / whole);
    draw->AddRectFilled(ImVec2(x, at.y), ImVec2(std::max(x + 1, end - px(1)), at.y + height),
                        u32(rung_colour(part.colour)), px(2));
    x = end;
  }
  ImGui::Dummy(ImVec2(width, height));
  std::array<char, 80> text{};
  for (const Part& part : known) {
    if (is_missing(part.ms)) continue;
    colour_square(rung_colour(part.colour));
    ImGui::SameLine(0, px(6));
    std::snprintf(text.data(), text.size(), "%s  %s, %.0f %%", part.name, milliseconds_text(part.ms).c_str(),
                  100 * part.ms / whole);
    text_quiet(text.data());
  }
  if (whole > sum * 1.005) {
    std::snprintf(text.data(), text.size(), "between them  %s, %.0f %%", milliseconds_text(whole - sum).c_str(),
                  100 * (whole - sum) / whole);
    colour_square(palette().line);
    ImGui::SameLine(0, px(6));
    text_quiet(text.data());
  }
}

std::string timing_sentence(const Run& run) {
  switch (run.sync) {
    case Sync::event:
      return "Timed by events around each step on its stream, and one synchronisation at its end.";
    case Sync::device:
      return run.device == "cpu" || run.device.empty()
                 ? "Timed by the steady clock around each step; on a CPU the work is done when the call returns."
                 : "Timed after the device was done with each step.";
    case Sync::none:
      return "The clock was read without waiting for the device.";
    case Sync::unknown:
      break;
  }
  return "How its clock was read is not known: nothing in what was imported says so.";
}

void draw_belief(const Workspace& workspace, const RunEntry& shown, const RunDetail* detail) {
  const Run& run = shown.run;
  const Summary& summary = shown.summary;
  text_strong("Is it true?");
  if (!run.reason.empty()) text_sentence(run.reason, run.status == RunStatus::failed ? Tone::bad : Tone::warning);
  int repeats = 0;
  for (const RunEntry& other : workspace.runs())
    repeats += run.ladder && other.run.ladder == run.ladder && other.run.rung == run.rung ? 1 : 0;
  const std::vector<Flag> flags = flags_of(run, summary, std::max(1, repeats), workspace.hardware);
  for (const Flag& flag : flags) {
    const Tone tone = flag.id == FlagId::impossible_throughput || flag.id == FlagId::nonfinite_loss ? Tone::bad
                      : flag.id == FlagId::not_repeated || flag.id == FlagId::unknown_hardware      ? Tone::neutral
                                                                                                    : Tone::warning;
    text_toned(std::string(to_string(flag.id)), tone == Tone::neutral ? Tone::neutral : tone);
    text_sentence(flag.why);
  }
  if (flags.empty() && summary.steps > 0) text_sentence("Nothing speaks against its numbers.", Tone::good);
  ImGui::Dummy(ImVec2(0, px(2)));
  text_sentence(timing_sentence(run));
  if (run.tokens_per_step > 0 && !is_missing(summary.dt_ms_median)) {
    text_sentence(grouped(run.tokens_per_step) + " tokens in " + milliseconds_text(summary.dt_ms_median) + " = " +
                  tokens_per_s_text(summary.tokens_per_s) + " tokens/s");
  }
  const auto say = [](const std::string& name, const std::string& value) {
    if (!value.empty()) text_quiet_wrapped(name + ": " + value);
  };
  ImGui::Dummy(ImVec2(0, px(2)));
  say("Hardware", run.hardware);
  say("Precision", run.precision);
  say("Attention", run.attention);
  say("Parameters", run.params > 0 ? grouped(run.params) : "");
  say("Memory at most", run.peak_memory_bytes > 0 ? bytes_text(static_cast<double>(run.peak_memory_bytes)) : "");
  say("Before the first step", is_missing(run.setup_ms) ? "" : milliseconds_text(run.setup_ms));
  if (summary.spikes > 0) {
    say("Slow steps", grouped(summary.spikes) +
                          (summary.spike_period > 0 ? ", every " + grouped(summary.spike_period) +
                                                          " steps (validation "
                                                          "or checkpoints)"
                                                    : "") +
                          (summary.pauses > 0 ? ", of them " + grouped(summary.pauses) + " pauses" : ""));
  }
  if (detail) {
    ImGui::Dummy(ImVec2(0, px(4)));
    draw_parts(detail->parts, summary.dt_ms_median);
  }
}

void draw_charts(State& state, const Workspace& workspace, const RunEntry& shown, ImVec2 room, Commands& commands) {
  const float gap = px(16);
  const float half = (room.x - gap) / 2;
  double warmup_until = missing;
  const Summary& summary = shown.summary;
  if (summary.warmup_steps > 0 && static_cast<std::size_t>(summary.warmup_steps) < shown.steps.size()) {
    warmup_until = shown.steps[static_cast<std::size_t>(summary.warmup_steps)];
  } else if (summary.warmup_steps > 0 && shown.is_long() &&
             summary.last_step - summary.first_step + 1 == summary.steps) {  // no step is left out
    warmup_until = static_cast<double>(summary.first_step + summary.warmup_steps);
  }
  Chart loss{.id = "loss",
             .title = "Loss",
             .x_label = "step",
             .floor = shown.run.loss_floor,
             .floor_label = "entropy of the source",
             .shared = &state.x,
             .commands = &commands};
  Chart dt{.id = "dt",
           .title = "Step time",
           .x_label = "step",
           .unit = "ms",
           .from_zero = true,
           .shaded_until = warmup_until,
           .legend = false,
           .shared = &state.x,
           .commands = &commands};
  std::map<Chart*, std::int64_t> behind;
  const auto add = [&](Chart& chart, const RunEntry& entry, Quantity quantity, Curve curve) {
    const RunPoints points = run_points(workspace, entry, quantity, &state.x, commands);
    if (!points.levels || (quantity == Quantity::val_loss && points.levels->points() == 0)) return;
    curve.x = points.x;
    curve.y = points.y;
    curve.levels = points.levels;
    curve.points = curve.points && points.levels->points() <= 200;  // more marks would hide what they lie on
    behind[&chart] += points.behind;
    chart.curves.push_back(std::move(curve));
  };
  if (const RunEntry* other = workspace.find(state.against)) {
    const ImVec4 quiet = faded(palette().quiet, 0.7f);
    add(loss, *other, Quantity::loss,
        {.label = other->run.title.empty() ? other->run.name : other->run.title,
         .colour = quiet,
         .weight = 1,
         .order = 1,
         .dash = 1});
    add(dt, *other, Quantity::dt_ms, {.label = other->run.name, .colour = quiet, .weight = 1});
  }
  const ImVec4 colour = rung_colour(shown.run.rung);
  const std::string label = (shown.run.title.empty() ? shown.run.name : shown.run.title) + "##own";
  add(loss, shown, Quantity::loss, {.label = label, .colour = colour, .weight = 2});
  add(dt, shown, Quantity::dt_ms, {.label = label, .colour = colour, .weight = 1.4f});
  add(loss, shown, Quantity::val_loss, {.label = "validation", .colour = palette().text, .points = true, .order = 2});
  for (const auto& [chart, values] : behind) chart->note = behind_text(values);
  if (const RunDetail* detail = workspace.detail(shown.run.id)) {
    for (const Checkpoint& checkpoint : detail->checkpoints)
      loss.marks.push_back(
          {static_cast<double>(checkpoint.step), "checkpoint of step " + grouped(checkpoint.step), palette().warning});
  }
  begin_card("##loss", ImVec2(half, room.y));
  draw_chart(loss);
  end_card();
  ImGui::SameLine(0, gap);
  begin_card("##dt", ImVec2(half, room.y));
  draw_chart(dt);
  end_card();
}

// Name and value, and the other's value where there is an other.
void draw_facts(const char* id, const Facts& own, const Facts* other, const std::string& other_name,
                bool only_differences) {
  std::map<std::string, std::string> theirs;
  if (other) theirs = {other->begin(), other->end()};
  struct Row {
    const std::string* name;
    const std::string* own;
    const std::string* other;
  };
  static const std::string none = "-";
  std::vector<Row> rows;
  for (const auto& [name, value] : own) {
    const auto found = theirs.find(name);
    const std::string* held = found == theirs.end() ? &none : &found->second;
    if (other && only_differences && *held == value) continue;
    rows.push_back({&name, &value, held});
  }
  if (other) {
    for (const auto& [name, value] : *other) {
      const bool mine = std::any_of(own.begin(), own.end(), [&](const auto& fact) { return fact.first == name; });
      if (!mine) rows.push_back({&name, &none, &value});
    }
  }
  if (rows.empty()) return text_quiet(other ? "No difference." : "Nothing is known.");
  constexpr ImGuiTableFlags flags =
      ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchProp;
  if (!ImGui::BeginTable(id, other ? 3 : 2, flags, ImGui::GetContentRegionAvail())) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthFixed, px(170));
  ImGui::TableSetupColumn("this run", ImGuiTableColumnFlags_WidthStretch);
  if (other) ImGui::TableSetupColumn(other_name.c_str(), ImGuiTableColumnFlags_WidthStretch);
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  ImGui::TableHeadersRow();
  ImGui::PopStyleColor();
  ImGui::PopFont();
  for (const Row& row : rows) {
    const bool differs = other && *row.own != *row.other;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text_cut(*row.name, ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, 13.5f);
    ImGui::TableNextColumn();
    text_cut(*row.own, ImGui::GetContentRegionAvail().x, differs ? palette().accent : palette().text,
             differs ? fonts().semibold : fonts().regular, 13.5f);
    if (other) {
      ImGui::TableNextColumn();
      text_cut(*row.other, ImGui::GetContentRegionAvail().x, palette().text, fonts().regular, 13.5f);
    }
  }
  ImGui::EndTable();
}

void draw_against(State& state, const Workspace& workspace, const RunEntry& shown) {
  ImGui::AlignTextToFramePadding();
  text_quiet("held against");
  ImGui::SameLine(0, px(6));
  const RunEntry* other = workspace.find(state.against);
  ImGui::SetNextItemWidth(px(260));
  if (ImGui::BeginCombo("##against", other ? other->run.name.c_str() : "no other run")) {
    if (ImGui::Selectable("no other run", !other)) state.against = 0;
    std::vector<const RunEntry*> offered;
    if (shown.run.ladder) offered = workspace.runs_of(*shown.run.ladder);
    for (const RunId id : workspace.selected_runs) {
      const RunEntry* selected = workspace.find(id);
      if (selected && selected->run.ladder != shown.run.ladder) offered.push_back(selected);
    }
    for (const RunEntry* entry : offered) {
      if (entry->run.id == shown.run.id) continue;
      const std::string item = entry->run.name + "##" + std::to_string(entry->run.id);
      if (ImGui::Selectable(item.c_str(), entry->run.id == state.against)) state.against = entry->run.id;
    }
    ImGui::EndCombo();
  }
  mark("run.against");
  if (other) {
    ImGui::SameLine(0, px(8));
    if (chip("differences only", state.only_differences)) state.only_differences = !state.only_differences;
    mark("run.differences");
  }
}

void draw_recipe(State& state, const Workspace& workspace, const RunEntry& shown) {
  draw_against(state, workspace, shown);
  const RunEntry* other = workspace.find(state.against);
  const Facts own = facts_of(shown.run.recipe);
  if (own.empty())
    return text_quiet_wrapped("Its recipe is not known: the log that it was imported from does not say.");
  const Facts theirs = other ? facts_of(other->run.recipe) : Facts{};
  draw_facts("##recipe", own, other ? &theirs : nullptr, other ? other->run.name : "", state.only_differences);
}

void draw_environment(State& state, const Workspace& workspace, const RunEntry& shown) {
  const Facts own = facts_of(shown.run.environment);
  if (own.empty()) return text_quiet_wrapped("Nothing is known of where it ran.");
  if (shown.run.source == "launched") {
    text_quiet("What would differ if it ran again now stands in blue.");
    ImGui::SameLine(0, px(12));
    if (chip("differences only", state.only_differences)) state.only_differences = !state.only_differences;
    const Facts now = facts_of(workspace.environment);
    return draw_facts("##environment", own, &now, "here and now", state.only_differences);
  }
  draw_facts("##environment", own, nullptr, "", false);
}

void draw_machine(State& state, const RunDetail& detail, Commands& commands) {
  if (detail.lanes.empty())
    return text_quiet_wrapped(
        "What the machine did meanwhile was not recorded: runs that are trained here keep clocks, "
        "power, temperature, load and memory twice a second.");
  struct Lane {
    const char* name;
    const char* unit;
    double (*value)(const LaneSample&);
  };
  static constexpr std::array<Lane, 7> known{{
      {"GPU clock", "MHz", [](const LaneSample& s) { return s.gpu_clock_mhz; }},
      {"GPU power", "W", [](const LaneSample& s) { return s.gpu_power_w; }},
      {"GPU temperature", "C", [](const LaneSample& s) { return s.gpu_temperature_c; }},
      {"GPU load", "%", [](const LaneSample& s) { return is_missing(s.gpu_load) ? missing : s.gpu_load * 100; }},
      {"CPU load", "%", [](const LaneSample& s) { return is_missing(s.cpu_load) ? missing : s.cpu_load * 100; }},
      {"Cores kept busy", "cores", [](const LaneSample& s) { return s.process_cores; }},
      {"Memory", "GB",
       [](const LaneSample& s) {
         const std::int64_t bytes = s.gpu_memory_bytes > 0 ? s.gpu_memory_bytes : s.resident_bytes;
         return bytes > 0 ? static_cast<double>(bytes) / 1e9 : missing;
       }},
  }};
  if (state.lanes_made_of != detail.lanes.size()) {
    state.lanes_made_of = detail.lanes.size();
    state.lanes.clear();
    for (std::size_t k = 0; k < known.size(); ++k) {
      auto& [x, y] = state.lanes[static_cast<int>(k)];
      for (const LaneSample& sample : detail.lanes) {
        const double value = known[k].value(sample);
        const auto step = static_cast<double>(sample.step);
        if (is_missing(value) || (!x.empty() && step < x.back())) continue;
        x.push_back(step);
        y.push_back(value);
      }
    }
  }
  std::vector<std::size_t> shown;
  for (std::size_t k = 0; k < known.size(); ++k) {
    if (state.lanes[static_cast<int>(k)].first.size() > 1) shown.push_back(k);
  }
  std::vector<ChartMark> throttled;
  for (const LaneSample& sample : detail.lanes) {
    if (!sample.throttle_reason.empty())
      throttled.push_back({static_cast<double>(sample.step), "throttled: " + sample.throttle_reason, palette().bad});
  }
  const float gap = px(16);
  const float width = (ImGui::GetContentRegionAvail().x - gap * 2) / 3;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::size_t k = shown[i];
    const auto& [x, y] = state.lanes[static_cast<int>(k)];
    if (i % 3 != 0) ImGui::SameLine(0, gap);
    ImGui::BeginChild(known[k].name, ImVec2(width, px(150)));
    draw_chart({.id = known[k].name,
                .title = known[k].name,
                .x_label = "step",
                .unit = known[k].unit,
                .curves = {{.label = known[k].name, .x = x, .y = y, .colour = palette().accent}},
                .marks = k == 0 ? throttled : std::vector<ChartMark>{},
                .legend = false,
                .shared = &state.x,
                .commands = &commands});
    ImGui::EndChild();
  }
}

void draw_console(const RunDetail& detail) {
  if (detail.console.empty())
    return text_quiet_wrapped(
        "Nothing was kept of what it printed. `stepladder watch -- PROGRAM` keeps what a program prints.");
  ImGui::BeginChild("##console", ImVec2(0, 0), ImGuiChildFlags_None, ImGuiWindowFlags_HorizontalScrollbar);
  ImGui::PushFont(fonts().mono, 13);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(detail.console.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const std::string& line = detail.console[static_cast<std::size_t>(i)];
      ImGui::TextUnformatted(line.data(), line.data() + line.size());
    }
  }
  ImGui::PopFont();
  ImGui::EndChild();
}

void draw_samples(State& state, const RunDetail& detail) {
  if (detail.samples.empty())
    return text_quiet_wrapped(
        "It wrote no text. With --sample-every N a run that is trained here writes some every N steps.");
  const auto count = static_cast<int>(detail.samples.size());
  if (state.sample >= count) state.sample = -1;
  const int at = state.sample < 0 ? count - 1 : state.sample;
  ImGui::BeginChild("##steps", ImVec2(px(130), 0));
  for (int i = count - 1; i >= 0; --i) {
    const std::string item =
        "step " + grouped(detail.samples[static_cast<std::size_t>(i)].step) + "##" + std::to_string(i);
    if (ImGui::Selectable(item.c_str(), i == at)) state.sample = i;
  }
  ImGui::EndChild();
  ImGui::SameLine(0, px(16));
  ImGui::BeginChild("##text", ImVec2(0, 0));
  ImGui::PushTextWrapPos(0);
  ImGui::PushFont(fonts().mono, 13.5f);
  const std::string& text = detail.samples[static_cast<std::size_t>(at)].text;
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopFont();
  ImGui::PopTextWrapPos();
  ImGui::EndChild();
}

void draw_checkpoints(const RunEntry& shown, const RunDetail& detail, Commands& commands) {
  if (detail.checkpoints.empty())
    return text_quiet_wrapped(
        "Nothing was saved. With --save-every N a run that is trained here saves itself every N steps.");
  const bool over = shown.run.status != RunStatus::running && shown.run.status != RunStatus::queued;
  for (auto it = detail.checkpoints.rbegin(); it != detail.checkpoints.rend(); ++it) {
    ImGui::PushID(static_cast<int>(it->step));
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(("step " + grouped(it->step)).c_str());
    ImGui::SameLine(px(130));
    if (quiet_button("Fork from here")) commands.push_back(ForkRun{shown.run.id, it->step});
    ImGui::SetItemTooltip("A new run that starts from this checkpoint; its curve shares the steps before.");
    if (over && it == detail.checkpoints.rbegin()) {
      ImGui::SameLine(0, px(8));
      const std::int64_t to = it->step < shown.run.planned_steps ? shown.run.planned_steps : 2 * it->step;
      if (quiet_button(("Go on to step " + grouped(to)).c_str())) commands.push_back(ResumeRun{shown.run.id, to});
      ImGui::SetItemTooltip("The same run continues its curve.");
    }
    ImGui::SameLine(0, px(16));
    ImGui::AlignTextToFramePadding();
    text_cut(it->folder.string(), ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
    ImGui::PopID();
  }
}

void draw_note(State& state, const RunEntry& shown, Commands& commands) {
  ImGui::AlignTextToFramePadding();
  text_quiet("tags");
  ImGui::SameLine(px(60));
  ImGui::SetNextItemWidth(-1);
  ImGui::InputTextWithHint("##tags", "separated by commas", state.tags.data(), state.tags.size());
  const bool tags_done = ImGui::IsItemDeactivatedAfterEdit();
  mark("run.tags");
  ImGui::AlignTextToFramePadding();
  text_quiet("note");
  ImGui::SameLine(px(60));
  ImGui::InputTextMultiline("##note", state.note.data(), state.note.size(),
                            ImVec2(-1, ImGui::GetContentRegionAvail().y), ImGuiInputTextFlags_WordWrap);
  const bool note_done = ImGui::IsItemDeactivatedAfterEdit();
  mark("run.note");
  if (!tags_done && !note_done) return;
  Curation changed = shown.curation;
  changed.tags = tags_from(state.tags.data());
  changed.note = state.note.data();
  commands.push_back(Curate{"Changed the " + std::string(tags_done ? "tags" : "note") + " of " + shown.run.name,
                            {{shown.run.id, changed}}});
}

void draw_tabs(State& state, const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  for (std::size_t i = 0; i < tab_names.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, px(4));
    const bool on = static_cast<std::size_t>(state.tab) == i;
    ImGui::PushStyleColor(ImGuiCol_Button, on ? faded(palette().accent, 0.2f) : ImVec4(0, 0, 0, 0));
    ImGui::PushStyleColor(ImGuiCol_Border, ImVec4(0, 0, 0, 0));
    if (ImGui::Button(tab_names[i])) state.tab = static_cast<Tab>(i);
    ImGui::PopStyleColor(2);
    mark(std::string("run.tab.") + std::to_string(i));
  }
  ImGui::Dummy(ImVec2(0, px(2)));
  const RunDetail* detail = workspace.detail(shown.run.id);
  static const RunDetail none;
  switch (state.tab) {
    case Tab::recipe:
      return draw_recipe(state, workspace, shown);
    case Tab::environment:
      return draw_environment(state, workspace, shown);
    case Tab::machine:
      return draw_machine(state, detail ? *detail : none, commands);
    case Tab::console:
      return draw_console(detail ? *detail : none);
    case Tab::samples:
      return draw_samples(state, detail ? *detail : none);
    case Tab::checkpoints:
      return draw_checkpoints(shown, detail ? *detail : none, commands);
    case Tab::note:
      return draw_note(state, shown, commands);
  }
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  const RunEntry* shown = shown_run(workspace);
  if (!shown) {
    empty_state("No run yet.", "Start one in Launch, or drop a log on the window.");
    return;
  }
  if (shown->run.id != state.shown) take_run(state, workspace, *shown);
  if (!workspace.detail(shown->run.id)) commands.push_back(LoadDetail{shown->run.id});
  state.x.begin_frame();
  draw_head(state, workspace, *shown, commands);
  ImGui::Dummy(ImVec2(0, px(2)));
  draw_actions(workspace, *shown, commands);
  ImGui::Dummy(ImVec2(0, px(4)));
  draw_figures(workspace, *shown);
  ImGui::Dummy(ImVec2(0, px(4)));
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const float side = std::clamp(room.x * 0.29f, px(240), px(460));
  const float left = room.x - side - gap;
  const float top = room.y;
  const float charts = (top - gap) * 0.5f;
  ImGui::BeginGroup();
  draw_charts(state, workspace, *shown, ImVec2(left, charts), commands);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + gap - ImGui::GetStyle().ItemSpacing.y);
  begin_card("##tabs", ImVec2(left, 0), true);
  draw_tabs(state, workspace, *shown, commands);
  end_card();
  ImGui::EndGroup();
  ImGui::SameLine(0, gap);
  begin_card("##belief", ImVec2(0, top), true);
  draw_belief(workspace, *shown, workspace.detail(shown->run.id));
  end_card();
}

}  // namespace

Panel panels::run() {
  const auto state = std::make_shared<State>();
  return {.id = "run",
          .title = "Run",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .remember = [state] { return std::to_string(static_cast<int>(state->tab)); },
          .recall =
              [state](const std::string& text) {
                const int tab = text.size() == 1 ? text[0] - '0' : 0;
                if (tab >= 0 && tab < static_cast<int>(tab_names.size())) state->tab = static_cast<Tab>(tab);
              }};
}

}  // namespace stepladder
