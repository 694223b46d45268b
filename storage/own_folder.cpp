// Names and links are resolved one part at a time; openat(2) keeps a folder that is renamed meanwhile the same one.
#include "storage/own_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace stepladder {
namespace {

constexpr int deepest_folder = 256;

bool remove_below(int folder, const std::string& name, int depth) {
  if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return true;
  if (depth > deepest_folder) return false;
  const Descriptor inner = folder_below(folder, name);
  if (!inner) return false;
  ::fchmod(inner.get(), 0700);
  bool all = true;
  for (bool more = true; more && all;) {
    const auto names = names_in(inner.get(), 1000);
    more = !names.empty();
    for (const std::string& entry : names) all = remove_below(inner.get(), entry, depth + 1) && all;
  }
  return all && ::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0;
}

bool is_one_part(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    value_ = std::exchange(other.value_, -1);
  }
  return *this;
}

void Descriptor::reset() {
  if (value_ >= 0) ::close(std::exchange(value_, -1));
}

Descriptor open_folder(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Descriptor open_own_folder(const std::filesystem::path& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status = {};
  if (folder && (::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid())) {
    folder.reset();
    errno = EPERM;
  }
  return folder;
}

Descriptor make_own_folder(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Descriptor();
  return open_own_folder(path);
}

bool make_private_folders(const std::filesystem::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) {
    errno = S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
    return errno == 0;
  }
  const std::filesystem::path above = path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
  if (!above.empty() && above != path && !make_private_folders(above)) return false;
  return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

Descriptor open_below(int folder, const std::vector<std::string>& parts, int flags, bool make_folders) {
  Descriptor inner;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const int above = inner ? inner.get() : folder;
    inner = make_folders ? make_folder_below(above, parts[i]) : folder_below(above, parts[i]);
    if (!inner) return Descriptor();
  }
  // O_NONBLOCK: a named pipe must not keep us waiting.
  return Descriptor(::openat(inner ? inner.get() : folder, parts.back().c_str(),
                             flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
}

Descriptor folder_below(int folder, const std::string& name) {
  return Descriptor(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

Descriptor make_folder_below(int folder, const std::string& name) {
  if (::mkdirat(folder, name.c_str(), 0700) != 0 && errno != EEXIST) return Descriptor();
  return folder_below(folder, name);
}

Descriptor own_regular(Descriptor file) {
  struct stat status = {};
  if (file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
      status.st_nlink == 1)
    return file;
  if (!file) return file;
  file.reset();
  errno = EPERM;
  return file;
}

Descriptor open_own_file(const std::filesystem::path& folder, const std::filesystem::path& name, int flags) {
  const bool makes = (flags & O_CREAT) != 0;
  const Descriptor top = makes ? make_own_folder(folder) : open_own_folder(folder);
  if (!top) return Descriptor();
  std::vector<std::string> parts;
  for (const std::filesystem::path& part : name) parts.push_back(part.string());
  return own_regular(open_below(top.get(), parts, flags, makes));
}

std::string read_at(int file, std::uint64_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t filled = 0;
  while (filled < size) {
    const ssize_t count = ::pread(file, bytes.data() + filled, size - filled, static_cast<off_t>(offset + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    filled += static_cast<std::size_t>(count);
  }
  bytes.resize(filled);
  return bytes;
}

bool write_at(int file, std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = EIO;
    if (count <= 0) return false;
    offset += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::vector<std::string> names_in(int folder, std::size_t most) {
  std::vector<std::string> names;
  // A descriptor of its own, since the listing moves the position.
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const listing = copy >= 0 ? ::fdopendir(copy) : nullptr;
  if (!listing) return names;
  while (const dirent* const entry = ::readdir(listing)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    if (names.size() >= most) break;
  }
  ::closedir(listing);
  std::ranges::sort(names);
  return names;
}

bool remove_tree(int folder, const std::string& name) {
  if (is_one_part(name)) return remove_below(folder, name, 0);
  errno = EINVAL;
  return false;
}

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
