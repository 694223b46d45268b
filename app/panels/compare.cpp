// Compare: any runs over each other, against any axis; their difference to one of them; what is in sight in numbers.
#include "storage/compare.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/curves.h"
#include "app/desktop/chart_export.h"
#include "app/desktop/charts.h"
#include "app/desktop/pace.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "app/report.h"
#include "app/smooth.h"
#include "storage/rungs.h"

namespace stepladder {
namespace {

enum class Gap { difference, ratio };

struct Options {
  Axis axis = Axis::step;
  std::array<Metric, 3> metrics{Metric::loss, Metric::tokens_per_s, Metric::dt_ms};
  Gap gap = Gap::difference;
  bool log_x = false;
  bool log_y = false;
  bool mean = false;  // repeats of a rung as one curve with a band
  float smoothing = 0;
  bool operator==(const Options&) const = default;
};

// One line in every chart: a run, or the mean over a rung's repeats.
struct Line {
  std::vector<const RunEntry*> runs;
  std::string label;
  int colour = 0;
  std::array<Points, 3> points;
  std::array<Levels, 3> levels;
  std::array<std::vector<double>, 3> smoothed, low, high;
  Points gap;
  Levels gap_levels;
  std::vector<double> gap_smoothed;
  RangeStatistics seen;  // between these two, where it was last asked for
  double seen_low = missing;
  double seen_high = missing;
  SpeedUp speedup;
  LossParity loss;
  bool impossible = false;  // its times cannot be true
};

// What the panel shows, made again when runs, their steps or the options have changed.
struct State {
  Options options;
  RunId base = 0;
  SharedX x;
  std::array<char, 128> filter{};

