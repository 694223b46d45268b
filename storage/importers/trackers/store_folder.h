// Recognises folders that are stores themselves; check this before reading a folder file by file.
#pragma once

#include <filesystem>
#include <string_view>

#include "storage/importers/importer.h"

namespace stepladder {

// Whether `folder` is a store: journals of stepladder.py (one run), event files (one run), a tree of only event files
// (a ladder), MLflow's "mlruns" or one of its experiments, W&B's "wandb" or one of its runs. Opens no file larger than
// a meta.yaml.
bool is_store_folder(const std::filesystem::path& folder);

// The id of the importer for single files of such a store: "mlflow"; empty if it isn't a store.
std::string_view store_format(const std::filesystem::path& folder);

// Reads the whole folder. Throws ImportError.
void read_store_folder(const std::filesystem::path& folder, const ImportOptions& options, ImportSink& sink);

}  // namespace stepladder
