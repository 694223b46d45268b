// Ladder: a rung is a row. What it changed, what it bought over the rung before and over the baseline, whether the loss
// stayed; the selected rung's curves and sums beneath.
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "app/desktop/charts.h"
#include "app/desktop/panel.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "app/report.h"
#include "storage/plausibility.h"

namespace stepladder {
namespace {

// The share of a run's steady steps that took at most x ms.
struct Ecdf {
  std::vector<double> dt_ms;
  std::vector<double> share;
};

// What the panel shows, computed from the runs when they have changed and not in every frame.
struct Derived {
  LadderId ladder = 0;
  std::size_t steps = 0;  // of all runs together, with the number of ended ones: when to compute again
  std::size_t ended = 0;
  std::vector<const RunEntry*> runs;
  std::vector<Summary> summaries;
  std::vector<RungSummary> rungs;
  std::map<RunId, std::vector<Flag>> flags;
  std::map<RunId, Ecdf> ecdf;
  bool is_current = false;
};

constexpr std::size_t ecdf_points = 400;

Ecdf ecdf_of(const RunEntry& entry, const Summary& summary) {
  std::vector<double> values;
  for (std::size_t i = static_cast<std::size_t>(summary.warmup_steps); i < entry.series.size(); ++i) {
    if (std::isfinite(entry.series.dt_ms[i])) values.push_back(entry.series.dt_ms[i]);
  }
  std::sort(values.begin(), values.end());
  Ecdf ecdf;
  const std::size_t points = std::min(values.size(), ecdf_points);
  for (std::size_t k = 0; k < points; ++k) {
    const std::size_t i = points == 1 ? 0 : k * (values.size() - 1) / (points - 1);
    ecdf.dt_ms.push_back(values[i]);
    ecdf.share.push_back(static_cast<double>(i + 1) / static_cast<double>(values.size()));
  }
  return ecdf;
}

void derive(Derived& derived, const Workspace& workspace, LadderId ladder) {
  std::vector<const RunEntry*> runs = workspace.runs_of(ladder);
  std::size_t steps = 0;
  std::size_t ended = 0;
  for (const RunEntry* entry : runs) {
    steps += entry->series.size();
    ended += entry->run.status == RunStatus::queued || entry->run.status == RunStatus::running ? 0 : 1;
  }
  derived.runs = runs;  // pointers move when runs are added, so they are taken anew
  const bool same = derived.is_current && derived.ladder == ladder && derived.steps == steps &&
                    derived.ended == ended && derived.summaries.size() == runs.size();
  if (same) {
    std::size_t i = 0;
    for (RungSummary& rung : derived.rungs) {
      for (const Run*& run : rung.runs) run = &runs[i++]->run;
    }
    return;
  }
  derived.ladder = ladder;
  derived.steps = steps;
  derived.ended = ended;
  derived.is_current = true;
  derived.summaries.clear();
  derived.ecdf.clear();
  for (const RunEntry* entry : runs) {
    derived.summaries.push_back(summarise(entry->series, entry->run.warmup_steps, entry->run.tokens_per_step));
    derived.ecdf[entry->run.id] = ecdf_of(*entry, derived.summaries.back());
  }
  std::vector<MeasuredRun> measured;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    measured.push_back({&runs[i]->run, &derived.summaries[i], &runs[i]->series});
  }
  derived.rungs = summarise_rungs(measured, ended == runs.size() ? Intervals::yes : Intervals::no);
  derived.flags.clear();
  for (const RungSummary& rung : derived.rungs) {
    const auto first = std::find_if(measured.begin(), measured.end(),
                                    [&](const MeasuredRun& run) { return run.run == rung.runs.front(); });
    derived.flags[first->run->id] =
        flags_of(*first->run, *first->summary, static_cast<int>(rung.runs.size()), workspace.hardware);
  }
}

int selected_rung(const Workspace& workspace, const Derived& derived) {
  for (const RungSummary& rung : derived.rungs) {
    if (rung.rung == workspace.selected_rung) return rung.rung;
  }
  int fastest = derived.rungs.front().rung;
  double most = -1;
  for (const RungSummary& rung : derived.rungs) {
    if (!is_missing(rung.tokens_per_s) && rung.tokens_per_s > most) {
      most = rung.tokens_per_s;
      fastest = rung.rung;
    }
  }
  return fastest;
}

std::string ladder_line(const Ladder& ladder, const Derived& derived) {
  const Run& first = derived.runs.front()->run;
  std::string line = std::to_string(derived.rungs.size()) + (derived.rungs.size() == 1 ? " rung" : " rungs");
  const std::size_t repeats = derived.rungs.front().runs.size();
  if (repeats > 1) line += " x " + std::to_string(repeats) + " repeats";
  const std::int64_t steps = first.planned_steps > 0 ? first.planned_steps : derived.summaries.front().steps;
  line += " x " + grouped(steps) + " steps";
  if (first.tokens_per_step > 0) line += " of " + grouped(first.tokens_per_step) + " tokens";
  if (!first.hardware.empty()) line += "  -  " + first.hardware;
  line += ladder.source == "launched" ? "  -  measured here, " + local_time_text(ladder.created_at)
                                      : "  -  " + ladder.source + ", from " + ladder.source_path;
  return line;
}

void draw_head(const Workspace& workspace, const Ladder& ladder, const Derived& derived, Commands& commands) {
  const float picker = px(300);
  const float right = ImGui::GetContentRegionMax().x;
  const float top = ImGui::GetCursorPosY();
  text_cut(ladder.name, right - picker - px(60), palette().text, fonts().display, title_size);
  const float below = ImGui::GetCursorPosY();
  ImGui::SetCursorPos(ImVec2(right - picker, top));
  ImGui::SetNextItemWidth(picker);
  if (ImGui::BeginCombo("##ladder", "Other ladders")) {
    for (auto other = workspace.ladders().rbegin(); other != workspace.ladders().rend(); ++other) {
      const std::string item =
          other->name + "   " + local_time_text(other->created_at) + "##" + std::to_string(other->id);
      if (ImGui::Selectable(item.c_str(), other->id == ladder.id)) commands.push_back(SelectLadder{other->id});
    }
    ImGui::EndCombo();
  }
  mark("ladder.picker");
  ImGui::SetCursorPosY(below);
  text_cut(ladder_line(ladder, derived), right - picker - px(60), palette().quiet, fonts().regular, small_size);
}

// Where the table's columns begin or, for numbers, end; in pixels from the card's left edge. A narrow card leaves out
// how it was timed, then the bars.
struct Columns {
  float number, name, name_width, bar, bar_width, tokens, previous, baseline, loss, timing;
  bool has_bar, has_timing;
};

Columns columns_for(float width) {
  Columns at{};
  at.has_timing = width > px(880);
  at.has_bar = width > px(720);
  at.number = px(16);  // the card's padding
  at.name = at.number + px(30);
  const float tight = at.has_bar ? 1 : 0.8f;  // of the room between the columns
  at.timing = width - px(150);
  at.loss = (at.has_timing ? at.timing : width) - px(140) * tight;
  at.baseline = at.loss - px(28) * tight;
  at.previous = at.baseline - px(88) * tight;
  at.tokens = at.previous - px(98) * tight;
  at.bar = at.has_bar ? at.name + std::clamp(width * 0.23f, px(170), px(330)) : at.tokens - px(52);
  at.bar_width = std::max(px(24), at.tokens - px(86) - at.bar);
  at.name_width = std::max(px(60), at.bar - at.name - px(16));
  return at;
}

// Bars start at zero, unless the slowest would vanish beside the fastest: then their axis is logarithmic and says so.
struct BarScale {
  double most = 1;
  double least = 0;
  bool is_log = false;

