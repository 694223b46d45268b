// Compare: any runs over each other, against any axis; their difference to one of them; what is in sight in numbers.
#include "storage/analysis/compare.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/curves/curves.h"
#include "app/desktop/chart_export.h"
#include "app/desktop/charts.h"
#include "app/desktop/models/comparison.h"
#include "app/desktop/models/run_points.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "app/verdict_text.h"

namespace stepladder {
namespace {

struct State {
  ComparisonOptions options;
  bool log_x = false;
  bool log_y = false;
  RunId base = 0;
  SharedX x;
  std::array<char, 128> filter{};

  FollowedComparison shown;
  std::vector<std::string> caption;
  // Of a line's first metric between two x, as last asked for.
  struct Seen {
    double low = missing;
    double high = missing;
    RangeStatistics statistics;
  };
  std::map<RunId, Seen> seen;

  const std::vector<ComparedLine>& lines() const { return shown.curves.lines; }
  const ComparedLine& base_line() const { return lines()[shown.curves.base]; }
};

constexpr std::size_t most_in_legend = 8;
constexpr std::size_t most_points = 20'000;  // a chart: there are four

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
  const std::string chosen = workspace.selected_runs.empty() && workspace.shown_ladder()
                                 ? "All of " + workspace.shown_ladder()->name + ", since no run is selected"
                                 : runs_text(runs) + " selected";
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
  ComparisonOptions& options = state.options;
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
  if (chip("log x", state.log_x)) state.log_x = !state.log_x, state.x = {};
  mark("compare.log_x");
  ImGui::SameLine(0, px(4));
  if (chip("log y", state.log_y)) state.log_y = !state.log_y;
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
  for (const ComparedLine& line : state.lines()) names.push_back(line.label);
  int base = static_cast<int>(state.shown.curves.base);
  if (choice("##base", "difference to", base, names, px(200)))
    state.base = state.lines()[static_cast<std::size_t>(base)].runs.front();
  mark("compare.base");
  ImGui::SameLine(0, px(4));
  if (chip("ratio", options.gap == Gap::ratio)) options.gap = options.gap == Gap::ratio ? Gap::difference : Gap::ratio;
  mark("compare.ratio");
  next(px(150));
  if (chip("mean over repeats", options.mean)) options.mean = !options.mean;
  mark("compare.mean");
}

std::string smoothing_words(const ComparisonOptions& options) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "smoothed by %.2f, raw behind", static_cast<double>(options.smoothing));
  return options.smoothing > 0 ? text.data() : "";
}

bool can_be_log(const State& state, std::size_t metric) {
  return state.log_x && std::all_of(state.lines().begin(), state.lines().end(), [&](const ComparedLine& line) {
           return line.points[metric].empty() || line.points[metric].x.front() > 0;
         });
}

// What a chart's points leave out.
std::string left_out(const State& state, std::size_t metric) {
  std::int64_t behind = 0;
  std::int64_t excerpt = 0;
  for (const ComparedLine& line : state.lines()) {
    behind += line.behind[metric];
    excerpt += line.excerpt;
  }
  return excerpt > 0 ? "of long runs " + grouped(excerpt) + " steps, evenly chosen" : behind_text(behind);
}

