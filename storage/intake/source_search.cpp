// Looks into paths again and again, as `follow` and `watch` do: a folder may get files, a file may become a database,
// and a database may get runs. Each source is found once.
#include "storage/intake/source_search.h"

#include <utility>

#include "storage/importers/journal/journal.h"
#include "storage/importers/logs/growing_text.h"
#include "storage/importers/trackers/foreign_database.h"
#include "storage/importers/trackers/store_folder.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

std::string first_bytes(const fs::path& file) {
  return RegularFile(file).read_at(0, 64);
}

}  // namespace

bool is_table_name(const fs::path& file) {
  const fs::path ending = file.extension();
  return ending == ".csv" || ending == ".jsonl" || ending == ".ndjson";
}

std::vector<std::unique_ptr<GrowingSource>> SourceSearch::find_new(const fs::path& given, std::string& unread) {
  unread_ = &unread;
  const fs::path path = resolved(given);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    // A database may get runs, and a file become a database, without a change of its folder.
    const fs::path below = path / "";
    std::vector<fs::path> known;
    for (auto it = databases_.lower_bound(below); it != databases_.end(); ++it) {
      if (!it->first.string().starts_with(below.string())) break;
      known.push_back(it->first);
    }
    for (const fs::path& file : known) add_file(file);
    folders_.look(path, [this](const fs::path& folder) { return look_into(folder); });
  } else if (fs::is_regular_file(path, error)) {
    if (!add_file(path)) add_text(path);
  }
  return std::exchange(found_, {});
}

// Returns whether there may be stores below it.
bool SourceSearch::look_into(const fs::path& folder) {
  if (is_mlflow_run_folder(folder)) {
    add(growing_mlflow_folder(folder));
    return false;
  }
  bool has_events = false;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto it = fs::directory_iterator(folder, options, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code unknown;
    const std::string name = it->path().filename().string();
    if (name.starts_with('.') || !it->is_regular_file(unknown)) continue;
    if (is_event_file_name(it->path()))
      has_events = true;
    else if (is_table_name(it->path()) && !it->is_symlink(unknown))
      add_text(it->path());
    else
      add_file(it->path());
  }
  if (has_events) add(growing_event_folder(folder));
  return true;
}

// Returns whether it is a store or a database, or may become one.
bool SourceSearch::add_file(const fs::path& file) {
  if (is_event_file_name(file)) {
    add(growing_event_file(file));
    return true;
  }
  if (file.extension() == ".wandb") {
    add(growing_wandb_file(file, step_key_));
    return true;
  }
  try {
    if (!databases_[file]) {
      const std::string head = first_bytes(file);
      const fs::path ending = file.extension();
      const bool may_be_one =
          head.empty() ? ending == ".db" || ending == ".sqlite" || ending == ".sqlite3" : is_sqlite(head);
      if (!may_be_one) databases_.erase(file);
      if (!is_sqlite(head)) return may_be_one;
      std::shared_ptr<GrowingDatabase> database = growing_mlflow_database(file);
      if (!database) database = growing_trackio_database(file, step_key_);
      if (!database) return true;
      databases_[file] = std::move(database);
    }
    for (auto& store : databases_[file]->find_new()) add(std::move(store));
  } catch (const std::runtime_error& error) {  // ImportError, StorageError
    *unread_ = file.string() + " " + error.what();
  }
  return true;
}

void SourceSearch::add_text(const fs::path& file) {
  if (texts_ && !journal_place(file)) add(growing_text(file, *texts_));
}

void SourceSearch::add(std::unique_ptr<GrowingSource> store) {
  if (known_.insert(store->source()).second) found_.push_back(std::move(store));
}

}  // namespace stepladder
