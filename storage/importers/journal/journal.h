// The journals that stepladder.py writes (docs/journal.md): a file a process, a folder a run.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "storage/importers/importer.h"

namespace stepladder {

struct JournalPlace {
  std::int64_t rank = 0;
  std::int64_t attempt = 1;
  auto operator<=>(const JournalPlace&) const = default;
};

// "rank-0.1.jsonl" is rank 0's first attempt.
std::optional<JournalPlace> journal_place(const std::filesystem::path& file);

// The journals in a run's folder: by rank, then attempt. Empty for any other folder.
std::vector<std::filesystem::path> journals_in(const std::filesystem::path& folder);

// Throws ImportError if there is no readable journal.
void read_journal_folder(const std::filesystem::path& folder, ImportSink& sink);

}  // namespace stepladder
