// Reads MLflow's folder of plain files. (The importer `mlflow` reads its database.)
#pragma once

#include <filesystem>

#include "storage/importers/importer.h"

namespace stepladder {

// Whether `folder` is a store ("mlruns") or one experiment of it. Looks two levels deep.
bool is_mlflow_folder(const std::filesystem::path& folder);

// Reads every experiment; one with several runs is a ladder. Throws ImportError if there is no experiment.
void read_mlflow_folder(const std::filesystem::path& folder, ImportSink& sink);

}  // namespace stepladder
