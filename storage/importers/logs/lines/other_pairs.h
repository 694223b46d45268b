// The numbers of a step's line that have a name and no field in a step: "acc=0.91", "'rewards/chosen': 0.4".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/logs/lines/step_line.h"

namespace stepladder {

struct OtherPair {
  std::string name;       // as printed, without the quotes of a record
  std::string_view unit;  // behind the number; may be empty
  double value = missing;
};

// `line` is what read_step_line found in `text`. Numbers that gave one of its values are skipped.
void read_other_pairs(std::string_view text, const StepLine& line, std::vector<OtherPair>& pairs);

// Whether there are any such numbers; allocates nothing.
bool has_other_pairs(std::string_view text, const StepLine& line);

}  // namespace stepladder
