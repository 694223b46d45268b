// The output of a program on another machine, put together here from the journals of its keeper.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/importers/journal/journal_reader.h"
#include "storage/own_folder.h"

namespace stepladder {

// DATABASE.machines has a folder UID for each run that was started on a machine: the copies of its journals, its
// output, and the files to be sent.

class RunStore;

std::filesystem::path mirrors_folder(RunStore& store);

// A file in it, such as "UID/keeper/rank-0.1.jsonl", by open(2)'s flags; O_CREAT makes the folders above it. Throws
// std::runtime_error, also if DATABASE.machines is a link: it may have come with the project.
Descriptor open_mirrored(const std::filesystem::path& mirrors, const std::filesystem::path& name, int flags);

// Not thread-safe: one thread. Reading the same journals again writes the same bytes, so two processes may do it.
class FarOutputFile {
 public:
  // `file` is DATABASE.machines/UID/output.log, and the journals are below UID.
  explicit FarOutputFile(std::filesystem::path file) : file_(std::move(file)) {}

  // Appends what is new in the first `size` bytes of this journal; `show` gets it too. Call it for the journals in the
  // order of attempts. Throws std::runtime_error if the file can't be written; then nothing is lost, and the next call
  // tries it again.
  void ingest(const std::filesystem::path& journal, std::uint64_t size,
              const std::function<void(std::string_view)>& show);

  const std::filesystem::path& path() const { return file_; }
  std::int64_t size() const { return size_; }
  double written_at(std::int64_t byte) const;  // unix seconds there
  std::string tail(std::size_t most) const;    // its last bytes

 private:
  Descriptor opened(const std::filesystem::path& file, int flags) const;

  struct Read {
    std::filesystem::path journal;
    JournalReader reader;
    std::uint64_t given = 0;
  };

  std::filesystem::path file_;
  std::vector<Read> journals_;
  std::int64_t size_ = 0;
  std::vector<std::pair<std::int64_t, double>> times_;  // from which byte on; few: one a second
};

}  // namespace stepladder
