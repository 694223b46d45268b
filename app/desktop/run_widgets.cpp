#include "app/desktop/run_widgets.h"

#include <imgui.h>

#include "app/desktop/theme.h"
#include "app/verdict_text.h"

namespace stepladder {

Tone status_tone(RunStatus status) {
  switch (status) {
    case RunStatus::finished:
      return Tone::good;
    case RunStatus::failed:
      return Tone::bad;
    case RunStatus::running:
      return Tone::accent;
    case RunStatus::queued:
      return Tone::neutral;
    default:
      return Tone::warning;
  }
}

void loss_pill(const LossParity& loss) {
  switch (loss.verdict) {
    case LossVerdict::same:
      return pill("= same", Tone::good);
    case LossVerdict::better:
      return pill(loss_text(loss, false), Tone::accent);
    case LossVerdict::worse:
      return pill(loss_text(loss, false), Tone::warning);
    case LossVerdict::diverged:
      return pill("diverged", Tone::bad);
    case LossVerdict::not_comparable:
      return pill("not comparable", Tone::neutral);
  }
}

Tone severity_tone(FlagId id) {
  switch (kind_of(id).severity) {
    case Severity::grave:
      return Tone::bad;
    case Severity::warning:
      return Tone::warning;
    case Severity::note:
      break;
  }
  return Tone::neutral;
}

std::string flag_advice(const Flag& flag) {
  if (!flag.remedy) return flag.why;
  switch (*flag.remedy) {
    case Remedy::give_params:
      return flag.why + " Import it again with the number of parameters.";
    case Remedy::probe_again:
      break;
  }
  return flag.why + " Measure the hardware's peak again while nothing else runs.";
}

std::optional<RunId> run_combo(const char* id, const std::string& words, const Workspace& workspace, RunId chosen,
                               float width) {
  std::optional<RunId> picked;
  ImGui::SetNextItemWidth(width);
  ImGui::SetNextWindowSizeConstraints(ImVec2(px(380), 0), ImVec2(px(640), px(420)));
  if (!ImGui::BeginCombo(id, words.c_str())) return picked;
  const auto count = static_cast<int>(workspace.runs().size());
  ImGuiListClipper clipper;
  clipper.Begin(count);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const RunEntry& entry = workspace.runs()[static_cast<std::size_t>(count - 1 - i)];
      const std::string item = entry.run.name + "##" + std::to_string(entry.run.id);
      if (ImGui::Selectable(item.c_str(), entry.run.id == chosen)) picked = entry.run.id;
    }
  }
  ImGui::EndCombo();
  return picked;
}

}  // namespace stepladder
