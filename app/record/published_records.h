// The published history of a speed run's records, from assets/records: facts and figures, with their source.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct PublishedRecord {
  int number = 0;
  double minutes = missing;
  std::int64_t day_s = 0;   // unix seconds of its day's beginning, UTC
  std::string date;         // "2024-10-04"
  std::string what;         // in a few words; empty: not known
  double factor = missing;  // over the record before, by the same rules of timing; missing for the first
};

struct PublishedRecords {
  std::string title, source, read;
  std::vector<std::string> notes;
  std::vector<PublishedRecord> records;  // by number

  double total_factor() const;  // of the last over the first
};

// Throws StorageError, which names the file and what is wrong.
PublishedRecords read_published_records(const std::filesystem::path& file);

}  // namespace stepladder
