#include "app/desktop/machines/ssh_popup.h"

#include <imgui.h>
#include <string.h>

#include "app/desktop/frames/frames.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"

namespace stepladder {
namespace {

constexpr const char* title = "##ssh";

}  // namespace

std::optional<SshAnswer> SshPopup::draw(const SshQuestion* question) {
  if (question && asked_ != question->id) {
    asked_ = question->id;
    typed_.fill('\0');
    ImGui::OpenPopup(title);
  }
  if (!question) asked_.clear();
  std::optional<SshAnswer> answer;
  const bool is_open = begin_dialog(title);
  if (is_open) {
    if (!question) {
      ImGui::CloseCurrentPopup();
    } else {
      text_strong("ssh asks");
      text_sentence(question->text);
      bool is_given = false;
      if (!question->is_notice) {
        if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
        ImGui::SetNextItemWidth(-1);
        is_given =
            ImGui::InputText("##answer", typed_.data(), typed_.size(),
                             ImGuiInputTextFlags_EnterReturnsTrue |
                                 (question->is_secret ? ImGuiInputTextFlags_Password : ImGuiInputTextFlags_None));
        mark("ssh.answer");
        if (question->is_secret) text_quiet("Stepladder passes it on to ssh and keeps nothing.");
        spacing(6);
        is_given = primary_button("Answer") || is_given;
        mark("ssh.give");
        same_line(10);
      }
      const bool is_refused = quiet_button("Cancel") || ImGui::IsKeyPressed(ImGuiKey_Escape);
      mark("ssh.cancel");
      if (is_given) answer = SshAnswer{question->id, typed_.data()};
      if (!is_given && is_refused) answer = SshAnswer{question->id, std::nullopt};
      if (answer) {
        ::explicit_bzero(typed_.data(), typed_.size());
        ImGui::CloseCurrentPopup();
      }
    }
  }
  end_dialog(is_open);
  return answer;
}

}  // namespace stepladder
