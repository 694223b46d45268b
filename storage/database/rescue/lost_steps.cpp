#include "storage/database/rescue/lost_steps.h"

#include "storage/wording.h"

namespace stepladder {

std::string lost_steps(Database& database) {
  Statement rows(database,
                 "SELECT id, (SELECT count(*) FROM steps WHERE run_id = id) AS stored, summaries.steps "
                 "FROM summaries JOIN runs ON id = run_id WHERE hidden = 0 AND stored < summaries.steps ORDER BY id");
  std::string found;
  while (rows.step()) {
    found += fmt::format("{}run {} has {} of the {} steps that its summary counts", found.empty() ? "" : "; ",
                         rows.integer(0), grouped(rows.integer(1)), grouped(rows.integer(2)));
  }
  return found;
}

}  // namespace stepladder
