// Live: loss, throughput, step time and logged metrics of the running run, over those of its ladder's other runs.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "app/curves/curves.h"
#include "app/curves/slow_steps.h"
#include "app/desktop/charts/charts.h"
#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/commands/run_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/models/run_columns.h"
#include "app/desktop/models/run_points.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/launch/sweep_results.h"
#include "app/panels/live/metrics.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {
namespace {

// The machine's metrics step by step, and which steps were slow; derived again when steps or samples arrive.
struct State {
  SharedX x;
  RunId run = 0;
  std::size_t made_of = 0;
  struct Lane {
    std::string title;
    std::string unit;
    std::vector<double> steps;
    std::vector<double> values;
  };
  std::vector<Lane> lanes;
  LadderId places_of = 0;           // a ladder
  std::vector<std::string> places;  // the titles of its small charts, in their order
  std::vector<ChartMark> slow;
  LiveMetrics metrics;
  std::pair<LadderId, std::uint64_t> swept_of;  // a ladder, and the version of the workspace
  bool is_sweep = false;                        // that ladder
};

// A sweep's rungs are combinations of values, and its repeats are seeds.
bool is_of_sweep(State& state, const Workspace& workspace, const Run& run) {
  if (!run.ladder) return false;
  const std::pair asked(*run.ladder, workspace.version);
  if (std::exchange(state.swept_of, asked) != asked) {
    std::vector<const Run*> runs;
    for (const RunEntry* entry : workspace.runs_of(*run.ladder)) runs.push_back(&entry->run);
    state.is_sweep = !swept_names(runs).empty();
  }
  return state.is_sweep;
}

// Whether a step of one of the ladder's runs takes many times as long as one of another: a linear axis would leave most
// of their curves outside, or flat.
bool needs_log_axis(const Workspace& workspace, const RunEntry& shown) {
  constexpr double many = 5;
  double least = missing, most = missing;
  if (shown.run.ladder) {
    for (const RunEntry* run : workspace.runs_of(*shown.run.ladder)) {
      const double median = run->summary.dt_ms_median;
      if (!(median > 0)) continue;
      if (!(median >= least)) least = median;
      if (!(median <= most)) most = median;
    }
  }
  return most > many * least;
}

// The run itself on top, its ladder's other runs thin behind it. `is_log`: the axis has room for all of them.
std::vector<Curve> curves_of(const State& state, const Workspace& workspace, const RunEntry& shown, Quantity quantity,
                             bool is_log, Commands& commands) {
  std::vector<Curve> curves;
  const auto add = [&](const RunEntry& entry, Curve curve) {
    const RunPoints points = run_points(workspace, entry, quantity, &state.x, commands.data);
    points.draw_as(curve);
    if (!points.x.empty()) curves.push_back(std::move(curve));
  };
  // A run that ended before its first step has nothing to be compared with.
  if (shown.run.ladder && (shown.is_active() || !shown.series().empty())) {
    for (const RunEntry* other : workspace.runs_of(*shown.run.ladder)) {
      if (other->run.id == shown.run.id) continue;
      const std::string repeat = other->run.repeat > 0 ? ", repeat " + std::to_string(other->run.repeat + 1) : "";
      add(*other, {.label = other->run.title + repeat + "##" + std::to_string(other->run.id),
                   .colour = muted(rung_colour(workspace.colour_of(other->run)), 0.55f),
                   .weight = 1,
                   .in_legend = other->run.repeat == 0 && other->run.rung != shown.run.rung,
                   .order = other->run.rung,
                   .is_context = quantity != Quantity::loss ? !is_log : other->run.status != RunStatus::finished});
    }
  }
  add(shown, {.label = shown.run.title,
              .colour = rung_colour(workspace.colour_of(shown.run)),
              .weight = 2.2f,
              .order = shown.run.rung});
  return curves;
}

// "rung 4 (5 of 9), repeat 2 of 3": numbered as in Ladder, whose baseline is rung 0; of a sweep "combination 2 of 6,
// seed 1 of 2"; empty without a ladder.
std::string place_in_ladder(const Workspace& workspace, const Run& run, bool is_sweep) {
  if (!run.ladder) return "";
  std::set<int> rungs;
  int repeats = 0;
  for (const RunEntry* other : workspace.runs_of(*run.ladder)) {
    rungs.insert(other->run.rung);
    repeats += other->run.rung == run.rung ? 1 : 0;
  }
  const auto place = std::distance(rungs.begin(), rungs.find(run.rung)) + 1;
  const std::string of = std::to_string(place) + " of " + std::to_string(rungs.size());
  return (is_sweep ? "combination " + of : "rung " + std::to_string(run.rung) + " (" + of + ")") +
         (repeats > 1
              ? (is_sweep ? ", seed " : ", repeat ") + std::to_string(run.repeat + 1) + " of " + std::to_string(repeats)
              : "");
}

void draw_head(State& state, const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  const bool is_sweep = is_of_sweep(state, workspace, shown.run);
  const bool is_running = shown.run.status == RunStatus::running;
  const float stop_width = button_width("Stop run");
  const float right = ImGui::GetContentRegionMax().x;
  const float top = ImGui::GetCursorPosY();
  ImGui::BeginGroup();
  ImGui::SetCursorPosY(top + px(6));
  colour_square(rung_colour(workspace.colour_of(shown.run)));
  ImGui::SameLine();
  ImGui::SetCursorPosY(top);
  text_cut(shown.run.title.empty() ? shown.run.name : shown.run.title, right - px(360), palette().text, fonts().display,
           title_size, Cut::middle);
  std::string line;
  const auto say = [&line](const std::string& fact) {
    if (!fact.empty()) line += (line.empty() ? "" : "  \xE2\x80\x93  ") + fact;
  };
  if (!shown.run.title.empty() && shown.run.title != shown.run.name) say(shown.run.name);
  const std::string place = place_in_ladder(workspace, shown.run, is_sweep);
  say(place);
  say(hardware_text(shown.run));
  say(shown.run.precision);
  const bool is_a_scripts = shown.run.source == "import";
  if (is_running && !workspace.is_ours(shown.run.id)) say(is_a_scripts ? "a script's" : "trained outside this window");
  if (is_running && !shown.series().empty()) say(lateness_text(shown.run, shown.series().at.back()));
  text_cut(line, right - px(340), palette().quiet, fonts().regular, small_size);
  mark("live.place." + place);
  ImGui::EndGroup();
  ImGui::SameLine(right - stop_width);
  if (is_running && shown.run.source == "import") {  // a script's, which takes no requests
    ImGui::NewLine();
  } else if (is_running) {
    if (quiet_button("Stop run", "live.stop")) commands.push_back(StopRun{shown.run.id});
    const char* pause = workspace.is_paused ? "Resume" : "Pause";
    const float pause_width = button_width("Resume");
    const float pause_at = right - stop_width - px(10) - pause_width;
    ImGui::SameLine(pause_at);
    if (ImGui::Button(pause, ImVec2(pause_width, 0))) commands.push_back(PauseRun{shown.run.id, !workspace.is_paused});
    mark("live.pause");
    if (!workspace.waiting().empty()) {
      const char* stop_all = is_sweep ? "Stop sweep" : "Stop ladder";
      ImGui::SameLine(pause_at - px(10) - button_width(stop_all));
      if (quiet_button(stop_all, "live.stop_all")) commands.push_back(StopAll{});
    }
  } else {
    ImGui::NewLine();  // the figures have the status
  }
}

double share_done(const RunEntry& entry) {
  const std::int64_t steps = entry.is_active() ? std::ssize(entry.series().step) : entry.summary.steps;
  return static_cast<double>(steps) / static_cast<double>(std::max<std::int64_t>(1, entry.run.planned_steps));
}

// A part for each run of the ladder, in the order of its rungs; without a ladder one bar.
void draw_progress(const Workspace& workspace, const RunEntry& shown) {
  const auto runs = shown.run.ladder ? workspace.runs_of(*shown.run.ladder) : std::vector<const RunEntry*>{};
  const float width = ImGui::GetContentRegionAvail().x;
  const float gap = px(3);
  const float each =
      (width - gap * static_cast<float>(runs.size())) / static_cast<float>(std::max<std::size_t>(runs.size(), 1));
  if (runs.size() < 2 || each < px(4)) return progress_bar(share_done(shown), width);
  ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = px(6);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const RunEntry* hovered = nullptr;
  for (const RunEntry* run : runs) {
    const auto part = static_cast<float>(std::clamp(share_done(*run), 0.0, 1.0));
    draw->AddRectFilled(at, ImVec2(at.x + each, at.y + height), u32(palette().line), px(2));
    const ImVec2 low(at.x, at.y - px(4)), high(at.x + each, at.y + height + px(4));
    if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(low, high)) hovered = run;
    // A run that ended before its last step is grey, with a mark at its end. The shown one is thicker.
    const bool ended_early = !run->is_active() && run->run.status != RunStatus::finished;
    const float more = run == &shown ? px(2) : 0;
    const ImVec4 colour = ended_early ? palette().quiet : rung_colour(workspace.colour_of(run->run));
    if (part > 0)
      draw->AddRectFilled(ImVec2(at.x, at.y - more), ImVec2(at.x + each * part, at.y + height + more),
                          u32(colour, run == &shown ? 1.0f : 0.5f), px(2));
    if (ended_early) {
      const float end = at.x + each * part;
      draw->AddLine(ImVec2(end, at.y - px(3)), ImVec2(end, at.y + height + px(3)),
                    u32(run->run.status == RunStatus::failed ? palette().bad : palette().warning), px(2));
    }
    at.x += each + gap;
  }
  ImGui::Dummy(ImVec2(width, height));
  mark("live.strip");
  if (hovered) {
    const Run& run = hovered->run;
    const std::string at_step =
        hovered->is_active() || run.status == RunStatus::finished ? "" : " at " + grouped(hovered->summary.last_step);
    ImGui::SetTooltip("%s%s: %s%s", (run.title.empty() ? run.name : run.title).c_str(),
                      run.repeat > 0 ? (", repeat " + std::to_string(run.repeat + 1)).c_str() : "",
                      std::string(to_string(run.status)).c_str(), at_step.c_str());
  }
}