void draw_metric(State& state, std::size_t m, const char* id, ImVec2 size, Commands& commands) {
  begin_card(id, size);
  const ComparisonOptions& options = state.shown.curves.options;
  const Quantity metric = options.metrics[m];
  Chart chart{.id = id,
              .title = std::string(title_of(metric)),
              .note = left_out(state, m),
              .x_label = std::string(title_of(options.axis)),
              .unit = std::string(unit_of(metric)),
              .log_x = can_be_log(state, m),
              .log_y = state.log_y,
              .legend = m == 0,
              .caption = state.caption,
              .smoothing = smoothing_words(options),
              .shared = &state.x,
              .commands = &commands,
              .most_points = most_points,
              .title_room = px(140)};
  chart.from_zero = !chart.log_y && (metric == Quantity::tokens_per_s || metric == Quantity::dt_ms);
  const bool few = state.lines().size() <= most_in_legend;
  int order = 0;
  for (const ComparedLine& line : state.lines()) {
    const Points& points = line.points[m];
    const bool is_base = &line == &state.base_line();
    chart.curves.push_back({.label = line.label + "##" + std::to_string(line.runs.front()),
                            .x = points.x,
                            .y = points.y,
                            .colour = rung_colour(line.colour),
                            .weight = is_base                     ? 2.2f
                                      : state.lines().size() > 12 ? 1.0f
                                                                  : 1.6f,
                            .in_legend = few,
                            .points = !points.is_path || (metric == Quantity::val_loss && points.x.size() < 200),
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
    for (const Quantity each : all_quantities) titles.emplace_back(title_of(each));
    return titles;
  }();
  ImGui::SetCursorPos(ImVec2(right - px(130), corner.y - px(5)));
  int chosen = static_cast<int>(state.options.metrics[m]);
  ImGui::PushFont(fonts().regular, small_size);
  if (choice("##metric", "", chosen, words, px(130))) state.options.metrics[m] = static_cast<Quantity>(chosen);
  ImGui::PopFont();
  mark("compare.metric." + std::to_string(m));
  end_card();
}

void draw_gap(State& state, ImVec2 size, Commands& commands) {
  begin_card("##gap", size);
  const ComparisonOptions& options = state.shown.curves.options;
  const bool is_ratio = options.gap == Gap::ratio;
  const ComparedLine& base = state.base_line();
  const std::string metric(title_of(options.metrics[0]));
  const bool of_means = std::any_of(state.lines().begin(), state.lines().end(),
                                    [](const ComparedLine& line) { return line.behind[0] > 0; });
  Chart chart{.id = "gap",
              .title = is_ratio ? metric + " ratio" : metric + " difference",
              .note = (is_ratio ? "divided by " : "less ") + base.label + (of_means ? ", of means" : ""),
              .x_label = std::string(title_of(options.axis)),
              .unit = is_ratio ? "x" : std::string(unit_of(options.metrics[0])),
              .log_x = can_be_log(state, 0),
              .zero_line = is_ratio ? 1.0 : 0.0,
              .legend = false,
              .caption = state.caption,
              .smoothing = smoothing_words(options),
              .shared = &state.x,
              .commands = &commands,
              .most_points = most_points};
  int order = 0;
  for (const ComparedLine& line : state.lines()) {
    if (&line != &base) {
      chart.curves.push_back({.label = line.label + "##" + std::to_string(line.runs.front()),
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
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));  // the pills beside it are higher
  text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x);
}

std::string value_text(Quantity metric, double value) {
  return metric == Quantity::loss || metric == Quantity::val_loss ? loss_text(value) : compact(value);
}

void verdict_pill(const Gain& gain) {
  if (gain.worst() == Trust::impossible) return pill(verdict_text(gain), Tone::bad);
  const Tone tone = gain.worst() == Trust::doubtful   ? Tone::warning
                    : gain.verdict == Verdict::faster ? Tone::good
                    : gain.verdict == Verdict::slower ? Tone::bad
                    : gain.verdict == Verdict::same   ? Tone::neutral
                                                      : Tone::warning;
  const char* sign = gain.verdict == Verdict::faster ? "+ " : gain.verdict == Verdict::slower ? "- " : "";
  pill(sign + verdict_text(gain), tone);
}

const RangeStatistics& seen_between(State& state, const ComparedLine& line, double low, double high) {
  State::Seen& seen = state.seen[line.runs.front()];
  if (seen.low != low || seen.high != high) {
    seen = {low, high, statistics_between(line.points[0], low, high)};
    if (!line.means[0].empty()) seen.statistics.mean = statistics_between(line.means[0], low, high).mean;
  }
  return seen.statistics;
}

void draw_numbers(State& state, Commands& commands) {
  const Quantity metric = state.shown.curves.options.metrics[0];
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
  ImGui::TableSetupColumn("speed", fixed, px(roomy ? 150 : 96));
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
  clipper.Begin(static_cast<int>(state.lines().size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const ComparedLine& line = state.lines()[static_cast<std::size_t>(i)];
      const bool is_base = &line == &state.base_line();
      const RunId id = line.runs.front();
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
      ImGui::SetCursorPosY(top + px(2));
      colour_square(rung_colour(line.colour));
      ImGui::SameLine();
      text_cut(line.label, ImGui::GetContentRegionAvail().x, palette().text,
               is_base ? fonts().semibold : fonts().regular, text_size, Cut::middle);
      const RangeStatistics& seen = seen_between(state, line, low, high);
      const auto judged = state.shown.judged.find(id);
      if (judged == state.shown.judged.end()) {  // it is being made
        for (const char* words : {"...", "...", "...", "..."}) cell(words);
      } else {
        const RungJudgement& verdict = judged->second;
        const Gain& speedup = verdict.over_baseline;
        cell(tokens_per_s_text(verdict.tokens_per_s));
        cell(is_base ? "1 x"
                     : factor_text(speedup.factor) +
                           (roomy && speedup.ci95.known() ? "  (" + ci95_text(speedup.ci95) + ")" : ""));
        ImGui::TableNextColumn();
        if (is_base) {
          pill(verdict.is_trusted() ? "reference" : std::string(to_string(verdict.trust)),
               verdict.is_trusted()                 ? Tone::neutral
               : verdict.trust == Trust::impossible ? Tone::bad
                                                    : Tone::warning);
        } else if (is_missing(speedup.factor)) {
          pill("no times", Tone::neutral);
        } else {
          verdict_pill(speedup);
        }
        ImGui::TableNextColumn();
        if (!is_base) loss_pill(verdict.loss);
      }
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
        const double a = is_missing(state.x.a) ? missing : value_at(line.values(0), state.x.a);
        const double b = is_missing(state.x.b) ? missing : value_at(line.values(0), state.x.b);
        cell(value_text(metric, a) + ", " + value_text(metric, b));
        cell(is_missing(a) || is_missing(b) ? "-" : (b >= a ? "+" : "-") + value_text(metric, std::fabs(b - a)));
      }
      ImGui::PopID();
    }
  }
  ImGui::EndTable();
}

std::string remember(const State& state) {
  const ComparisonOptions& o = state.options;
  nlohmann::json json{{"axis", static_cast<int>(o.axis)},
                      {"ratio", o.gap == Gap::ratio},
                      {"log_x", state.log_x},
                      {"log_y", state.log_y},
                      {"mean", o.mean},
                      {"smoothing", o.smoothing},
                      {"base", state.base}};
  for (const Quantity metric : o.metrics) json["metrics"].push_back(static_cast<int>(metric));
  if (state.x.zoomed()) json["zoom"] = {state.x.low, state.x.high};
  return json.dump();
}

void recall(State& state, const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    ComparisonOptions& o = state.options;
    const auto known = [](int value, std::size_t count) { return value >= 0 && value < static_cast<int>(count); };
    if (const int axis = json.value("axis", 0); known(axis, all_axes.size())) o.axis = static_cast<Axis>(axis);
    o.gap = json.value("ratio", false) ? Gap::ratio : Gap::difference;
    state.log_x = json.value("log_x", false);
    state.log_y = json.value("log_y", false);
    o.mean = json.value("mean", false);
    o.smoothing = std::clamp(json.value("smoothing", 0.0f), 0.0f, 0.99f);
    state.base = json.value("base", RunId{0});
    const std::vector<int> metrics = json.value("metrics", std::vector<int>{});
    for (std::size_t i = 0; i < std::min(metrics.size(), o.metrics.size()); ++i) {
      if (known(metrics[i], all_quantities.size())) o.metrics[i] = static_cast<Quantity>(metrics[i]);
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
    if (workspace.runs().empty()) {
      empty_state("No runs to compare yet.", "Start a ladder in Launch, or drop a log on the window.");
    } else {
      empty_state("No run is selected.", "Choose runs at the top right, or click them in History.");
    }
    return;
  }
  state.x.begin_frame();
  if (ImGui::IsKeyPressed(ImGuiKey_Escape)) state.x.a = state.x.b = missing;
  if (state.shown.update(workspace, runs, state.base, state.options, state.x, commands)) {
    state.caption = caption_of(runs);
    state.seen.clear();
  }
  if (state.lines().empty()) {
    empty_state("Working it out ...", "There are many steps.");
    return;
  }
  ImGui::Dummy(ImVec2(0, px(2)));
  draw_controls(state);
  ImGui::Dummy(ImVec2(0, px(4)));
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const float down = gap - ImGui::GetStyle().ItemSpacing.y;
  const float wanted = px(62) + px(33) * static_cast<float>(state.lines().size());
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
          .recall = [state](const std::string& text) { recall(*state, text); },
          .least_width = 640,
          .least_height = 680};
}

}  // namespace stepladder
