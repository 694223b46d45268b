// Small facts about the file itself, by name, such as that the example was added once (docs/database.md, `settings`).
// A part of RunStore, which has its threads, locks and errors.
#pragma once

#include <optional>
#include <string>

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

}  // namespace stepladder