struct TimeLeft {
  std::string text;
  std::string basis;  // what it is known from
};

TimeLeft time_left(const Workspace& workspace, const RunEntry& shown) {
  if (shown.run.planned_steps <= 0) return {"-", ""};
  const double left = workspace.seconds_left(shown), off = workspace.seconds_off(shown);
  if (is_missing(left)) return {"-", "after three steps"};
  if (left < 1) return {"under 1 s", ""};
  if (!is_missing(off))
    return {duration_text(left) + " \xC2\xB1 " + duration_text(std::max(off, 1.0)), "by its own steps"};
  return {"about " + rough_duration_text(left), workspace.has_pace(shown) ? "by its first steps" : "by earlier runs"};
}

void draw_figures(const Workspace& workspace, const RunEntry& shown) {
  const Series& series = shown.series();
  const auto done = static_cast<std::int64_t>(series.size());
  const bool any = done > 0;
  double val_loss = missing;
  for (std::size_t i = series.size(); i > 0 && is_missing(val_loss); --i) val_loss = series.val_loss[i - 1];
  const bool is_running = shown.run.status == RunStatus::running;

  const bool is_planned = shown.run.planned_steps > 0;
  const std::int64_t step = any ? series.step.back() : 0;  // a script's may begin at 0
  // Of a run that is over the medians count, as in every other view.
  const Summary& summary = shown.summary;
  const bool is_measured = is_over(shown.run.status) && summary.steps > 0;
  const std::string of_last = "last step", of_speed = is_measured ? "median" : of_last;
  const std::string doubt = is_measured ? speed_doubt(shown, workspace.hardware).why : "";
  const double dt_ms = is_measured ? summary.dt_ms_median : any ? series.dt_ms.back() : missing;
  const double tokens_per_s = is_measured ? summary.tokens_per_s : any ? shown.tokens_per_s.back() : missing;
  const bool is_paused = workspace.is_paused;
  const TimeLeft left = is_running && !is_paused ? time_left(workspace, shown) : TimeLeft{};
  const std::array<FigureTile, 6> tiles = {
      {{"step", grouped(step) + (is_planned ? " of " + grouped(shown.run.planned_steps) : "")},
       {"loss", any ? loss_text(series.loss.back()) : "-", of_last},
       {"validation loss", loss_text(val_loss)},
       {"step time", milliseconds_text(dt_ms), of_speed, doubt},
       {"tokens/s", tokens_per_s_text(tokens_per_s), of_speed, doubt},
       is_running && !is_paused
           ? FigureTile{"time left", left.text, left.basis}
           : FigureTile{"status", is_running ? std::string("paused") : std::string(to_string(shown.run.status))}}};
  figure_tiles(tiles);
  mark("live.tokens_per_s." + tiles[4].value);
  if (is_planned) draw_progress(workspace, shown);  // also between two rungs, so that nothing beneath moves
}

