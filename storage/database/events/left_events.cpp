// Finds rings and spill files of this user's exited processes and hands their events to the next process, for one
// database. File locks decide who may take a file: shared while looking, exclusive while storing. The spill file is
// read before the ring, since its events are older.
#include "storage/database/events/left_events.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "storage/database/events/event_bytes.h"
#include "storage/database/events/event_ring.h"
#include "storage/database/events/spill_file.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t events_a_piece = 4096;
constexpr std::size_t first_read_bytes = 1 << 20;

// Whether the folder of a database was deleted; false where its volume is just not mounted.
bool folder_was_deleted(const EventOrigin& origin) {
  const fs::path folder = fs::path(origin.database).parent_path();
  std::error_code error;
  if (fs::exists(folder, error) || error) return false;
  fs::path above = folder;
  while (above.has_relative_path() && !fs::exists(above, error)) above = above.parent_path();
  const auto found = identity_of(above);
  return found && found->device == origin.file.device;
}

}  // namespace

std::vector<std::unique_ptr<LeftEvents>> LeftEvents::of_database(const fs::path& database) {
  std::vector<std::unique_ptr<LeftEvents>> found;
  const std::string name = fs::absolute(database).lexically_normal().string();
  const auto identity = identity_of(database);
  const std::string ring_prefix = "stepladder-" + std::to_string(::geteuid()) + "-";
  std::vector<fs::path> folders = spill_folders(database);
  folders.push_back(shared_memory_folder);
  for (const fs::path& folder : folders) {
    const bool holds_rings = folder == shared_memory_folder;
    if (!holds_rings && !open_own_folder(folder)) continue;  // a link leads to somebody's files
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (holds_rings && !entry->path().filename().string().starts_with(ring_prefix)) continue;
      auto left = open(entry->path());
      if (!left) continue;
      const bool is_wanted = left->origin_.database == name || (identity && left->origin_.file == *identity);
      const bool is_nobodys = !is_wanted && holds_rings && folder_was_deleted(left->origin_);
      if ((is_wanted || is_nobodys) && !left->take()) continue;
      if (is_wanted) found.push_back(std::move(left));
      if (is_nobodys) left->remove();
    }
  }
  // A process's spill file holds older events than its ring.
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a->steps_.empty() && !b->steps_.empty(); });
  return found;
}

// Null if the file isn't one of ours, or its process lives, or another process is storing it. Others may look at it at
// the same time, so that none takes the other for its owner.
std::unique_ptr<LeftEvents> LeftEvents::open(const fs::path& file) {
  Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!descriptor) return nullptr;
  std::unique_ptr<LeftEvents> left(new LeftEvents(file, std::move(descriptor)));
  if (!left->is_ours() || ::flock(left->descriptor_.get(), LOCK_SH | LOCK_NB) != 0 || !left->understand())
    return nullptr;
  return left;
}

bool LeftEvents::is_ours() const {
  struct stat status {};
  return ::fstat(descriptor_.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
         status.st_nlink > 0;  // 0: another process has taken it in meanwhile
}

// False if another process was faster.
bool LeftEvents::take() {
  return lock_alone(descriptor_.get()) && is_ours();
}

bool LeftEvents::understand() {
  constexpr std::size_t most_ring_bytes = 4 << 20;
  const std::string bytes = read_at(descriptor_.get(), 0, most_ring_bytes);
  std::size_t used = 0;
  if (const auto origin = spill_header(bytes, used)) {
    origin_ = *origin;
    at_ = static_cast<std::int64_t>(used);
    return true;
  }
  auto content = EventRing::content_of(bytes);
  if (!content) return false;
  origin_ = std::move(content->origin);
  steps_ = std::move(content->steps);
  std::ranges::reverse(steps_);  // taken from the end
  return true;
}

bool LeftEvents::next(std::vector<RunEvent>& events) {
  events.clear();
  if (is_ring()) {
    for (; !steps_.empty() && events.size() < events_a_piece; steps_.pop_back())
      events.push_back(std::move(steps_.back()));
    return !events.empty();
  }
  struct stat status {};
  if (::fstat(descriptor_.get(), &status) != 0) return false;
  for (std::size_t wanted = first_read_bytes; events.empty() && at_ < status.st_size; wanted *= 4) {
    const auto left = static_cast<std::size_t>(status.st_size - at_);
    const std::string bytes =
        read_at(descriptor_.get(), static_cast<std::uint64_t>(at_), std::min({wanted, left, longest_record + 16}));
    EventRecords found = read_records(bytes, events_a_piece);
    events = std::move(found.events);
    at_ += static_cast<std::int64_t>(found.used);
    damaged_ += found.damaged;
    if (found.used == 0 && bytes.size() < wanted) break;  // the last record was cut short
  }
  return !events.empty();
}

void LeftEvents::remove() {
  std::error_code ignored;
  fs::remove(file_, ignored);
  if (!is_ring()) ::rmdir(file_.parent_path().c_str());  // only if it is empty
}

}  // namespace stepladder