  Options made_for;
  std::vector<std::pair<RunId, std::size_t>> made_of;
  RunId made_against = 0;
  std::vector<Line> lines;
  std::size_t base_line = 0;
  std::vector<std::string> caption;
  Pace pace;
};

constexpr std::size_t most_in_legend = 8;

// Every step of every run is held in memory here, at some seventy bytes each.
constexpr std::int64_t most_steps = 20'000'000;

std::vector<std::pair<RunId, std::size_t>> fingerprint(const std::vector<const RunEntry*>& runs) {
  std::vector<std::pair<RunId, std::size_t>> print;
  for (const RunEntry* entry : runs) print.emplace_back(entry->run.id, entry->loaded ? entry->series.size() + 1 : 0);
  return print;
}

std::vector<Line> group(const std::vector<const RunEntry*>& runs, bool mean) {
  std::vector<Line> lines;
  std::map<std::pair<LadderId, int>, std::size_t> by_rung;
  for (const RunEntry* entry : runs) {
    if (mean && entry->run.ladder) {
      const auto [place, is_new] = by_rung.try_emplace({*entry->run.ladder, entry->run.rung}, lines.size());
      if (!is_new) {
        lines[place->second].runs.push_back(entry);
        continue;
      }
    }
    Line line;
    line.runs.push_back(entry);
    lines.push_back(std::move(line));
  }
  // A rung keeps its colour; where two lines share one, the later takes one that is free.
  std::array<bool, rung_colour_count> taken{};
  for (Line& line : lines) {
    const Run& first = line.runs.front()->run;
    int colour = first.rung % rung_colour_count;
    for (int tries = 0; taken[static_cast<std::size_t>(colour)] && tries < rung_colour_count; ++tries)
      colour = (colour + 1) % rung_colour_count;
    taken[static_cast<std::size_t>(colour)] = true;
    line.colour = colour;
    line.label = first.name;
    if (line.runs.size() > 1) line.label += " (mean of " + std::to_string(line.runs.size()) + ")";
  }
  return lines;
}

MeasuredRun measured(const RunEntry& entry) {
  return {&entry.run, &entry.summary, &entry.series};
}

Sample sample(const Line& line) {
  std::vector<MeasuredRun> repeats;
  for (const RunEntry* entry : line.runs) repeats.push_back(measured(*entry));
  return sample_of(repeats.front(), repeats, line.runs.size());
}

double figure(const Line& line) {
  std::vector<double> values;
  for (const RunEntry* entry : line.runs) {
    if (!is_missing(entry->summary.tokens_per_s)) values.push_back(entry->summary.tokens_per_s);
  }
  if (values.empty()) return missing;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void judge(State& state, const HardwareTable& hardware) {
  const Line& base = state.lines[state.base_line];
  const Sample base_sample = sample(base);
  const RunEntry& base_run = *base.runs.front();
  std::vector<const Series*> repeats;
  for (const RunEntry* entry : base.runs) repeats.push_back(&entry->series);
  const double band = loss_band(repeats);
  for (Line& line : state.lines) {
    const Run& first = line.runs.front()->run;
    line.impossible =
        is_impossible(flags_of(first, line.runs.front()->summary, static_cast<int>(line.runs.size()), hardware));
    if (&line == &base) continue;
    const RunEntry& run = *line.runs.front();
    double factor = speedup(base_run.summary, run.summary);
    const double own = figure(line);
    const double other = figure(base);
    if (!is_missing(own) && !is_missing(other)) factor = own / other;
    line.speedup = judge_speedup(factor, base_sample, sample(line));
    line.loss = loss_parity(base_run.run, base_run.series, run.run, run.series, band);
  }
}

// Where all names begin alike, only what differs needs to be said.
void shorten_labels(std::vector<Line>& lines) {
  if (lines.size() < 2) return;
  std::string common = lines.front().label;
  for (const Line& line : lines) {
    std::size_t same = 0;
    while (same < common.size() && same < line.label.size() && common[same] == line.label[same]) ++same;
    common.resize(same);
  }
  const std::size_t cut = common.find_last_of(" :/");
  if (cut == std::string::npos) return;
  for (const Line& line : lines) {
    if (line.label.size() <= cut + 1) return;
  }
  for (Line& line : lines) line.label.erase(0, cut + 1);
}

void make(State& state, const std::vector<const RunEntry*>& runs, const HardwareTable& hardware) {
  const Options& options = state.options;
  const auto print = fingerprint(runs);
  bool same = state.made_for == options && state.made_of.size() == print.size() && state.made_against == state.base;
  bool goes_on = false;
  bool grew = false;
  for (std::size_t i = 0; same && i < print.size(); ++i) {
    same = state.made_of[i].first == print[i].first && (state.made_of[i].second == 0) == (print[i].second == 0);
    grew = grew || state.made_of[i].second != print[i].second;
    goes_on = goes_on || runs[i]->run.status == RunStatus::running;
  }
  if (same && (!grew || (goes_on && !state.pace.is_due()))) {  // entries move when runs are added
    std::map<RunId, const RunEntry*> by_id;
    for (const RunEntry* entry : runs) by_id[entry->run.id] = entry;
    const std::vector<Line> fresh = group(runs, options.mean);
    for (std::size_t i = 0; i < fresh.size(); ++i) state.lines[i].runs = fresh[i].runs;
    return;
  }
  const Pace::Work work(state.pace);
  state.made_for = options;
  state.made_of = print;
  state.made_against = state.base;
  state.lines = group(runs, options.mean);
  shorten_labels(state.lines);
  state.base_line = 0;
  for (std::size_t i = 0; i < state.lines.size(); ++i) {
    for (const RunEntry* entry : state.lines[i].runs) {
      if (entry->run.id == state.base) state.base_line = i;
    }
  }
  for (Line& line : state.lines) {
    for (std::size_t m = 0; m < options.metrics.size(); ++m) {
      std::vector<Points> each;
      for (const RunEntry* entry : line.runs)
        each.push_back(points_of(entry->run, entry->series, options.metrics[m], options.axis));
      if (each.size() == 1) {
        line.points[m] = std::move(each.front());
      } else {
        MeanCurve mean = mean_of(each);
        line.points[m] = std::move(mean.mean);
        line.low[m] = std::move(mean.low);
        line.high[m] = std::move(mean.high);
      }
      line.levels[m].follow(line.points[m].x, line.points[m].y);
      if (options.smoothing > 0 && line.points[m].is_path)
        line.smoothed[m] = smooth(line.points[m].x, line.points[m].y, options.smoothing);
    }
  }
  const Points& base = state.lines[state.base_line].points[0];
  for (Line& line : state.lines) {
    if (!base.is_path) continue;
    line.gap = options.gap == Gap::difference ? difference(line.points[0], base) : ratio(line.points[0], base);
    line.gap_levels.follow(line.gap.x, line.gap.y);
    if (options.smoothing > 0) line.gap_smoothed = smooth(line.gap.x, line.gap.y, options.smoothing);
  }
  judge(state, hardware);
  state.caption = caption_of(runs);
}

void draw_picker(State& state, const Workspace& workspace, Commands& commands) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  ImGui::SetNextWindowSize(ImVec2(px(460), px(420)));
  if (ImGui::BeginPopup("##pick")) {
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    ImGui::InputTextWithHint("##filter", "part of a name", state.filter.data(), state.filter.size());
    ImGui::BeginChild("##list");
    const std::string wanted = state.filter.data();
    std::vector<const RunEntry*> found;
    for (auto entry = workspace.runs().rbegin(); entry != workspace.runs().rend(); ++entry) {
      if (wanted.empty() || entry->run.name.find(wanted) != std::string::npos) found.push_back(&*entry);
    }
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(found.size()));
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const RunEntry& entry = *found[static_cast<std::size_t>(i)];
        bool on = workspace.selected_runs.contains(entry.run.id);
        ImGui::PushID(static_cast<int>(entry.run.id));
        if (ImGui::Checkbox(entry.run.name.c_str(), &on)) commands.push_back(SelectRun{entry.run.id, on});
        ImGui::PopID();
      }
    }
    ImGui::EndChild();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void draw_head(State& state, const Workspace& workspace, std::size_t runs, Commands& commands) {
  const float right = ImGui::GetContentRegionMax().x;
  const float top = ImGui::GetCursorPosY();
  text_title("Compare");
  const std::string chosen =
      workspace.selected_runs.empty() && workspace.shown_ladder()
          ? "All of " + workspace.shown_ladder()->name + ", since no run is selected"
          : grouped(static_cast<std::int64_t>(runs)) + (runs == 1 ? " run" : " runs") + " selected";
  text_cut(chosen + "  -  wheel zooms, drag pans, A and B set cursors", right - px(220), palette().quiet,
           fonts().regular, small_size);
  const float below = ImGui::GetCursorPosY();
  const float width = ImGui::CalcTextSize("Choose runs").x + 2 * ImGui::GetStyle().FramePadding.x;
  ImGui::SetCursorPos(ImVec2(right - width, top));
  if (ImGui::Button("Choose runs")) ImGui::OpenPopup("##pick");
  mark("compare.pick");
  draw_picker(state, workspace, commands);
  ImGui::SetCursorPosY(below);
}

void draw_controls(State& state) {
  Options& options = state.options;
  static const std::vector<std::string> axes = [] {
    std::vector<std::string> words;
    for (const Axis axis : all_axes) words.emplace_back(title_of(axis));
    return words;
  }();
  // Goes on in the next line where there is no room for `width` more.
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  const auto next = [&](float width) {
    ImGui::SameLine(0, px(12));
    if (ImGui::GetCursorScreenPos().x + width > right) ImGui::NewLine();
  };
  int axis = static_cast<int>(options.axis);
  if (choice("##axis", "against", axis, axes, px(150))) {
    options.axis = static_cast<Axis>(axis);
    state.x = {};
  }
  mark("compare.axis");
  next(px(60));
  if (chip("log x", options.log_x)) options.log_x = !options.log_x, state.x = {};
  mark("compare.log_x");
  ImGui::SameLine(0, px(4));
  if (chip("log y", options.log_y)) options.log_y = !options.log_y;
  mark("compare.log_y");
  next(px(230));
  ImGui::AlignTextToFramePadding();
  text_quiet("smoothing");
  ImGui::SameLine(0, px(6));
  ImGui::SetNextItemWidth(px(130));
  ImGui::SliderFloat("##smoothing", &options.smoothing, 0, 0.99f, options.smoothing > 0 ? "%.2f" : "none");
  mark("compare.smoothing");
  next(px(320));
  std::vector<std::string> names;
  for (const Line& line : state.lines) names.push_back(line.label);
  int base = static_cast<int>(state.base_line);
  if (choice("##base", "difference to", base, names, px(200)))
    state.base = state.lines[static_cast<std::size_t>(base)].runs.front()->run.id;
  mark("compare.base");
  ImGui::SameLine(0, px(4));
  if (chip("ratio", options.gap == Gap::ratio)) options.gap = options.gap == Gap::ratio ? Gap::difference : Gap::ratio;
  mark("compare.ratio");
  next(px(150));
  if (chip("mean over repeats", options.mean)) options.mean = !options.mean;
  mark("compare.mean");
}

std::string smoothing_words(const Options& options) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "smoothed by %.2f, raw behind", static_cast<double>(options.smoothing));
  return options.smoothing > 0 ? text.data() : "";
}

