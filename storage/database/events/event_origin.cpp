#include "storage/database/events/event_origin.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "storage/database/events/event_bytes.h"

namespace stepladder {
namespace fs = std::filesystem;

std::optional<FileIdentity> identity_of(const fs::path& file) {
#ifdef STATX_BTIME
  struct statx status {};
  if (::statx(AT_FDCWD, file.c_str(), 0, STATX_INO | STATX_BTIME, &status) == 0) {
    FileIdentity identity{.device = static_cast<std::int64_t>(status.stx_dev_major) << 32 | status.stx_dev_minor,
                          .inode = static_cast<std::int64_t>(status.stx_ino)};
    if (status.stx_mask & STATX_BTIME)
      identity.born_ns = std::int64_t{status.stx_btime.tv_sec} * 1'000'000'000 + status.stx_btime.tv_nsec;
    return identity;
  }
  return std::nullopt;
#else
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;
  return FileIdentity{.device = static_cast<std::int64_t>(status.st_dev),
                      .inode = static_cast<std::int64_t>(status.st_ino)};
#endif
}

EventOrigin origin_of_this_process(const fs::path& database) {
  return {.database = fs::absolute(database).lexically_normal().string(),
          .file = identity_of(database).value_or(FileIdentity{}),
          .process = run_owner()};
}

std::string to_bytes(const EventOrigin& origin) {
  std::string bytes;
  ByteWriter write(bytes);
  write(origin.database), write(origin.file.device), write(origin.file.inode), write(origin.file.born_ns);
  write(origin.process.pid), write(origin.process.start), write(origin.process.boot), write(origin.why);
  return bytes;
}

std::optional<EventOrigin> origin_from(std::string_view bytes) {
  EventOrigin origin;
  ByteReader read(bytes);
  read(origin.database), read(origin.file.device), read(origin.file.inode), read(origin.file.born_ns);
  read(origin.process.pid), read(origin.process.start), read(origin.process.boot), read(origin.why);
  if (!read.at_end()) return std::nullopt;
  return origin;
}

bool lock_alone(int descriptor) {
  using namespace std::chrono_literals;
  const auto until = std::chrono::steady_clock::now() + 1s;
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

std::string unique_file_stem() {
  static std::atomic<int> count = 0;
  const ProcessIdentity process = this_process();
  return std::to_string(process.pid) + "-" + std::to_string(process.start) + "-" + std::to_string(++count);
}

}  // namespace stepladder
