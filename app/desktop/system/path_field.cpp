#include "app/desktop/system/path_field.h"

#include <imgui.h>

#include <algorithm>
#include <cstring>

#include "app/desktop/fields.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"

namespace stepladder {

std::string PathField::path() const {
  return plain_path(text_.data());
}

void PathField::show(const std::string& path) {
  const std::size_t length = std::min(path.size(), text_.size() - 1);
  std::memcpy(text_.data(), path.data(), length);
  text_[length] = 0;
}

bool PathField::draw(const char* id, const char* hint, float width, const std::string& name, DataRequests& requests) {
  bool has_new_path = false;
  if (dialog_ && dialog_->is_active()) requests.next_frame = true;
  if (auto answer = dialog_ ? dialog_->take() : std::nullopt) {
    problem_ = answer->problem;
    if (!answer->paths.empty()) {
      show(answer->paths.front());
      chosen_ = std::move(answer->paths);
      has_new_path = true;
    }
  }
  ImGui::PushID(id);
  const float button = button_width("Browse...");
  ImGui::SetNextItemWidth(width - button - px(8));
  const bool entered = ImGui::InputTextWithHint("##path", hint, text_.data(), text_.size(),
                                                ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  if (entered) {
    problem_.clear();
    chosen_ = {path()};
    has_new_path = true;
  }
  mark(name);
  same_line(8);
  const bool is_open = dialog_ && dialog_->is_active();
  ImGui::BeginDisabled(is_open);
  if (ImGui::Button("Browse...", ImVec2(button, 0))) {
    if (!dialog_) dialog_ = std::make_shared<FileDialog>();
    open_dialog(*dialog_, question_);
    problem_.clear();
    requests.next_frame = true;
  }
  ImGui::EndDisabled();
  mark(name + ".browse");
  if (!problem_.empty()) {
    text_toned_wrapped(problem_, Tone::warning);
    mark(name + ".problem");
  }
  ImGui::PopID();
  return has_new_path;
}

}  // namespace stepladder
