#include "app/far/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "app/far/machine.h"
#include "app/far/wire.h"

namespace stepladder::far {
namespace {

constexpr std::size_t longest_name = 1024;
constexpr std::size_t longest_part = 200;
constexpr std::size_t most_parts = 16;

// Writes and syncs a file under a temporary name, which the caller removes or renames.
std::string write_temporary(int folder, const std::string& name, std::string_view bytes) {
  static int number = 0;
  const std::string temporary =
      "." + name + "." + host_name() + "." + std::to_string(::getpid()) + "." + std::to_string(++number);
  const Descriptor file(
      ::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || !write_at(file.get(), 0, bytes) || (::fsync(file.get()) != 0 && errno != EINVAL)) {
    const int error = errno;
    if (file) ::unlinkat(folder, temporary.c_str(), 0);
    throw refused(name, "cannot be written", error);
  }
  return temporary;
}

}  // namespace

std::vector<std::string> parts_of(const std::string& name) {
  if (name.empty() || name.size() > longest_name) throw Refusal("A file's name must have 1 to 1024 bytes.");
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  for (const std::string& part : parts)
    if (part.empty() || part == "." || part == ".." || part.size() > longest_part ||
        part.find('\0') != std::string::npos)
      throw Refusal("A file's name must be relative, without '..', its parts at most 200 bytes long.");
  if (parts.size() > most_parts) throw Refusal("A file's name may have at most 16 parts.");
  return parts;
}

Descriptor make_folder(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    ::mkdir(path.substr(0, slash).c_str(), 0755);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw refused(path, "cannot be made", errno);
  Descriptor folder = open_folder(path);
  if (!folder) throw refused(path, "cannot be opened", errno);
  return folder;
}

std::optional<std::string> read_below(int folder, const std::string& name, std::size_t most) {
  const Descriptor file = open_below(folder, {name}, O_RDONLY);
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::string bytes = read_at(file.get(), 0, most + 1);
  if (bytes.size() > most) return std::nullopt;
  return bytes;
}

bool create_once(int folder, const std::string& name, std::string_view bytes) {
  const std::string temporary = write_temporary(folder, name, bytes);
  int error = ::linkat(folder, temporary.c_str(), folder, name.c_str(), 0) == 0 ? 0 : errno;
  struct stat status = {};
  // NFS may answer a repeated request: the link is there, but the answer is an error.
  if (error != 0 && ::fstatat(folder, temporary.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_nlink == 2)
    error = 0;
  ::unlinkat(folder, temporary.c_str(), 0);
  if (error == EPERM || error == ENOSYS || error == EOPNOTSUPP || error == EMLINK) {  // no hard links here
    const Descriptor file(::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    error = file && write_at(file.get(), 0, bytes) ? 0 : errno;
  }
  if (error != 0 && error != EEXIST) throw refused(name, "cannot be written", error);
  ::fsync(folder);
  return error == 0;
}

void replace(int folder, const std::string& name, std::string_view bytes) {
  const std::string temporary = write_temporary(folder, name, bytes);
  if (::renameat(folder, temporary.c_str(), folder, name.c_str()) == 0) {
    ::fsync(folder);
    return;
  }
  const int error = errno;
  ::unlinkat(folder, temporary.c_str(), 0);
  throw refused(name, "cannot be written", error);
}

}  // namespace stepladder::far