bool can_be_log(const std::vector<Line>& lines, const Options& options, std::size_t metric) {
  if (!options.log_x) return false;
  return std::all_of(lines.begin(), lines.end(), [&](const Line& line) {
    return line.points[metric].empty() || line.points[metric].x.front() > 0;
  });
}

void draw_metric(State& state, std::size_t m, const char* id, ImVec2 size, Commands& commands) {
  begin_card(id, size);
  const Metric metric = state.options.metrics[m];
  Chart chart{.id = id,
              .title = std::string(title_of(metric)),
              .x_label = std::string(title_of(state.options.axis)),
              .unit = std::string(unit_of(metric)),
              .log_x = can_be_log(state.lines, state.options, m),
              .log_y = state.options.log_y,
              .legend = m == 0,
              .caption = state.caption,
              .smoothing = smoothing_words(state.options),
              .shared = &state.x,
              .commands = &commands,
              .title_room = px(140)};
  chart.from_zero = !chart.log_y && (metric == Metric::tokens_per_s || metric == Metric::dt_ms);
  const bool few = state.lines.size() <= most_in_legend;
  int order = 0;
  for (const Line& line : state.lines) {
    const Points& points = line.points[m];
    const bool is_base = &line == &state.lines[state.base_line];
    chart.curves.push_back({.label = line.label + "##" + std::to_string(line.runs.front()->run.id),
                            .x = points.x,
                            .y = points.y,
                            .colour = rung_colour(line.colour),
                            .weight = is_base                   ? 2.2f
                                      : state.lines.size() > 12 ? 1.0f
                                                                : 1.6f,
                            .in_legend = few,
                            .points = !points.is_path || (metric == Metric::val_loss && points.x.size() < 200),
                            .order = order,
                            .dash = order,
                            .levels = &line.levels[m],
                            .smoothed = line.smoothed[m],
                            .low = line.low[m],
                            .high = line.high[m]});
    ++order;
  }
  const ImVec2 corner = ImGui::GetCursorPos();
  const float right = corner.x + ImGui::GetContentRegionAvail().x;
  draw_chart(chart);
  static const std::vector<std::string> words = [] {
    std::vector<std::string> titles;
    for (const Metric each : all_metrics) titles.emplace_back(title_of(each));
    return titles;
  }();
  ImGui::SetCursorPos(ImVec2(right - px(130), corner.y - px(5)));
  int chosen = static_cast<int>(metric);
  ImGui::PushFont(fonts().regular, small_size);
  if (choice("##metric", "", chosen, words, px(130))) state.options.metrics[m] = static_cast<Metric>(chosen);
  ImGui::PopFont();
  mark("compare.metric." + std::to_string(m));
  end_card();
}

