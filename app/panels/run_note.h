// What its user says of a run: tags and a note, kept when a field is left. UI thread.
#pragma once

#include <array>

#include "app/desktop/commands.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct RunNote {
  std::array<char, 256> tags{};
  std::array<char, 4096> note{};

  void show(const Curation& curation);
  void draw(const RunEntry& shown, Commands& commands);
};

}  // namespace stepladder