void add_lane(State& state, const RunDetail& detail, const char* title, const char* unit,
              double (*value)(const SystemMetrics&)) {
  State::Lane lane{.title = title, .unit = unit, .steps = {}, .values = {}};
  for (const SystemMetrics& sample : detail.metrics) {
    const double read = value(sample);
    const auto step = static_cast<double>(sample.step);
    if (is_missing(read) || (!lane.steps.empty() && step < lane.steps.back())) continue;
    lane.steps.push_back(step);
    lane.values.push_back(read);
  }
  if (lane.steps.size() > 1) state.lanes.push_back(std::move(lane));
}

void update(State& state, const RunEntry& shown, const RunDetail* detail) {
  const std::size_t made_of = shown.series().size() + (detail ? detail->metrics.size() : 0);
  if (state.run == shown.run.id && state.made_of == made_of) return;
  if (state.run != shown.run.id) state.x = {};
  state.run = shown.run.id;
  state.made_of = made_of;
  state.lanes.clear();
  state.slow.clear();
  static const RunDetail none;
  const RunDetail& known = detail ? *detail : none;
  add_lane(state, known, "GPU clock", "MHz", [](const SystemMetrics& s) { return s.gpu_clock_mhz; });
  add_lane(state, known, "GPU power", "W", [](const SystemMetrics& s) { return s.gpu_power_w; });
  add_lane(state, known, "GPU temperature", "C", [](const SystemMetrics& s) { return s.gpu_temperature_c; });
  if (state.lanes.empty()) {
    add_lane(state, known, "CPU load", "%",
             [](const SystemMetrics& s) { return is_missing(s.cpu_load) ? missing : 100 * s.cpu_load; });
    add_lane(state, known, "Memory", "GB", [](const SystemMetrics& s) {
      return s.resident_bytes > 0 ? static_cast<double>(s.resident_bytes) / 1e9 : missing;
    });
  }
  std::vector<std::int64_t> saved;
  for (const Checkpoint& checkpoint : known.checkpoints) saved.push_back(checkpoint.step);
  for (const SlowStep& slow : slow_steps(shown.series(), known.metrics, saved)) {
    state.slow.push_back({static_cast<double>(slow.step),
                          "step " + grouped(slow.step) + " took " + milliseconds_text(slow.dt_ms) + ": " + slow.why,
                          palette().warning});
  }
}

