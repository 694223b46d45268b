// Which of the known optimisations a rung is, whoever measured it: rungs of several ladders are laid side by side by
// it.
#pragma once

#include <string>

#include "storage/records.h"

namespace stepladder {

// The id of a stage ("flash-attention"), "baseline", or nothing. A run launched here says it itself; an imported one's
// is looked for in what its log wrote about it ("Pytorch Flash attention", "torch.compile, 'max-autotune'").
std::string known_stage(const Run& run);

}  // namespace stepladder
