// A run of `stepladder try` on its way from a log into the project.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "app/record/log_figure.h"
#include "storage/database/run_store.h"

namespace stepladder {

// Stores a log with the end of its output, and calls `with` for rows that belong to it, all in one transaction. `run`
// has what the log doesn't say: name, ladder, rung, status, environment. A printed figure that is no metric of it
// becomes one.
RunId store_logged_run(RunStore& store, LoggedRun logged, const Run& run, const std::filesystem::path& log,
                       const std::map<std::string, double>& printed, const std::function<void(RunId)>& with);

}  // namespace stepladder