// The right end of a running run's charts: its planned end; early in a long run a tenth, a hundredth ... of the way
// there, so that the trained steps can be seen.
double x_until(const RunEntry& shown) {
  if (shown.run.status != RunStatus::running || shown.run.planned_steps <= 0) return missing;
  const double done = shown.series().empty() ? 0 : static_cast<double>(shown.series().step.back());
  auto until = static_cast<double>(shown.run.planned_steps);
  while (until > 1000 && until / 10 > done) until /= 10;
  return until;
}

// A chart over the run's steps in its own card; all of them zoom together.
void draw_in_card(const char* card, ImVec2 size, Chart chart, const RunEntry& shown, SharedX& x, Commands& commands) {
  chart.x_label = "step";
  chart.x_until = x_until(shown);
  chart.shared = &x;
  chart.commands = &commands;
  begin_card(card, size);
  draw_chart(chart);
  end_card();
}

// A small chart beneath: of learning rate, gradient norm, or a metric of the machine.
struct Small {
  std::string title;
  std::string unit;
  std::span<const double> x;
  std::span<const double> y;
  const MinMaxPyramid* levels = nullptr;
};

// Puts them where the ladder's earlier runs had them. One that this run has no values for yet is empty, so that nothing
// moves from rung to rung.
std::vector<Small> in_their_places(State& state, const RunEntry& shown, std::vector<Small> found) {
  const LadderId ladder = shown.run.ladder.value_or(0);
  if (std::exchange(state.places_of, ladder) != ladder || ladder == 0) state.places.clear();
  if (shown.run.source != "launched" || shown.run.status != RunStatus::running) return found;
  if (state.places.empty()) {
    state.places = {"Learning rate", "Gradient norm"};
    if (shown.run.device == "cpu") state.places.insert(state.places.end(), {"CPU load", "Memory"});
  }
  for (const Small& each : found)
    if (std::ranges::find(state.places, each.title) == state.places.end()) state.places.push_back(each.title);
  std::vector<Small> placed;
  for (const std::string& title : state.places) {
    const auto known = std::ranges::find(found, title, &Small::title);
    placed.push_back(known == found.end() ? Small{.title = title} : std::move(*known));
  }
  return placed;
}

