// Files as versions before 9 wrote them.
#pragma once

#include <string>

#include "storage/database/database.h"
#include "storage/database/schema.h"

namespace stepladder {

inline constexpr std::size_t newest_old_version = 8;

inline void make_old_file(const std::filesystem::path& file, const std::string& rows,
                          std::size_t version = newest_old_version) {
  Database database(file, Database::Mode::read_write);
  for (std::size_t i = 0; i < version; ++i) database.execute(migrations()[i]);
  database.execute("PRAGMA application_id = " + std::to_string(application_id) +
                   "; PRAGMA user_version = " + std::to_string(version) + ";" + rows);
}

// SQL for a finished run with steps 1 to `steps`, whose values follow from their number.
inline std::string old_run(int id, int steps) {
  const std::string run = std::to_string(id);
  return "INSERT INTO runs (id, name, status, created_at) VALUES (" + run + ", 'r" + run +
         "', 'finished', 1.0);"
         "INSERT INTO steps (run_id, step, attempt, loss, dt_ms, tokens, at) WITH RECURSIVE n(i) AS (SELECT 1 UNION "
         "ALL "
         "SELECT i + 1 FROM n WHERE i < " +
         std::to_string(steps) + ") SELECT " + run + ", i, 1, 1.0 / i, 50 + i / 128.0, 4096, 1790000000 + i FROM n;";
}

}  // namespace stepladder
