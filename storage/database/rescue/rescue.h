// Saves what can be read of a damaged project file in a new one. Reads the damaged file's pages without SQLite, which
// gives up a whole table where an inner page of its tree is damaged, and never writes to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct RescuedTable {
  std::string name;
  std::int64_t rows = 0;           // saved
  std::int64_t damaged_rows = 0;   // on pages of which other rows were saved
  std::int64_t damaged_pages = 0;  // each with an unknown number of rows, some of which were found elsewhere

  bool is_damaged() const { return damaged_rows > 0 || damaged_pages > 0; }
};

struct DamagedRun {
  RunId id = 0;
  std::string name;
  std::int64_t steps = 0;
  std::int64_t missing_steps = 0;    // as far as known
  bool more_may_be_missing = false;  // nothing says how many steps it had
  bool row_is_lost = false;          // its name, settings and status
};

struct RescueReport {
  std::vector<RescuedTable> tables;  // those that hold more than what is derived from others
  std::vector<DamagedRun> runs;      // that lack something
  std::int64_t runs_saved = 0;
  std::int64_t steps_saved = 0;
  std::int64_t lost_transactions = 0;  // behind a damaged frame of the log: SQLite would drop them
  std::int64_t stale_pages = 0;        // whose newest content was in a damaged frame; an older one was read
  std::int64_t unreadable_bytes = 0;   // where the disk failed
  std::vector<std::string> notes;      // sentences about anything else

  bool is_whole() const;  // everything was saved
};

// Creates `out`, for its owner only, and only if it doesn't exist; it gets its name once it is whole and on the disk.
// A run that lacks steps is no longer `finished`, and its reason says what it lacks. A file of an older version is
// brought up to date. Summaries, overviews and requests aren't copied: they are computed again. Throws StorageError: a
// file of another program or of a newer version, a file that another process has open, or one that holds no table; also
// once `is_stopped` is true, and then there is no new file.
RescueReport rescue(const std::filesystem::path& damaged, const std::filesystem::path& out,
                    const std::function<bool()>& is_stopped = {});

}  // namespace stepladder
