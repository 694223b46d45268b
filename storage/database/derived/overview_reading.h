// Overviews of a series of any length: from cached chunks where there are any, else from its values. Inside storage/
// only.
#pragma once

#include <functional>
#include <optional>

#include "storage/analysis/overview.h"
#include "storage/database/step_rows.h"

namespace stepladder {

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

}  // namespace stepladder
