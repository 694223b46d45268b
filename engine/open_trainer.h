// Opens libstepladder_trainer, which holds all of LibTorch.
#pragma once

#include <string>

#include "engine/trainer_library.h"

namespace stepladder {

// Opened at the first call, which takes a third of a second, and never closed. Throws std::runtime_error with a
// sentence. Any thread.
const TrainerLibrary& trainer_library();

// The version of LibTorch that it was built for; empty if there is no trainer. Opens nothing. Any thread.
std::string trainer_torch_version();

// How far ./run is with building it in the background ("35 of 92 files, about 06:12 left"); empty if it isn't
// being built. Any thread.
std::string trainer_progress();

}  // namespace stepladder
