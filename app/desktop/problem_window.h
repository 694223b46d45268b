// The window of a project that can't be opened: says why, and what can be done about it. UI thread.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "app/desktop/settings.h"
#include "app/desktop/window.h"
#include "storage/errors.h"

namespace stepladder {

// Shows the error until the user has decided. Returns the file to open next, the same one or what was rescued of it;
// nullopt to quit, also when `is_over` becomes true. A rescue writes a new file beside a damaged one, which stays as it
// is. The fonts are loaded.
std::optional<std::filesystem::path> ask_about_problem(Window& window, const std::filesystem::path& file,
                                                       const StorageError& error, const DesktopSettings& settings,
                                                       const std::function<bool()>& is_over);

}  // namespace stepladder