std::vector<Small> small_charts(State& state, const RunEntry& shown) {
  std::vector<Small> small;
  for (const auto& [title, quantity] :
       {std::pair("Learning rate", Quantity::lr), std::pair("Gradient norm", Quantity::grad_norm)}) {
    const MinMaxPyramid& levels = shown.levels(quantity);
    if (levels.points() + levels.not_finite() > 0)
      small.push_back({title, "", shown.steps, shown.values(quantity), &levels});
  }
  for (const State::Lane& lane : state.lanes) small.push_back({lane.title, lane.unit, lane.steps, lane.values});
  return in_their_places(state, shown, std::move(small));
}

void draw_lanes(const std::vector<Small>& small, State& state, const Workspace& workspace, const RunEntry& shown,
                float height, Commands& commands) {
  const float gap = px(16);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + gap - ImGui::GetStyle().ItemSpacing.y);
  const float width = (ImGui::GetContentRegionAvail().x - gap * static_cast<float>(small.size() - 1)) /
                      static_cast<float>(small.size());
  for (std::size_t i = 0; i < small.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, gap);
    draw_in_card(small[i].title.c_str(), ImVec2(width, height),
                 {.id = "small",
                  .title = small[i].title,
                  .note = small[i].unit,
                  .unit = small[i].unit,
                  .curves = {{.label = small[i].title,
                              .x = small[i].x,
                              .y = small[i].y,
                              .colour = rung_colour(workspace.colour_of(shown.run)),
                              .levels = small[i].levels}},
                  .whole = small[i].unit == "%" ? 100 : missing,
                  .from_zero = small[i].unit == "W" || small[i].unit == "GB",
                  .legend = false,
                  .x_labelled = false,
                  .if_empty = ""},
                 shown, state.x, commands);
  }
}

