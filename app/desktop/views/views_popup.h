// The list of saved views, with a field that saves the window's present one by name. UI thread, inside a frame.
#pragma once

#include <array>
#include <string>

#include "app/desktop/command.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct ViewsPopup {
  const char* panel = "";            // whose list it is
  std::array<char, 128> name{};      // of the view to be saved
  std::array<char, 128> new_name{};  // of the one that is being renamed
  std::string renaming;              // empty: none
  bool begins_renaming = false;

  // A button "Views", and the list that it opens. `anchor` names the button for tests, before "views".
  void draw_button(const char* anchor, const Workspace& workspace, Commands& commands);
  void draw_list(const Workspace& workspace, Commands& commands);  // after another button that opens "##views"

 private:
  void draw_view(const std::string& view, const Workspace& workspace, Commands& commands);
};

}  // namespace stepladder
