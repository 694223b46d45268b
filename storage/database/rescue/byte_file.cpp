#include "storage/database/rescue/byte_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "storage/errors.h"

namespace stepladder {

ByteFile::ByteFile(const std::filesystem::path& file) : descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!descriptor_) throw StorageError(file.string() + " could not be read: " + std::generic_category().message(errno));
  struct stat status {};
  if (::fstat(descriptor(), &status) != 0 || !S_ISREG(status.st_mode))
    throw StorageError(file.string() + " is not a regular file");
  size_ = status.st_size;
}

std::string ByteFile::read(std::int64_t offset, std::int64_t bytes) {
  std::string content(static_cast<std::size_t>(bytes), '\0');
  for (std::int64_t done = 0; done < bytes;) {
    const ssize_t got =
        ::pread(descriptor(), content.data() + done, static_cast<std::size_t>(bytes - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {  // a bad sector: what is behind it may be readable
      const std::int64_t skipped = std::min<std::int64_t>(bytes - done, 512 - (offset + done) % 512);
      unreadable_ += skipped;
      done += skipped;
      continue;
    }
    if (got == 0) break;
    done += got;
  }
  return content;
}

}  // namespace stepladder
