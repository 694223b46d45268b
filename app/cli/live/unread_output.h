// Runs whose tracker was killed while their program went on.
#pragma once

#include <filesystem>

namespace stepladder {

// Says on stderr which runs these are and how to go on recording them. Looks at the files only.
void tell_of_unread_outputs(const std::filesystem::path& database);

}  // namespace stepladder
