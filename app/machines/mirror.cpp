// Opens every copy of a machine's file, so that none is read or written outside DATABASE.machines.
#include "app/machines/mirror.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "storage/database/run_store.h"

namespace stepladder {
namespace fs = std::filesystem;

fs::path mirrors_folder(RunStore& store) {
  return store.file().string() + ".machines";
}

Descriptor open_mirrored(const fs::path& mirrors, const fs::path& name, int flags) {
  Descriptor file = open_own_file(mirrors, name, flags);
  if (file) return file;
  const bool is_not_ours = errno == ELOOP || errno == ENOTDIR || errno == EPERM;
  throw std::runtime_error(
      (mirrors / name).string() + " can't be opened: " +
      (is_not_ours ? "it, or a folder above it, is a link or not a file of ours" : std::strerror(errno)));
}

}  // namespace stepladder