  float share(double value) const {
    if (is_missing(value) || value <= 0) return 0;
    const double place = is_log ? std::log(value / least) / std::log(most / least) : value / most;
    return static_cast<float>(std::clamp(place, 0.0, 1.0));
  }
};

BarScale scale_for(const std::vector<RungSummary>& rungs) {
  double least = missing;
  BarScale scale;
  bool any = false;
  for (const RungSummary& rung : rungs) {
    for (const double value : {rung.tokens_per_s, rung.high}) {
      if (is_missing(value) || value <= 0) continue;
      scale.most = any ? std::max(scale.most, value) : value;
      least = any ? std::min(least, value) : value;
      any = true;
    }
  }
  scale.is_log = any && scale.most / least > 20;
  if (scale.is_log) scale.least = least * 0.8;
  return scale;
}

void draw_table_head(const Columns& at, bool is_log, bool repeats) {
  const float top = ImGui::GetCursorPosY();
  const auto left = [&](float x, const std::string& text) {
    ImGui::SetCursorPos(ImVec2(x, top));
    text_quiet(text);
  };
  const auto right = [&](float x, const std::string& text) {
    ImGui::SetCursorPosY(top);
    text_right(text, x, fonts().regular, small_size, &palette().quiet);
  };
  left(at.name, "rung, and what it changed");
  if (at.has_bar) {
    ImGui::SetCursorPos(ImVec2(at.bar, top));
    text_cut(std::string(is_log ? "log scale, " : "") + (repeats ? "range of runs" : "quartiles"), at.bar_width,
             palette().quiet, fonts().regular, small_size);
  }
  right(at.tokens, "tokens/s");
  right(at.previous, "vs previous");
  right(at.baseline, "vs baseline");
  left(at.loss, "loss");
  if (at.has_timing) left(at.timing, "how it was timed");
  ImGui::SetCursorPosY(top + px(22));
}

void draw_bar(const RungSummary& rung, const BarScale& scale, ImVec2 at, float width, float height, bool selected) {
  if (is_missing(rung.tokens_per_s)) return;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  // What a failed run measured is shown, but not as if it counted.
  const bool failed = rung.runs.front()->status == RunStatus::failed;
  const ImVec4 colour = faded(rung_colour(rung.rung), failed ? 0.35f : 1.0f);
  const float end = at.x + std::max(px(3), width * scale.share(rung.tokens_per_s));
  const float half = px(7);
  const float middle = at.y + height / 2;
  draw->AddRectFilled(ImVec2(at.x, middle - half), ImVec2(end, middle + half), u32(colour, selected ? 1.0f : 0.82f),
                      px(3));
  if (is_missing(rung.low) || is_missing(rung.high)) return;
  const float low = at.x + width * scale.share(rung.low);
  const float high = at.x + width * scale.share(rung.high);
  const ImU32 whisker = u32(palette().text, 0.9f);
  draw->AddLine(ImVec2(low, middle), ImVec2(high, middle), whisker, px(1.5f));
  draw->AddLine(ImVec2(low, middle - px(4)), ImVec2(low, middle + px(4)), whisker, px(1.5f));
  draw->AddLine(ImVec2(high, middle - px(4)), ImVec2(high, middle + px(4)), whisker, px(1.5f));
}

Tone factor_tone(double factor) {
  if (is_missing(factor)) return Tone::neutral;
  return factor > 1.01 ? Tone::good : factor < 0.99 ? Tone::bad : Tone::neutral;
}

void loss_pill(const RungSummary& rung, const Run& run) {
  if (run.status == RunStatus::failed) return pill("failed", Tone::bad);
  if (run.status == RunStatus::queued) return pill("waits", Tone::neutral);
  if (is_missing(rung.tokens_per_s) && run.status != RunStatus::running) {
    return pill(std::string(to_string(run.status)), Tone::warning);
  }
  if (rung.rung == 0) return pill("reference", Tone::neutral);
  switch (rung.loss.verdict) {
    case LossVerdict::same:
      return pill("same", Tone::good);
    case LossVerdict::better:
      return pill(loss_text(rung.loss, false), Tone::accent);
    case LossVerdict::worse:
      return pill(loss_text(rung.loss, false), Tone::warning);
    case LossVerdict::diverged:
      return pill("diverged", Tone::bad);
    case LossVerdict::not_comparable:
      break;
  }
  pill("not comparable", Tone::neutral);
}

// What is worst about a number: that it cannot be true, else how its clock was read.
void timing_pill(const Run& run, std::span<const Flag> flags) {
  if (is_impossible(flags)) return pill("impossible", Tone::bad);
  switch (run.sync) {
    case Sync::event:
      return pill("events, synchronised", Tone::good);
    case Sync::device:
      return pill("synchronised", Tone::good);
    case Sync::none:
      return pill("not synchronised", Tone::bad);
    case Sync::unknown:
      break;
  }
  // A run that was never started was not timed either.
  if (run.source != "launched" || !is_missing(run.started_at)) pill("sync not known", Tone::warning);
}

void draw_row(const RungSummary& rung, std::span<const Flag> flags, const Columns& at, const BarScale& scale,
              bool selected, float height, Commands& commands) {
  const Run& run = *rung.runs.front();
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const float top = ImGui::GetCursorPosY();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::PushID(rung.rung);
  ImGui::SetNextItemAllowOverlap();
  if (ImGui::InvisibleButton("##row", ImVec2(width, height))) commands.push_back(SelectRung{rung.rung});
  mark("ladder.rung." + std::to_string(rung.rung));
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (selected || ImGui::IsItemHovered()) {
    draw->AddRectFilled(ImVec2(corner.x - px(8), corner.y), ImVec2(corner.x + width + px(8), corner.y + height),
                        u32(palette().accent, selected ? 0.12f : 0.05f), px(6));
  }
  draw->AddLine(ImVec2(corner.x, corner.y + height), ImVec2(corner.x + width, corner.y + height),
                u32(palette().line, 0.7f));
  const float first_line = top + px(6);
  const float middle = top + (height - px(18)) / 2;
  ImGui::SetCursorPos(ImVec2(at.number, middle));
  text_quiet(std::to_string(rung.rung));
  ImGui::SetCursorPos(ImVec2(at.name, first_line));
  text_cut(run.title.empty() ? run.stage : run.title, at.name_width, palette().text, fonts().semibold, text_size);
  ImGui::SetCursorPos(ImVec2(at.name, first_line + px(19)));
  text_cut(run.changed.empty() ? run.precision : run.changed, at.name_width, palette().quiet, fonts().regular,
           small_size);
  if (at.has_bar)
    draw_bar(rung, scale, ImVec2(ImGui::GetWindowPos().x + at.bar, corner.y), at.bar_width, height, selected);
  const auto number = [&](float right, const std::string& text, ImFont* font, const ImVec4& colour) {
    ImGui::SetCursorPosY(middle);
    text_right(text, right, font, text_size, &colour);
  };
  number(at.tokens, tokens_per_s_text(rung.tokens_per_s), fonts().semibold, palette().text);
  if (rung.rung != 0) {
    const Tone tone = factor_tone(rung.against_previous);
    number(at.previous, factor_text(rung.against_previous), fonts().regular,
           tone == Tone::neutral ? palette().text : tone_colour(tone));
  }
  number(at.baseline, factor_text(rung.speedup), fonts().regular, palette().text);
  const float pill_top = top + (height - pill_size("x").y) / 2;
  ImGui::SetCursorPos(ImVec2(at.loss, pill_top));
  loss_pill(rung, run);
  if (at.has_timing) {
    ImGui::SetCursorPos(ImVec2(at.timing, pill_top));
    timing_pill(run, flags);
  }
  ImGui::SetCursorPosY(top + height + px(1));
  ImGui::PopID();
}

void draw_table(const Derived& derived, int selected, Commands& commands) {
  const Columns at = columns_for(ImGui::GetContentRegionMax().x);
  const BarScale scale = scale_for(derived.rungs);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), 0));
  draw_table_head(at, scale.is_log, derived.rungs.front().runs.size() > 1);
  for (const RungSummary& rung : derived.rungs) {
    const std::vector<Flag>& flags = derived.flags.at(rung.runs.front()->id);
    draw_row(rung, flags, at, scale, rung.rung == selected, px(46), commands);
  }
  ImGui::Dummy(ImVec2(0, 0));  // the last row placed the cursor; an item makes it count
  ImGui::PopStyleVar();
}

