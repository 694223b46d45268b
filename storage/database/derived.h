// What follows from a run's steps and is kept beside them, so that a thousand runs open at once: summaries and
// overviews. A cache: safe to lose, made again where it is missing. Inside storage/ only.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "storage/analysis/overview.h"
#include "storage/analysis/summary.h"
#include "storage/database/database.h"
#include "storage/database/step_rows.h"
#include "storage/records.h"

namespace stepladder {

class Derived {
 public:
  explicit Derived(Database& database) : database_(database) {}

  // The columns of a kept summary, the condition under which it counts, and how they are read from `column` on.
  static const std::string summary_columns;
  static const std::string counts_for_run;
  static Summary read(const Statement& row, int column);
  std::optional<Summary> kept(const Run& run);

  // Reads all steps, in bounded memory. Where the run is over and the file can be written, summary and overviews are
  // kept, in short transactions between reading; a file that is locked or full meanwhile keeps nobody from the answer.
  Summary make(const Run& run);

  // For those who have just written, and whose work is safe whether this can be made now or only later.
  void refresh(const Run& run);

  // To be called with every change of a run or its steps.
  void forget(RunId run);

  Overview overview(const Run& run, Quantity quantity);
  Overview overview(const Run& run, Quantity quantity, StepRange range, std::size_t columns);

 private:
  class Chunks;

  std::optional<std::int64_t> steps_of_overviews(RunId run);  // nullopt: they are not complete
  bool ensure_overviews(const Run& run);
  std::optional<Overview> kept_overview(RunId run, Quantity quantity, int level, StepRange range);
  void keep(const Run& run, const Summary& summary);

  Database& database_;
};

}  // namespace stepladder
