#include "storage/database/settings.h"

#include "storage/database/database.h"

namespace stepladder {

std::optional<std::string> Settings::get(const std::string& key) {
  return database_.find_text("SELECT value FROM settings WHERE key = ?", key);
}

void Settings::set(const std::string& key, const std::string& value) {
  database_.insert("OR REPLACE INTO settings", "key, value", key, value);
}

}  // namespace stepladder
