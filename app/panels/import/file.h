// The Import view's popup for one file of the preview: its role, its rung's name, its place and its
// tokens per step. UI thread.
#pragma once

#include <array>
#include <string>

#include "app/desktop/command.h"
#include "app/desktop/fields.h"
#include "app/desktop/models/import_preview.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct ImportFile {
  std::string path;  // Run::source_path
  std::array<char, 256> name{};
  NumberField tokens;
  bool opens = false;  // in the next frame

  void open(const ImportPreview& import, std::size_t run);
};

// A change reads the source again.
void draw_import_file(ImportFile& file, const ImportPreview& import, Commands& commands);

}  // namespace stepladder
