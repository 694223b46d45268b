// The one writer of journals. A disk may lose what it has taken until fsync succeeds, so bytes are kept until then.
#include "app/journal/journal_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "storage/errors.h"

namespace stepladder {
namespace {

constexpr std::size_t at_once = 1 << 20;  // bytes of a write

std::string failed(const std::filesystem::path& path) {
  return path.string() + ": " + std::strerror(errno);
}

}  // namespace

std::optional<JournalFile> JournalFile::create(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file && errno == EEXIST) return std::nullopt;
  if (!file) throw StorageError("the journal cannot be created: " + failed(path));
  return JournalFile(std::move(file), path);
}

std::string JournalFile::open_again() {
  if (!file_) file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  return file_ ? "" : failed(path_);
}

std::string JournalFile::write() {
  while (has_unwritten()) {
    if (std::string why = open_again(); !why.empty()) return why;
    const std::size_t size = std::min(bytes_.size() - written_, at_once);
    const ssize_t count = ::pwrite(file_.get(), bytes_.data() + written_, size, static_cast<off_t>(synced_ + written_));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return failed(path_);
    written_ += static_cast<std::size_t>(count);
  }
  return {};
}

std::string JournalFile::sync() {
  if (written_ == 0) return {};
  if (std::string why = open_again(); !why.empty()) return why;
  // Some file systems can't.
  if (::fsync(file_.get()) != 0 && errno != EINVAL && errno != ENOTSUP && errno != ENOSYS && errno != EROFS) {
    written_ = 0;  // the same bytes again, at the same place
    return failed(path_);
  }
  bytes_.erase(0, written_);
  synced_ += written_;
  written_ = 0;
  return {};
}

}  // namespace stepladder
