#include "app/desktop/run_widgets.h"

#include <imgui.h>

#include <vector>

#include "app/desktop/fields.h"
#include "app/desktop/theme.h"
#include "app/text/verdict_text.h"

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
    case RunStatus::reported:
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
    case LossVerdict::inconclusive:
      return pill("inconclusive", Tone::neutral);
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
  if (!ImGui::BeginCombo(id, combo_text(words, width).c_str())) return picked;
  bool take_first = false;
  const std::string typed = list_search("Search runs", workspace.runs().size(), &take_first);
  std::vector<const RunEntry*> found;  // newest first
  for (auto entry = workspace.runs().rbegin(); entry != workspace.runs().rend(); ++entry)
    if (holds(entry->run.name, typed)) found.push_back(&*entry);
  if (found.empty()) text_quiet(workspace.runs().empty() ? "No runs yet" : "No matches");
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(found.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const Run& run = found[static_cast<std::size_t>(i)]->run;
      if (ImGui::Selectable((run.name + "##" + std::to_string(run.id)).c_str(), run.id == chosen)) picked = run.id;
    }
  }
  if (take_first && !found.empty()) {
    picked = found.front()->run.id;
    ImGui::CloseCurrentPopup();
  }
  ImGui::EndCombo();
  return picked;
}

}  // namespace stepladder
