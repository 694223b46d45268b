#pragma once

#include "engine/trainer/device/lt_api.h"

namespace stepladder {

// As CudaParts::lt_library.
lt::Library open_lt_library();

}  // namespace stepladder
