#include "storage/database/view_store.h"

#include "storage/bounded_text.h"
#include "storage/database/database.h"

namespace stepladder {
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
  Statement rows(database_,
                 "SELECT substr(key, ?) FROM settings WHERE key > ? AND key < ? ORDER BY lower(key), key LIMIT ?");
  rows.bind(static_cast<std::int64_t>(prefix.size()) + 1).bind(prefix).bind(behind_prefix);
  rows.bind(static_cast<std::int64_t>(most_views));
  std::vector<std::string> names;
  while (rows.step()) {
    std::string name = rows.text(0);
    if (name.size() <= longest_name) names.push_back(std::move(name));
  }
  return names;
}

std::optional<std::string> ViewStore::content(std::string_view name) {
  const std::string key = key_of(name);
  {
    Statement size(database_, "SELECT length(CAST(value AS BLOB)) FROM settings WHERE key = ?");
    size.bind(key);
    if (!size.step()) return std::nullopt;
    if (size.integer(0) > static_cast<std::int64_t>(longest_view))
      throw StorageError("the view " + std::string(name) + " holds " + std::to_string(size.integer(0)) +
                         " bytes, more than any that Stepladder saves");
  }
  Statement row(database_, "SELECT value FROM settings WHERE key = ?");
  row.bind(key);
  return row.step() ? std::optional(row.text(0)) : std::nullopt;
}

void ViewStore::save(std::string_view name, std::string_view content) {
  if (content.size() > longest_view) throw StorageError("the view " + std::string(name) + " is too large to be saved");
  Statement put(database_, "INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)");
  put.bind(key_of(name)).bind(content).run();
}

void ViewStore::rename(std::string_view from, std::string_view to) {
  const std::string old_key = key_of(from), new_key = key_of(to);
  if (old_key == new_key) return;
  Transaction transaction(database_);
  {
    Statement taken(database_, "SELECT 1 FROM settings WHERE key = ?");
    taken.bind(new_key);
    if (taken.step()) throw StorageError("another view has the name " + new_key.substr(prefix.size()));
  }
  Statement(database_, "UPDATE settings SET key = ? WHERE key = ?").bind(new_key).bind(old_key).run();
  if (database_.changes() == 0) throw StorageError("the view " + std::string(from) + " is gone");
  transaction.commit();
}

void ViewStore::remove(std::string_view name) {
  Statement(database_, "DELETE FROM settings WHERE key = ?").bind(key_of(name)).run();
}

}  // namespace stepladder
