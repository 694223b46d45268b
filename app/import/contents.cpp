#include "app/import/contents.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "storage/database/run_store.h"
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
  for (const Run& run : store.runs()) {
    if (run.environment.find("content_hash") == std::string::npos) continue;
    const auto environment = nlohmann::json::parse(run.environment, nullptr, false);
    const auto hash = environment.is_object() ? environment.find("content_hash") : environment.end();
    if (hash != environment.end() && hash->is_string()) contents[hash->get<std::string>()].push_back(run.id);
  }
  return contents;
}

}  // namespace stepladder
