// The import settings that the user gave for earlier files: saved with the layout and offered for the next ones.
#pragma once

#include <string>
#include <vector>

#include "app/desktop/models/import_preview.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct Correction {
  std::string folder;  // empty: pasted text
  std::string format;
  ImportOptions options;
};

struct ImportMemory {
  std::string last_path;
  std::vector<Correction> corrections;  // newest first

  std::string text() const;
  void recall(const std::string& text);
  void remember(const ImportPreview& import);
  const ImportOptions* said_last_time(const ImportPreview& import) const;  // of this folder, else of this format
};

}  // namespace stepladder