constexpr std::size_t most_in_legend = 7;  // more would hide the curves; the table above has the colours

// All rungs, the baseline and the selected one strong, the others thin.
std::vector<Curve> curves(const Derived& derived, int selected, bool ecdf) {
  std::vector<Curve> list;
  const auto add = [&](const RunEntry& entry) {
    const bool strong = entry.run.rung == selected || entry.run.rung == 0;
    const Ecdf& steps = derived.ecdf.at(entry.run.id);
    list.push_back({.label = entry.run.title + "##" + std::to_string(entry.run.id),
                    .x = ecdf ? std::span<const double>(steps.dt_ms) : std::span<const double>(entry.steps),
                    .y = ecdf ? std::span<const double>(steps.share) : std::span<const double>(entry.series.loss),
                    .colour = faded(rung_colour(entry.run.rung), strong ? 1.0f : 0.6f),
                    .weight = strong ? 2.2f : 1.1f,
                    .in_legend = entry.run.repeat == 0 && derived.rungs.size() <= most_in_legend,
                    .order = entry.run.rung});
  };
  const auto add_where = [&](auto&& condition) {
    for (const RunEntry* entry : derived.runs) {
      if (!entry->steps.empty() && condition(entry->run.rung)) add(*entry);
    }
  };
  add_where([&](int rung) { return rung != 0 && rung != selected; });
  add_where([&](int rung) { return rung == 0 && rung != selected; });
  add_where([&](int rung) { return rung == selected; });
  return list;
}

