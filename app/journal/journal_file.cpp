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
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0 && errno == EEXIST) return std::nullopt;
  if (descriptor < 0) throw StorageError("the journal cannot be created: " + failed(path));
  return JournalFile(path, descriptor);
}

JournalFile::JournalFile(JournalFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(std::move(other.bytes_)),
      synced_(other.synced_),
      written_(other.written_) {}

JournalFile& JournalFile::operator=(JournalFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  std::swap(synced_, other.synced_);
  std::swap(written_, other.written_);
  return *this;
}

JournalFile::~JournalFile() {
  rest();
}

void JournalFile::rest() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

std::string JournalFile::open_again() {
  if (descriptor_ < 0) descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  return descriptor_ < 0 ? failed(path_) : "";
}

std::string JournalFile::write() {
  while (written_ < synced_ + bytes_.size()) {
    if (std::string why = open_again(); !why.empty()) return why;
    const std::size_t done = written_ - synced_;
    const std::size_t size = std::min(bytes_.size() - done, at_once);
    const ssize_t count = ::pwrite(descriptor_, bytes_.data() + done, size, static_cast<off_t>(written_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(path_);
    written_ += static_cast<std::uint64_t>(count);
  }
  return {};
}

std::string JournalFile::sync() {
  if (written_ == synced_) return {};
  if (std::string why = open_again(); !why.empty()) return why;
  // Some file systems can't.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP && errno != ENOSYS) {
    written_ = synced_;
    return failed(path_);
  }
  bytes_.erase(0, written_ - synced_);
  synced_ = written_;
  return {};
}

}  // namespace stepladder
