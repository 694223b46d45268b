// Draws the Run view's side: flags with their arithmetic, how the steps were timed, hardware, and the parts of a step.
// It judges the run alone; comparisons are in Ladder and Compare.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/run/parts.h"
#include "app/text/format.h"
#include "storage/analysis/plausibility.h"
#include "storage/analysis/step_profile.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// The parts of the median step as one bar.
void draw_parts(const StepBreakdown& step) {
  if (!step.known()) return;
  struct Part {
    std::string_view name;
    double ms;
    ImVec4 colour;
  };
  std::vector<Part> parts;
  constexpr std::array colours{5, 0, 2, 3, 1};  // as all_step_parts
  for (std::size_t i = 0; i < all_step_parts.size(); ++i) {
    const auto& [name, ms] = all_step_parts[i];
    if (!is_missing(step.parts.*ms)) parts.push_back({in_words(name), step.parts.*ms, rung_colour(colours[i])});
  }
  if (step.other_ms >= 0.005 * step.step_ms) parts.push_back({"other", step.other_ms, palette().quiet});
  text_quiet("Step breakdown");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float height = px(14);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float x = at.x;
  for (const Part& part : parts) {
    const float end = x + width * static_cast<float>(part.ms / step.step_ms);
    draw->AddRectFilled(ImVec2(x, at.y), ImVec2(std::max(x + 1, end - px(1)), at.y + height), u32(part.colour), px(2));
    x = end;
  }
  ImGui::Dummy(ImVec2(width, height));
  for (const Part& part : parts) {
    colour_square(part.colour);
    same_line(6);
    text_quiet(fmt::format("{}  {} ms, {}", part.name, ms_figure(part.ms, step.step_ms),
                           percent_text(part.ms / step.step_ms)));
  }
  text_quiet("Total  " + milliseconds_text(step.step_ms) + ", the median step");
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
  return "Timing sync unknown: the import doesn't say how the clock was read.";
}

}  // namespace

void draw_run_belief(const Workspace& workspace, const RunEntry& shown, const RunDetail* detail) {
  const Run& run = shown.run;
  const Summary& summary = shown.summary;
  text_strong("Plausible?");
  RepeatCounts repeats;
  for (const RunEntry& other : workspace.runs())
    if (other.run.ladder == run.ladder) repeats.add(other.run);
  const Plausibility plausibility =
      plausibility_of(run, summary, repeats.of(run), workspace.hardware, repeats.baseline_places(run));
  if (plausibility.trust != Trust::trusted)
    text_toned("Throughput is " + std::string(to_string(plausibility.trust)),
               plausibility.trust == Trust::impossible ? Tone::bad : Tone::warning);
  for (const Flag& flag : plausibility.flags) {
    text_toned(std::string(kind_of(flag.id).title), severity_tone(flag.id));
    text_sentence(flag_advice(flag));
  }
  if (plausibility.flags.empty() && summary.steps > 0) text_sentence("No problems found.", Tone::good);
  spacing(2);
  text_sentence(is_missing(summary.dt_ms_median) && is_over(run.status) ? "No step has a time." : timing_sentence(run));
  if (run.tokens_per_step > 0 && !is_missing(summary.dt_ms_median)) {
    text_sentence(grouped(run.tokens_per_step) + " tokens in " + milliseconds_text(summary.dt_ms_median) + " = " +
                  tokens_per_s_text(summary.tokens_per_s) + " tokens/s");
  }
  const auto say = [](const std::string& name, const std::string& value) {
    if (!value.empty()) text_quiet_wrapped(name + ": " + value);
  };
  spacing(2);
  say("Hardware", hardware_text(run));
  say("Precision", run.precision);
  say("Attention", run.attention);
  say("Parameters", run.params > 0 ? grouped(run.params) : "");
  say("Peak memory", run.peak_memory_bytes > 0 ? bytes_text(static_cast<double>(run.peak_memory_bytes)) : "");
  say("Setup", is_missing(run.setup_ms) ? "" : milliseconds_text(run.setup_ms));
  if (summary.spikes > 0) {
    say("Slow steps", grouped(summary.spikes) +
                          (summary.spike_period > 0
                               ? ", every " + grouped(summary.spike_period) + " steps (validation or checkpoints)"
                               : "") +
                          (summary.pauses > 0 ? ", " + grouped(summary.pauses) + " pauses" : ""));
  }
  if (summary.watched_steps > 0)
    say("Disturbed steps",
        grouped(summary.disturbed_steps) + " of " + grouped(summary.watched_steps) + ", by other programs");
  if (detail) {
    spacing(4);
    draw_parts(breakdown_of(detail->parts, summary.dt_ms_median));
  }
}

}  // namespace stepladder
