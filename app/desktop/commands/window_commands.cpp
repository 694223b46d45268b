#include "app/desktop/commands/window_commands.h"

#include <imgui.h>
#include <imgui_internal.h>  // ClearIniSettings

#include <iterator>
#include <utility>
#include <vector>

#include "app/desktop/actions.h"
#include "app/desktop/commands/record_commands.h"
#include "app/desktop/desktop_state.h"
#include "app/desktop/panel_events.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/desktop/theme.h"

namespace stepladder {

void commands::execute(DesktopState& desktop, const ShowPanel& panel) {
  panel.beside ? desktop.panels.show_beside(panel.id) : desktop.panels.show(panel.id);
}

void commands::execute(DesktopState& desktop, const ShowPalette&) {
  std::vector<Action> actions = window_actions(desktop.panels.all(), desktop.workspace);
  std::vector<Action> places = places_to_go(desktop.workspace);
  actions.insert(actions.end(), std::make_move_iterator(places.begin()), std::make_move_iterator(places.end()));
  desktop.palette.open(std::move(actions));
}

void commands::execute(DesktopState& desktop, const SetTheme& choice) {
  desktop.theme.choose(choice.theme);
}

void commands::execute(DesktopState& desktop, const ToggleTheme&) {
  desktop.theme.choose(theme_is_dark() ? ThemeChoice::light : ThemeChoice::dark);
}

void commands::execute(DesktopState& desktop, const ToggleLineStyles&) {
  desktop.workspace.line_styles = !desktop.workspace.line_styles;
}

void commands::execute(DesktopState& desktop, const ToggleWaterfall&) {
  desktop.panels.send("ladder", {WaterfallToggled{}});
  if (!desktop.panels.is_open("ladder")) desktop.panels.show("ladder");
}

void commands::execute(DesktopState& desktop, const LeaveForRescue&) {
  desktop.leaves_for_rescue = true;
}

void commands::execute(DesktopState& desktop, const FoldSideBar&) {
  desktop.settings.side_bar_folded = !desktop.settings.side_bar_folded;
}

void commands::execute(DesktopState& desktop, const ChangeScale& change) {
  desktop.theme.scale_by(0.1f * static_cast<float>(change.direction));
}

void commands::execute(DesktopState& desktop, const ResetLayout&) {
  desktop.panels.show_all({desktop.panels.open().front()});
  desktop.panels.lay_out_again();
  ImGui::ClearIniSettings();
  desktop.theme.scale_by(0);
  desktop.messages.notice("Layout reset");
}

void commands::execute(DesktopState& desktop, const ResetPanel& asked) {
  desktop.panels.reset(asked.id);
}

void commands::execute(DesktopState& desktop, const Reload&) {
  desktop.workspace.load(desktop.store);
  reload_traces(desktop);
}

void commands::execute(DesktopState& desktop, const DismissMessage& dismiss) {
  desktop.messages.dismiss(dismiss.index);
}

void commands::execute(DesktopState& desktop, const JudgeRecord& judge) {
  desktop.records.ask(judge.question);
}

}  // namespace stepladder
