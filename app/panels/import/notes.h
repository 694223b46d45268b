// The Import view's notes: everything that was skipped, assumed or inferred. UI thread.
#pragma once

#include <string>
#include <vector>

#include "app/desktop/command.h"
#include "app/desktop/models/import_preview.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct ImportNotes {
  std::vector<std::string> lines;
  std::vector<float> tops;  // as wrapped at `width`, with the end of the last
  float width = 0;
};

ImportNotes notes_of(const ImportPreview& import);
void draw_notes(ImportNotes& notes, const ImportPreview& import, Commands& commands);

}  // namespace stepladder
