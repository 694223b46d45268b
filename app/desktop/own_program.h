// What the window lets this program do in a process of its own, as a terminal would.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/job.h"

namespace stepladder {

// Runs `stepladder --db DATABASE ARGUMENTS --json` to its end and returns what it printed; null if the job was
// interrupted, which ends it. Blocks; any thread. Throws StorageError, which begins with `what` ("Run 3 could not be
// traced") and has the program's own reason.
nlohmann::json run_own_program(const std::filesystem::path& database, std::vector<std::string> arguments,
                               const std::string& what, JobControl& job);

}  // namespace stepladder
