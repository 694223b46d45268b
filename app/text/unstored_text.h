#pragma once

#include <string>

#include "storage/database/recorder.h"

namespace stepladder {

// "1,204 steps wait to be stored since 12:04:31: stepladder.db is locked by another process."; empty if none wait.
std::string unstored_text(const Unstored& unstored);

}  // namespace stepladder