// Loss and speed and, unless `lanes` is 0, the small charts beneath them.
void draw_charts(State& state, const Workspace& workspace, const RunEntry& shown, float height, Commands& commands) {
  const float gap = px(16);
  const ImVec2 room(ImGui::GetContentRegionAvail().x, height);
  const float loss_width = (room.x - gap) * 0.58f;
  const float half = (room.y - gap) / 2;

  const bool times_need_log = needs_log_axis(workspace, shown);
  const auto chart = [&](const char* id, Quantity quantity) {
    const bool is_log = times_need_log && quantity != Quantity::loss;
    return Chart{.id = id,
                 .title = std::string(title_of(quantity)),
                 .note = is_log ? "log scale" : "",
                 .unit = std::string(unit_of(quantity)),
                 .curves = curves_of(state, workspace, shown, quantity, is_log, commands),
                 .from_zero = quantity != Quantity::loss && !is_log,
                 .log_y = is_log,
                 .legend = quantity == Quantity::loss,
                 .if_empty = shown.is_active() ? "Waiting for the first step" : "Nothing recorded"};
  };
  Chart loss = chart("loss", Quantity::loss);
  loss.floor = shown.run.loss_floor;
  loss.floor_label = "source entropy";
  if (shown.levels(Quantity::val_loss).points() > 0) {
    loss.curves.push_back({.label = "validation",
                           .x = shown.steps,
                           .y = shown.series().val_loss,
                           .colour = palette().text,
                           .points = true,
                           .order = 1000,
                           .levels = &shown.levels(Quantity::val_loss)});
  }
  Chart dt = chart("dt", Quantity::dt_ms);
  dt.marks = state.slow;
  draw_in_card("##loss", ImVec2(loss_width, room.y), std::move(loss), shown, state.x, commands);
  ImGui::SameLine(0, gap);
  ImGui::BeginGroup();
  // A script that doesn't report tokens per step has no throughput.
  const bool has_throughput = shown.run.source != "import" || shown.levels(Quantity::tokens_per_s).points() > 0;
  if (has_throughput) {
    draw_in_card("##throughput", ImVec2(0, half), chart("throughput", Quantity::tokens_per_s), shown, state.x,
                 commands);
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + gap - ImGui::GetStyle().ItemSpacing.y);
  }
  draw_in_card("##dt", ImVec2(0, has_throughput ? half : room.y), std::move(dt), shown, state.x, commands);
  ImGui::EndGroup();
}

// The metrics of the run, on top of those of its ladder's other runs.
void draw_metrics(State& state, const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  std::vector<MetricLine> lines;
  if (shown.run.ladder) {
    for (const RunEntry* other : workspace.runs_of(*shown.run.ladder))
      if (other->run.id != shown.run.id)
        lines.push_back({other,
                         {.label = other->run.title + "##" + std::to_string(other->run.id),
                          .colour = muted(rung_colour(workspace.colour_of(other->run)), 0.55f),
                          .weight = 1}});
  }
  lines.push_back({&shown,
                   {.label = shown.run.title.empty() ? shown.run.name : shown.run.title,
                    .colour = rung_colour(workspace.colour_of(shown.run)),
                    .weight = 2}});
  state.metrics.draw({.lines = lines, .x_until = x_until(shown), .in_cards = true}, state.x, workspace, commands);
}

// Without metrics the charts fill the view; with some, everything below the figures scrolls.
void draw_body(State& state, const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  state.metrics.list.update(workspace, {&shown}, commands.data);
  const float room = ImGui::GetContentRegionAvail().y;
  const std::vector<Small> small = small_charts(state, shown);
  if (state.metrics.list.all().empty()) {
    const bool is_a_scripts = shown.run.source == "import";
    const float charts = room - (is_a_scripts ? ImGui::GetTextLineHeightWithSpacing() + px(4) : 0);
    constexpr float least = 160;  // of a chart's card
    const bool has_lanes = charts > px(3 * least + 2 * 16) && !small.empty();
    const float lanes = has_lanes ? std::max(px(least), (charts - px(16)) * 0.26f) : 0;
    draw_charts(state, workspace, shown, has_lanes ? charts - px(16) - lanes : charts, commands);
    if (has_lanes) draw_lanes(small, state, workspace, shown, lanes, commands);
    if (is_a_scripts && state.metrics.list.is_complete())
      text_quiet("Other numbers that the script logs or prints by name, such as val/acc or acc=0.3, get charts here.");
    return;
  }
  ImGui::BeginChild("##body");
  draw_charts(state, workspace, shown, std::clamp(room * 0.44f, px(280), px(520)), commands);
  if (!small.empty()) draw_lanes(small, state, workspace, shown, px(160), commands);
  spacing(6);
  draw_metrics(state, workspace, shown, commands);
  ImGui::EndChild();
}