void draw_gap(State& state, ImVec2 size, Commands& commands) {
  begin_card("##gap", size);
  const bool is_ratio = state.options.gap == Gap::ratio;
  const Line& base = state.lines[state.base_line];
  const std::string metric(title_of(state.options.metrics[0]));
  Chart chart{.id = "gap",
              .title = is_ratio ? metric + " ratio" : metric + " difference",
              .note = (is_ratio ? "divided by " : "less ") + base.label,
              .x_label = std::string(title_of(state.options.axis)),
              .unit = is_ratio ? "x" : std::string(unit_of(state.options.metrics[0])),
              .log_x = can_be_log(state.lines, state.options, 0),
              .zero_line = is_ratio ? 1.0 : 0.0,
              .legend = false,
              .caption = state.caption,
              .smoothing = smoothing_words(state.options),
              .shared = &state.x,
              .commands = &commands};
  int order = 0;
  for (const Line& line : state.lines) {
    if (&line != &base) {
      chart.curves.push_back({.label = line.label + "##" + std::to_string(line.runs.front()->run.id),
                              .x = line.gap.x,
                              .y = line.gap.y,
                              .colour = rung_colour(line.colour),
                              .weight = 1.5f,
                              .order = order,
                              .dash = order,
                              .levels = &line.gap_levels,
                              .smoothed = line.gap_smoothed});
    }
    ++order;
  }
  if (!base.points[0].is_path) {
    text_strong(chart.title);
    empty_state("No difference against " + chart.x_label + ".", "Choose step, tokens, time or FLOPs for x.");
  } else if (chart.curves.empty()) {
    text_strong(chart.title);
    empty_state("One run has nothing to differ from.", "Choose a second one.");
  } else {
    draw_chart(chart);
  }
  end_card();
}

