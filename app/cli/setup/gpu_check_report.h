// The document of `stepladder doctor --gpu`: without names, and as text for the terminal.
#pragma once

#include <filesystem>
#include <string>

#include "app/cli/report.h"

namespace stepladder {

// Replaces what names this machine, its user or a folder of theirs in all texts of the document. `scratch`: the
// folder that the check used.
Json without_names(Json document, const std::filesystem::path& scratch);

// The parts with their results, the rungs' figures, and the sentences of what failed. `out`: the document's file.
std::string gpu_check_text(const Json& document, const std::filesystem::path& out);

}  // namespace stepladder
