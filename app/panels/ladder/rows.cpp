// Draws Ladder's table by hand, at places that depend on the width (`columns_for`), because bars, whiskers and other
// ladders' factors span rows that ImGui's tables can't. Numbers that aren't trusted are hatched or grey, never hidden.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/commands/run_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/ladder/bars.h"
#include "app/panels/ladder/parts.h"
#include "app/session/speedup_confirmation.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {
namespace {

constexpr float row_height = ladder_row_height;
constexpr float first_line_at = -0.5f;
constexpr float second_line_at = 15.5f;

// The places where the table's columns begin or, for numbers, end; in pixels from the card's left edge. A narrow card
// hides other ladders, then plausibility, then the factors over the previous rung, which the answers are about, then
// the bars.
struct Columns {
  float answer, number, name, name_width, bar, bar_width, tokens, previous, baseline, factor_width, beside, loss, truth;
  bool has_bar, has_previous, hides_previous, has_truth, has_beside;
};

constexpr float beside_width = 88;  // of another ladder's factors

// Only steps of a ladder have a previous one: a sweep's rungs are a list.
bool has_steps(const LadderModel& model) {
  return std::ranges::any_of(model.rungs,
                             [](const LadderRung& rung) { return !is_missing(rung.judged.over_previous.factor); });
}

Columns columns_for(float width, std::size_t beside, bool has_steps) {
  Columns at{};
  const float others = px(beside_width) * static_cast<float>(beside);
  at.has_beside = beside > 0 && width > px(1000) + others;
  at.has_truth = width > px(960) && (beside == 0 || width > px(1150) + others);
  at.has_previous = has_steps && width > px(830);
  at.hides_previous = has_steps && !at.has_previous;
  at.has_bar = width > px(720);
  const bool is_tight = width <= px(1120);
  const float tight = is_tight ? 0.8f : 1;  // of the room between the columns
  at.answer = px(16);                       // the card's padding
  at.number = at.answer + px(is_tight ? 104 : 116);
  at.name = at.number + px(is_tight ? 24 : 30);
  at.truth = width - px(is_tight ? 156 : 168);
  at.loss = (at.has_truth ? at.truth : width) - px(is_tight ? 114 : 132);
  at.beside = at.loss - px(24) * tight;  // of the last of them
  at.baseline = at.beside - (at.has_beside ? others : 0);
  at.factor_width = px(108) * tight - px(12);
  at.previous = at.baseline - (at.has_previous ? px(108) * tight : 0);
  at.tokens = at.previous - px(112) * tight;
  at.bar = at.has_bar
               ? at.name + std::clamp(width * (is_tight ? 0.18f : 0.21f), px(at.has_previous ? 160 : 130), px(330))
               : at.tokens - px(52);
  at.bar_width = std::max(px(24), at.tokens - px(is_tight ? 66 : 86) - at.bar);
  at.name_width = std::max(px(60), at.bar - at.name - px(16));
  return at;
}

float beside_end(const Columns& at, const LadderTable& table, std::size_t i) {
  return at.beside - px(beside_width) * static_cast<float>(table.beside.size() - 1 - i);
}

// Names the columns that a narrow card hides.
void draw_hidden_columns(const Columns& at, float room, const LadderTable& table) {
  std::vector<std::string> hidden;
  if (!at.has_truth) hidden.emplace_back("plausible?");
  if (at.hides_previous) hidden.emplace_back("vs previous");
  if (!at.has_bar) hidden.emplace_back("the bars");
  if (!table.beside.empty() && !at.has_beside) hidden.emplace_back("other ladders");
  if (hidden.empty()) return;
  text_cut(plural(hidden.size(), "column") + " hidden", room, palette().quiet, fonts().regular, small_size);
  mark("ladder.hidden_columns");
  wrapped_tooltip(fmt::format("No room for {}. A wider window shows them.", fmt::join(hidden, ", ")), 320);
}

void draw_head(const Columns& at, bool is_log, const LadderTable& table) {
  const float top = ImGui::GetCursorPosY();
  const auto left = [&](float x, const std::string& text) {
    ImGui::SetCursorPos(ImVec2(x, top));
    text_quiet(text);
  };
  const auto right = [&](float x, const std::string& text) {
    ImGui::SetCursorPosY(top);
    text_right(text, x, fonts().regular, small_size, &palette().quiet);
  };
  left(at.answer, "answer");
  left(at.name, "rung / change");
  same_line(12);
  draw_hidden_columns(at, at.name + at.name_width - ImGui::GetCursorPosX(), table);
  if (at.has_bar) {
    ImGui::SetCursorPos(ImVec2(at.bar, top));
    text_cut(!table.beside.empty() ? "vs own baseline, log scale"
             : table.waterfall
                 ? "factor of each, log scale"
                 : std::string(at.bar_width >= px(150) ? (is_log ? "log scale, median" : "median, 95 % interval")
                               : is_log                ? "log scale"
                                                       : "median"),
             at.bar_width, palette().quiet, fonts().regular, small_size);
  }
  right(at.tokens, "tokens/s");
  if (at.has_previous) right(at.previous, "vs previous");
  right(at.baseline, table.baseline == 0 ? "vs baseline" : "vs rung " + std::to_string(table.baseline));
  for (std::size_t i = 0; at.has_beside && i < table.beside.size(); ++i) {
    const float end = beside_end(at, table, i);
    ImGui::SetCursorPos(ImVec2(end - px(12), top + px(3)));
    colour_square(table.beside[i].colour);
  }
  left(at.loss, "loss");
  if (at.has_truth) left(at.truth, "plausible?");
  ImGui::SetCursorPosY(top + px(22));
}

void rung_loss_pill(const LadderRung& rung, bool is_baseline) {
  const Run& run = rung.first;
  if (run.status == RunStatus::failed) return pill("failed", Tone::bad);
  if (rung.judged.is_under_way) return pill(rung.progress.empty() ? "queued" : rung.progress, Tone::neutral);
  if (run.status == RunStatus::stopped && rung.summary.steps > 0)
    return pill("stopped at " + grouped(rung.summary.last_step), Tone::neutral);
  if (rung.summary.steps == 0 && run.status != RunStatus::running)
    return pill(run.source == "launched" ? std::string(to_string(run.status)) : "no steps", Tone::neutral);
  if (is_missing(rung.summary.loss_last) && rung.summary.steps > 0) {
    pill("no loss", Tone::neutral);
    return mark("ladder.no_loss." + std::to_string(rung.judged.rung));
  }
  if (is_baseline) return pill(loss_text({}, true), Tone::neutral);
  loss_pill(rung.judged.loss);
}

// The flag that makes a rung doubtful for a reason other than the peak; null without one.
const FlagKind* doubt_of(const RungJudgement& judged) {
  for (const Flag& flag : judged.flags) {
    if (flag.trust() == Trust::doubtful && flag.id != FlagId::suspicious_throughput && flag.id != FlagId::no_sync)
      return &kind_of(flag.id);
  }
  return nullptr;
}

void draw_menu(const LadderRung& rung, const LadderTable& table, Commands& commands) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  if (ImGui::BeginPopupContextItem("##menu")) {
    if (ImGui::MenuItem("Use as baseline", "B", table.baseline == rung.judged.rung))
      commands.push_back(SelectBaseline{rung.judged.rung});
    if (ImGui::MenuItem("Run details")) commands.push_back(OpenRun{rung.first.id});
    const bool ours = rung.first.source == "launched" && table.can_change;
    if (ImGui::MenuItem("Repeat", nullptr, false, ours)) commands.push_back(Repeat{{rung.first.id}, 1});
    if (ImGui::MenuItem("Verify gain", nullptr, false, ours && !rung.judged.is_baseline && rung.first.ladder))
      commands.push_back(verification_of(rung));
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

// Other ladders' factors of a row's stage.
void draw_others(const BesideRow& row, const LadderTable& table, const Columns& at, float top) {
  for (std::size_t i = 0; at.has_beside && i < table.beside.size(); ++i) {
    if (!row.others[i]) continue;
    const LadderRung& rung = *row.others[i];
    const LadderModel& model = *table.beside[i].model;
    ImGui::SetCursorPosY(top);
    const bool is_first = &rung == &model.rungs.front();
    Gain gain = is_first ? Gain{} : rung.judged.over_baseline;
    gain.factor = factor_over_own_baseline(rung, model);
    gain.trust = rung.judged.trust;
    text_factor(gain, beside_end(at, table, i), px(beside_width - 4), model.is_over && !is_first);
  }
}

// A stage that only other ladders have.
void draw_row_of_others(const BesideRow& row, std::size_t number, const BesideBars& bars, const LadderTable& table,
                        const Columns& at) {
  const float height = px(row_height);
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const ImVec2 start = ImGui::GetCursorPos();
  const float top = start.y;
  const LadderRung& any = **std::find_if(row.others.begin(), row.others.end(), [](const auto* rung) { return rung; });
  ImGui::SetCursorPos(ImVec2(at.name, top + px(first_line_at)));
  text_cut(title_of(any.first), at.name_width, palette().quiet, fonts().regular, text_size, Cut::middle);
  mark("ladder.others." + std::to_string(number));
  ImGui::SetCursorPos(ImVec2(at.name, top + px(second_line_at)));
  const bool says_more = !any.first.changed.empty() && any.first.changed != any.first.title;
  text_cut(says_more ? any.first.changed : "not in this ladder", at.name_width, palette().quiet, fonts().regular,
           small_size);
  if (at.has_bar) bars.draw(row, ImVec2(ImGui::GetWindowPos().x + at.bar, corner.y), at.bar_width, height);
  draw_others(row, table, at, top);
  ImGui::SetCursorPos(ImVec2(start.x, top + height + px(1)));
}

std::vector<RunId> runs_of(const LadderModel& model, const LadderRung& rung) {
  std::vector<RunId> runs{rung.first.id};
  for (const LossCurve& curve : model.losses) {
    if (curve.rung == rung.judged.rung && curve.run != rung.first.id) runs.push_back(curve.run);
  }
  return runs;
}

// Why a factor between the two has no interval, as far as it is known.
std::string why_no_interval(const LadderRung& over, const LadderRung& rung) {
  if (!rung.judged.why_no_interval.empty()) return rung.judged.why_no_interval;
  const std::string& why = over.judged.why_no_interval;
  return why.empty() || over.judged.is_baseline ? why : "rung " + std::to_string(over.judged.rung) + ": " + why;
}

// A factor, which opens the difference of the two rungs' profiles when it is clicked.
void draw_factor(const LadderModel& model, const LadderRung& over, const LadderRung& rung, const Gain& gain,
                 float right, float width, float top, const LadderTable& table, const char* name, Commands& commands) {
  if (is_missing(gain.factor)) return;
  const std::string why = gain.ci95.known() || !table.is_over ? "" : why_no_interval(over, rung);
  // Only the number itself: a click beside it selects the row.
  const ImVec2 size(px(64), px(22));
  const bool has_two_lines = gain.ci95.known() || !why.empty();
  const float line = has_two_lines ? top + px(first_line_at) : top + (px(row_height) - px(18)) / 2;
  ImGui::SetCursorPos(ImVec2(right - size.x, line - px(2)));
  if (ImGui::InvisibleButton(name, size))
    commands.push_back(ExplainSpeedup{.before = runs_of(model, over), .after = runs_of(model, rung)});
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    const ImVec2 low = ImGui::GetItemRectMin(), high = ImGui::GetItemRectMax();
    ImGui::GetWindowDrawList()->AddRect(low, ImVec2(high.x + px(6), high.y), u32(palette().accent, 0.7f), px(5));
    ImGui::SetTooltip("Why? Opens the difference of the two rungs' profiles");
  }
  mark("ladder.why." + std::to_string(rung.judged.rung) + "." + name);
  ImGui::SetCursorPosY(top);
  text_factor(gain, right, width, table.is_over, why);
}

void draw_factors(const LadderModel& model, std::size_t place, const LadderTable& table, const Columns& at, float top,
                  Commands& commands) {
  const LadderRung& rung = model.rungs[place];
  if (place > 0 && at.has_previous)
    draw_factor(model, model.rungs[place - 1], rung, rung.judged.over_previous, at.previous, at.factor_width, top,
                table, "previous", commands);
  const LadderRung* baseline = model.rung(table.baseline);
  if (baseline && baseline != &rung)
    draw_factor(model, *baseline, rung, rung.judged.over_baseline, at.baseline, at.factor_width, top, table, "baseline",
                commands);
}

// The answer about the rung's own step as a pill; where it is open and the rung was measured here, a click measures on.
void draw_answer(const LadderModel& model, const LadderRung& rung, const LadderTable& table, ImVec2 at,
                 Commands& commands) {
  if (rung.judged.is_under_way) {
    if (rung.progress.empty()) return;
    ImGui::SetCursorPos(at);
    pill("running", Tone::accent);
    return mark("ladder.running." + std::to_string(rung.judged.rung));
  }
  const RungAnswer answer = rung.judged.answer();
  const std::string text(answer_word(answer));
  const LadderRung* below = model.rung(rung.judged.stands_on);
  const bool is_open =
      answer == RungAnswer::cannot_tell || answer == RungAnswer::faster_once || answer == RungAnswer::slower_once;
  const bool settles = is_open && table.can_change && table.is_over && rung.first.source == "launched" &&
                       rung.first.ladder && rung.has_finished_run && below && below->has_finished_run;
  ImGui::SetCursorPos(at);
  if (settles) {
    if (ImGui::InvisibleButton("##answer", pill_size(text))) commands.push_back(verification_of(rung));
    if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    wrapped_tooltip(verify_tooltip(rung, *below), 360);
    mark("ladder.settle." + std::to_string(rung.judged.rung));
    ImGui::SetCursorPos(at);
  }
  pill(text, tone_of(answer, table.is_over));
  mark("ladder.answer." + std::to_string(rung.judged.rung) + "." + text);
}

// Which of its runs count, unless all do, and what it changed; nothing that its name says.
std::string second_line_of(const LadderRung& rung) {
  const Run& run = rung.first;
  const RunCount& count = rung.judged.count;
  const std::string change = run.changed == title_of(run) ? "" : run.changed.empty() ? run.precision : run.changed;
  if (rung.judged.is_under_way || count.counted() == count.all - count.to_come) return change;
  return count_text(count) + (change.empty() ? "" : "; " + change);
}

void draw_row(const LadderModel& model, std::size_t place, const BesideRow* beside, const BesideBars* bars,
              const LadderTable& table, const Columns& at, const BarScale& scale, Commands& commands) {
  const LadderRung& rung = model.rungs[place];
  const RungJudgement& judged = rung.judged;
  const bool selected = judged.rung == table.selected;
  const bool is_baseline = judged.rung == table.baseline;
  const float height = px(row_height);
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const ImVec2 start = ImGui::GetCursorPos();
  const float top = start.y;
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::PushID(judged.rung);
  ImGui::SetCursorPosX(at.number);
  ImGui::Dummy(ImVec2(at.name + at.name_width - at.number, height));  // here nothing else is clicked
  mark("ladder.rung." + std::to_string(judged.rung));
  ImGui::SetCursorPos(start);
  ImGui::SetNextItemAllowOverlap();
  if (ImGui::InvisibleButton("##row", ImVec2(width, height))) commands.push_back(SelectRung{judged.rung});
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    commands.push_back(OpenRun{rung.first.id});
  draw_menu(rung, table, commands);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (selected || ImGui::IsItemHovered()) {
    draw->AddRectFilled(ImVec2(corner.x - px(8), corner.y), ImVec2(corner.x + width + px(8), corner.y + height),
                        u32(palette().accent, selected ? 0.12f : 0.05f), px(6));
  }
  draw->AddLine(ImVec2(corner.x, corner.y + height), ImVec2(corner.x + width, corner.y + height),
                u32(palette().line, 0.7f));
  // The colour of its curves, which a hatched bar doesn't show. In a comparison colours distinguish ladders.
  if (!beside) {
    draw->AddRectFilled(ImVec2(corner.x - px(8), corner.y + px(7)), ImVec2(corner.x - px(5), corner.y + height - px(7)),
                        u32(rung_colour(rung.colour)), px(1.5f));
  }
  const float first_line = top + px(first_line_at);
  const float middle = top + (height - px(18)) / 2;
  draw_answer(model, rung, table, ImVec2(at.answer, top + (height - pill_size("x").y) / 2), commands);
  ImGui::SetCursorPos(ImVec2(at.number, middle + px(1.5f)));  // smaller than the others
  text_quiet(std::to_string(judged.rung));
  const std::string changed = in_print(second_line_of(rung));
  ImGui::SetCursorPos(ImVec2(at.name, changed.empty() ? middle : first_line));
  text_cut(rung.name, at.name_width, palette().text, fonts().semibold, text_size, Cut::middle);
  if (rung.name != title_of(rung.first)) ImGui::SetItemTooltip("%s", title_of(rung.first).c_str());
  ImGui::SetCursorPos(ImVec2(at.name, top + px(second_line_at)));
  text_cut(changed, at.name_width, palette().quiet, fonts().regular, small_size);
  if (at.has_bar && beside) {
    bars->draw(*beside, ImVec2(ImGui::GetWindowPos().x + at.bar, corner.y), at.bar_width, height);
  } else if (at.has_bar) {
    draw_bar(rung, place > 0 ? &model.rungs[place - 1] : nullptr, scale,
             ImVec2(ImGui::GetWindowPos().x + at.bar, corner.y), at.bar_width, selected, table.waterfall);
  }
  const ImVec4& ink = rung.trusted() ? palette().text : palette().quiet;
  const auto number = [&](float right, const std::string& text, ImFont* font) {
    ImGui::SetCursorPosY(middle);
    text_right(text, right, font, text_size, &ink);
  };
  number(at.tokens, tokens_per_s_text(judged.tokens_per_s), fonts().semibold);
  if (is_baseline && !is_missing(judged.over_baseline.factor)) number(at.baseline, in_print("1 x"), fonts().regular);
  draw_factors(model, place, table, at, top, commands);
  if (beside) draw_others(*beside, table, at, top);
  const float pill_top = top + (height - pill_size("x").y) / 2;
  ImGui::SetCursorPos(ImVec2(at.loss, pill_top));
  rung_loss_pill(rung, is_baseline);
  if (at.has_truth) {
    ImGui::SetCursorPos(ImVec2(at.truth, pill_top));
    truth_pill(rung);
  }
  ImGui::SetCursorPos(ImVec2(start.x, top + height + px(1)));
  ImGui::PopID();
}

}  // namespace

