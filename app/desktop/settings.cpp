#include "app/desktop/settings.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace stepladder {

std::filesystem::path settings_file() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path folder =
      config && *config ? std::filesystem::path(config) : std::filesystem::path(home ? home : ".") / ".config";
  return folder / "stepladder" / "desktop.json";
}

DesktopSettings load_settings() {
  DesktopSettings settings;
  std::ifstream file(settings_file());
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) return settings;
  const auto read = [&json](const char* name, auto& value) {
    using Value = std::decay_t<decltype(value)>;
    const auto found = json.find(name);
    if (found == json.end()) return;
    try {
      value = found->get<Value>();
    } catch (const nlohmann::json::exception&) {  // edited by hand: the default stays
    }
  };
  read("dark", settings.dark);
  read("scale", settings.scale);
  read("panel", settings.panel);
  settings.scale = std::clamp(settings.scale, 0.6f, 3.0f);
  return settings;
}

void save_settings(const DesktopSettings& settings) {
  const std::filesystem::path file = settings_file();
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  std::ofstream(file)
      << nlohmann::json{{"dark", settings.dark}, {"scale", settings.scale}, {"panel", settings.panel}}.dump(2) << "\n";
}

}  // namespace stepladder
