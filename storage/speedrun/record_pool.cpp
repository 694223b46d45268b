#include "storage/speedrun/record_pool.h"

#include <algorithm>
#include <utility>

#include "storage/errors.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_files = 10'000;

constexpr const char* failed_mark = ".failed-";  // in the names that `record run` gives

bool may_be_log(const fs::path& file) {
  const std::string ending = file.extension().string();
  return !file.filename().string().starts_with('.') &&
         (ending.empty() || ending == ".txt" || ending == ".log" || ending == ".out");
}

}  // namespace

void RecordPool::add(SpeedrunLog log) {
  if (!log.problem.empty()) {
    excluded.push_back({.file = std::move(log.file),
                        .why = std::move(log.problem),
                        .unfinished = log.unfinished,
                        .is_empty = log.is_empty,
                        .has_steps = log.has_steps,
                        .content_hash = std::move(log.content_hash)});
    return;
  }
  const bool known =
      std::ranges::any_of(logs, [&](const SpeedrunLog& it) { return it.script_hash == log.script_hash; });
  if (known) log.script = {};
  logs.push_back(std::move(log));
}

PoolFiles log_files(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (!fs::exists(path, error)) throw StorageError(path.string() + " does not exist");
    return {.logs = {path}, .links = {}};
  }
  PoolFiles found;
  bool subfolders = false;
  fs::directory_iterator it(path, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code unknown;
    if (it->is_directory(unknown))
      subfolders = true;
    else if (it->is_regular_file(unknown) && may_be_log(it->path()))
      (it->is_symlink(unknown) ? found.links : found.logs).push_back(it->path());
  }
  if (error) throw StorageError(path.string() + " cannot be read: " + error.message());
  if (found.logs.empty() && !found.links.empty())
    throw StorageError(path.string() +
                       " holds no log: its files are links, which a pool doesn't follow; name the logs");
  if (found.logs.empty())
    throw StorageError(path.string() + " holds no log: no file ends in .txt, .log or .out" +
                       (subfolders ? "; name its subfolders, each of which is a pool of its own" : ""));
  if (found.logs.size() + found.links.size() > most_files)
    throw StorageError(path.string() + " holds more than 10,000 files");
  std::ranges::sort(found.logs);
  std::ranges::sort(found.links);
  return found;
}

void add_logs(RecordPool& pool, const fs::path& path, const LogQuestion& question) {
  const PoolFiles found = log_files(path);
  std::error_code error;
  const Links links = fs::is_directory(path, error) ? Links::refused : Links::followed;
  for (const fs::path& file : found.logs) {
    SpeedrunLog log = load_speedrun_log(file, question, links);
    const bool failed = log.has_steps && file.stem().string().find(failed_mark) != std::string::npos;
    if (failed) log.problem = "is of a run whose command failed", log.unfinished = false;
    pool.add(std::move(log));
    if (failed) pool.excluded.back().failed = true;
  }
  for (const fs::path& link : found.links) pool.excluded.push_back({.file = link.string(), .why = link_problem});
}

}  // namespace stepladder
