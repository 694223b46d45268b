// Small facts about the file itself, by name, such as that the example was added once (docs/database.md, `settings`).
// A part of RunStore, which has its threads, locks and errors.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

class Database;

class Settings {
 public:
  explicit Settings(Database& database) : database_(database) {}

  std::optional<std::string> get(const std::string& key);
  void set(const std::string& key, const std::string& value);

 private:
  Database& database_;
};

// Views of the window that the user saved by name (docs/database.md, `settings`). A part of RunStore, which has its
// threads, locks and errors. What a view holds is the window's business (app/runs/saved_view.h): here it is a text.

inline constexpr std::size_t longest_view = 1 << 20;  // bytes; nothing longer is stored or read
inline constexpr std::size_t most_views = 1000;       // listed

class ViewStore {
 public:
  explicit ViewStore(Database& database) : database_(database) {}

  std::vector<std::string> names();  // in the order of the alphabet

  // Nullopt if there is none of this name. Throws StorageError if it is too long to be one of Stepladder's.
  std::optional<std::string> content(std::string_view name);

  // Replaces one of this name. Throws StorageError if the name is empty, or the content too long. Long names are cut.
  void save(std::string_view name, std::string_view content);

  // Throws StorageError if the view is gone or another one has the new name.
  void rename(std::string_view from, std::string_view to);
  void remove(std::string_view name);

 private:
  Database& database_;
};

}  // namespace stepladder