void sum(const std::string& text) {
  ImGui::PushTextWrapPos(0);
  ImGui::PushFont(fonts().regular, 13.5f);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopFont();
  ImGui::PopTextWrapPos();
}

std::string loss_sentence(const RungSummary& rung, const Summary& summary) {
  const LossParity& loss = rung.loss;
  const std::string against = rung.loss_against > 0 ? ", against rung " + std::to_string(rung.loss_against) : "";
  if (!std::isfinite(summary.loss_last)) return "Its loss is no longer a number.";
  if (rung.rung == 0) return "The others' losses are compared with this one's.";
  if (loss.verdict == LossVerdict::not_comparable)
    return "Its loss cannot be compared with the baseline's: not the same tokens at the same steps.";
  if (loss.verdict == LossVerdict::diverged) return "Its loss is no longer a number.";
  const std::string gap = loss_text(std::fabs(loss.tail_gap));
  const std::string most = "At most " + loss_text(loss.max_gap) + " apart, at step " + grouped(loss.at_step) + ".";
  if (loss.verdict == LossVerdict::same)
    return "The loss stayed: " + gap + " apart over the last quarter" + against + ". " + most;
  return "The loss is " + std::string(to_string(loss.verdict)) + " by " + gap + " over the last quarter" + against +
         ". " + most;
}

