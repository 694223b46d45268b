// Reads and writes the window's settings. Each value that is missing or of a wrong type gets its default, so old and
// new versions read each other's files; a file that isn't JSON is renamed, not lost.
#include "app/desktop/settings.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/figures/export.h"
#include "engine/files/data_error.h"
#include "storage/by_enum.h"
#include "storage/errors.h"
#include "storage/own_folder.h"
#include "storage/regular_file.h"
#include "storage/user_folders.h"

namespace stepladder {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto theme_names = by_enum<ThemeChoice>("dark", "light", "system");

fs::path config_folder() {
  return user_folder("XDG_CONFIG_HOME", ".config");
}

// The value of `key` in a file of `key = value` lines; empty if it is absent.
std::string value_in(const fs::path& file, std::string_view key) {
  RegularFile lines(file);
  std::string line;
  while (std::getline(lines, line)) {
    std::erase_if(line, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == '=')
      return line.substr(key.size() + 1);
  }
  return "";
}

}  // namespace

fs::path settings_file() {
  return config_folder() / "stepladder" / "desktop.json";
}

bool system_prefers_dark(std::optional<bool> portal) {
  if (const char* theme = std::getenv("GTK_THEME"); theme && *theme)
    return std::string_view(theme).find("dark") != std::string_view::npos;
  if (portal) return *portal;
  for (const char* gtk : {"gtk-4.0", "gtk-3.0"}) {
    const std::string dark = value_in(config_folder() / gtk / "settings.ini", "gtk-application-prefer-dark-theme");
    if (!dark.empty()) return dark == "1" || dark == "true";
  }
  const std::string scheme = value_in(config_folder() / "kdeglobals", "ColorScheme");
  return scheme.empty() || scheme.find("Dark") != std::string::npos;
}

namespace {

// Reads the settings; an empty object if there are none. A broken file, edited by hand, is kept under another name,
// since closing the window writes the file again.
json read_settings() {
  RegularFile file(settings_file());
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::string why = " isn't a JSON object";
  try {
    json read = text.empty() ? json::object() : json::parse(text);
    if (read.is_object()) return read;
  } catch (const json::parse_error& error) {
    why = ", line " + std::to_string(line_at(text, error.byte)) + ", isn't JSON";
  }
  const fs::path kept = settings_file().string() + ".broken";
  std::error_code error;
  fs::rename(settings_file(), kept, error);
  std::fprintf(stderr, "stepladder: %s%s; the window opens with the usual settings%s%s\n", settings_file().c_str(),
               why.c_str(), error ? "" : ", and the file is kept as ", error ? "" : kept.c_str());
  return json::object();
}

}  // namespace

DesktopSettings load_settings() {
  DesktopSettings settings;
  const json read = read_settings();
  const auto take = [](const json& from, const char* name, auto& value) {
    using Value = std::decay_t<decltype(value)>;
    const auto found = from.find(name);
    if (found == from.end()) return;
    try {
      value = found->get<Value>();
    } catch (const json::exception&) {  // edited by hand: the default stays
    }
  };
  std::string theme;
  take(read, "theme", theme);
  settings.theme = theme_names.find(theme).value_or(settings.theme);
  take(read, "scale", settings.scale);
  take(read, "width", settings.width);
  take(read, "height", settings.height);
  take(read, "maximised", settings.maximised);
  take(read, "line_styles", settings.line_styles);
  take(read, "side_bar_folded", settings.side_bar_folded);
  take(read, "exports_folder", settings.exports_folder);
  if (const auto projects = read.find("projects"); projects != read.end() && projects->is_object()) {
    for (const auto& [database, view] : projects->items()) {
      if (!view.is_object()) continue;
      ProjectView& project = settings.projects[database];
      take(view, "ladder", project.ladder);
      take(view, "runs", project.runs);
      take(view, "colours", project.colours);
      take(view, "panels", project.panels);
      take(view, "layout", project.layout);
      take(view, "views", project.views);
    }
  }
  settings.scale = std::clamp(settings.scale, 0.6f, 3.0f);
  settings.width = std::clamp(settings.width, 320, 16384);
  settings.height = std::clamp(settings.height, 240, 16384);
  return settings;
}

DesktopSettings DesktopSettings::for_project(const std::string& database) const {
  DesktopSettings own = *this;
  own.panels = DesktopSettings().panels;
  own.layout.clear();
  own.views.clear();
  const auto project = projects.find(database);
  if (project == projects.end()) return own;
  if (!project->second.panels.empty()) own.panels = project->second.panels;
  own.layout = project->second.layout;
  own.views = project->second.views;
  return own;
}

void save_settings(const DesktopSettings& settings) {
  const fs::path file = settings_file();
  make_private_folders(file.parent_path());
  json projects = json::object();
  for (const auto& [database, view] : settings.projects)
    projects[database] = {{"ladder", view.ladder}, {"runs", view.runs},     {"colours", view.colours},
                          {"panels", view.panels}, {"layout", view.layout}, {"views", view.views}};
  const json all{{"theme", theme_names[settings.theme]},
                 {"scale", settings.scale},
                 {"width", settings.width},
                 {"height", settings.height},
                 {"maximised", settings.maximised},
                 {"line_styles", settings.line_styles},
                 {"side_bar_folded", settings.side_bar_folded},
                 {"exports_folder", settings.exports_folder},
                 {"projects", projects}};
  try {
    write_private_file(file, all.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  } catch (const DataError&) {  // the next window has the older settings
  }
}

}  // namespace stepladder
