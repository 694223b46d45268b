#include "engine/files/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "storage/regular_file.h"

namespace stepladder {

InputFile::InputFile(const std::filesystem::path& path) : name_(path.string()) {
  std::string why;
  Descriptor file = open_regular(path, why);
  struct stat status = {};
  if (!file && errno == ENOENT && why.starts_with("cannot be opened")) throw DataError(name_ + " does not exist");
  if (!file && why.starts_with("cannot be opened")) throw DataError(name_ + " cannot be read: " + std::strerror(errno));
  if (!file) throw DataError(name_ + " " + why);
  if (::fstat(file.get(), &status) == 0) size_bytes_ = status.st_size;
  descriptor_ = file.release();
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_bytes_(other.size_bytes_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

void InputFile::read(std::int64_t offset, void* destination, std::int64_t bytes) const {
  auto* to = static_cast<char*>(destination);
  while (bytes > 0) {
    const auto got = ::pread(descriptor_, to, static_cast<std::size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(name_ + " cannot be read: " + std::strerror(errno));
    if (got == 0) throw DataError(name_ + " was truncated while it was being read");
    to += got;
    offset += got;
    bytes -= got;
  }
}

OutputFile::OutputFile(const std::filesystem::path& path, unsigned mode, Devices devices) : path_(path) {
  using std::filesystem::file_type;
  std::error_code unknown;
  const bool may_be_device = devices == Devices::allowed;
  const file_type type =
      (may_be_device ? std::filesystem::status(path, unknown) : std::filesystem::symlink_status(path, unknown)).type();
  const bool is_stream = type == file_type::fifo || type == file_type::character;
  if (type == file_type::block || (is_stream && !may_be_device))
    throw DataError(path.string() + " is a device or a pipe, not a file");
  if (is_stream) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail();
    return;
  }
  part_ = path.string() + ".part";
  // Always creates a new file: a link under this name would lead elsewhere.
  ::unlink(part_.c_str());
  descriptor_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (descriptor_ < 0) fail();
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!part_.empty()) ::unlink(part_.c_str());
}

void OutputFile::fail() const {
  throw DataError(path_.string() + " cannot be written: " + std::strerror(errno));
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::commit() {
  if (part_.empty()) {
    ::close(std::exchange(descriptor_, -1));
    return;
  }
  if (::fsync(descriptor_) != 0 || ::rename(part_.c_str(), path_.c_str()) != 0) fail();
  ::close(std::exchange(descriptor_, -1));
  // Without this, a power failure may undo the new name.
  sync_folder(path_.has_parent_path() ? path_.parent_path() : std::filesystem::path("."));
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error == EIO || error == ENOSPC || error == EDQUOT)
    throw DataError(folder.string() + " cannot be synced: " + std::strerror(error));
}

}  // namespace stepladder