void cell(const std::string& text) {
  ImGui::TableNextColumn();
  text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x);
}

std::string value_text(Metric metric, double value) {
  return metric == Metric::loss || metric == Metric::val_loss ? loss_text(value) : compact(value);
}

void verdict_pill(const Line& line) {
  if (line.impossible) return pill("impossible", Tone::bad);
  const SpeedUp& speedup = line.speedup;
  const Tone tone = speedup.verdict == Verdict::faster   ? Tone::good
                    : speedup.verdict == Verdict::slower ? Tone::bad
                    : speedup.verdict == Verdict::same   ? Tone::neutral
                                                         : Tone::warning;
  const char* sign = speedup.verdict == Verdict::faster ? "+ " : speedup.verdict == Verdict::slower ? "- " : "";
  pill(sign + std::string(speedup.verdict == Verdict::cannot_tell ? "cannot tell" : to_string(speedup.verdict)), tone);
}

void draw_numbers(State& state, Commands& commands) {
  const Metric metric = state.options.metrics[0];
  const bool cursors = !is_missing(state.x.a) || !is_missing(state.x.b);
  const bool wide = ImGui::GetContentRegionAvail().x > px(1180);
  const bool roomy = ImGui::GetContentRegionAvail().x > px(820);
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH |
                                    ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingStretchProp |
                                    ImGuiTableFlags_PadOuterX | ImGuiTableFlags_Resizable;
  if (!ImGui::BeginTable("##numbers", cursors ? 11 : 9, flags, ImGui::GetContentRegionAvail())) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  constexpr ImGuiTableColumnFlags fixed = ImGuiTableColumnFlags_WidthFixed;
  const ImGuiTableColumnFlags if_wide = wide ? 0 : ImGuiTableColumnFlags_Disabled;
  const std::string in_sight = state.x.zoomed() ? " in sight" : "";
  ImGui::TableSetupColumn("run", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn("tokens/s", fixed, px(76));
  ImGui::TableSetupColumn(roomy ? "factor, 95 %" : "factor", fixed, px(roomy ? 150 : 70));
  ImGui::TableSetupColumn("speed", fixed, px(96));
  ImGui::TableSetupColumn("loss", fixed, px(124));
  ImGui::TableSetupColumn(("mean" + in_sight).c_str(), fixed | if_wide, px(96));
  ImGui::TableSetupColumn("least", fixed | if_wide, px(70));
  ImGui::TableSetupColumn("most", fixed | if_wide, px(70));
  ImGui::TableSetupColumn("last", fixed | (roomy ? 0 : ImGuiTableColumnFlags_Disabled), px(70));
  if (cursors) {
    ImGui::TableSetupColumn("at A, B", fixed, px(130));
    ImGui::TableSetupColumn("B - A", fixed, px(76));
  }
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int column = 0; column < (cursors ? 11 : 9); ++column) {
    if (!ImGui::TableSetColumnIndex(column)) continue;
    const char* name = ImGui::TableGetColumnName(column);
    if (column == 0 || column == 3 || column == 4) {
      ImGui::TextUnformatted(name);
    } else {
      text_right(name, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, fonts().regular, small_size,
                 &palette().quiet);
    }
  }
  ImGui::PopStyleColor();
  ImGui::PopFont();
  const double low = state.x.zoomed() ? state.x.low : -std::numeric_limits<double>::infinity();
  const double high = state.x.zoomed() ? state.x.high : std::numeric_limits<double>::infinity();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(state.lines.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      Line& line = state.lines[static_cast<std::size_t>(i)];
      const bool is_base = static_cast<std::size_t>(i) == state.base_line;
      const RunId id = line.runs.front()->run.id;
      ImGui::PushID(i);
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const float top = ImGui::GetCursorPosY();
      if (ImGui::Selectable("##row", is_base, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap,
                            ImVec2(0, px(20))))
        state.base = id;
      if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) commands.push_back(OpenRun{id});
      mark("compare.row." + std::to_string(id));
      ImGui::SetItemTooltip("Click: the others are compared with it. Double click: all about the run.");
      ImGui::SameLine(px(12));
      ImGui::SetCursorPosY(top);
      colour_square(rung_colour(line.colour));
      ImGui::SameLine();
      text_cut(line.label, ImGui::GetContentRegionAvail().x, palette().text,
               is_base ? fonts().semibold : fonts().regular, text_size);
      if (line.seen_low != low || line.seen_high != high) {
        line.seen = statistics_between(line.points[0], low, high);
        line.seen_low = low;
        line.seen_high = high;
      }
      const RangeStatistics& seen = line.seen;
      cell(tokens_per_s_text(figure(line)));
      cell(is_base ? "1 x"
                   : factor_text(line.speedup.factor) +
                         (roomy && line.speedup.ci95.known() ? "  (" + ci95_text(line.speedup.ci95) + ")" : ""));
      ImGui::TableNextColumn();
      if (is_base) {
        pill("reference", Tone::neutral);
      } else if (is_missing(line.speedup.factor)) {
        pill("no times", Tone::neutral);
      } else {
        verdict_pill(line);
      }
      ImGui::TableNextColumn();
      if (!is_base) loss_pill(line.loss);
      if (wide) {
        cell(value_text(metric, seen.mean));
        cell(value_text(metric, seen.low));
        cell(value_text(metric, seen.high));
      } else {
        for (int skipped = 0; skipped < 3; ++skipped) ImGui::TableNextColumn();
      }
      if (roomy) {
        cell(value_text(metric, seen.last));
      } else {
        ImGui::TableNextColumn();
      }
      if (cursors) {
        const double a = is_missing(state.x.a) ? missing : value_at(line.points[0], state.x.a);
        const double b = is_missing(state.x.b) ? missing : value_at(line.points[0], state.x.b);
        cell(value_text(metric, a) + ", " + value_text(metric, b));
        cell(is_missing(a) || is_missing(b) ? "-" : (b >= a ? "+" : "-") + value_text(metric, std::fabs(b - a)));
      }
      ImGui::PopID();
    }
  }
  ImGui::EndTable();
}

