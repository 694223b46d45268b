// The window's settings: $XDG_CONFIG_HOME/stepladder/desktop.json. Of the runs, it keeps only the last selection.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stepladder {

enum class ThemeChoice { dark, light, system };

// What one database's views showed last, what was selected, and the colours of its runs.
struct ProjectView {
  std::int64_t ladder = 0;
  std::vector<std::int64_t> runs;           // selected
  std::map<std::string, int> colours = {};  // by the run's number; chosen by the user
  std::vector<std::string> panels = {};     // as DesktopSettings; empty: the first screen
  std::string layout = {};
  std::map<std::string, std::string> views = {};  // each panel's state (Panel::remember), by its id
};

struct DesktopSettings {
  ThemeChoice theme = ThemeChoice::dark;
  float scale = 1;  // on top of the display's own
  // Of the open project, which has them in the file (ProjectView):
  std::vector<std::string> panels{"ladder"};  // on the screen, left to right
  std::string layout;                         // ImGui's own: docking, columns
  int width = 1600;                           // of the window
  int height = 900;
  bool maximised = false;
  bool line_styles = false;                     // dashes besides colours
  bool side_bar_folded = false;                 // icons only
  std::string exports_folder;                   // empty: the default (chart_export.h)
  std::map<std::string, std::string> views;     // of the open project, as `panels`
  std::map<std::string, ProjectView> projects;  // by the database's path

  // These with what `database` showed last; a new project shows the first screen.
  DesktopSettings for_project(const std::string& database) const;
};

std::filesystem::path settings_file();
DesktopSettings load_settings();                      // defaults if the file is missing or broken
void save_settings(const DesktopSettings& settings);  // does nothing if the folder cannot be written

// True if the desktop prefers dark: by GTK_THEME, else by the portal (app/desktop/system/portal.h), else by the
// settings of GTK and KDE; also true if none of them is set.
bool system_prefers_dark(std::optional<bool> portal = std::nullopt);

}  // namespace stepladder
