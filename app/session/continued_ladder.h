// Which runs of a ladder are left to train.
#pragma once

#include <span>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// The runs of a ladder that were interrupted or stopped, or never began, in the order in which they were launched.
// Skips one that began if its rung has a run that was launched since. Empty while another one is queued or running, and
// for imported ladders.
std::vector<Run> runs_to_continue(std::span<const Run> runs);

}  // namespace stepladder
