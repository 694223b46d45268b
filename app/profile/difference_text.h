// Words a difference of two profiles, and how many calls a trace holds, for the command line, the Profile view and
// reports.
#pragma once

#include <string>

#include "app/text/text_table.h"
#include "storage/traces/difference.h"

namespace stepladder {

// "aten::gelu -> triton_fused", and how many more; only one name if the other side has none, or the same.
std::string title_of(const RowDifference& row, const std::string& arrow = " -> ");
std::string title_with_shapes(const RowDifference& row, const std::string& arrow = " -> ");

// The rows worth reading, with their changes; all others in one row; and the whole step. `all`: every row.
TextTable difference_table(const ProfileDifference& difference, bool all);

// "3 of 57 rows differ beyond the noise between the steps of each trace"; or that none does, or that it isn't known.
std::string clear_rows_text(const ProfileDifference& difference);

// The change of each kind of work, the largest difference first; and of the whole step.
TextTable kinds_table(const ProfileDifference& difference);

// True if some of this work is in graphs that torch.compile made.
bool has_graphs(const std::vector<TracedOperator>& operators);

std::string traced_calls_text(const TraceProfile& profile);  // "3,778 kernel calls": of all its steps
std::string calls_text(double calls);                        // "-" if there are none
std::string calls_text(const RowDifference& row);            // "12 -> 4", "12"

}  // namespace stepladder