ConfirmSpeedup verification_of(const LadderRung& rung) {
  return {*rung.first.ladder, rung.judged.stands_on, rung.judged.rung, repeats_to_verify(rung.judged)};
}

std::string verify_tooltip(const LadderRung& rung, const LadderRung& below) {
  const std::string why = why_open_text(rung.judged, &below.judged);
  return in_print((why.empty() ? "" : why + " ") + "Verify gain repeats " + title_of(rung.first) + " and " +
                  (below.judged.is_baseline ? "the baseline" : title_of(below.first)) +
                  " in turns until the verdict is clear, or each has " +
                  std::to_string(repeats_to_verify(rung.judged)) + " runs");
}

void truth_pill(const LadderRung& rung) {
  if (const FlagKind* doubt = doubt_of(rung.judged); doubt && rung.judged.trust == Trust::doubtful) {
    const std::string title = title_in_lower_case(*doubt);
    ImGui::PushFont(fonts().regular, small_size);
    const std::string shown = cut_to(title, ImGui::GetContentRegionAvail().x - px(22));
    ImGui::PopFont();
    pill(shown, Tone::warning);
    if (shown != title) wrapped_tooltip(title, 300);
    return mark("ladder.doubt." + std::to_string(rung.judged.rung));
  }
  if (!is_missing(rung.judged.limit.tflops) && !is_missing(rung.judged.limit.peak_tflops)) {
    if (rung.judged.trust == Trust::impossible && rung.judged.limit.tflops <= rung.judged.limit.peak_tflops)
      return pill("impossible in a repeat", Tone::bad);
    const Tone tone = rung.judged.trust == Trust::impossible ? Tone::bad
                      : rung.judged.trust == Trust::doubtful ? Tone::warning
                                                             : Tone::good;
    const std::string about = rung.judged.limit.condition.empty() ? "" : "~";
    return pill(about + compact_in_unit(rung.judged.limit.tflops) + " of " + compact(rung.judged.limit.peak_tflops) +
                    " TFLOP/s",
                tone);
  }
  if (rung.judged.trust == Trust::impossible) return pill("impossible", Tone::bad);
  if (rung.summary.steps == 0) return;
  switch (rung.first.sync) {
    case Sync::event:
      return pill("events, synchronised", Tone::neutral);
    case Sync::device:
      return pill("synchronised", Tone::neutral);
    case Sync::none:
      return pill("not synchronised", Tone::bad);
    case Sync::unknown:
      break;
  }
  if (is_missing(rung.summary.dt_ms_median) && is_missing(rung.summary.tokens_per_s))
    return pill("no step times", Tone::neutral);
  // A run that never started wasn't timed.
  if (rung.first.source != "launched" || !is_missing(rung.first.started_at)) pill("timing sync unknown", Tone::warning);
}