std::string remember(const State& state) {
  const Options& o = state.options;
  nlohmann::json json{{"axis", static_cast<int>(o.axis)},
                      {"ratio", o.gap == Gap::ratio},
                      {"log_x", o.log_x},
                      {"log_y", o.log_y},
                      {"mean", o.mean},
                      {"smoothing", o.smoothing},
                      {"base", state.base}};
  for (const Metric metric : o.metrics) json["metrics"].push_back(static_cast<int>(metric));
  if (state.x.zoomed()) json["zoom"] = {state.x.low, state.x.high};
  return json.dump();
}

void recall(State& state, const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    Options& o = state.options;
    const auto known = [](int value, std::size_t count) { return value >= 0 && value < static_cast<int>(count); };
    if (const int axis = json.value("axis", 0); known(axis, all_axes.size())) o.axis = static_cast<Axis>(axis);
    o.gap = json.value("ratio", false) ? Gap::ratio : Gap::difference;
    o.log_x = json.value("log_x", false);
    o.log_y = json.value("log_y", false);
    o.mean = json.value("mean", false);
    o.smoothing = std::clamp(json.value("smoothing", 0.0f), 0.0f, 0.99f);
    state.base = json.value("base", RunId{0});
    const std::vector<int> metrics = json.value("metrics", std::vector<int>{});
    for (std::size_t i = 0; i < std::min(metrics.size(), o.metrics.size()); ++i) {
      if (known(metrics[i], all_metrics.size())) o.metrics[i] = static_cast<Metric>(metrics[i]);
    }
    if (const auto zoom = json.value("zoom", std::vector<double>{}); zoom.size() == 2 && zoom[0] < zoom[1]) {
      state.x.low = zoom[0];
      state.x.high = zoom[1];
    }
  } catch (const nlohmann::json::exception&) {  // of another version: the defaults will do
  }
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  const std::vector<const RunEntry*> runs = workspace.compared();
  draw_head(state, workspace, runs.size(), commands);
  if (runs.empty()) {
    empty_state("No runs to compare yet.", "Start a ladder in Launch, or drop a log on the window.");
    return;
  }
  std::int64_t steps = 0;
  for (const RunEntry* entry : runs) steps += entry->summary.steps;
  if (steps > most_steps) {
    empty_state("That is more than can be compared at once.",
                "These runs have " + grouped(steps) + " steps together, and Compare takes " + grouped(most_steps) +
                    ". Choose fewer; History overlays any number.");
    return;
  }
  for (const RunEntry* entry : runs) {
    if (!entry->loaded) commands.push_back(LoadSeries{entry->run.id});
  }
  state.x.begin_frame();
  if (ImGui::IsKeyPressed(ImGuiKey_Escape)) state.x.a = state.x.b = missing;
  make(state, runs, workspace.hardware);
  ImGui::Dummy(ImVec2(0, px(2)));
  draw_controls(state);
  ImGui::Dummy(ImVec2(0, px(4)));
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const float down = gap - ImGui::GetStyle().ItemSpacing.y;
  const float wanted = px(62) + px(33) * static_cast<float>(state.lines.size());
  const float table = std::clamp(wanted, px(100), room.y * 0.3f);
  const float charts = room.y - table - gap;
  const float left = (room.x - gap) * 0.5f;
  const float upper = (charts - gap) * 0.56f;
  const float lower = charts - gap - upper;
  draw_metric(state, 0, "##first", ImVec2(left, upper), commands);
  ImGui::SameLine(0, gap);
  draw_gap(state, ImVec2(0, upper), commands);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + down);
  draw_metric(state, 1, "##second", ImVec2(left, lower), commands);
  ImGui::SameLine(0, gap);
  draw_metric(state, 2, "##third", ImVec2(0, lower), commands);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + down);
  begin_card("##table", ImVec2(0, 0));
  draw_numbers(state, commands);
  end_card();
}

}  // namespace

Panel panels::compare() {
  const auto state = std::make_shared<State>();
  return {.id = "compare",
          .title = "Compare",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .remember = [state] { return remember(*state); },
          .recall = [state](const std::string& text) { recall(*state, text); }};
}

}  // namespace stepladder
