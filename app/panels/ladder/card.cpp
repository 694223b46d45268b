// Draws the selected rung's card: verdicts, flags, the arithmetic from throughput to FLOP/s, and figures. It only words
// the judgement that the model has; numbers are those of the rung's row.
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/commands/run_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/ladder/parts.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {
namespace {

void toned(const std::string& text, Tone tone) {
  text_toned_wrapped(in_print(text), tone);
}

std::string loss_sentence(const LadderRung& rung, bool is_baseline) {
  const LossParity& loss = rung.judged.loss;
  const std::string against =
      rung.judged.loss_against > 0 ? " vs rung " + std::to_string(rung.judged.loss_against) : "";
  if (!is_missing(rung.summary.loss_last) && !std::isfinite(rung.summary.loss_last)) return "Diverged (NaN).";
  const bool is_under_way = rung.judged.is_under_way;
  if (is_missing(rung.summary.loss_last))
    return is_under_way                      ? "No loss yet."
           : rung.first.source == "launched" ? "No loss recorded."
                                             : "The log has no training loss.";
  if (is_baseline) return "Baseline of the losses.";
  if (is_under_way && loss.verdict != LossVerdict::diverged)
    return "Loss " + loss_text(rung.summary.loss_last) + " so far; it is judged when a repeat has finished.";
  if (loss.verdict == LossVerdict::not_comparable)
    return "Loss not comparable with the baseline: not the same tokens at the same steps.";
  if (loss.verdict == LossVerdict::diverged) return "Loss diverged at step " + grouped(loss.at_step) + against + ".";
  const std::string gap = loss_text(std::fabs(loss.tail_gap));
  const std::string most = "Largest gap " + loss_text(loss.max_gap) + ", at step " + grouped(loss.at_step) + ".";
  if (loss.verdict == LossVerdict::same)
    return "Same loss: " + gap + " apart over the last quarter" + against + ". " + most;
  if (loss.verdict == LossVerdict::inconclusive)
    return "Loss inconclusive: " + gap + " apart over the last quarter" + against +
           ", less than what runs differ by. " + most;
  return "Loss " + std::string(to_string(loss.verdict)) + " by " + gap + " over the last quarter" + against + ". " +
         most;
}

// A factor in words; alone while its runs continue and it has no interval yet.
std::string gain_text(const Gain& gain, const std::string& over, bool is_over) {
  const bool is_known = gain.ci95.known();
  return factor_text(gain.factor) + " " + over + (is_over || is_known ? ", " + verdict_text(gain) : "") +
         (is_informative(gain.ci95) ? " (95 %: " + ci95_text(gain.ci95) + ")"
          : is_known                ? " (no interval)"
                                    : "");
}

// The rung's own step, which its answer is about, then the factor over the baseline if that is another pair.
void draw_verdict(const LadderModel& model, const LadderRung& rung) {
  const RungJudgement& judged = rung.judged;
  const LadderRung* below = model.rung(judged.stands_on);
  if (judged.trust == Trust::impossible) toned("Impossible throughput", Tone::bad);
  if (judged.is_baseline) return;
  if (!is_missing(judged.own_step.factor) && judged.trust != Trust::impossible) {
    toned(gain_text(judged.own_step, below && !below->judged.is_baseline ? subject_of(below->judged) : "baseline",
                    model.is_over),
          tone_of(judged.answer(), model.is_over));
    if (const std::string why = why_open_text(judged, below ? &below->judged : nullptr);
        model.is_over && !why.empty()) {
      text_quiet_wrapped(in_print(why));
      mark("ladder.why_open." + std::to_string(judged.rung));
    }
  }
  const bool is_other_pair = below && !below->judged.is_baseline;
  if ((is_other_pair || judged.trust == Trust::impossible) && !is_missing(judged.over_baseline.factor))
    text_sentence(gain_text(judged.over_baseline, "baseline", model.is_over));
}

// From the throughput to FLOP/s, both of the runs that count: the median over them, as in the row.
void draw_arithmetic(const LadderRung& rung) {
  const Run& run = rung.first;
  const RungJudgement& judged = rung.judged;
  if (is_missing(judged.tokens_per_s)) return;
  const std::string throughput = tokens_per_s_text(judged.tokens_per_s) + " tokens/s";
  if (judged.count.all > 1 && !judged.is_under_way) {
    text_sentence(count_text(judged.count) + ": " + (judged.count.counted() > 1 ? "median " : "") + throughput);
    mark("ladder.count." + std::to_string(judged.rung) + "." + count_text(judged.count));
  } else if (run.tokens_per_step > 0 && !is_missing(rung.summary.dt_ms_median)) {
    text_sentence(grouped(run.tokens_per_step) + " tokens in " + milliseconds_text(rung.summary.dt_ms_median) + " = " +
                  throughput);
  }
  if (!is_missing(judged.limit.tflops)) {
    const std::string& condition = judged.limit.condition;
    const std::string about = condition.empty() ? "" : "~";
    text_sentence("x " + about + compact(judged.limit.tflops * 1e12 / judged.tokens_per_s / 1e6) +
                  " MFLOP per token (6N" + (condition.empty() ? "" : ", " + condition) + ") = " + about +
                  compact_in_unit(judged.limit.tflops) + " TFLOP/s" +
                  (is_missing(judged.limit.peak_tflops)
                       ? ""
                       : "; the hardware's peak is " + compact_in_unit(judged.limit.peak_tflops) + " TFLOP/s in " +
                             judged.limit.peak_in));
  } else if (run.params > 0) {
    const double tflops = 6.0 * static_cast<double>(run.params) * judged.tokens_per_s / 1e12;
    text_sentence("x 6 x " + compact(static_cast<double>(run.params)) + " parameters (6N) = " + compact(tflops) +
                  " TFLOP/s");
  }
}

// What the steps add up to besides the speed.
void draw_facts(const LadderRung& rung) {
  const Run& run = rung.first;
  spacing(2);
  const auto fact = [](const std::string& text) { text_quiet_wrapped(text); };
  fact(plural(rung.summary.warmup_steps, "warm-up step") + " of " + grouped(rung.summary.steps) + " excluded.");
  if (!is_missing(run.setup_ms)) {
    fact("Setup took " + milliseconds_text(run.setup_ms) +
         (is_missing(rung.setup_pays_back_after)
              ? "."
              : "; pays off after " + grouped(std::llround(rung.setup_pays_back_after)) + " steps."));
  }
  if (run.peak_memory_bytes > 0) {
    fact("Peak memory " + bytes_text(static_cast<double>(run.peak_memory_bytes)) +
         (run.attention.empty() ? "." : "; attention: " + run.attention + "."));
  }
  if (!is_missing(rung.energy.joules_per_token)) {
    fact(compact(rung.energy.mean_power_w) + " W: " + compact(rung.energy.joules_per_token) + " J per token, " +
         compact(rung.energy.wh) + " Wh in total.");
  }
  if (rung.judged.is_under_way) return;
  const int counted = rung.judged.count.counted();
  if (is_missing(rung.judged.steps_per_s)) return;  // a flag says that it has no step times
  if (!rung.judged.why_no_interval.empty())
    return fact(in_print("No 95 % interval: " + rung.judged.why_no_interval + ".") +
                (counted > 1 ? " The points on the bar are the runs." : ""));
  fact(std::string("The whisker is the 95 % interval, with the spread ") +
       (counted > 1 ? "between these runs." : "that such runs are known for."));
  if (const std::string needed = needed_for_loss_text(rung.judged); !needed.empty()) fact(needed);
}

// The buttons beneath the text, which stays above them however little room there is.
class Footer {
 public:
  Footer(const LadderModel& model, const LadderRung& rung) : rung_(rung) {
    const Run& run = rung.first;
    labels_.emplace_back("Run details");
    below_ = model.is_over && !rung.judged.is_baseline ? model.rung(rung.judged.stands_on) : nullptr;
    if (run.source == "launched" && below_ && run.ladder) {
      lacking_ = !below_->has_finished_run ? below_ : !rung.has_finished_run ? &rung : nullptr;
      labels_.push_back(lacking_ ? "Repeat rung " + std::to_string(lacking_->judged.rung) : "Verify gain");
    } else {
      below_ = nullptr;
    }
    if (can_trace(run)) labels_.emplace_back(trace_label);
  }
  float height(float width) const { return flowing_height(labels_, width); }

  void draw(const Workspace& workspace, Commands& commands) const {
    if (quiet_button("Run details", "ladder.open")) commands.push_back(OpenRun{rung_.first.id});
    if (lacking_) {
      flow_to(labels_[1].c_str());
      const std::string why = "Rung " + std::to_string(lacking_->judged.rung) +
                              " has no finished run yet; to verify a gain both sides need one";
      if (change_button(workspace, labels_[1].c_str(), "ladder.repeat_lacking", why.c_str()))
        commands.push_back(Repeat{{lacking_->first.id}, 1});
    } else if (below_) {
      flow_to("Verify gain");
      if (change_button(workspace, "Verify gain", "ladder.real", verify_tooltip(rung_, *below_).c_str()))
        commands.push_back(verification_of(rung_));
    }
    trace_button(workspace, rung_.first, "ladder.trace", commands);
  }

 private:
  const LadderRung& rung_;
  std::vector<std::string> labels_;
  const LadderRung* below_ = nullptr;    // the other side of a verification; null: it can't be verified
  const LadderRung* lacking_ = nullptr;  // a side without a finished run
};

void draw_text(const LadderModel& model, const LadderRung& rung, int baseline) {
  const Run& run = rung.first;
  const Summary& summary = rung.summary;
  const bool is_baseline = rung.judged.rung == baseline;
  ImGui::PushTextWrapPos(0);
  const std::string number = "Rung " + std::to_string(rung.judged.rung);
  text_strong(title_of(run) == number ? number : number + ": " + title_of(run));
  ImGui::PopTextWrapPos();
  if (run.status == RunStatus::failed || run.status == RunStatus::interrupted || run.status == RunStatus::stopped) {
    const std::string status(to_string(run.status));
    toned(run.reason.starts_with(status) ? run.reason : status + (run.reason.empty() ? "" : ": " + run.reason),
          run.status == RunStatus::failed ? Tone::bad : Tone::warning);
  }
  if (!rung.under_way.empty()) {
    text_sentence(rung.under_way);
    mark("ladder.under_way." + std::to_string(rung.judged.rung));
  }
  if (summary.steps == 0) {
    text_quiet_wrapped(run.source == "launched"           ? is_over(run.status) ? "It has no steps." : "No steps yet."
                       : is_missing(summary.tokens_per_s) ? "The log has no steps for this rung, only a description."
                                                          : "The log reports this figure and has no steps behind it.");
    if (is_missing(summary.tokens_per_s)) return;
  }
  draw_verdict(model, rung);
  draw_arithmetic(rung);
  text_sentence(loss_sentence(rung, is_baseline));
  for (const Flag& flag : rung.judged.flags) {
    if (kind_of(flag.id).severity == Severity::note) continue;  // shown below, or in the column
    toned(std::string(kind_of(flag.id).title), severity_tone(flag.id));
    text_quiet_wrapped(flag_advice(flag));
  }
  if (summary.steps > 0) draw_facts(rung);  // a reported figure has none
}

}  // namespace

void draw_ladder_card(const Workspace& workspace, const LadderModel& model, const LadderRung& rung, int baseline,
                      Commands& commands) {
  const Footer footer(model, rung);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float below = footer.height(room.x) + px(2) + 2 * ImGui::GetStyle().ItemSpacing.y;
  ImGui::SetNextWindowSizeConstraints(ImVec2(0, 0), ImVec2(room.x, std::max(px(20), room.y - below)));
  ImGui::BeginChild("##text", ImVec2(room.x, 0), ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_NavFlattened);
  draw_text(model, rung, baseline);
  ImGui::EndChild();
  spacing(2);
  footer.draw(workspace, commands);
}

}  // namespace stepladder