void text_factor(const Gain& gain, float right, float width, bool is_over, const std::string& why_no_interval) {
  const float top = ImGui::GetCursorPosY();
  const float height = px(row_height);
  if (is_missing(gain.factor)) return;
  const bool has_interval = gain.ci95.known();
  const bool is_judged = has_interval || is_over;
  const bool trusted = gain.worst() == Trust::trusted;
  const bool faster = gain.is(Verdict::faster);  // never without an interval
  const bool slower = gain.is(Verdict::slower);
  const char* sign = faster                          ? "\xE2\x86\x91 "
                     : slower                        ? "\xE2\x86\x93 "
                     : !trusted || !is_judged        ? ""
                     : gain.verdict == Verdict::same ? "= "
                                                     : "? ";
  const ImVec4 colour = !trusted ? palette().quiet : faster ? palette().good : slower ? palette().bad : palette().text;
  const std::string below = in_print(has_interval ? ci95_text(gain.ci95) : why_no_interval);
  ImGui::SetCursorPosY(below.empty() ? top + (height - px(18)) / 2 : top + px(first_line_at));
  text_right(sign + in_print(factor_text(gain.factor)), right, fonts().regular, text_size, &colour);
  if (below.empty()) return;
  ImGui::SetCursorPosY(top + px(second_line_at));
  ImGui::PushFont(fonts().regular, small_size);
  const std::string fits = cut_to(below, width);
  ImGui::PopFont();
  text_right(fits, right, fonts().regular, small_size, trusted && has_interval ? &palette().text : &palette().quiet);
  if (fits != below) ImGui::SetItemTooltip("%s", below.c_str());
}

