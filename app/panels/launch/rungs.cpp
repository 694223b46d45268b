#include "app/panels/launch/rungs.h"

#include <imgui.h>

#include <functional>
#include <string>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "app/preset_ladder.h"

namespace stepladder {
namespace {

// The plan rung by rung, with the throughput measured at its source.
void draw_plan(LaunchForm& form, const Workspace& workspace) {
  text_strong("Rungs of " + form.plan_name);
  ImGui::SameLine();
  ImGui::PushFont(fonts().regular, small_size);
  if (quiet_button("Choose manually")) form.plan.clear();
  mark("launch.by_hand");
  ImGui::PopFont();
  ImGui::Dummy(ImVec2(0, px(2)));
  int rung = 0;
  int asked = 0;
  for (const PlannedRung& planned : form.plan) {
    const Stage& stage = stage_by_id(planned.stages.empty() ? "baseline" : planned.stages.front());
    const SkippedRung* skipped = workspace.launch_plan.skipped(asked++);
    const std::string reason = skipped ? skipped->reason : "";
    ImGui::PushID(&planned);
    colour_square(reason.empty() ? rung_colour(rung) : palette().line);
    ImGui::SameLine();
    ImGui::BeginGroup();
    if (reason.empty()) {
      text_strong(stage.title);
    } else {
      text_quiet(stage.title);
    }
    std::string words = stage.id;
    for (const auto& [name, value] : planned.values) words += "  " + name + " " + value;
    ImGui::SameLine();
    text_quiet(words);
    if (!is_missing(planned.seed_tokens_per_s))
      text_quiet("reference: " + tokens_per_s_text(planned.seed_tokens_per_s) + " tokens/s");
    if (!reason.empty()) text_quiet_wrapped("Unavailable: " + reason);
    ImGui::EndGroup();
    ImGui::Dummy(ImVec2(0, px(4)));
    ImGui::PopID();
    rung += reason.empty() ? 1 : 0;
  }
}

void draw_presets(LaunchForm& form, const Workspace& workspace) {
  flow_for(px(110));
  ImGui::BeginDisabled(!workspace.device);
  ImGui::SetNextItemWidth(px(110));
  if (ImGui::BeginCombo("##plan", "Presets")) {
    for (const LadderPreset& preset : ladder_presets()) {
      if (ImGui::Selectable(preset.name.c_str())) form.take_plan(preset_ladder(preset, *workspace.device));
      ImGui::SetItemTooltip("%s", preset.note.c_str());
    }
    ImGui::EndCombo();
  }
  ImGui::EndDisabled();
  mark("launch.plan");
}

void draw_choices(LaunchForm& form, const Workspace& workspace) {
  const auto choose = [&](const char* words, const std::string& id, const std::function<bool(const Stage&)>& wanted) {
    flow_to(words);
    if (quiet_button(words)) {
      for (std::size_t i = 0; i < form.rungs.size(); ++i) form.rungs[i] = wanted(all_stages()[i]);
    }
    mark("launch.rungs." + id);
  };
  ImGui::PushFont(fonts().regular, small_size);
  choose("All", "all", [](const Stage&) { return true; });
  choose("Loss-preserving", "systems", [](const Stage& stage) { return stage.kind == StageKind::systems_only; });
  choose("None", "none", [](const Stage&) { return false; });
  draw_presets(form, workspace);
  ImGui::PopFont();
}

// A stage, its effect, and why it is unavailable, if so. `colour` is null if it isn't on the ladder.
void draw_stage(const Stage& stage, const std::string& reason, const ImVec4* colour) {
  ImGui::BeginGroup();
  if (colour) {
    colour_square(*colour);
    ImGui::SameLine();
  }
  if (reason.empty()) {
    text_strong(stage.title);
  } else {
    text_quiet(stage.title);
  }
  ImGui::SameLine();
  if (reason.empty()) ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
  text_quiet(stage.id);
  text_quiet_wrapped(reason.empty() ? stage.why : "Unavailable: " + reason);
  ImGui::EndGroup();
}

}  // namespace

void draw_rungs(LaunchForm& form, const Workspace& workspace) {
  if (!form.plan.empty()) return draw_plan(form, workspace);
  text_strong("Rungs");
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
  text_quiet("cumulative");
  ImGui::SetItemTooltip("Each rung adds its stage to those of the previous rungs");
  draw_choices(form, workspace);
  ImGui::Dummy(ImVec2(0, px(2)));
  const std::vector<Stage>& stages = all_stages();
  const Recipe base = request_of(form, {}).base;
  int rung = 0;
  int asked = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    const bool is_asked = i == 0 || (form.rungs[i] && why_not(stage, base, workspace).empty());
    const SkippedRung* skipped = is_asked ? workspace.launch_plan.skipped(asked++) : nullptr;
    const std::string reason = skipped ? skipped->reason : why_not(stage, base, workspace);
    bool on = i == 0 || (form.rungs[i] && reason.empty());
    ImGui::PushID(stage.id.c_str());
    ImGui::BeginDisabled(i == 0 || !reason.empty());
    if (ImGui::Checkbox("##on", &on)) form.rungs[i] = on;
    mark("launch.rung." + stage.id);
    ImGui::EndDisabled();
    ImGui::SameLine();
    const ImVec4 colour = rung_colour(rung);
    draw_stage(stage, reason, on ? &colour : nullptr);
    rung += on ? 1 : 0;
    ImGui::Dummy(ImVec2(0, px(4)));
    ImGui::PopID();
  }
}

}  // namespace stepladder
