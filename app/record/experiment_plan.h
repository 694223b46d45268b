// The plan of an experiment in a folder: .state/plan.json. Such a folder may be somebody else's, so the file only shows
// the plan, without secrets, and names it. The plan that is run is in this user's order book (storage/database/orders),
// for this very folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/runs/run_json.h"

namespace stepladder {

struct ExperimentPlanFile {
  Json shown;
  std::optional<Json> ordered;  // nothing if this user hasn't ordered it here
};

// Empty if there is no plan. Throws StorageError if it can't be read; `command` is the one that writes such plans.
std::optional<ExperimentPlanFile> read_plan(const std::filesystem::path& folder, const std::string& command,
                                            int version);

// Makes the plan this user's order, and writes the shown part of it into the folder. Throws StorageError.
void order_plan(const std::filesystem::path& folder, Json plan);

// The plan with each list called "command" without its secrets.
Json shown_plan(Json plan);

// "begun elsewhere": why nothing is run and what the plan, as it is shown, would run.
std::string not_ordered(const std::filesystem::path& folder, const std::string& would_run, const std::string& again);

}  // namespace stepladder
