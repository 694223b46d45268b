// Where a run was measured. A factor says something about a change only if both of its sides ran in the same place.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct RunPlace {
  std::vector<std::string> hosts;  // several if it was continued on another one; empty: not known
  std::string hardware;            // empty: not known

  bool operator==(const RunPlace&) const = default;
};

// From Run::hardware and, in Run::environment, `host` and `hosts`.
RunPlace place_of(const Run& run);

// What its machine is called here, if it was launched on another one; empty: it wasn't.
std::string machine_of(const Run& run);

// "on node1 (NVIDIA H200)"; empty if nothing is known.
std::string place_text(const RunPlace& place);

// Whether they differ in something that both know.
bool are_elsewhere(const RunPlace& a, const RunPlace& b);

// Why a factor of the run over a baseline, whose repeats were measured at `base`, says nothing: a sentence. Empty if it
// may say something.
std::string why_no_factor(std::span<const RunPlace> base, const RunPlace& run);

}  // namespace stepladder
