// Draws the command palette (Ctrl+K) and its keyboard. Matches are scored only when the text has changed, since a
// project may have thousands of runs.
#include "app/desktop/popups/palette_popup.h"

#include <algorithm>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"

namespace stepladder {
namespace {

constexpr int rows_shown = 12;
constexpr std::size_t most_recent = 20;

float row_height() {
  return px(32);
}

// The title, its detail if it fits, and its key at the right.
void draw_row(const Action& action, ImVec2 at, float width) {
  const std::string key = key_text(action.key);
  ImGui::PushFont(fonts().regular, small_size);
  const float key_width = ImGui::CalcTextSize(key.c_str()).x;
  ImGui::GetWindowDrawList()->AddText(
      ImVec2(at.x + width - key_width - px(10), at.y + (row_height() - ImGui::GetTextLineHeight()) / 2),
      u32(palette().quiet), key.c_str());
  ImGui::PopFont();
  const ImVec2 after = ImGui::GetCursorPos();
  const float title_room = width - key_width - px(34);
  ImGui::SetCursorScreenPos(ImVec2(at.x + px(10), at.y + (row_height() - ImGui::GetTextLineHeight()) / 2));
  text_cut(action.title, title_room, palette().text, fonts().regular, text_size);
  const float title_width = ImGui::GetItemRectSize().x;
  if (!action.detail.empty() && title_room - title_width > px(60)) {
    same_line(10);
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
    text_cut(action.detail, title_room - title_width - px(10), palette().quiet, fonts().regular, small_size);
  }
  ImGui::SetCursorPos(after);
}

}  // namespace

void PalettePopup::open(std::vector<Action> actions) {
  actions_ = std::move(actions);
  typed_[0] = 0;
  is_open_ = is_new_ = true;
  match();
}

void PalettePopup::match() {
  matched_for_ = typed_.data();
  matches_ = matching_actions(actions_, matched_for_, recent_);
  selected_ = 0;
}

void PalettePopup::choose(const Action& action, Commands& commands) {
  commands.push_back(action.command);
  std::erase(recent_, action.title);
  recent_.insert(recent_.begin(), action.title);
  if (recent_.size() > most_recent) recent_.pop_back();
}

void PalettePopup::draw(Commands& commands) {
  if (!is_open_) return;
  begin_window();
  if (is_new_) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  ImGui::InputTextWithHint("##typed", "Type an action, a view, a ladder or a run", typed_.data(), typed_.size());
  mark("palette.typed");
  if (matched_for_ != typed_.data()) match();
  const bool moved = move_selection();
  std::optional<int> chosen;
  if (!matches_.empty() && (ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter)))
    chosen = selected_;
  if (const auto clicked = draw_matches(moved)) chosen = clicked;
  if (chosen) choose(actions_[matches_[static_cast<std::size_t>(*chosen)]], commands);
  const bool left = !is_new_ && !ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows);
  if (chosen || left || ImGui::IsKeyPressed(ImGuiKey_Escape)) is_open_ = false;
  is_new_ = false;
  ImGui::End();
}

void PalettePopup::begin_window() const {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(px(620), viewport->WorkSize.x - px(24));
  const float rows = row_height() * static_cast<float>(std::clamp<std::size_t>(matches_.size(), 1, rows_shown));
  ImGui::SetNextWindowPos(ImVec2(viewport->WorkPos.x + (viewport->WorkSize.x - width) / 2,
                                 viewport->WorkPos.y + std::min(px(96), viewport->WorkSize.y * 0.1f)));
  ImGui::SetNextWindowSize(ImVec2(width, std::min(px(64) + rows, viewport->WorkSize.y * 0.8f)));
  if (is_new_) ImGui::SetNextWindowFocus();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(10));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(10)));
  ImGui::Begin("##palette", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoBackground);
  // Its own ground: what is behind it is dimmed first, as behind a question.
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 low = ImGui::GetWindowPos(), high(low.x + ImGui::GetWindowSize().x, low.y + ImGui::GetWindowSize().y);
  draw->PushClipRectFullScreen();
  draw->AddRectFilled(viewport->Pos, ImVec2(viewport->Pos.x + viewport->Size.x, viewport->Pos.y + viewport->Size.y),
                      ImGui::GetColorU32(ImGuiCol_ModalWindowDimBg));
  draw->PopClipRect();
  draw->AddRectFilled(low, high, u32(palette().card), ImGui::GetStyle().WindowRounding);
  draw->AddRect(low, high, u32(palette().line), ImGui::GetStyle().WindowRounding);
  ImGui::PopStyleVar(2);
}

bool PalettePopup::move_selection() {
  const int count = static_cast<int>(matches_.size());
  if (count == 0) return false;
  const int before = selected_;
  if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) selected_ = (selected_ + 1) % count;
  if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) selected_ = (selected_ + count - 1) % count;
  return selected_ != before;
}

std::optional<int> PalettePopup::draw_matches(bool moved) {
  std::optional<int> clicked;
  ImGui::BeginChild("##found");
  if (matches_.empty()) {
    ImGui::SetCursorPos(ImVec2(px(10), px(8)));
    text_quiet("No matches. Part of the name of an action, a view, a ladder or a run finds it.");
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(matches_.size()), row_height());
  if (moved) clipper.IncludeItemByIndex(selected_);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      ImGui::PushID(i);
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const ImVec2 size(ImGui::GetContentRegionAvail().x, row_height());
      if (ImGui::InvisibleButton("##row", size)) clicked = i;
      if (i < 3) mark("palette.row." + std::to_string(i));
      if (ImGui::IsItemHovered() && (ImGui::GetIO().MouseDelta.x != 0 || ImGui::GetIO().MouseDelta.y != 0))
        selected_ = i;
      if (i == selected_) {
        ImGui::GetWindowDrawList()->AddRectFilled(at, ImVec2(at.x + size.x, at.y + size.y),
                                                  u32(palette().accent, 0.16f), px(6));
        if (moved) ImGui::SetScrollHereY();
      }
      draw_row(actions_[matches_[static_cast<std::size_t>(i)]], at, size.x);
      ImGui::PopID();
    }
  }
  ImGui::PopStyleVar();
  ImGui::Dummy(ImVec2(0, 0));
  ImGui::EndChild();
  return clicked;
}

}  // namespace stepladder