// The sums behind a rung's numbers, so that a reader can redo them.
void draw_card(const Derived& derived, const RungSummary& rung) {
  const Run& run = *rung.runs.front();
  const auto place = std::find_if(derived.runs.begin(), derived.runs.end(),
                                  [&](const RunEntry* entry) { return entry->run.id == run.id; });
  const Summary& summary = derived.summaries[static_cast<std::size_t>(place - derived.runs.begin())];
  text_strong("Rung " + std::to_string(rung.rung) + ": " + run.title);
  if (run.status == RunStatus::failed || run.status == RunStatus::interrupted || run.status == RunStatus::stopped) {
    ImGui::PushTextWrapPos(0);
    text_toned(std::string(to_string(run.status)) + (run.reason.empty() ? "" : ": " + run.reason),
               run.status == RunStatus::failed ? Tone::bad : Tone::warning);
    ImGui::PopTextWrapPos();
  }
  if (summary.steps == 0) {
    text_quiet_wrapped("No steps yet.");
    return;
  }
  if (rung.rung != 0 && !is_missing(rung.speedup)) {
    const Tone tone = factor_tone(rung.against_previous);
    ImGui::PushTextWrapPos(0);
    text_toned(tone == Tone::good  ? factor_text(rung.against_previous) + " over the rung before"
               : tone == Tone::bad ? "Slower: " + factor_text(rung.against_previous) + " of the rung before"
                                   : "No gain over the rung before",
               tone);
    ImGui::PopTextWrapPos();
    sum(factor_text(rung.speedup) + " over the baseline" +
        (rung.verdict.ci95.known()
             ? ", " + std::string(to_string(rung.verdict.verdict)) + " (95 %: " + ci95_text(rung.verdict.ci95) + ")"
             : ""));
  }
  if (run.tokens_per_step > 0 && !is_missing(summary.dt_ms_median)) {
    sum((rung.runs.size() > 1 ? "First run: " : "") + grouped(run.tokens_per_step) + " tokens in " +
        milliseconds_text(summary.dt_ms_median) + " = " + tokens_per_s_text(summary.tokens_per_s) + " tokens/s");
  }
  if (run.params > 0 && !is_missing(summary.tokens_per_s)) {
    const double tflops = 6.0 * static_cast<double>(run.params) * summary.tokens_per_s / 1e12;
    sum("x 6 x " + compact(static_cast<double>(run.params)) + " parameters (6N) = " + compact(tflops) + " TFLOP/s");
  }
  sum(loss_sentence(rung, summary));
  for (const Flag& flag : derived.flags.at(run.id)) {
    if (flag.id == FlagId::not_repeated || flag.id == FlagId::unknown_hardware)
      continue;  // said below, or by the column
    ImGui::PushTextWrapPos(0);
    text_toned(flag.why, flag.id == FlagId::impossible_throughput ? Tone::bad : Tone::warning);
    ImGui::PopTextWrapPos();
  }
  ImGui::Dummy(ImVec2(0, px(2)));
  text_quiet_wrapped("The first " + grouped(summary.warmup_steps) + " of " + grouped(summary.steps) +
                     " steps are left out of the times.");
  if (run.peak_memory_bytes > 0) {
    text_quiet_wrapped("At most " + bytes_text(static_cast<double>(run.peak_memory_bytes)) + " held" +
                       (run.attention.empty() ? "." : "; attention: " + run.attention + "."));
  }
  text_quiet_wrapped(rung.runs.size() > 1
                         ? "Median of " + std::to_string(rung.runs.size()) + " runs; the whisker spans them."
                         : "One run: how much runs differ from each other is not known. Repeats tell.");
}

