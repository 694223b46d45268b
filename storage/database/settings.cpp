#include "storage/database/settings.h"

#include "storage/database/database.h"

namespace stepladder {

std::optional<std::string> Settings::get(const std::string& key) {
  Statement rows(database_, "SELECT value FROM settings WHERE key = ?");
  rows.bind(key);
  if (!rows.step()) return std::nullopt;
  return rows.text(0);
}

void Settings::set(const std::string& key, const std::string& value) {
  Statement(database_, "INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)").bind(key).bind(value).run();
}

}  // namespace stepladder
