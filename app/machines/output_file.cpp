#include "app/machines/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "storage/importers/journal/run_events.h"
#include "storage/own_folder.h"
#include "storage/records.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t at_once = 1 << 20;
// A keeper sends less (app/far/journal_file.h), so this is for a machine that isn't one of Stepladder's.
constexpr std::int64_t most_output = std::int64_t{1} << 30;
constexpr std::string_view too_much = "\nstepladder: the output has more than 1 GiB; the rest of it isn't kept here\n";

// A file below DATABASE.machines/UID, without links: the folder may have come with the project.
Descriptor open_below_machines(const fs::path& file, const fs::path& folder, int flags) {
  const fs::path machines = folder.parent_path();
  const Descriptor top = (flags & O_CREAT) != 0 ? make_own_folder(machines) : open_own_folder(machines);
  std::vector<std::string> parts;
  for (const fs::path& part : file.lexically_relative(machines)) parts.push_back(part.string());
  Descriptor opened = top ? open_below(top.get(), parts, flags, (flags & O_CREAT) != 0) : Descriptor();
  struct stat status = {};
  if (opened && ::fstat(opened.get(), &status) == 0 && S_ISREG(status.st_mode)) return opened;
  throw std::runtime_error(file.string() +
                           " can't be opened: " + (opened ? "it isn't a regular file" : std::strerror(errno)));
}

// Up to `most` bytes; less only at the file's end.
std::string bytes_at(const Descriptor& file, std::uint64_t at, std::size_t most) {
  std::string bytes(most, '\0');
  std::size_t filled = 0;
  for (ssize_t count = 1; count > 0 && filled<most; filled += count> 0 ? static_cast<std::size_t>(count) : 0)
    count = ::pread(file.get(), bytes.data() + filled, most - filled, static_cast<off_t>(at + filled));
  bytes.resize(filled);
  return bytes;
}

void write_at(const Descriptor& file, std::string_view bytes, std::int64_t at) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file.get(), bytes.data(), bytes.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw std::runtime_error(std::string("the output can't be written: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(count));
    at += count;
  }
}

}  // namespace

void OutputFile::take_in(const fs::path& journal, std::uint64_t size,
                         const std::function<void(std::string_view)>& show) {
  auto read =
      std::find_if(journals_.begin(), journals_.end(), [&](const Read& each) { return each.journal == journal; });
  if (read == journals_.end()) read = journals_.insert(journals_.end(), Read{journal, JournalReader(0), 0});
  while (read->given < size) {
    const std::string bytes = bytes_at(open_below_machines(journal, file_.parent_path(), O_RDONLY), read->given,
                                       static_cast<std::size_t>(std::min<std::uint64_t>(at_once, size - read->given)));
    if (bytes.empty()) return;
    JournalReader reader = read->reader;
    reader.take(bytes);
    std::string output;
    std::vector<std::pair<std::int64_t, double>> times;
    while (true) {
      JournalEvent event;
      if (!reader.next(event)) {
        if (!reader.is_stuck()) break;
        reader.skip();
        continue;
      }
      if (event.kind != "out") continue;
      times.emplace_back(size_ + std::ssize(output), number_in(event.fields, "t"));
      output += bytes_of_text(text_in(event.fields, "b"));
    }
    if (size_ >= most_output) {
      output.clear();
      times.clear();
    } else if (size_ + std::ssize(output) >= most_output) {
      output.resize(static_cast<std::size_t>(most_output - size_));
      output += too_much;
    }
    if (!output.empty()) write_at(open_below_machines(file_, file_.parent_path(), O_WRONLY | O_CREAT), output, size_);
    read->reader = std::move(reader);
    read->given += bytes.size();
    size_ += std::ssize(output);
    for (const auto& [byte, at] : times)
      if (times_.empty() || at - times_.back().second >= 0.05) times_.emplace_back(byte, at);
    if (show && !output.empty()) show(output);
  }
}

double OutputFile::written_at(std::int64_t byte) const {
  const auto after = std::upper_bound(times_.begin(), times_.end(), std::pair{byte, 1e300});
  return after == times_.begin() ? missing : std::prev(after)->second;
}

std::string OutputFile::tail(std::size_t most) const {
  const std::int64_t begin = std::max<std::int64_t>(0, size_ - static_cast<std::int64_t>(most));
  try {
    if (size_ > 0)
      return bytes_at(open_below_machines(file_, file_.parent_path(), O_RDONLY), static_cast<std::uint64_t>(begin),
                      static_cast<std::size_t>(size_ - begin));
  } catch (const std::runtime_error&) {  // it is shown without it
  }
  return {};
}

}  // namespace stepladder
