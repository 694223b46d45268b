// Reads MLflow's folder of plain files. (The importer `mlflow` reads its database.)
#pragma once

#include <filesystem>
#include <memory>

#include "storage/importers/growing_source.h"
#include "storage/importers/importer.h"

namespace stepladder {

// Whether `folder` is a store ("mlruns") or one experiment of it. Looks two levels deep.
bool is_mlflow_folder(const std::filesystem::path& folder);

// Reads every experiment; one with several runs is a ladder. Throws ImportError if there is no experiment.
void read_mlflow_folder(const std::filesystem::path& folder, ImportSink& sink);

// Runs while they grow: one run's folder, and those of a database (null if the file isn't MLflow's).
bool is_mlflow_run_folder(const std::filesystem::path& folder);
std::unique_ptr<GrowingSource> growing_mlflow_folder(const std::filesystem::path& run_folder);
std::shared_ptr<GrowingDatabase> growing_mlflow_database(const std::filesystem::path& file);

}  // namespace stepladder
