// DATABASE.machines has a folder UID for each run that was started on a machine: the copies of its journals, its
// output, and the files to be sent.
#pragma once

#include <filesystem>

#include "storage/own_folder.h"

namespace stepladder {

class RunStore;

std::filesystem::path mirrors_folder(RunStore& store);

// A file in it, such as "UID/keeper/rank-0.1.jsonl", by open(2)'s flags; O_CREAT makes the folders above it. Throws
// std::runtime_error, also if DATABASE.machines is a link: it may have come with the project.
Descriptor open_mirrored(const std::filesystem::path& mirrors, const std::filesystem::path& name, int flags);

}  // namespace stepladder
