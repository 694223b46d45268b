// The window's two entry points.
#pragma once

#include <filesystem>

#include "app/screenshot_request.h"

namespace stepladder {

// Opens the window and returns when it is closed. Cleanly stops runs that are still training.
int open_desktop(const std::filesystem::path& database);

// Draws one view into a PNG file; needs no display. Throws if the view is unknown or the file cannot be written.
int take_screenshot(const ScreenshotRequest& request);

}  // namespace stepladder
