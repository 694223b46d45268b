// A cache of summaries and overviews, derived from a run's steps, so that a thousand runs open quickly. Missing entries
// are computed again, and so are summaries and numbers of chunks that don't have this user's seal. Inside storage/
// only.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/analysis/overview.h"
#include "storage/analysis/summary.h"
#include "storage/database/database.h"
#include "storage/database/derived/figure_seal.h"
#include "storage/database/step_rows.h"
#include "storage/records.h"

namespace stepladder {

// Overviews of a series of any length: from cached chunks where there are any, else from its values. Inside storage/
// only.

// One series of a file: a quantity of a run's steps, or a metric.
struct OverviewSource {
  // Its buckets of this level within these steps, in order; level -1: the highest. Nullopt: chunks are incomplete or
  // damaged. Empty function: it has none, since it is short or still grows.
  std::function<std::optional<Overview>(int level, StepRange range)> chunks;

  // Passes its values within these steps to `use`, in order.
  using Use = std::function<void(std::int64_t step, double value)>;
  std::function<void(StepRange range, const Use& use)> values;
};

// The highest level.
Overview read_overview(const OverviewSource& source);

// Within these steps, fine enough for so many columns of pixels (RunStore::overview).
Overview read_overview(const OverviewSource& source, StepRange range, std::size_t columns);

// The rows of a statement over level, first_step and buckets, by last_step: those within these steps. Nullopt if one is
// damaged.
std::optional<Overview> overview_of_chunks(Statement& rows, StepRange range);

class Derived {
 public:
  explicit Derived(Database& database) : database_(database), seal_(database) {}

  // The columns of a cached summary, the condition under which it is valid, and a reader of them from `column` on:
  // nullopt if it lacks the seal.
  static const std::string summary_columns;
  static const std::string counts_for_run;
  std::optional<Summary> read(const Run& run, const Statement& row, int column);
  std::optional<Summary> kept(const Run& run);
  FigureSeal& seal() { return seal_; }

  // Reads all steps, in bounded memory. Caches summary and overviews if the run is over and the file can be written, in
  // short transactions between reads. A locked or full file does not prevent the answer.
  Summary make(const Run& run);

  // Those of many runs, of which the short ones are cached together: a transaction each would wait for the disk as
  // often.
  std::vector<Summary> make(std::span<const Run* const> runs);

  // Call after a write. Never throws: a figure that fails here is computed when somebody asks for it.
  void refresh(const Run& run);

  // Call with every change to a run or its steps.
  void forget(RunId run);

  Overview overview(const Run& run, Quantity quantity);
  Overview overview(const Run& run, Quantity quantity, StepRange range, std::size_t columns);

 private:
  class Chunks;

  std::optional<std::int64_t> steps_of_overviews(RunId run);  // nullopt: incomplete
  bool ensure_overviews(const Run& run);
  std::optional<Overview> kept_overview(RunId run, Quantity quantity, int level, StepRange range);
  OverviewSource source(const Run& run, Quantity quantity);
  struct Made {
    Run run;
    Summary summary;
  };
  Summary make(const Run& run, std::vector<Made>* later);
  void keep(std::span<const Made> made);
  void keep(const Run& run, const Summary& summary);
  void note_complete_chunks(const Run& run, std::int64_t steps);

  Database& database_;
  FigureSeal seal_;
};

}  // namespace stepladder
