// Runs whose tracker was killed while their program continued.
#pragma once

#include <filesystem>

namespace stepladder {

// Lists these runs on stderr, with the command that continues recording them. Reads the files only.
void tell_of_unread_outputs(const std::filesystem::path& database);

}  // namespace stepladder
