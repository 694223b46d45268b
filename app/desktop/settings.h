// What the window remembers of its user: $XDG_CONFIG_HOME/stepladder/desktop.json. Nothing about runs.
#pragma once

#include <filesystem>
#include <string>

namespace stepladder {

struct DesktopSettings {
  bool dark = true;
  float scale = 1;  // on top of the display's own
  std::string panel = "ladder";
};

std::filesystem::path settings_file();
DesktopSettings load_settings();                      // defaults where the file is missing or broken
void save_settings(const DesktopSettings& settings);  // does nothing where the folder cannot be written

}  // namespace stepladder
