// The command line's request to the desktop for a picture of a view.
#pragma once

#include <filesystem>
#include <string>

namespace stepladder {

struct ScreenshotRequest {
  std::filesystem::path database;
  std::string view;        // a panel's id; empty: what the saved view shows
  std::string saved_view;  // opened first; empty: none
  std::filesystem::path out;
  int width = 1600;  // pixels
  int height = 900;
  double scale = 0;  // of text and marks; 0: as the size wants it
  bool dark = true;
};

}  // namespace stepladder
