// The file where the recorder puts events that the database refuses: header with origin, then checksummed records. It
// tries the folder beside the database, then the user's cache. An append is all or nothing, and nothing here throws,
// since it runs when everything else has failed.
#include "storage/database/events/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "storage/database/events/event_bytes.h"
#include "storage/user_folders.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view spill_magic("SLSPILL\1", 8);
constexpr std::size_t spill_read_bytes = 1 << 20;

fs::path cache_folder() {
  return user_folder("XDG_CACHE_HOME", ".cache") / "stepladder" / "spill";
}

std::int64_t count_steps(std::span<const RunEvent> events) {
  return std::ranges::count_if(events, [](const RunEvent& event) { return std::holds_alternative<StepRecord>(event); });
}

}  // namespace

std::vector<fs::path> spill_folders(const fs::path& database) {
  return {fs::path(fs::absolute(database).string() + ".spill"), cache_folder()};
}

std::optional<EventOrigin> spill_header(std::string_view bytes, std::size_t& used) {
  if (!bytes.starts_with(spill_magic)) return std::nullopt;
  const auto payload = read_record(bytes.substr(spill_magic.size()), used);
  used += spill_magic.size();
  return payload ? origin_from(*payload) : std::nullopt;
}

SpillFile::~SpillFile() {
  if (events_ == 0) remove();
}

bool SpillFile::create(const std::string& why, std::size_t first_folder) {
  origin_.why = why;
  std::string header(spill_magic);
  append_record(header, to_bytes(origin_));
  const std::string name = unique_file_stem() + "." + kind_;
  const std::vector<fs::path> folders = spill_folders(origin_.database);
  for (const fs::path& folder : std::span(folders).subspan(first_folder)) {
    make_private_folders(folder);
    const fs::path file = folder / name;
    descriptor_ = Descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!descriptor_) continue;
    file_ = file;
    if (lock_alone(descriptor_.get()) && write_at(descriptor_.get(), 0, header) && sync_to_disk(folder)) {
      begin_ = end_ = static_cast<std::int64_t>(header.size());
      return true;
    }
    remove();
  }
  return false;
}

bool SpillFile::append(std::span<const RunEvent> events, const std::string& why) {
  if (events.empty()) return true;
  std::string bytes;
  std::string payload;
  for (const RunEvent& event : events) {
    payload.clear();
    append_event(payload, event);
    if (payload.size() > longest_record) return false;
    append_record(bytes, payload);
  }
  // The first folder may be full and the other one not.
  for (std::size_t folder = 0; folder < 2; ++folder) {
    if (!descriptor_ && !create(why, folder)) return false;
    if (write_at(descriptor_.get(), static_cast<std::uint64_t>(end_), bytes) && ::fdatasync(descriptor_.get()) == 0) {
      end_ += static_cast<std::int64_t>(bytes.size());
      events_ += std::ssize(events);
      steps_ += count_steps(events);
      return true;
    }
    [[maybe_unused]] const int cut = ::ftruncate(descriptor_.get(), end_);
    if (events_ > 0) return false;
    remove();
  }
  return false;
}

bool SpillFile::read(std::vector<RunEvent>& events, std::size_t most) {
  events.clear();
  std::string bytes;
  for (std::size_t wanted = spill_read_bytes;; wanted *= 4) {
    bytes.resize(std::min(wanted, static_cast<std::size_t>(end_ - begin_)));
    const ssize_t count = ::pread(descriptor_.get(), bytes.data(), bytes.size(), begin_);
    if (count < 0) return false;
    bytes.resize(static_cast<std::size_t>(count));
    EventRecords found = read_records(bytes, most);
    events = std::move(found.events);
    read_bytes_ = found.used;
    if (found.damaged > 0) return false;
    if (!events.empty() || wanted >= static_cast<std::size_t>(end_ - begin_)) break;
  }
  read_events_ = std::ssize(events);
  read_steps_ = count_steps(events);
  return !events.empty();
}

void SpillFile::forget() {
  begin_ += static_cast<std::int64_t>(read_bytes_);
  events_ -= read_events_;
  steps_ -= read_steps_;
  read_bytes_ = 0;
  read_events_ = read_steps_ = 0;
  if (events_ == 0) remove();
}

void SpillFile::remove() {
  if (file_.empty()) return;
  std::error_code ignored;
  fs::remove(file_, ignored);
  ::rmdir(file_.parent_path().c_str());  // only if it is empty
  descriptor_.reset();
  file_.clear();
  begin_ = end_ = events_ = steps_ = 0;
}

}  // namespace stepladder
