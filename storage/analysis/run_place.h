// The place where a run was measured. A factor describes a change only if both of its sides ran in the same place.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct RunPlace {
  std::vector<std::string> hosts;  // several if it was continued on another one; empty: not known
  std::string hardware;            // empty: not known
  std::string device;              // "cuda", without a number; empty: not known

  bool operator==(const RunPlace&) const = default;
};

// The place by Run::hardware and, in Run::environment, `host` and `hosts`.
RunPlace place_of(const Run& run);

// The alias of the machine that the run was launched on; empty if it ran here.
std::string machine_of(const Run& run);

// "on node1 (NVIDIA H200)"; empty if nothing is known.
std::string place_text(const RunPlace& place);

// Whether two places differ in something that is known of both.
bool are_elsewhere(const RunPlace& a, const RunPlace& b);

// The reason, as a sentence, why a factor of the run over a baseline whose repeats were measured at `base` means
// nothing; empty if it may mean something.
std::string why_no_factor(std::span<const RunPlace> base, const RunPlace& run);

}  // namespace stepladder
