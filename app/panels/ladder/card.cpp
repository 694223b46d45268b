#include "app/panels/ladder/card.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "app/cli/report.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"

namespace stepladder {
namespace {

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
    const SpeedUp& sure = rung.sum.verdict;
    const std::string verdict =
        sure.verdict == Verdict::cannot_tell ? "could be noise" : std::string(to_string(sure.verdict));
    text_sentence(factor_text(rung.sum.speedup) + " over the baseline" +
                  (sure.ci95.known() ? ", " + verdict + " (95 %: " + ci95_text(sure.ci95) + ")" : ""));
  }
}

}  // namespace

void draw_ladder_card(const LadderModel& model, const LadderRung& rung, int baseline, Commands& commands) {
  const Run& run = rung.first;
  const Summary& summary = rung.summary;
  const bool is_first = &rung == &model.rungs.front();
  const bool is_baseline = rung.sum.rung == baseline;
  const auto repeats = std::count_if(model.losses.begin(), model.losses.end(),
                                     [&](const LossCurve& curve) { return curve.rung == rung.sum.rung; });
  ImGui::PushTextWrapPos(0);
  const std::string number = "Rung " + std::to_string(rung.sum.rung);
  text_strong(title_of(run) == number ? number : number + ": " + title_of(run));
  ImGui::PopTextWrapPos();
  if (run.status == RunStatus::failed || run.status == RunStatus::interrupted || run.status == RunStatus::stopped) {
    const std::string status(to_string(run.status));
    toned(run.reason.starts_with(status) ? run.reason : status + (run.reason.empty() ? "" : ": " + run.reason),
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
  if (run.source == "launched" && model.is_over && !is_baseline && run.ladder) {
    ImGui::SameLine(0, px(8));
    if (quiet_button("Is it real?")) commands.push_back(ConfirmSpeedup{*run.ladder, baseline, rung.sum.rung});
    mark("ladder.real");
    ImGui::SetItemTooltip("Repeats it and the baseline in turns until the factor is clear, at most six times.");
  }
}

}  // namespace stepladder
