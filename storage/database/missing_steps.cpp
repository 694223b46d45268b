#include "storage/database/missing_steps.h"

#include <algorithm>

#include "storage/database/database.h"
#include "storage/wording.h"

namespace stepladder {

std::int64_t count_stored_steps(Database& database, RunId run, std::int64_t first, std::int64_t last) {
  return database.integer("SELECT count(*) FROM steps WHERE run_id = ? AND step BETWEEN ? AND ?", run, first, last);
}

MissingSteps missing_steps(Database& database, RunId run, std::int64_t first, std::int64_t last) {
  MissingSteps steps{.expected = std::max<std::int64_t>(0, last - first + 1)};
  steps.missing = steps.expected - count_stored_steps(database, run, first, last);
  if (steps.missing == 0) return steps;
  Statement rows(database, "SELECT step FROM steps WHERE run_id = ? AND step BETWEEN ? AND ? ORDER BY step", run, first,
                 last);
  std::int64_t before = first - 1;
  const auto take_gap = [&](std::int64_t next) {
    if (next == before + 1) return;
    if (steps.first == 0) steps.first = before + 1;
    steps.last = next - 1;
  };
  for (; rows.step(); before = rows.integer(0)) take_gap(rows.integer(0));
  take_gap(last + 1);
  return steps;
}

std::string missing_steps_text(const MissingSteps& steps) {
  if (steps.missing == 0) return "";
  const std::string where = steps.first == steps.last ? "step " + grouped(steps.first) + " is missing"
                                                      : grouped(steps.missing) + " between " + grouped(steps.first) +
                                                            " and " + grouped(steps.last) + " are missing";
  return grouped(steps.expected - steps.missing) + " of " + grouped(steps.expected) + " steps are stored; " + where;
}

}  // namespace stepladder
