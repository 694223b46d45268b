#include "storage/database/settings.h"

#include "storage/bounded_text.h"
#include "storage/database/database.h"

namespace stepladder {

std::optional<std::string> Settings::get(const std::string& key) {
  return database_.find_text("SELECT value FROM settings WHERE key = ?", key);
}

void Settings::set(const std::string& key, const std::string& value) {
  database_.insert("OR REPLACE INTO settings", "key, value", key, value);
}

namespace {

// They are rows of `settings`, so that programs that don't know views leave them alone.
constexpr std::string_view prefix = "view:";
constexpr std::string_view behind_prefix = "view;";  // the next text after all that begin with it

std::string key_of(std::string_view name) {
  const std::size_t first = name.find_first_not_of(' ');
  if (first == std::string_view::npos) throw StorageError("a view needs a name");
  name = name.substr(first, name.find_last_not_of(' ') - first + 1);
  return std::string(prefix) + bounded(std::string(name), longest_name);
}

}  // namespace

std::vector<std::string> ViewStore::names() {
  Statement rows(
      database_, "SELECT substr(key, ?) FROM settings WHERE key > ? AND key < ? ORDER BY lower(key), key LIMIT ?",
      static_cast<std::int64_t>(prefix.size()) + 1, prefix, behind_prefix, static_cast<std::int64_t>(most_views));
  std::vector<std::string> names;
  while (rows.step()) {
    std::string name = rows.text(0);
    if (name.size() <= longest_name) names.push_back(std::move(name));
  }
  return names;
}

std::optional<std::string> ViewStore::content(std::string_view name) {
  const std::string key = key_of(name);
  const auto size = database_.find("SELECT length(CAST(value AS BLOB)) FROM settings WHERE key = ?", key);
  if (!size) return std::nullopt;
  if (*size > static_cast<std::int64_t>(longest_view))
    throw StorageError("the view " + std::string(name) + " holds " + std::to_string(*size) +
                       " bytes, more than any that Stepladder saves");
  return database_.find_text("SELECT value FROM settings WHERE key = ?", key);
}

void ViewStore::save(std::string_view name, std::string_view content) {
  if (content.size() > longest_view) throw StorageError("the view " + std::string(name) + " is too large to be saved");
  database_.insert("OR REPLACE INTO settings", "key, value", key_of(name), content);
}

void ViewStore::rename(std::string_view from, std::string_view to) {
  const std::string old_key = key_of(from), new_key = key_of(to);
  if (old_key == new_key) return;
  Transaction transaction(database_);
  if (database_.has("SELECT 1 FROM settings WHERE key = ?", new_key))
    throw StorageError("another view has the name " + new_key.substr(prefix.size()));
  database_.run("UPDATE settings SET key = ? WHERE key = ?", new_key, old_key);
  if (database_.changes() == 0) throw StorageError("the view " + std::string(from) + " is gone");
  transaction.commit();
}

void ViewStore::remove(std::string_view name) {
  database_.run("DELETE FROM settings WHERE key = ?", key_of(name));
}

}  // namespace stepladder
