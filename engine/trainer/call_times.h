// Times each call of a GPT-2's passes over random tokens.
#pragma once

#include <functional>
#include <vector>

#include "engine/call_times.h"

namespace stepladder {

// As TrainerLibrary::time_calls.
std::vector<CallTimes> time_calls(const CallTimesRequest& request, const std::function<bool()>& stop_requested);

}  // namespace stepladder
