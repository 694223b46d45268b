#include "storage/database/migrations/migrations.h"

#include "storage/database/schema.h"

namespace stepladder {

std::span<const char* const> migrations() {
  using namespace migration;
  // A published one never changes, and its place is its number.
  static constexpr const char* list[] = {first_tables,
                                         life_cycle,
                                         summaries_with_checks,
                                         curation,
                                         overviews,
                                         console,
                                         profiles,
                                         identities,
                                         compact_steps,
                                         without_moved_steps,
                                         contention,
                                         queue,
                                         metrics,
                                         followed,
                                         traces,
                                         ladder_uids,
                                         machines,
                                         profiler,
                                         without_module,
                                         experiments_on_machines,
                                         rooflines,
                                         step_grain,
                                         own_share,
                                         reported_runs,
                                         tries,
                                         patches,
                                         trace_noise,
                                         predictions,
                                         tries_on_machines,
                                         rungs_below,
                                         wall_clock,
                                         looks,
                                         wall_clock_of_steps};
  return list;
}

}  // namespace stepladder
