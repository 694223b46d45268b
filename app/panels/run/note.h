// What its user says of a run: tags and a note. Kept when a field is left, by Escape too, or when three seconds go by
// without a letter, or when another view or no window is shown: what was typed is never thrown away. UI thread.
#pragma once

#include <string>

#include "app/desktop/commands.h"
#include "app/desktop/workspace.h"

namespace stepladder {

class RunNote {
 public:
  // Another run's; what is still to be kept of the one before is.
  void show(const RunEntry& run, Commands& commands);
  void draw(const RunEntry& shown, Commands& commands);
  void keep(Commands& commands);  // where something differs from what is known to be kept

 private:
  void take(const Curation& curation);

  RunId run_ = 0;
  std::string name_;
  Curation kept_;
  std::string tags_;  // as typed, as is the note
  std::string note_;
  bool is_typing_ = false;
  double typed_at_ = 0;  // ImGui's clock
};

}  // namespace stepladder
