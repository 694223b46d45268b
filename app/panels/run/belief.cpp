// Draws the Run view's side: flags with their arithmetic, how the steps were timed, hardware, and the parts of a step.
// It judges the run alone; comparisons are in Ladder and Compare.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/run/parts.h"
#include "app/text/format.h"
#include "storage/analysis/plausibility.h"

namespace stepladder {
namespace {

// The parts of a step as one bar.
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
  text_quiet("Step breakdown");
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
    same_line(6);
    std::snprintf(text.data(), text.size(), "%s  %s, %.0f %%", part.name, milliseconds_text(part.ms).c_str(),
                  100 * part.ms / whole);
    text_quiet(text.data());
  }
  if (whole > sum * 1.005) {
    std::snprintf(text.data(), text.size(), "other  %s, %.0f %%", milliseconds_text(whole - sum).c_str(),
                  100 * (whole - sum) / whole);
    colour_square(palette().line);
    same_line(6);
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
  return "Timing sync unknown: the import doesn't say how the clock was read.";
}

}  // namespace

void draw_run_belief(const Workspace& workspace, const RunEntry& shown, const RunDetail* detail) {
  const Run& run = shown.run;
  const Summary& summary = shown.summary;
  text_strong("Plausible?");
  if (!run.reason.empty()) text_sentence(run.reason, run.status == RunStatus::failed ? Tone::bad : Tone::warning);
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
    draw_parts(detail->parts, summary.dt_ms_median);
  }
}

}  // namespace stepladder
