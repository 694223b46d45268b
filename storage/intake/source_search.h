// Finds what grows at a path: other trackers' stores and, if asked for, logs and tables.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storage/folder_watch.h"
#include "storage/importers/growing_source.h"
#include "storage/importers/importer.h"

namespace stepladder {

// Not thread-safe: one thread.
class SourceSearch {
 public:
  // `texts`: how logs and tables are read; empty: they are no sources. In a folder only those with a table's name are.
  // `step_key` as in ImportOptions.
  explicit SourceSearch(std::optional<ImportOptions> texts = {}, std::string step_key = {})
      : texts_(std::move(texts)), step_key_(std::move(step_key)) {}

  // The runs that no earlier call has returned: of a store or database, or of those in a folder and up to four levels
  // below it. A file that can't be read yet is tried again by the next call; `unread` gets why.
  std::vector<std::unique_ptr<GrowingSource>> find_new(const std::filesystem::path& path, std::string& unread);

 private:
  bool look_into(const std::filesystem::path& folder);
  bool add_file(const std::filesystem::path& file);
  void add_text(const std::filesystem::path& file);
  void add(std::unique_ptr<GrowingSource> store);

  const std::optional<ImportOptions> texts_;
  const std::string step_key_;
  FolderWatch folders_{4};
  // By path; null: a file that isn't a database of a tracker yet.
  std::map<std::filesystem::path, std::shared_ptr<GrowingDatabase>> databases_;
  std::set<std::string> known_;  // sources
  std::vector<std::unique_ptr<GrowingSource>> found_;
  std::string* unread_ = nullptr;
};

// Whether a file's name is that of a table or of JSON lines.
bool is_table_name(const std::filesystem::path& file);

}  // namespace stepladder
