// Reads a folder of W&B's offline runs. (An importer reads single files.)
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "storage/importers/growing_source.h"
#include "storage/importers/importer.h"

namespace stepladder {

// The .wandb files of `folder` and of the run folders in it, oldest first; empty if there are none.
std::vector<std::filesystem::path> wandb_files_in(const std::filesystem::path& folder);

// Reads them all; the runs of one project and group are a ladder. Files with the same run id are one run that was
// resumed. A file that can't be read becomes a note. Throws ImportError where none can be read.
void read_wandb_folder(const std::filesystem::path& folder, const ImportOptions& options, ImportSink& sink);

// One of them while it grows. `step_key` as in ImportOptions.
std::unique_ptr<GrowingSource> growing_wandb_file(const std::filesystem::path& file, const std::string& step_key = {});

}  // namespace stepladder
