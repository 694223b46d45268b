// The pair of traces that comes with the program: what a step of modded-nanogpt took before and after a record's
// change.
#pragma once

#include <string>
#include <vector>

namespace stepladder {

inline constexpr const char* example_traces_title = "Why: a real record";

// Their files, the earlier one first; empty if the program's assets lack one. They are read as any file is.
std::vector<std::string> example_traces();

}  // namespace stepladder