// When the last run of a ladder has ended: how many rungs were measured, and the way to the answer.
void draw_ladder_is_over(bool is_sweep, const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  if (!shown.run.ladder || shown.is_active() || shown.run.source != "launched") return;
  std::map<int, bool> measured;  // by rung
  std::set<int> trusted;         // rungs with a run whose speed nobody doubts
  std::int64_t ended_early = 0;
  for (const RunEntry* run : workspace.runs_of(*shown.run.ladder)) {
    if (run->is_active()) return;
    const bool is_finished = run->run.status == RunStatus::finished;
    bool& is_measured = measured[run->run.rung];
    is_measured = is_measured || is_finished;
    ended_early += is_finished ? 0 : 1;
    if (is_finished && speed_doubt(*run, workspace.hardware).trust == Trust::trusted) trusted.insert(run->run.rung);
  }
  if (measured.size() < 2) return;
  const auto done = std::count_if(measured.begin(), measured.end(), [](const auto& rung) { return rung.second; });
  const std::int64_t doubtful = done - std::ssize(trusted);
  ImGui::AlignTextToFramePadding();
  text_strong(grouped(done) + " of " + plural(std::ssize(measured), is_sweep ? "combination" : "rung") + " measured" +
              (doubtful == 0      ? ""
               : doubtful == done ? ", all doubtful"
                                  : ", " + grouped(doubtful) + " of them doubtful") +
              (ended_early > 0 ? "; " + plural(ended_early, "run") + " ended early." : "."));
  mark("live.doubtful." + std::to_string(doubtful));
  mark("live.ended_early." + std::to_string(ended_early));
  same_line(12);
  if (quiet_button("Open the ladder", "live.open_ladder")) {
    commands.push_back(SelectLadder{*shown.run.ladder});
    commands.push_back(ShowPanel{"ladder"});
  }
  spacing(2);
}

std::string remember(const State& state) {
  const nlohmann::json json{{"metrics", to_json(state.metrics.chosen)}, {"folded", to_json(state.metrics.folded)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void recall(State& state, const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return;  // from another version
  state.metrics.chosen = chosen_from(json.value("metrics", nlohmann::json()));
  state.metrics.folded = folded_from(json.value("folded", nlohmann::json()));
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  const RunEntry* shown = workspace.shown_live();
  if (!shown) {
    text_title("Live");
    start_here(workspace, commands, "No run trains here now. The loss and speed of a running run appear here.",
               "No run trains here now");
    return;
  }
  if (shown->loaded && !workspace.detail(shown->run.id)) commands.data.details.push_back(shown->run.id);
  update(state, *shown, workspace.detail(shown->run.id));
  state.x.begin_frame();
  draw_head(state, workspace, *shown, commands);
  spacing(2);
  if (const std::string end = end_text(*shown); !end.empty()) {
    text_toned_wrapped(end, shown->run.status == RunStatus::failed ? Tone::bad : Tone::warning);
    mark("live.end");
    if (quiet_button("What it printed", "live.console")) commands.push_back(OpenRun{shown->run.id});
    spacing(2);
  }
  draw_ladder_is_over(state.is_sweep, workspace, *shown, commands);
  draw_figures(workspace, *shown);
  spacing(4);
  verification_card(workspace, commands);
  draw_body(state, workspace, *shown, commands);
}

}  // namespace

Panel panels::live() {
  const auto state = std::make_shared<State>();
  return {.id = "live",
          .title = "Live",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .remember = [state] { return remember(*state); },
          .recall = [state](const std::string& text) { recall(*state, text); }};
}

}  // namespace stepladder
