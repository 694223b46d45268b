// Which runs of a ladder are left to train.
#pragma once

#include <span>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// Of a ladder's runs, in the order in which they were launched, those that were interrupted or stopped, or never began.
// One that began is left out if its rung has a run that was launched since. Empty while another one is queued or
// running, and for imported ladders.
std::vector<Run> runs_to_continue(std::span<const Run> runs);

}  // namespace stepladder
