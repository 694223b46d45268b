// Follows Trackio's databases. (The importer `trackio` reads one that is at rest.)
#pragma once

#include <filesystem>
#include <memory>

#include "storage/importers/growing_source.h"

namespace stepladder {

// The runs of a database while they grow; null if the file isn't Trackio's. `step_key` as in ImportOptions.
std::shared_ptr<GrowingDatabase> growing_trackio_database(const std::filesystem::path& file,
                                                          const std::string& step_key = {});

}  // namespace stepladder
