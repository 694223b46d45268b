// Opens libstepladder_trainer, which holds all of LibTorch.
#pragma once

#include "engine/trainer_library.h"

namespace stepladder {

// Opened at the first call, which takes a third of a second, and never closed. Throws std::runtime_error with a
// sentence. Any thread.
const TrainerLibrary& trainer_library();

}  // namespace stepladder
