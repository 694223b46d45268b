// Draws messages over the views, so that nothing moves that somebody is about to click.
#include "app/desktop/popups/messages.h"

#include <imgui.h>

#include <algorithm>
#include <limits>

#include "app/desktop/commands/curation_commands.h"
#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"

namespace stepladder {
namespace {

constexpr double notice_seconds = 6;
constexpr double file_notice_seconds = 20;  // it has buttons
constexpr double error_seconds = 60, reading_seconds = 4;

}  // namespace

void Messages::show_error(const std::string& text) {
  std::erase_if(list_, [&](const Message& message) { return message.is_error && message.text == text; });
  list_.push_back({.text = text});
}

void Messages::notice(const std::string& text) {
  drop_notices();
  list_.push_back({.text = text, .is_error = false, .until = ImGui::GetTime() + notice_seconds});
}

void Messages::file_notice(const std::filesystem::path& file) {
  notice("Saved " + file.string());
  list_.back().file = file.string();
  list_.back().until = ImGui::GetTime() + file_notice_seconds;
}

void Messages::wait_notice(const std::string& text) {
  notice(text);
  list_.back().until = std::numeric_limits<double>::infinity();
}

void Messages::dismiss(std::size_t index) {
  if (index < list_.size()) list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Messages::drop_notices() {
  std::erase_if(list_, [](const Message& message) { return !message.is_error; });
}

void Messages::drop_expired(bool has_input) {
  const double now = ImGui::GetTime();
  for (Message& message : list_)
    if (message.is_error && message.seen_at < 0 && has_input) message.seen_at = now;
  std::erase_if(list_, [now](const Message& message) {
    return message.is_error ? message.seen_at >= 0 && now - message.seen_at > error_seconds : message.until < now;
  });
}

void Messages::leave_view() {
  const double now = ImGui::GetTime();
  std::erase_if(list_, [now](const Message& message) {
    return message.is_error && message.seen_at >= 0 && now - message.seen_at > reading_seconds;
  });
}

bool Messages::has_notice() const {
  return std::ranges::any_of(list_, [](const Message& message) { return !message.is_error; });
}

void Messages::draw_errors(const std::vector<std::string>& waiting, float left, Commands& commands) const {
  const bool any_error = std::ranges::any_of(list_, &Message::is_error);
  const bool any_waits = std::ranges::any_of(waiting, [](const std::string& sentence) { return !sentence.empty(); });
  if (!any_error && !any_waits) return;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(px(900), viewport->WorkSize.x - left - px(32));
  const float above_notice = px(6 + 56);
  ImGui::SetNextWindowPos(ImVec2(viewport->WorkPos.x + left + (viewport->WorkSize.x - left) / 2,
                                 viewport->WorkPos.y + viewport->WorkSize.y - above_notice),
                          ImGuiCond_Always, ImVec2(0.5f, 1));
  ImGui::SetNextWindowSizeConstraints(ImVec2(width, 0), ImVec2(width, viewport->WorkSize.y * 0.4f));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, palette().card);
  ImGui::PushStyleColor(ImGuiCol_Border, any_error ? palette().bad : palette().warning);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(8));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, px(1));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(16), px(8)));
  ImGui::Begin("##messages", nullptr,
               ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_AlwaysAutoResize |
                   ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::PopStyleVar(3);
  ImGui::PopStyleColor(2);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].empty()) continue;
    ImGui::TextWrapped("%s", waiting[i].c_str());
    mark(i == 0 ? "message.unstored" : "message.waiting");
  }
  std::size_t newest = list_.size();
  for (std::size_t i = 0; i < list_.size(); ++i) {
    if (!list_[i].is_error) continue;
    draw_error(i, commands);
    newest = i;
  }
  ImGui::End();
  const bool is_free = !ImGui::GetIO().WantTextInput &&
                       !ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  if (newest < list_.size() && is_free && ImGui::IsKeyPressed(ImGuiKey_Escape, false))
    commands.push_back(DismissMessage{newest});
}

void Messages::draw_error(std::size_t i, Commands& commands) const {
  ImGui::PushID(static_cast<int>(i));
  const float button = button_width("Dismiss");
  const float right = ImGui::GetContentRegionMax().x;
  ImGui::AlignTextToFramePadding();
  ImGui::PushTextWrapPos(right - button - px(16));
  ImGui::TextUnformatted(list_[i].text.c_str());
  ImGui::PopTextWrapPos();
  ImGui::SameLine(right - button);
  if (quiet_button("Dismiss", "message.dismiss")) commands.push_back(DismissMessage{i});
  ImGui::PopID();
}

void Messages::draw_notice(const std::string& undoable, Commands& commands) const {
  for (const Message& message : list_) {
    if (message.is_error) continue;
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    ImGui::SetNextWindowPos(
        ImVec2(viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + viewport->WorkSize.y - px(2)),
        ImGuiCond_Always, ImVec2(0.5f, 1));
    ImGui::PushStyleColor(ImGuiCol_WindowBg, palette().text);
    ImGui::PushStyleColor(ImGuiCol_Text, palette().background);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(8), px(2)));
    ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(8));
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(2)));
    ImGui::PushFont(fonts().regular, 13.5f);  // as high as a view's margin, so that it covers none of it
    ImGui::Begin("##notice", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                     ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoNav |
                     ImGuiWindowFlags_NoFocusOnAppearing);
    ImGui::PopStyleVar(2);
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(message.text.c_str());
    if (!message.file.empty()) {
      ImGui::PushStyleColor(ImGuiCol_Button, faded(palette().background, 0.16f));
      same_line(16);
      if (quiet_button("Open", "notice.open")) commands.push_back(OpenFile{message.file});
      same_line(8);
      if (quiet_button("Show in folder", "notice.folder"))
        commands.push_back(OpenFile{message.file, OpenFile::In::folder});
      ImGui::PopStyleColor();
    }
    if (message.text == undoable) {
      same_line(16);
      ImGui::PushStyleColor(ImGuiCol_Button, faded(palette().background, 0.16f));
      if (quiet_button("Undo", "notice.undo")) commands.push_back(Undo{});
      ImGui::PopStyleColor();
    }
    ImGui::End();
    ImGui::PopFont();
    ImGui::PopStyleVar();
    ImGui::PopStyleColor(2);
  }
}

}  // namespace stepladder
