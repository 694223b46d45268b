// Other trackers' stores: recognised as folders (check this before reading a folder file by file), read whole, and
// followed while they grow. (Importers read single files and databases.)
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "storage/importers/growing_source.h"
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

// --- W&B's offline runs

// The .wandb files of `folder` and of the run folders in it, oldest first; empty if there are none.
std::vector<std::filesystem::path> wandb_files_in(const std::filesystem::path& folder);

// Reads them all; the runs of one project and group are a ladder. Files with the same run id are one run that was
// resumed. A file that can't be read becomes a note. Throws ImportError where none can be read.
void read_wandb_folder(const std::filesystem::path& folder, const ImportOptions& options, ImportSink& sink);

// One of them while it grows. `step_key` as in ImportOptions.
std::unique_ptr<GrowingSource> growing_wandb_file(const std::filesystem::path& file, const std::string& step_key = {});

// --- MLflow's folder of plain files, and its database

// Whether `folder` is a store ("mlruns") or one experiment of it. Looks two levels deep.
bool is_mlflow_folder(const std::filesystem::path& folder);

// Reads every experiment; one with several runs is a ladder. Throws ImportError if there is no experiment.
void read_mlflow_folder(const std::filesystem::path& folder, ImportSink& sink);

// Runs while they grow: one run's folder, and those of a database (null if the file isn't MLflow's).
bool is_mlflow_run_folder(const std::filesystem::path& folder);
std::unique_ptr<GrowingSource> growing_mlflow_folder(const std::filesystem::path& run_folder);
std::shared_ptr<GrowingDatabase> growing_mlflow_database(const std::filesystem::path& file);

// --- Trackio's databases

// The runs of a database while they grow; null if the file isn't Trackio's. `step_key` as in ImportOptions.
std::shared_ptr<GrowingDatabase> growing_trackio_database(const std::filesystem::path& file,
                                                          const std::string& step_key = {});

// --- TensorBoard's event files: a folder is one run

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
