// Ladder: a rung is a row. What it changed, what it bought over the rung before and over the baseline, whether the loss
// stayed, whether the number can be true; beneath, the selected rung's curves and sums.
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "app/desktop/chart_export.h"
#include "app/desktop/charts.h"
#include "app/desktop/ladder_model.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_points.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "app/panels/ladder_rows.h"
#include "app/report.h"

namespace stepladder {
namespace {

struct State {
  FollowedLadder shown;
  struct Beside {
    LadderId ladder = 0;
    FollowedLadder followed;
  };
  std::list<Beside> beside;  // other ones, at most most_beside
  Lens lens = Lens::steps;
  bool waterfall = false;
  SharedX x;
  LadderId x_of = 0;
  bool renaming = false;
  std::array<char, 256> name{};
};

std::string ladder_line(const Ladder& ladder, const LadderModel& model) {
  const LadderRung& rung = model.rungs.front();
  const Run& first = rung.first;
  std::string line = std::to_string(model.rungs.size()) + (model.rungs.size() == 1 ? " rung" : " rungs");
  const auto repeats = std::count_if(model.losses.begin(), model.losses.end(),
                                     [&](const LossCurve& curve) { return curve.rung == rung.sum.rung; });
  if (repeats > 1) line += " x " + std::to_string(repeats) + " repeats";
  const std::int64_t steps = first.planned_steps > 0 ? first.planned_steps : rung.summary.steps;
  line += " x " + grouped(steps) + " steps";
  if (first.tokens_per_step > 0) line += " of " + grouped(first.tokens_per_step) + " tokens";
  if (!first.hardware.empty()) line += "  -  " + first.hardware;
  line += ladder.source == "launched" ? "  -  measured here, " + local_time_text(ladder.created_at)
                                      : "  -  " + ladder.source + ", from " + ladder.source_path;
  return line;
}

bool ladder_combo(const char* id, const char* words, const Workspace& workspace, LadderId chosen, LadderId* picked) {
  bool changed = false;
  if (!ImGui::BeginCombo(id, words)) return false;
  for (auto other = workspace.ladders().rbegin(); other != workspace.ladders().rend(); ++other) {
    const std::string item =
        other->name + "   " + local_time_text(other->created_at) + "##" + std::to_string(other->id);
    if (ImGui::Selectable(item.c_str(), other->id == chosen)) {
      *picked = other->id;
      changed = true;
    }
  }
  ImGui::EndCombo();
  return changed;
}

void draw_name(State& state, const Ladder& ladder, float width, Commands& commands) {
  if (!state.renaming) {
    text_cut(ladder.name, width, palette().text, fonts().display, title_size);
    if (ImGui::IsItemHovered()) ImGui::SetItemTooltip("Double click to rename");
    if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
      std::snprintf(state.name.data(), state.name.size(), "%s", ladder.name.c_str());
      state.renaming = true;
    }
    return;
  }
  ImGui::SetNextItemWidth(width);
  ImGui::SetKeyboardFocusHere();
  const bool done = ImGui::InputText("##name", state.name.data(), state.name.size(),
                                     ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  if (done) commands.push_back(RenameLadder{ladder.id, state.name.data()});
  if (done || ImGui::IsKeyPressed(ImGuiKey_Escape)) state.renaming = false;
}

void draw_head(State& state, const Workspace& workspace, const Ladder& ladder, Commands& commands) {
  const float picker = px(200);
  const float right = ImGui::GetContentRegionMax().x;
  const float top = ImGui::GetCursorPosY();
  draw_name(state, ladder, right - picker - px(260), commands);
  const float below = ImGui::GetCursorPosY();
  float at = right - picker;
  ImGui::SetCursorPos(ImVec2(at, top));
  ImGui::SetNextItemWidth(picker);
  LadderId chosen = ladder.id;
  if (ladder_combo("##ladder", "Other ladders", workspace, ladder.id, &chosen))
    commands.push_back(SelectLadder{chosen});
  mark("ladder.picker");
  const auto before = [&](const std::string& text, Tone tone) {
    at -= pill_size(text).x + px(8);
    ImGui::SetCursorPos(ImVec2(at, top + (ImGui::GetFrameHeight() - pill_size(text).y) / 2));
    pill(text, tone);
  };
  if (workspace.baseline_rung != 0) {
    before("baseline: rung " + std::to_string(workspace.baseline_rung), Tone::neutral);
    mark("ladder.baseline." + std::to_string(workspace.baseline_rung));
  }
  if (state.shown.model.impossible > 0) {
    before(std::to_string(state.shown.model.impossible) + " of " + std::to_string(state.shown.model.rungs.size()) +
               " times are impossible",
           Tone::bad);
  }
  ImGui::SetCursorPosY(below);
  text_cut(ladder_line(ladder, state.shown.model), right, palette().quiet, fonts().regular, small_size);
}

// Others by a tick each; the window stays open while they are chosen.
void draw_beside_picker(State& state, const Workspace& workspace, LadderId own) {
  const std::size_t count = state.beside.size();
  const std::string words = count == 0 ? "Beside other ladders"
                            : count == 1 && workspace.ladder(state.beside.front().ladder)
                                ? "beside: " + workspace.ladder(state.beside.front().ladder)->name
                                : "beside " + std::to_string(count) + " others";
  const bool open = ImGui::BeginCombo("##beside", words.c_str());
  mark("ladder.beside");
  if (!open) return;
  for (auto other = workspace.ladders().rbegin(); other != workspace.ladders().rend(); ++other) {
    if (other->id == own) continue;
    const auto found = std::find_if(state.beside.begin(), state.beside.end(),
                                    [&](const State::Beside& beside) { return beside.ladder == other->id; });
    bool on = found != state.beside.end();
    const std::string item =
        other->name + "   " + local_time_text(other->created_at) + "##" + std::to_string(other->id);
    ImGui::BeginDisabled(!on && count >= most_beside);
    if (ImGui::Checkbox(item.c_str(), &on)) {
      if (on) {
        state.beside.emplace_back().ladder = other->id;
      } else {
        state.beside.erase(found);
      }
    }
    mark("ladder.beside." + std::to_string(other->id));
    ImGui::EndDisabled();
  }
  ImGui::EndCombo();
}

// Those that are there, and have been made.
std::vector<BesideLadder> followed_beside(State& state, const Workspace& workspace, LadderId own, Commands& commands) {
  std::vector<BesideLadder> ladders;
  std::erase_if(state.beside,
                [&](const State::Beside& beside) { return beside.ladder == own || !workspace.ladder(beside.ladder); });
  int colour = 0;
  for (State::Beside& beside : state.beside) {
    ++colour;
    beside.followed.update(workspace, beside.ladder, 0, Lens::steps, nullptr, commands);
    if (beside.followed.model.ladder != beside.ladder || beside.followed.model.rungs.empty()) continue;
    ladders.push_back({workspace.ladder(beside.ladder)->name, &beside.followed.model, rung_colour(colour)});
  }
  return ladders;
}

void draw_bar(State& state, const Workspace& workspace, const Ladder& ladder, Commands& commands) {
  if (chip("Waterfall", state.waterfall)) state.waterfall = !state.waterfall;
  mark("ladder.waterfall");
  ImGui::SetItemTooltip("W: each bar begins where the one before ended");
  ImGui::SameLine(0, px(8));
  ImGui::SetNextItemWidth(px(190));
  draw_beside_picker(state, workspace, ladder.id);
  flow_to("Measure it here");
  if (quiet_button("Measure it here")) commands.push_back(ProposeLadder{ladder.id});
  mark("ladder.again");
  ImGui::SetItemTooltip("Fills Launch with the same rungs in sizes that fit this machine");
  flow_to("Compare its runs");
  if (quiet_button("Compare its runs")) {
    std::vector<RunId> runs;
    for (const LossCurve& curve : state.shown.model.losses) runs.push_back(curve.run);
    commands.push_back(SelectRuns{std::move(runs)});
    commands.push_back(ShowPanel{"compare"});
  }
  mark("ladder.compare");
  flow_to("Export");
  if (quiet_button("Export")) ImGui::OpenPopup("##export");
  mark("ladder.export");
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  if (ImGui::BeginPopup("##export")) {
    constexpr std::array<std::array<const char*, 2>, 7> offers{{{"Report, one HTML file", ".html"},
                                                                {"Bars as SVG", ".svg"},
                                                                {"Bars as PDF", ".pdf"},
                                                                {"Bars as PNG", ".png"},
                                                                {"Table as Markdown", ".md"},
                                                                {"Table as CSV", ".csv"},
                                                                {"Figure and table for LaTeX", ".tex"}}};
    for (const auto& [words, ending] : offers) {
      if (ImGui::MenuItem(words, ending == std::string(".html") ? "Ctrl+R" : nullptr))
        commands.push_back(SaveLadder{ladder.id, ending});
      mark(std::string("ladder.export") + ending);
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
  const Question& question = workspace.question;
  if (question.asked.ladder == ladder.id && (question.open || !question.answers.empty())) {
    ImGui::SameLine(0, px(16));
    ImGui::AlignTextToFramePadding();
    std::string text = "Is rung " + std::to_string(question.asked.rung) + " real?";
    for (const SpeedUp& answer : question.answers) text += "  " + ci95_text(answer.ci95);
    if (question.open) {
      text_quiet(text + "  ...");
      ImGui::SameLine(0, px(8));
      if (quiet_button("Stop asking")) commands.push_back(StopAsking{});
    } else {
      text_strong(text + "  " + std::string(to_string(question.answers.back().verdict)));
    }
  }
}

constexpr std::size_t most_in_legend = 7;  // more would hide the curves; the table above has the colours

// All rungs, the baseline and the selected one strong, the others thin. `values` gives each run's points, and their
// levels where they have any.
template <class Values>
std::vector<Curve> curves(const LadderModel& model, int selected, int baseline, Values values) {
  std::vector<Curve> list;
  const auto add_where = [&](auto&& condition) {
    for (const LossCurve& loss : model.losses) {
      if (!condition(loss.rung)) continue;
      const auto [x, y, levels] = values(loss);
      if (x.empty()) continue;
      const bool strong = loss.rung == selected || loss.rung == baseline;
      list.push_back({.label = loss.title + "##" + std::to_string(loss.run),
                      .x = x,
                      .y = y,
                      .colour = faded(rung_colour(loss.rung), strong ? 1.0f : 0.55f),
                      .weight = strong ? 2.2f : 1.1f,
                      .in_legend = loss.repeat == 0 && model.rungs.size() <= most_in_legend,
                      .order = loss.rung,
                      .is_context = !strong,
                      .dash = loss.rung,
                      .levels = levels});
    }
  };
  add_where([&](int rung) { return rung != baseline && rung != selected; });
  add_where([&](int rung) { return rung == baseline && rung != selected; });
  add_where([&](int rung) { return rung == selected; });
  return list;
}

void toned(const std::string& text, Tone tone) {
  ImGui::PushTextWrapPos(0);
  text_toned(text, tone);
  ImGui::PopTextWrapPos();
}

std::string loss_sentence(const LadderRung& rung, bool is_baseline) {
  const LossParity& loss = rung.sum.loss;
  const std::string against =
      rung.sum.loss_against > 0 ? ", against rung " + std::to_string(rung.sum.loss_against) : "";
  if (!std::isfinite(rung.summary.loss_last)) return "Its loss is no longer a number.";
  if (is_baseline) return "The others' losses are compared with this one's.";
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

void draw_verdict(const LadderRung& rung, bool is_first, bool is_baseline) {
  if (rung.impossible) toned("Cannot be true", Tone::bad);
  if (!is_first && !is_missing(rung.sum.against_previous) && !rung.impossible) {
    const double factor = rung.sum.against_previous;
    const Verdict verdict = rung.sum.previous_verdict.ci95.known() ? rung.sum.previous_verdict.verdict
                            : factor > 1.01                        ? Verdict::faster
                            : factor < 0.99                        ? Verdict::slower
                                                                   : Verdict::same;
    switch (verdict) {
      case Verdict::faster:
        toned(factor_text(factor) + " over the rung before", Tone::good);
        break;
      case Verdict::slower:
        toned("Slower: " + factor_text(factor) + " of the rung before", Tone::bad);
        break;
      case Verdict::same:
        toned("No gain over the rung before", Tone::neutral);
        break;
      case Verdict::cannot_tell:
        toned(factor_text(factor) + " over the rung before, but it could be noise", Tone::warning);
        break;
    }
  }
  if (!is_baseline && !is_missing(rung.sum.speedup)) {
    text_sentence(factor_text(rung.sum.speedup) + " over the baseline" +
                  (rung.sum.verdict.ci95.known() ? ", " + std::string(to_string(rung.sum.verdict.verdict)) +
                                                       " (95 %: " + ci95_text(rung.sum.verdict.ci95) + ")"
                                                 : ""));
  }
}

// The sums behind a rung's numbers, so that a reader can redo them.
void draw_card(const State& state, const LadderRung& rung, int baseline, Commands& commands) {
  const Run& run = rung.first;
  const Summary& summary = rung.summary;
  const bool is_first = &rung == &state.shown.model.rungs.front();
  const bool is_baseline = rung.sum.rung == baseline;
  const auto repeats = std::count_if(state.shown.model.losses.begin(), state.shown.model.losses.end(),
                                     [&](const LossCurve& curve) { return curve.rung == rung.sum.rung; });
  ImGui::PushTextWrapPos(0);
  const std::string number = "Rung " + std::to_string(rung.sum.rung);
  text_strong(title_of(run) == number ? number : number + ": " + title_of(run));
  ImGui::PopTextWrapPos();
  if (run.status == RunStatus::failed || run.status == RunStatus::interrupted || run.status == RunStatus::stopped) {
    toned(std::string(to_string(run.status)) + (run.reason.empty() ? "" : ": " + run.reason),
          run.status == RunStatus::failed ? Tone::bad : Tone::warning);
  }
  if (summary.steps == 0) {
    text_quiet_wrapped(run.source == "launched" ? "No steps yet."
                                                : "The log has no steps of this rung, only what was written about it.");
    return;
  }
  draw_verdict(rung, is_first, is_baseline);
  if (run.tokens_per_step > 0 && !is_missing(summary.dt_ms_median)) {
    text_sentence((repeats > 1 ? "First run: " : "") + grouped(run.tokens_per_step) + " tokens in " +
                  milliseconds_text(summary.dt_ms_median) + " = " + tokens_per_s_text(summary.tokens_per_s) +
                  " tokens/s");
  }
  if (!is_missing(rung.limit.tflops)) {
    text_sentence("x " + compact(rung.limit.tflops * 1e12 / summary.tokens_per_s / 1e6) +
                  " MFLOP a token (6N) = " + compact(rung.limit.tflops) + " TFLOP/s" +
                  (is_missing(rung.limit.peak_tflops)
                       ? ""
                       : ", where the hardware's peak is " + compact(rung.limit.peak_tflops) + " TFLOP/s"));
  } else if (run.params > 0 && !is_missing(summary.tokens_per_s)) {
    const double tflops = 6.0 * static_cast<double>(run.params) * summary.tokens_per_s / 1e12;
    text_sentence("x 6 x " + compact(static_cast<double>(run.params)) + " parameters (6N) = " + compact(tflops) +
                  " TFLOP/s");
  }
  text_sentence(loss_sentence(rung, is_baseline));
  for (const Flag& flag : rung.flags) {
    if (flag.id == FlagId::not_repeated || flag.id == FlagId::unknown_hardware)
      continue;  // said below, or by the column
    toned(std::string(to_string(flag.id)), flag.id == FlagId::impossible_throughput ? Tone::bad : Tone::warning);
    text_quiet_wrapped(flag.why);
  }
  ImGui::Dummy(ImVec2(0, px(2)));
  const auto fact = [](const std::string& text) { text_quiet_wrapped(text); };
  fact("The first " + grouped(summary.warmup_steps) + " of " + grouped(summary.steps) +
       " steps are left out of the times.");
  if (!is_missing(run.setup_ms)) {
    fact("Made ready in " + milliseconds_text(run.setup_ms) +
         (is_missing(rung.setup_pays_back_after)
              ? "."
              : ": pays back after " + grouped(std::llround(rung.setup_pays_back_after)) + " steps."));
  }
  if (run.peak_memory_bytes > 0) {
    fact("At most " + bytes_text(static_cast<double>(run.peak_memory_bytes)) + " held" +
         (run.attention.empty() ? "." : "; attention: " + run.attention + "."));
  }
  if (!is_missing(rung.energy.joules_per_token)) {
    fact(compact(rung.energy.mean_power_w) + " W: " + compact(rung.energy.joules_per_token) + " J a token, " +
         compact(rung.energy.wh) + " Wh in all.");
  }
  fact(repeats > 1 ? "Median of " + std::to_string(repeats) + " runs; the whisker spans them."
                   : "One run: how much runs differ from each other is not known. Repeats tell.");
  ImGui::Dummy(ImVec2(0, px(4)));
  if (quiet_button("All about it")) commands.push_back(OpenRun{run.id});
  mark("ladder.open");
  if (run.source == "launched" && state.shown.model.is_over && !is_baseline && run.ladder) {
    ImGui::SameLine(0, px(8));
    if (quiet_button("Is it real?")) commands.push_back(AskWhetherReal{*run.ladder, baseline, rung.sum.rung});
    mark("ladder.real");
    ImGui::SetItemTooltip("Repeats it and the baseline in turns until the factor is clear, at most six times.");
  }
}

// Step times that differ by more than five times need a log axis to be told apart at both ends.
bool needs_log_axis(const LadderModel& model) {
  double least = missing;
  double most = missing;
  for (const auto& [run, ecdf] : model.ecdf) {
    if (ecdf.dt_ms.empty() || ecdf.dt_ms.front() <= 0) continue;
    least = is_missing(least) ? ecdf.dt_ms.front() : std::min(least, ecdf.dt_ms.front());
    most = is_missing(most) ? ecdf.dt_ms.back() : std::max(most, ecdf.dt_ms.back());
  }
  return !is_missing(least) && most > 5 * least;
}

// The loss curves under the chosen lens, and beneath them how far each is from the baseline's.
void draw_losses(State& state, const std::vector<std::string>& caption, int selected, int baseline, ImVec2 size,
                 Commands& commands) {
  const LadderModel& model = state.shown.model;
  const float gap = px(16);
  const bool strip = size.y > px(290);
  const float upper = strip ? (size.y - gap) * 0.52f : size.y;
  ImGui::BeginGroup();
  begin_card("##loss", ImVec2(size.x, upper));
  const ImVec2 corner = ImGui::GetCursorPos();
  const float right = corner.x + ImGui::GetContentRegionAvail().x;
  std::int64_t behind = 0;
  for (const LossCurve& loss : model.losses) behind += loss.behind;
  draw_chart({.id = "loss",
              .title = "Loss",
              .note = behind_text(behind),
              .x_label = std::string(axis_title_of(model.lens)),
              .curves = curves(model, selected, baseline,
                               [](const LossCurve& loss) {
                                 return std::tuple(std::span<const double>(loss.points.x),
                                                   std::span<const double>(loss.points.y), &loss.levels);
                               }),
              .floor = model.loss_floor,
              .floor_label = "entropy of the source",
              .x_labelled = !strip,
              .caption = caption,
              .shared = &state.x,
              .commands = &commands,
              .title_room = px(140)});
  ImGui::SetCursorPos(ImVec2(right - px(130), corner.y - px(5)));
  static const std::vector<std::string> lenses = [] {
    std::vector<std::string> titles;
    for (const Lens lens : all_lenses) titles.emplace_back(title_of(lens));
    return titles;
  }();
  int lens = static_cast<int>(state.lens);
  ImGui::PushFont(fonts().regular, small_size);
  if (choice("##lens", "", lens, lenses, px(130))) {
    state.lens = static_cast<Lens>(lens);
    state.x = {};
  }
  ImGui::SetItemTooltip("What is held equal: S steps, K tokens, T time, F FLOPs, J energy");
  ImGui::PopFont();
  mark("ladder.lens");
  end_card();
  if (strip) {
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + gap - ImGui::GetStyle().ItemSpacing.y);
    begin_card("##gap", ImVec2(size.x, 0));
    const std::string reference = baseline == 0 ? "the baseline's" : "rung " + std::to_string(baseline) + "'s";
    draw_chart({.id = "gap",
                .title = "Loss less " + reference,
                .note = "within " + loss_text(model.band) + " is the same" + (behind > 0 ? "; of means" : ""),
                .x_label = std::string(axis_title_of(model.lens)),
                .curves = curves(model, selected, baseline,
                                 [](const LossCurve& loss) {
                                   return std::tuple(std::span<const double>(loss.gap.x),
                                                     std::span<const double>(loss.gap.y), &loss.gap_levels);
                                 }),
                .band_low = -model.band,
                .band_high = model.band,
                .zero_line = 0,
                .legend = false,
                .caption = caption,
                .shared = &state.x,
                .commands = &commands});
    end_card();
  }
  ImGui::EndGroup();
}

void draw_below(State& state, const std::vector<std::string>& caption, int selected, int baseline, Commands& commands) {
  const LadderModel& model = state.shown.model;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const bool is_narrow = room.x < px(860);  // then the step times give way
  const float loss_width = is_narrow ? (room.x - gap) * 0.56f : (room.x - 2 * gap) * 0.43f;
  const float dt_width = (room.x - 2 * gap) * 0.29f;
  draw_losses(state, caption, selected, baseline, ImVec2(loss_width, room.y), commands);
  ImGui::SameLine(0, gap);
  if (!is_narrow) {
    const bool is_log = needs_log_axis(model);
    begin_card("##dt", ImVec2(dt_width, room.y));
    draw_chart({.id = "dt",
                .title = "Step time",
                .note = "ECDF",
                .x_label = is_log ? "ms, log scale" : "ms",
                .unit = "of steps",
                .curves = curves(model, selected, baseline,
                                 [&](const LossCurve& loss) {
                                   const Ecdf& steps = model.ecdf.at(loss.run);
                                   return std::tuple(std::span<const double>(steps.dt_ms),
                                                     std::span<const double>(steps.share),
                                                     static_cast<const Levels*>(nullptr));
                                 }),
                .steps_up = true,
                .log_x = is_log,
                .legend = false,
                .caption = caption,
                .commands = &commands});
    end_card();
    ImGui::SameLine(0, gap);
  }
  begin_card("##card", ImVec2(0, room.y), true);
  if (const LadderRung* rung = model.rung(selected)) draw_card(state, *rung, baseline, commands);
  end_card();
}

void handle_keys(State& state, int selected, Commands& commands) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_R) && state.x_of != 0)
    commands.push_back(SaveLadder{state.x_of, ".html"});
  if (io.WantTextInput || io.KeyCtrl || !ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows)) return;
  if (ImGui::IsKeyPressed(ImGuiKey_W, false)) state.waterfall = !state.waterfall;
  constexpr std::array keys{ImGuiKey_S, ImGuiKey_K, ImGuiKey_T, ImGuiKey_F, ImGuiKey_J};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!ImGui::IsKeyPressed(keys[i], false)) continue;
    state.lens = all_lenses[i];
    state.x = {};
  }
  if (ImGui::IsKeyPressed(ImGuiKey_B, false) && is_missing(state.x.hovered))
    commands.push_back(SelectBaseline{selected});
  const int step = ImGui::IsKeyPressed(ImGuiKey_DownArrow) ? 1 : ImGui::IsKeyPressed(ImGuiKey_UpArrow) ? -1 : 0;
  if (step == 0) return;
  for (std::size_t i = 0; i < state.shown.model.rungs.size(); ++i) {
    if (state.shown.model.rungs[i].sum.rung != selected) continue;
    const auto next = static_cast<std::ptrdiff_t>(i) + step;
    if (next >= 0 && next < static_cast<std::ptrdiff_t>(state.shown.model.rungs.size()))
      commands.push_back(SelectRung{state.shown.model.rungs[static_cast<std::size_t>(next)].sum.rung});
    return;
  }
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  const Ladder* ladder = workspace.shown_ladder();
  if (!ladder) {
    empty_state("No ladder yet.", "Start one in Launch: the baseline, then one optimisation more on every rung.");
    return;
  }
  if (state.x_of != ladder->id) {
    state.x = {};
    state.x_of = ladder->id;
  }
  state.x.begin_frame();
  state.shown.update(workspace, ladder->id, workspace.baseline_rung, state.lens, &state.x, commands);
  if (state.shown.model.ladder != ladder->id) {
    empty_state("Working it out ...", "The runs of " + ladder->name + " are long.");
    return;
  }
  if (state.shown.model.rungs.empty()) {
    empty_state(ladder->name + " has no runs.", "Choose another ladder, or start one in Launch.");
    return;
  }
  const std::vector<BesideLadder> beside = followed_beside(state, workspace, ladder->id, commands);
  for (const RunEntry* entry : workspace.runs_of(ladder->id)) {
    if (!entry->goes_on() && entry->run.source == "launched" && !workspace.detail(entry->run.id))
      commands.push_back(LoadDetail{entry->run.id});
  }
  const int selected =
      state.shown.model.rung(workspace.selected_rung) ? workspace.selected_rung : state.shown.model.fastest();
  const int baseline = state.shown.model.rung(workspace.baseline_rung) ? workspace.baseline_rung
                                                                       : state.shown.model.rungs.front().sum.rung;
  draw_head(state, workspace, *ladder, commands);
  ImGui::Dummy(ImVec2(0, px(2)));
  draw_bar(state, workspace, *ladder, commands);
  handle_keys(state, selected, commands);
  ImGui::Dummy(ImVec2(0, px(2)));
  if (!beside.empty()) draw_beside_legend(ladder->name, beside);
  const float room = ImGui::GetContentRegionAvail().y;
  const float height = std::min(ladder_table_height(state.shown.model, beside), room * (beside.empty() ? 0.5f : 0.64f));
  begin_card("##table", ImVec2(0, height), true);
  draw_ladder_table(state.shown.model,
                    {.waterfall = state.waterfall,
                     .selected = selected,
                     .baseline = baseline,
                     .is_over = state.shown.model.is_over,
                     .beside = beside},
                    commands);
  end_card();
  ImGui::Dummy(ImVec2(0, px(16) - ImGui::GetStyle().ItemSpacing.y * 2));
  draw_below(state, caption_of(workspace.runs_of(ladder->id)), selected, baseline, commands);
}

}  // namespace

Panel panels::ladder() {
  const auto state = std::make_shared<State>();
  return {.id = "ladder",
          .title = "Ladder",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .remember =
              [state] {
                return nlohmann::json{{"lens", static_cast<int>(state->lens)}, {"waterfall", state->waterfall}}.dump();
              },
          .recall =
              [state](const std::string& text) {
                const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
                if (!json.is_object()) return;
                if (json.contains("lens") && json["lens"].is_number_integer()) {
                  const int lens = json["lens"];
                  if (lens >= 0 && lens < static_cast<int>(all_lenses.size()))
                    state->lens = all_lenses[static_cast<std::size_t>(lens)];
                }
                state->waterfall = json.contains("waterfall") && json["waterfall"] == true;
              }};
}

}  // namespace stepladder
