// The door between the engine, which holds no torch, and libstepladder_trainer, which holds all of it. Both sides are
// built together by one compiler; the library is opened by Engine and never closed.
#pragma once

#include <functional>
#include <stop_token>

#include "engine/device.h"
#include "engine/recipe.h"
#include "storage/records.h"

namespace stepladder {

struct TrainerLibrary {
  DeviceReport (*probe)();

  // Trains on the calling thread until the steps are done, `stop` is requested (looked at between steps) or it cannot
  // go on. Emits RunStarted once, then one StepRecord a step, then RunEnded; throws nothing.
  void (*train)(RunId run, const Recipe& recipe, std::stop_token stop,
                const std::function<void(const RunEvent&)>& emit);
};

// Exported by the library under this name.
inline constexpr const char* trainer_library_symbol = "stepladder_trainer_library";
using TrainerLibraryEntry = const TrainerLibrary* (*)();

}  // namespace stepladder
