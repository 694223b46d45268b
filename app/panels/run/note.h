// The Run view's tags and note. They are saved when a field loses focus (by Escape too), after three seconds without a
// keystroke, and when another view is shown or the window closes, so typed text is never lost. UI thread.
#pragma once

#include <string>

#include "app/desktop/command.h"
#include "app/desktop/workspace.h"

namespace stepladder {

class RunNote {
 public:
  // Switches to another run; saves unsaved text of the previous one first.
  void show(const RunEntry& run, Commands& commands);
  void draw(const RunEntry& shown, Commands& commands);
  void keep(Commands& commands);  // saves changes

 private:
  void take(const Curation& curation);

  RunId run_ = 0;
  std::string name_;
  Curation seen_;     // in the project
  Curation kept_;     // with changes that were asked for since
  std::string tags_;  // as typed, as is the note
  std::string note_;
  bool is_typing_ = false;
  double typed_at_ = 0;  // ImGui's clock
};

}  // namespace stepladder
