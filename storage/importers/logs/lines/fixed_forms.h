// Lines, or their beginnings, whose numbers have a place instead of a name. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "storage/importers/logs/lines/step_line.h"

namespace stepladder {

inline constexpr std::int64_t largest_rank = 100'000;

// Each reads its form into `found`; false, with nothing changed, for any other line.
bool read_three_words(std::string_view line, StepLine& found);        // step, and train or val loss: the whole line
bool read_epoch_and_batch(std::string_view line, StepLine& found);    // "[2,  4000] loss"
bool read_step_and_clock(std::string_view line, StepLine& found);     // "[10 | 25.30]"
bool read_logged_bar(std::string_view line, StepLine& found);         // "Progress on: 50.0/600.0"
bool read_epoch_and_batches(std::string_view line, StepLine& found);  // "1epoch:train:51-100batch:", with means behind

// The process that a line's prefix names; -1 if it has none.
std::int64_t rank_of_mpirun(std::string_view line);

}  // namespace stepladder
