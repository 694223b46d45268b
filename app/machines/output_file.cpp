#include "app/machines/output_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "storage/database/run_store.h"
#include "storage/importers/journal/run_events.h"
#include "storage/records.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t at_once = 1 << 20;
// A keeper sends less (app/far/output_journal.h), so this is for a machine that isn't one of Stepladder's.
constexpr std::int64_t most_output = std::int64_t{1} << 30;
constexpr std::string_view too_much = "\nstepladder: the output has more than 1 GiB; the rest of it isn't kept here\n";

}  // namespace

// The file is in UID, the folder of the output, or below it.
Descriptor FarOutputFile::opened(const fs::path& file, int flags) const {
  const fs::path mirrors = file_.parent_path().parent_path();
  return open_mirrored(mirrors, file.lexically_relative(mirrors), flags);
}

void FarOutputFile::ingest(const fs::path& journal, std::uint64_t size,
                           const std::function<void(std::string_view)>& show) {
  auto read = std::ranges::find(journals_, journal, &Read::journal);
  if (read == journals_.end()) read = journals_.insert(journals_.end(), Read{journal, JournalReader(0), 0});
  while (read->given < size) {
    const std::string bytes = read_at(opened(journal, O_RDONLY).get(), read->given,
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
    if (!output.empty() &&
        !write_at(opened(file_, O_WRONLY | O_CREAT).get(), static_cast<std::uint64_t>(size_), output))
      throw std::runtime_error(file_.string() + " can't be written: " + std::strerror(errno));
    read->reader = std::move(reader);
    read->given += bytes.size();
    size_ += std::ssize(output);
    for (const auto& [byte, at] : times)
      if (times_.empty() || at - times_.back().second >= 0.05) times_.emplace_back(byte, at);
    if (show && !output.empty()) show(output);
  }
}

double FarOutputFile::written_at(std::int64_t byte) const {
  const auto after = std::ranges::upper_bound(times_, std::pair{byte, 1e300});
  return after == times_.begin() ? missing : std::prev(after)->second;
}

std::string FarOutputFile::tail(std::size_t most) const {
  const std::int64_t begin = std::max<std::int64_t>(0, size_ - static_cast<std::int64_t>(most));
  try {
    if (size_ > 0)
      return read_at(opened(file_, O_RDONLY).get(), static_cast<std::uint64_t>(begin),
                     static_cast<std::size_t>(size_ - begin));
  } catch (const std::runtime_error&) {  // it is shown without it
  }
  return {};
}

// Opens every copy of a machine's file, so that none is read or written outside DATABASE.machines.

fs::path mirrors_folder(RunStore& store) {
  return store.file().string() + ".machines";
}

Descriptor open_mirrored(const fs::path& mirrors, const fs::path& name, int flags) {
  Descriptor file = open_own_file(mirrors, name, flags);
  if (file) return file;
  const bool is_not_ours = errno == ELOOP || errno == ENOTDIR || errno == EPERM;
  throw std::runtime_error(
      (mirrors / name).string() + " can't be opened: " +
      (is_not_ours ? "it, or a folder above it, is a link or not a file of ours" : std::strerror(errno)));
}

}  // namespace stepladder
