// Reads folders of TensorBoard's event files; each is one run. (An importer reads single files.)
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "storage/importers/growing_source.h"
#include "storage/importers/importer.h"

namespace stepladder {

bool is_event_file_name(const std::filesystem::path& file);

// The event files directly in `folder`, oldest first; empty if there are none.
std::vector<std::filesystem::path> event_files_in(const std::filesystem::path& folder);

// Reads them as one run: a restarted program writes another file beside the first. A file that can't be read becomes a
// note. Throws ImportError if none can be read.
void read_event_folder(const std::filesystem::path& folder, ImportSink& sink);

// The folders in and below `folder` that hold event files; empty if they hold any other file too, so that no log is
// skipped.
std::vector<std::filesystem::path> event_folders_in(const std::filesystem::path& folder);

// Reads them as a ladder, in the order of their names. A run that can't be read becomes a note. Throws ImportError if
// none can be read.
void read_event_folders(const std::filesystem::path& folder, ImportSink& sink);

// The same while they grow: one run each.
// `since` (unix seconds): without the files that were last written before.
std::unique_ptr<GrowingSource> growing_event_folder(const std::filesystem::path& folder, double since = 0);
std::unique_ptr<GrowingSource> growing_event_file(const std::filesystem::path& file);

}  // namespace stepladder
