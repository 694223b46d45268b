// The window's questions: what is asked before something that cannot be undone, and how the answers are drawn.
#include "app/desktop/popups/questions.h"

#include <imgui.h>
#include <string.h>

#include <utility>

#include "app/desktop/frames/frames.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr const char* adoption_title = "##adoption";
constexpr const char* closing_title = "##closing";
constexpr const char* ssh_title = "##ssh";

}  // namespace

void AdoptionPopup::open(std::string what) {
  what_ = capitalised(std::move(what));
  opens_ = true;
}

bool AdoptionPopup::draw() {
  if (std::exchange(opens_, false)) ImGui::OpenPopup(adoption_title);
  bool agrees = false;
  const bool is_open = begin_dialog(adoption_title);
  if (is_open) {
    text_strong("Adopt this run?");
    text_sentence(what_);
    text_quiet_wrapped("Adopt it only if you know where the project comes from.");
    spacing(6);
    agrees = primary_button("Adopt and train");
    mark("adoption.agree");
    same_line(10);
    const bool cancelled = quiet_button("Cancel");
    ImGui::SetItemDefaultFocus();
    mark("adoption.cancel");
    if (agrees || cancelled || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  }
  end_dialog(is_open);
  return agrees;
}

Closing ClosingPopup::draw(const std::string& what) {
  if (std::exchange(opens_, false)) ImGui::OpenPopup(closing_title);
  Closing answer = Closing::no;
  const bool is_open = begin_dialog(closing_title);
  if (is_open) {
    text_strong("Close while training?");
    text_sentence(what);
    text_quiet_wrapped(
        "In the background training goes on to the end of the queue, without a window. Start Stepladder again to "
        "watch, pause or stop it.");
    spacing(6);
    if (primary_button("Keep training in the background")) answer = Closing::in_background;
    ImGui::SetItemDefaultFocus();
    mark("closing.background");
    if (ImGui::IsWindowFocused() && !ImGui::IsWindowAppearing() && ImGui::IsKeyPressed(ImGuiKey_Enter, false) &&
        !ImGui::GetIO().NavVisible)
      answer = Closing::in_background;
    same_line(10);
    if (quiet_button("Stop after this step", "closing.stop")) answer = Closing::after_step;
    same_line(10);
    const bool cancelled = quiet_button("Cancel", "closing.cancel");
    if (answer != Closing::no || cancelled || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  }
  end_dialog(is_open);
  return answer;
}

std::optional<SshAnswer> SshPopup::draw(const SshQuestion* question) {
  if (question && asked_ != question->id) {
    asked_ = question->id;
    typed_.fill('\0');
    ImGui::OpenPopup(ssh_title);
  }
  if (!question) asked_.clear();
  std::optional<SshAnswer> answer;
  const bool is_open = begin_dialog(ssh_title);
  if (is_open) {
    if (!question) {
      ImGui::CloseCurrentPopup();
    } else {
      text_strong("ssh asks");
      text_sentence(question->text);
      bool is_given = false;
      if (!question->is_notice) {
        hold_keyboard();
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
