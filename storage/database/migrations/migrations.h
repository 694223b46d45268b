// The migrations of a project file as SQL; schema.h runs them.
#pragma once

#include <cstdint>

namespace stepladder {
namespace migration {

// runs.cpp
extern const char first_tables[];
extern const char life_cycle[];
extern const char summaries_with_checks[];
extern const char curation[];
extern const char identities[];
extern const char ladder_uids[];
extern const char step_grain[];
extern const char reported_runs[];
extern const char tries[];
extern const char patches[];
extern const char rungs_below[];
extern const char wall_clock[];
extern const char looks[];
extern const char wall_clock_of_steps[];

// steps.cpp
extern const char overviews[];
extern const char compact_steps[];
extern const char without_moved_steps[];

// recorded.cpp
extern const char console[];
extern const char profiles[];
extern const char contention[];
extern const char own_share[];
extern const char metrics[];

// processes.cpp
extern const char queue[];
extern const char followed[];
extern const char machines[];
extern const char experiments_on_machines[];
extern const char tries_on_machines[];

// traces.cpp
extern const char traces[];
extern const char profiler[];
extern const char without_module[];
extern const char rooflines[];
extern const char trace_noise[];
extern const char predictions[];

}  // namespace migration

// While a file has this version, some of its steps may still be in the old table. Nobody reads it then: whoever opens
// it moves the rest first.
inline constexpr std::int64_t version_with_steps_to_move = 9;

}  // namespace stepladder
