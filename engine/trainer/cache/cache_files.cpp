#include "engine/trainer/cache/cache_files.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include "storage/own_folder.h"

namespace stepladder {

namespace fs = std::filesystem;

fs::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  const fs::path cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (cache.is_absolute()) return cache / "stepladder";
  return home.is_absolute() ? home / ".cache" / "stepladder" : fs::path();
}

void write_cache_file(const fs::path& file, std::string_view bytes) {
  std::error_code error;
  make_private_folders(file.parent_path());
  const fs::path temporary = file.string() + "." + std::to_string(::getpid());
  std::ofstream stream(temporary, std::ios::binary);
  stream << bytes;
  stream.close();
  fs::permissions(temporary, fs::perms::owner_read | fs::perms::owner_write, error);
  if (stream) fs::rename(temporary, file, error);
  if (!stream || error) fs::remove(temporary, error);
}

std::string cache_checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "%llx", static_cast<unsigned long long>(hash));
  return text.data();
}

}  // namespace stepladder
