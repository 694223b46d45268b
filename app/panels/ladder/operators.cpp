#include <algorithm>
#include <string>
#include <vector>

#include "app/desktop/operator_bars.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/ladder/parts.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {
namespace {

// The profile of the run that stands for the rung, beside that run's step, as everywhere else; null: it has none.
const FittedProfile* profile_of(const Workspace& workspace, const LadderRung* rung) {
  return rung ? workspace.profile(rung->first.id) : nullptr;
}

// "rung 2, repeat 3"
std::string name_of(const LadderRung& rung) {
  return "rung " + std::to_string(rung.judged.rung) +
         (rung.judged.count.all > 1 ? ", repeat " + std::to_string(rung.first.repeat + 1) : "");
}

// The previous rung in the ladder; null for the first.
const LadderRung* before(const LadderModel& model, int selected) {
  const auto at =
      std::ranges::find_if(model.rungs, [&](const LadderRung& rung) { return rung.judged.rung == selected; });
  return at == model.rungs.begin() || at == model.rungs.end() ? nullptr : &*(at - 1);
}

}  // namespace

bool has_operators(const LadderModel& model, const Workspace& workspace) {
  return std::ranges::any_of(model.losses,
                             [&](const LossCurve& curve) { return workspace.profile(curve.run) != nullptr; });
}

void draw_times_switch(bool& shows_operators) {
  static const std::vector<std::string> words{"operators", "step times"};
  int chosen = shows_operators ? 0 : 1;
  ImGui::PushFont(fonts().regular, small_size);
  if (choice("##times", "", chosen, words, px(112))) shows_operators = chosen == 0;
  ImGui::PopFont();
  mark("ladder.times");
}

void draw_ladder_operators(const LadderModel& model, const Workspace& workspace, int selected, ImVec2 size,
                           bool& shows_operators) {
  begin_card("##operators", size, true);
  const ImVec2 corner = ImGui::GetCursorPos();
  const float right = corner.x + ImGui::GetContentRegionAvail().x;
  const LadderRung* rung_before = before(model, selected);
  const LadderRung* rung = model.rung(selected);
  const FittedProfile* shown = profile_of(workspace, rung);
  const FittedProfile* held = profile_of(workspace, rung_before);
  text_strong("Step breakdown");
  ImGui::SetCursorPos(ImVec2(right - px(112), corner.y - px(5)));
  draw_times_switch(shows_operators);
  ImGui::SetCursorPos(ImVec2(corner.x, corner.y + px(22)));
  if (!shown) {
    text_quiet_wrapped("No profile of this rung: " + (rung ? why_no_profile(rung->first) : "") + ".");
  } else {
    const bool compares = held && held->is_comparable && shown->is_comparable;
    text_quiet_wrapped(capitalised(name_of(*rung)) + (compares ? "; grey: " + name_of(*rung_before) : "") + ".");
    if (const std::string text = fit_text(*shown); !text.empty()) text_quiet_wrapped(text);
    const bool is_clear =
        rung->judged.over_previous.is(Verdict::faster) || rung->judged.over_previous.is(Verdict::slower);
    draw_operator_bars(*shown, rung_colour(model.colour_of(selected)), compares ? held : nullptr, is_clear);
  }
  end_card();
  mark("ladder.operators");
}

}  // namespace stepladder
