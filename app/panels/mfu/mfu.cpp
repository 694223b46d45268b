// MFU: the share of the device's peak that a model's arithmetic used, by every convention; the project's runs next to
// MosaicML's published ones; and the roofline, which shows the attainable throughput.
#include <imgui.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "app/desktop/panel.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/mfu/parts.h"

namespace stepladder {
namespace {

struct State {
  MfuConvention convention = MfuConvention::six_n;  // the lowest, as everywhere else in the program
  bool is_filled = false;
  RunId seen_run = 0;  // the current one: another one fills the form, unless the user has typed into it
  MfuForm form;

  // Derived again when the runs or the convention have changed.
  const RunEntry* seen_runs = nullptr;
  std::size_t seen_count = 0;
  std::int64_t seen_steps = -1;
  MfuConvention seen_convention = MfuConvention::six_n;
  MfuTable table;
  Roofline roofline;
};

void derive(State& state, const Workspace& workspace) {
  std::int64_t steps = 0;
  for (const RunEntry& entry : workspace.runs()) steps += entry.summary.steps;
  const RunEntry* runs = workspace.runs().data();
  if (runs == state.seen_runs && workspace.runs().size() == state.seen_count && steps == state.seen_steps &&
      state.convention == state.seen_convention && state.table.seen_imported == workspace.published_mfu)
    return;
  state.seen_runs = runs;
  state.seen_count = workspace.runs().size();
  state.seen_steps = steps;
  state.seen_convention = state.convention;
  derive_rows(state.table, workspace, state.convention);
  state.roofline = roofline_of(workspace.runs(), state.convention, workspace.hardware);
}

void draw_head(State& state) {
  const float width = px(236);
  const float top = ImGui::GetCursorPosY();
  const float right = ImGui::GetContentRegionMax().x;
  ImGui::SetCursorPosX(right - width);
  ImGui::SetNextItemWidth(width);
  if (ImGui::BeginCombo("##convention", ("Convention: " + std::string(to_string(state.convention))).c_str())) {
    for (const MfuConvention convention : all_conventions) {
      const std::string words = std::string(to_string(convention)) + ":  " + std::string(formula_of(convention));
      if (ImGui::Selectable(words.c_str(), convention == state.convention)) state.convention = convention;
    }
    ImGui::EndCombo();
  }
  mark("mfu.convention");
  ImGui::SetCursorPosY(top);
  text_title("MFU");
  const std::string answer = mfu_answer(state.table);
  const char* what =
      "Share of the hardware's peak FLOP/s that the model used; conventions differ by up to 15 % for the same run";
  const float room = right - width - ImGui::GetCursorPosX() - px(16);
  if (answer.empty()) return text_cut(what, room, palette().quiet, fonts().regular, small_size);
  text_cut(answer, room, palette().text, fonts().semibold, text_size);
  mark("mfu.answer_of_all");
  wrapped_tooltip(
      answer + "\nA run without throughput, parameters, or a device whose peak is known has no share.\n\n" + what + ".",
      440);
}

template <class Draw>
void card(const char* id, float width, float height, bool scrolls, Draw draw) {
  begin_card(id, ImVec2(width, height), scrolls);
  draw();
  end_card();
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  const RunEntry* current = workspace.current_run();
  const RunId now = current ? current->run.id : 0;
  const bool is_other = std::exchange(state.seen_run, now) != now;
  if (!std::exchange(state.is_filled, true))
    state.form = first_form(workspace);
  else if (is_other && current && state.form.run != 0)
    fill_from_run(state.form, *current, workspace.hardware);
  // Its hardware may have been measured meanwhile.
  if (const RunEntry* of_form = workspace.find(state.form.run);
      of_form && !state.form.unknown_hardware.empty() && peak_of(of_form->run, workspace.hardware).hardware)
    fill_from_run(state.form, *of_form, workspace.hardware);
  derive(state, workspace);
  draw_head(state);
  gap(18);
  const auto calculator = [&] { draw_calculator(state.form, workspace); };
  const auto answer = [&] {
    const RunId run = state.form.run;
    if (run != 0 && !workspace.detail(run)) commands.data.details.push_back(run);
    draw_answer(state.form, state.convention,
                {.published_range = published_range(state.table),
                 .bound = bound_text(state.roofline, state.form, workspace.hardware),
                 .profile = workspace.profile(run)},
                workspace, commands);
  };
  const auto table = [&] { draw_mfu_table(state.table, state.form, state.convention, workspace); };
  const auto roofline = [&] { draw_roofline(state.roofline, state.form, state.convention, workspace.hardware); };
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float space = px(14);
  const float upper = px(336);
  // A window too small for all four stacks them and scrolls.
  if (room.x < px(860) || room.y < px(500)) {
    card("##calculator", 0, upper, false, calculator);
    gap(14);
    card("##answer", 0, upper, true, answer);
    gap(14);
    card("##table", 0, px(320), false, table);
    gap(14);
    card("##roofline", 0, px(320), false, roofline);
    return;
  }
  card("##calculator", std::clamp(room.x * 0.36f, px(396), px(520)), upper, false, calculator);
  ImGui::SameLine(0, space);
  card("##answer", 0, upper, true, answer);
  gap(14);
  const float rest = ImGui::GetContentRegionAvail().y;
  card("##table", (room.x - space) * 0.57f, rest, false, table);
  ImGui::SameLine(0, space);
  card("##roofline", 0, rest, false, roofline);
}

}  // namespace

Panel panels::mfu() {
  const auto state = std::make_shared<State>();
  return {.id = "mfu",
          .title = "MFU",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .remember = [state] { return std::string(to_string(state->convention)); },
          .recall =
              [state](const std::string& text) {
                for (const MfuConvention convention : all_conventions) {
                  if (text == to_string(convention)) state->convention = convention;
                }
              },
          .least_width = 560,
          .least_height = 0};
}

}  // namespace stepladder