float ladder_table_height(std::size_t rows) {
  return px(52) + px(row_height + 1) * static_cast<float>(rows);
}

void draw_ladder_table(const LadderModel& model, const LadderTable& table, Commands& commands) {
  const std::size_t rows = table.beside.empty() ? model.rungs.size() : table.rows.size();
  const bool scrolls = ladder_table_height(rows) > ImGui::GetWindowHeight() + px(1);
  const float scroll_bar = scrolls ? ImGui::GetStyle().ScrollbarSize : 0;
  const Columns at = columns_for(ImGui::GetContentRegionMax().x - scroll_bar, table.beside.size(), has_steps(model));
  const BarScale scale = scale_for(model, table.waterfall);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), 0));
  draw_head(at, scale.is_log, table);
  // The rows scroll beneath the head; with the card's padding, so that the columns are where the head says.
  ImGui::SetCursorPosX(0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(16), 0));
  ImGui::BeginChild("##rows",
                    ImVec2(ImGui::GetWindowWidth(), ImGui::GetWindowHeight() - ImGui::GetCursorPosY() - px(4)),
                    ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleVar();
  if (table.beside.empty()) {
    if (const LadderRung* baseline = model.rung(table.baseline); table.waterfall && at.has_bar && baseline) {
      const float one = ImGui::GetWindowPos().x + at.bar + at.bar_width * scale.share(baseline->judged.tokens_per_s);
      const float top = ImGui::GetCursorScreenPos().y;
      ImGui::GetWindowDrawList()->AddLine(ImVec2(one - px(2), top),
                                          ImVec2(one - px(2), top + px(row_height + 1) * static_cast<float>(rows)),
                                          u32(palette().quiet, 0.35f));
    }
    for (std::size_t i = 0; i < model.rungs.size(); ++i) {
      const float top = ImGui::GetCursorPosY();
      draw_row(model, i, nullptr, nullptr, table, at, scale, commands);
      const bool is_above = top < ImGui::GetScrollY();
      const bool is_below = top + px(row_height) > ImGui::GetScrollY() + ImGui::GetWindowHeight();
      if (model.rungs[i].judged.rung == table.scrolls_to && (is_above || is_below))
        ImGui::SetScrollY(top - ImGui::GetWindowHeight() / 2);
    }
  } else {
    const BesideBars bars(model, table.beside);
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      if (table.rows[i].own) {
        draw_row(model, i, &table.rows[i], &bars, table, at, scale, commands);
      } else {
        draw_row_of_others(table.rows[i], i - model.rungs.size(), bars, table, at);
      }
    }
  }
  ImGui::Dummy(ImVec2(0, 0));  // the last row placed the cursor; an item makes it count
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

}  // namespace stepladder
