#include "app/import/contents.h"

#include <algorithm>

#include "storage/database/run_store.h"
#include "storage/importers/growing_source.h"
#include "storage/importers/journal/journal.h"
#include "storage/importers/journal/journal_run.h"
#include "storage/json_values.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// The file itself, or all files of a folder.
std::vector<fs::path> content_files(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> files;
  if (fs::is_directory(path, error)) {
    for (auto it = fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      if (it->is_regular_file(error)) files.push_back(it->path());
    }
    std::ranges::sort(files);
  } else if (fs::is_regular_file(path, error)) {
    files.push_back(path);
    if (const fs::path log = path.string() + "-wal"; fs::exists(log, error)) files.push_back(log);
  }
  return files;
}

constexpr std::string_view journal_key = "journal ";
constexpr std::string_view followed_key = "followed ";

std::string uid_of_journal(const fs::path& file) {
  constexpr std::size_t enough = 256 << 10;  // for its first line
  const RegularFile input(file);
  if (!input || !input.read_at(0, 16).starts_with("{\"e\":\"run\",")) return {};
  JournalReader reader;
  reader.take(input.read_at(0, enough));
  JournalEvent event;
  try {
    const auto header = reader.next(event) ? journal_header(event) : std::nullopt;
    return header ? header->uid : std::string();
  } catch (const ImportError&) {  // of a newer version
    return {};
  }
}

const std::vector<RunId>* found(const ImportedContents& contents, const std::string& key) {
  const auto known = contents.find(key);
  return known == contents.end() ? nullptr : &known->second;
}

}  // namespace

std::uint64_t content_bytes(const fs::path& path) {
  std::uint64_t bytes = 0;
  for (const fs::path& file : content_files(path)) {
    std::error_code error;
    if (const std::uintmax_t size = fs::file_size(file, error); !error) bytes += size;
    if (file.parent_path() != path.parent_path()) bytes += file.lexically_relative(path).string().size();
  }
  return bytes;
}

std::string content_hash(const fs::path& path) {
  ContentHash hash;
  std::vector<char> buffer(256 * 1024);
  const std::vector<fs::path> files = content_files(path);
  for (const fs::path& file : files) {
    if (file.parent_path() != path.parent_path()) hash.take(file.lexically_relative(path).string());
    RegularFile in(file);
    if (!in) return {};
    while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0)
      hash.take({buffer.data(), static_cast<std::size_t>(in.gcount())});
  }
  return files.empty() ? std::string() : hash.text();
}

ImportedContents imported_contents(RunStore& store) {
  ImportedContents contents;
  const auto add = [&](std::string content, RunId run) {
    std::vector<RunId>& runs = contents[std::move(content)];
    if (runs.empty() || runs.back() != run) runs.push_back(run);  // a journal of several ranks
  };
  for (const Run& run : store.runs()) {
    for (const std::string& source : store.following().sources_of(run.id)) {
      if (source.starts_with(journal_key))
        add(source.substr(0, source.find(' ', journal_key.size())), run.id);
      else if (!is_over(run.status))
        add(std::string(followed_key) + path_of_source(source).string(), run.id);
    }
    const bool has_content = run.environment.find("content_hash") != std::string::npos ||
                             run.environment.find("journal_uid") != std::string::npos;
    if (!has_content) continue;
    const Json environment = object_in(run.environment);
    if (const std::string hash = text_in(environment, "content_hash"); !hash.empty()) add(hash, run.id);
    if (const std::string uid = text_in(environment, "journal_uid"); !uid.empty())
      add(std::string(journal_key) + uid, run.id);
  }
  return contents;
}

const std::vector<RunId>* runs_of_journal(const ImportedContents& contents, const std::string& uid) {
  return found(contents, std::string(journal_key) + uid);
}

const std::vector<RunId>* runs_at(const ImportedContents& contents, const fs::path& path) {
  if (contents.empty()) return nullptr;
  const fs::path full = fs::absolute(path).lexically_normal();
  if (const auto* const runs = found(contents, std::string(followed_key) + full.string())) return runs;
  if (contents.lower_bound(std::string(journal_key)) != contents.end()) {
    const std::vector<fs::path> journals = journals_in(path);
    const std::string uid = uid_of_journal(journals.empty() ? path : journals.front());
    if (const auto* const runs = uid.empty() ? nullptr : runs_of_journal(contents, uid)) return runs;
  }
  // Hashes begin with the size, so most files needn't be read.
  const std::string size = std::to_string(content_bytes(path)) + "-";
  const auto alike = contents.lower_bound(size);
  if (alike == contents.end() || !alike->first.starts_with(size)) return nullptr;
  return found(contents, content_hash(path));
}

void keep_content(Run& run, const fs::path& path) {
  Json environment = object_in(run.environment);
  environment["content_hash"] = content_hash(path);
  run.environment = json_text(environment);
}

std::string run_numbers_text(const std::vector<RunId>& runs) {
  std::string which;
  for (std::size_t i = 0; i < runs.size();) {
    std::size_t end = i + 1;
    while (end < runs.size() && runs[end] == runs[end - 1] + 1) ++end;
    which += (which.empty() ? "" : ", ") + std::to_string(runs[i]);
    if (end - i > 1) which += (end - i == 2 ? ", " : " - ") + std::to_string(runs[end - 1]);
    i = end;
  }
  return (runs.size() == 1 ? "run " : "runs ") + which;
}

std::string in_project_text(const std::string& file, const std::vector<RunId>& runs) {
  return file + " is in the project already (" + run_numbers_text(runs) + ")";
}

}  // namespace stepladder
