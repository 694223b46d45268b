// Writes a copy with VACUUM INTO to OUT.part, syncs it and links it to its name, so no half copy ever has the name and
// no file is replaced. A lock on the part keeps two processes from writing the same backup.
#include "storage/database/backup.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "storage/database/database.h"
#include "storage/own_folder.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void throw_not_written(const fs::path& out, const std::string& why) {
  throw StorageError("the copy " + out.string() + " could not be written: " + why);
}

[[noreturn]] void throw_not_written(const fs::path& out) {
  throw_not_written(out, std::generic_category().message(errno));
}

// Closes and, until then, locks a file against other processes that write the same backup.
class LockedFile {
 public:
  explicit LockedFile(const fs::path& out, const char* ending = ".part") : out_(out), part_(out.string() + ending) {
    while (!file_) {
      Descriptor opened(::open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      if (!opened) throw_not_written(out_);
      if (flock(opened.get(), LOCK_EX) != 0 || !is_still_there(opened.get())) continue;
      file_ = own_regular(std::move(opened));
      if (!file_) ::unlink(part_.c_str());  // somebody's file by another name, of which only this name goes
    }
    // A copy that another process didn't finish.
    if (ftruncate(file_.get(), 0) != 0 || fchmod(file_.get(), 0600) != 0) throw_not_written(out_);
  }
  ~LockedFile() { ::unlink(part_.c_str()); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  const fs::path& part() const { return part_; }

  // Gives it its name once the disk has all of it.
  void publish() {
    if (fsync(file_.get()) != 0) throw_not_written(out_);
    if (!name_new_file(part_, out_)) throw_not_written(out_);
    sync_to_disk(fs::absolute(out_).parent_path());
  }

 private:
  bool is_still_there(int file) const {
    struct stat opened {
    }, named{};
    return fstat(file, &opened) == 0 && ::stat(part_.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
  }

  fs::path out_;
  fs::path part_;
  Descriptor file_;
};

void require_room(Database& database, const fs::path& out) {
  const std::int64_t bytes = (database.integer("PRAGMA page_count") - database.integer("PRAGMA freelist_count")) *
                             database.integer("PRAGMA page_size");
  std::error_code error;
  const fs::space_info space = fs::space(fs::absolute(out).parent_path(), error);
  if (error || static_cast<std::int64_t>(space.available) > bytes) return;
  constexpr std::int64_t mb = 1'000'000;
  throw_not_written(out, "it takes " + grouped(bytes / mb + 1) + " MB, and " + grouped(space.available / mb) +
                             " MB are free on its volume");
}

}  // namespace

void refuse_existing(const fs::path& out) {
  if (fs::exists(fs::symlink_status(out))) throw_not_written(out, "it exists already");
}

void back_up(Database& database, const fs::path& out) {
  refuse_existing(out);
  LockedFile file(out);
  refuse_existing(out);  // another process may just have made it
  require_room(database, out);
  try {
    // Reads one state of the file, in which others may write meanwhile.
    database.run("VACUUM INTO ?", fs::absolute(file.part()).string());
  } catch (const StorageError& error) {
    std::error_code unknown;
    const fs::space_info space = fs::space(fs::absolute(out).parent_path(), unknown);
    if (!unknown && space.available < 4096) throw_not_written(out, "no space is left on its volume");
    throw_not_written(out, error.what());
  }
  file.publish();
}

std::shared_ptr<const void> back_up_before_migration(Database& database, std::int64_t version) {
  if (database.file().empty() || database.integer("SELECT EXISTS (SELECT 1 FROM runs)") == 0) return {};
  const std::string name = fmt::format("{}.before-{}", database.file().string(), version + 1);
  try {
    const auto others = std::make_shared<LockedFile>(name, ".lock");
    if (database.integer("PRAGMA user_version") != version) return {};  // another process has just migrated it
    fs::path out = name;
    // Never replaces an earlier backup, which may hold runs that have been deleted since.
    for (int i = 2; fs::exists(fs::symlink_status(out)); ++i) out = fmt::format("{}-{}", name, i);
    back_up(database, out);
    return others;
  } catch (const StorageError& error) {
    throw MigrationError(database.file().string() +
                         " is as it was, and this version of Stepladder can't use it yet: " + error.what());
  }
}

FileContents contents_of(const fs::path& backup) {
  Database database(backup, Database::Mode::foreign);
  return {.bytes = static_cast<std::int64_t>(fs::file_size(backup)),
          .runs = database.integer("SELECT count(*) FROM runs"),
          .steps = database.integer("SELECT count(*) FROM steps")};
}

}  // namespace stepladder
