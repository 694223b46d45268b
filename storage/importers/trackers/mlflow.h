// Reads MLflow's folder of plain files. (Its database has an importer.)
#pragma once

#include <filesystem>

#include "storage/importers/importer.h"

namespace stepladder {

// Whether `folder` is a store ("mlruns") or one experiment of it. Looks two levels deep.
bool is_mlflow_folder(const std::filesystem::path& folder);

// Reads every experiment, each of which with several runs is a ladder. Throws ImportError where there is none.
void read_mlflow_folder(const std::filesystem::path& folder, ImportSink& sink);

}  // namespace stepladder
