#include "storage/database/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace stepladder {
namespace fs = std::filesystem;

bool sync_to_disk(const fs::path& file_or_folder) {
  const int descriptor = ::open(file_or_folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool is_synced = ::fsync(descriptor) == 0;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return is_synced;
}

bool name_new_file(const fs::path& part, const fs::path& name) {
  // Unlike a renaming, a link never replaces a file.
  if (::link(part.c_str(), name.c_str()) != 0) {
    const int error = errno;
    if (error == EEXIST || fs::exists(name)) {
      errno = error;
      return false;
    }
    return ::rename(part.c_str(), name.c_str()) == 0;
  }
  ::unlink(part.c_str());
  return true;
}

}  // namespace stepladder
