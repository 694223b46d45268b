// Settings that the name of a log's file holds: "lr3e-4_seed1.log". They are guesses, for what the log doesn't say.
#pragma once

#include <string>
#include <string_view>

#include "storage/json_values.h"

namespace stepladder {

// Adds what `stem`, a file's name without its ending, says of learning rate, batch size, seed, weight decay, warm-up,
// width, depth and optimizer, unless the recipe has it by whatever name. Returns what it added: "lr 0.0003, seed 1".
std::string add_settings_in_name(Json& recipe, std::string_view stem);

}  // namespace stepladder
