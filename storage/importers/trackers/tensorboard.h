// Folders of TensorBoard's event files: each is one run. (A single file goes through the list of importers.)
#pragma once

#include <filesystem>
#include <vector>

#include "storage/importers/importer.h"

namespace stepladder {

// The event files that lie directly in `folder`, oldest first; empty where there are none.
std::vector<std::filesystem::path> event_files_in(const std::filesystem::path& folder);

// Reads them as one run: a program that was started again writes another file beside the first. A file that cannot be
// read is a note. Throws ImportError where none can.
void read_event_folder(const std::filesystem::path& folder, ImportSink& sink);

// The folders in and below `folder` that hold event files; empty where anything else lies among them, so that no log is
// passed over.
std::vector<std::filesystem::path> event_folders_in(const std::filesystem::path& folder);

// Reads them as a ladder, in the order of their names. A run that cannot be read is a note. Throws ImportError where
// none can.
void read_event_folders(const std::filesystem::path& folder, ImportSink& sink);

}  // namespace stepladder
