#include "app/import/contents.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "storage/database/run_store.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// The files that a path stands for.
std::vector<fs::path> content_files(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> files;
  if (fs::is_directory(path, error)) {
    for (auto it = fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      if (it->is_regular_file(error)) files.push_back(it->path());
    }
    std::sort(files.begin(), files.end());
  } else if (fs::is_regular_file(path, error)) {
    files.push_back(path);
    if (const fs::path log = path.string() + "-wal"; fs::exists(log, error)) files.push_back(log);
  }
  return files;
}

}  // namespace

void ContentHash::take(std::string_view piece) {
  const char* at = piece.data();
  const char* const end = at + piece.size();
  while (at != end && bytes_ % 8 != 0) {
    word_ |= std::uint64_t{static_cast<unsigned char>(*at++)} << (8 * (bytes_ % 8));
    if (++bytes_ % 8 == 0) mix(std::exchange(word_, 0));
  }
  for (; end - at >= 8; at += 8, bytes_ += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    mix(word);
  }
  for (; at != end; ++bytes_) word_ |= std::uint64_t{static_cast<unsigned char>(*at++)} << (8 * (bytes_ % 8));
}

// A round of xxHash64.
void ContentHash::mix(std::uint64_t word) {
  hash_ ^= std::rotl(word * 0xc2b2ae3d27d4eb4f, 31) * 0x9e3779b185ebca87;
  hash_ = std::rotl(hash_, 27) * 0x9e3779b185ebca87 + 0x85ebca77c2b2ae63;
}

std::string ContentHash::text() const {
  ContentHash last = *this;
  last.mix(word_);
  std::uint64_t hash = last.hash_ ^ bytes_;
  hash = (hash ^ (hash >> 33)) * 0xc2b2ae3d27d4eb4f;
  hash = (hash ^ (hash >> 29)) * 0x165667b19e3779f9;
  hash ^= hash >> 32;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return std::to_string(bytes_) + "-" + digits;
}

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
