// Files that others wrote, and what SQLite would do with those beside a database.
#include "storage/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <streambuf>
#include <string_view>

namespace stepladder {
namespace {

ssize_t read_some(int descriptor, char* to, std::size_t most, std::int64_t offset) {
  ssize_t count = 0;
  do count = ::pread(descriptor, to, most, offset);
  while (count < 0 && errno == EINTR);
  return count;
}

// A rollback journal may end with the name of another file, which SQLite removes after it has rolled back
// (https://www.sqlite.org/fileformat2.html, "The Rollback Journal"; sqlite3's pager.c, readSuperJournal). Ours never
// do, since no transaction of ours spans two files.
bool names_another_file(const std::filesystem::path& journal) {
  constexpr std::string_view magic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
  const RegularFile bytes(journal);
  return bytes.size() >= std::ssize(magic) && bytes.read_at(bytes.size() - std::ssize(magic), magic.size()) == magic;
}

}  // namespace

Descriptor open_regular(const std::filesystem::path& path, std::string& why, Links links) {
  // Checked before it is opened, since opening a device may already do something; and again, since the name may change.
  struct stat about = {};
  if (::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode)) {
    why = S_ISDIR(about.st_mode) ? "is a folder, not a file" : "is not a regular file";
    return Descriptor();
  }
  const int no_link = links == Links::refused ? O_NOFOLLOW : 0;
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | no_link));
  if (!file && no_link != 0 && errno == ELOOP) {
    why = "is a link";
    return file;
  }
  if (!file) {
    why = std::string("cannot be opened: ") + std::strerror(errno);
    return file;
  }
  if (::fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode)) return file;
  why = "is not a regular file";
  return Descriptor();
}

class RegularFile::Buffer : public std::streambuf {
 public:
  explicit Buffer(int descriptor) : descriptor_(descriptor) {}

 protected:
  int_type underflow() override {
    const ssize_t count = descriptor_ < 0 ? 0 : read_some(descriptor_, bytes_.data(), bytes_.size(), next_);
    if (count < 0) throw std::ios_base::failure(std::strerror(errno));  // the stream turns bad
    if (count == 0) return traits_type::eof();
    next_ += count;
    setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
    return traits_type::to_int_type(bytes_[0]);
  }

  pos_type seekoff(off_type by, std::ios_base::seekdir from, std::ios_base::openmode) override {
    struct stat about = {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &about) != 0) return pos_type(off_type(-1));
    const off_type here = next_ - (egptr() - gptr());
    const off_type to = by + (from == std::ios_base::beg ? 0 : from == std::ios_base::cur ? here : about.st_size);
    if (to < 0) return pos_type(off_type(-1));
    if (to == here) return to;
    next_ = to;
    setg(nullptr, nullptr, nullptr);
    return to;
  }

  pos_type seekpos(pos_type to, std::ios_base::openmode which) override {
    return seekoff(off_type(to), std::ios_base::beg, which);
  }

 private:
  const int descriptor_;
  off_type next_ = 0;  // after the bytes in memory
  std::array<char, 65536> bytes_;
};

RegularFile::RegularFile(const std::filesystem::path& path, Links links)
    : std::istream(nullptr),
      descriptor_(open_regular(path, why_, links)),
      buffer_(std::make_unique<Buffer>(descriptor_.get())) {
  rdbuf(buffer_.get());  // clears the state
  if (!descriptor_) setstate(failbit);
}

RegularFile::~RegularFile() = default;

std::int64_t RegularFile::size() const {
  struct stat about = {};
  return descriptor_ && ::fstat(descriptor_.get(), &about) == 0 ? about.st_size : 0;
}

bool RegularFile::is_at(const std::filesystem::path& path) const {
  struct stat ours = {}, theirs = {};
  return descriptor_ && ::fstat(descriptor_.get(), &ours) == 0 && ::stat(path.c_str(), &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

std::string RegularFile::read_at(std::int64_t offset, std::size_t most) const {
  const std::int64_t rest = std::max<std::int64_t>(0, size() - offset);
  return stepladder::read_at(descriptor_.get(), static_cast<std::uint64_t>(offset),
                             std::min(most, static_cast<std::size_t>(rest)));
}

std::string strange_neighbour_of(const std::filesystem::path& database) {
  for (const char* ending : {"-wal", "-shm", "-journal"}) {
    const std::filesystem::path beside = database.string() + ending;
    struct stat status = {};
    if (::lstat(beside.c_str(), &status) != 0) continue;
    const std::string remedy = "; it isn't Stepladder's: move it away, and open " + database.string() + " again";
    if (!S_ISREG(status.st_mode)) return beside.string() + " is not a regular file" + remedy;
    if (status.st_nlink > 1)
      return beside.string() + " is also another file by a hard link, which opening " + database.string() +
             " would overwrite: copy the project without its links, and open the copy";
    if (ending == std::string_view("-journal") && names_another_file(beside))
      return beside.string() + " would remove another file when " + database.string() + " is opened" + remedy;
  }
  return {};
}

bool is_hollow(const std::filesystem::path& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && status.st_size > (std::int64_t{1} << 30) &&
         status.st_blocks * std::int64_t{512} < status.st_size / 64;
}

}  // namespace stepladder
