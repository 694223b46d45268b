// The user's own folders, by the XDG base directory specification.
#pragma once

#include <filesystem>

namespace stepladder {

// The folder that the variable names, if it is absolute; else that one below the user's home: user_folder(
// "XDG_STATE_HOME", ".local/state").
std::filesystem::path user_folder(const char* variable, const char* below_home);

}  // namespace stepladder