// Step times that differ by more than five times need a log axis to be told apart at both ends.
bool needs_log_axis(const Derived& derived) {
  double least = missing;
  double most = missing;
  for (const auto& [run, ecdf] : derived.ecdf) {
    if (ecdf.dt_ms.empty() || ecdf.dt_ms.front() <= 0) continue;
    least = is_missing(least) ? ecdf.dt_ms.front() : std::min(least, ecdf.dt_ms.front());
    most = is_missing(most) ? ecdf.dt_ms.back() : std::max(most, ecdf.dt_ms.back());
  }
  return !is_missing(least) && most > 5 * least;
}

void draw_below(const Derived& derived, int selected) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const bool is_narrow = room.x < px(860);  // then the step times give way
  const float loss_width = is_narrow ? (room.x - gap) * 0.56f : (room.x - 2 * gap) * 0.43f;
  const float dt_width = (room.x - 2 * gap) * 0.31f;
  begin_card("##loss", ImVec2(loss_width, room.y));
  draw_chart({.id = "loss",
              .title = "Loss",
              .x_label = "step",
              .curves = curves(derived, selected, false),
              .floor = derived.runs.front()->run.loss_floor,
              .floor_label = "entropy of the source"});
  end_card();
  ImGui::SameLine(0, gap);
  if (!is_narrow) {
    const bool is_log = needs_log_axis(derived);
    begin_card("##dt", ImVec2(dt_width, room.y));
    draw_chart({.id = "dt",
                .title = "Step time",
                .note = "ECDF",
                .x_label = is_log ? "ms, log scale" : "ms",
                .unit = "of steps",
                .curves = curves(derived, selected, true),
                .steps_up = true,
                .log_x = is_log,
                .legend = false});
    end_card();
    ImGui::SameLine(0, gap);
  }
  begin_card("##card", ImVec2(0, room.y), true);
  for (const RungSummary& rung : derived.rungs) {
    if (rung.rung == selected) draw_card(derived, rung);
  }
  end_card();
}

}  // namespace

Panel panels::ladder() {
  return {.id = "ladder",
          .title = "Ladder",
          .draw = [derived = std::make_shared<Derived>()](const Workspace& workspace, Commands& commands) {
            const Ladder* ladder = workspace.shown_ladder();
            if (!ladder) {
              empty_state("No ladder yet.",
                          "Start one in Launch: the baseline, then one optimisation more on every rung.");
              return;
            }
            derive(*derived, workspace, ladder->id);
            if (derived->runs.empty()) {
              empty_state(ladder->name + " has no runs.", "Choose another ladder, or start one in Launch.");
              return;
            }
            for (const RunEntry* entry : derived->runs) {
              if (!entry->loaded) commands.push_back(LoadSeries{entry->run.id});
            }
            const int selected = selected_rung(workspace, *derived);
            draw_head(workspace, *ladder, *derived, commands);
            ImGui::Dummy(ImVec2(0, px(6)));
            const float room = ImGui::GetContentRegionAvail().y;
            const float wanted = px(50) + px(47) * static_cast<float>(derived->rungs.size());
            begin_card("##table", ImVec2(0, std::min(wanted, room * 0.6f)), true);
            draw_table(*derived, selected, commands);
            end_card();
            ImGui::Dummy(ImVec2(0, px(16) - ImGui::GetStyle().ItemSpacing.y * 2));
            draw_below(*derived, selected);
          }};
}

}  // namespace stepladder
