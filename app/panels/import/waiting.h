// The Import view without runs to show: a place to drop files, or the progress of reading. UI thread.
#pragma once

#include <string>

#include "app/desktop/command.h"
#include "app/desktop/models/import_preview.h"
#include "app/desktop/workspace.h"

namespace stepladder {

std::string source_words(const ImportQuestion& asked);  // "runs/a.log and 3 more"

void draw_nothing(const std::string& last_path, Commands& commands);
void draw_reading(const ImportPreview& import, Commands& commands);

}  // namespace stepladder
