// The texts of a step's line that have a name: "optimizer=muon", "'dtype': 'bf16'", "| optimizer muon |". Pure.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace stepladder {

// The views are of `line`. Texts with numbers of their own ("run-2", a date) aren't among them.
void read_text_pairs(std::string_view line, std::vector<std::pair<std::string_view, std::string_view>>& pairs);

}  // namespace stepladder
