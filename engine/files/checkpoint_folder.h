// One checkpoint as a folder, without torch:
//
//   step-00000100/model.safetensors      Hugging Face's GPT-2 names and layout; with config.json beside it,
// config.json            GPT2LMHeadModel.from_pretrained can load the folder
//                 optimizer.safetensors  both moments of each parameter, and the state of the random generator
//                 state.json             the step, the run's uid and the recipe, which give the place in the data
//                 checksums.txt          CRC-32 and size of each other file
//
// A folder called step-N is complete: engine/files/run_checkpoints.h says how it gets its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/files/data_error.h"

namespace stepladder {

inline constexpr const char* checkpoint_weights = "model.safetensors";
inline constexpr const char* checkpoint_config = "config.json";
inline constexpr const char* checkpoint_optimizer = "optimizer.safetensors";
inline constexpr const char* checkpoint_state = "state.json";
inline constexpr const char* checkpoint_checksums = "checksums.txt";

struct Checkpoint {
  std::int64_t step = 0;  // the last one done, which determines the next training batch
  std::filesystem::path folder;
};

// The contents of state.json.
struct CheckpointState {
  std::int64_t step = 0;
  std::int64_t optimizer_steps = 0;
  std::string recipe;  // JSON
  std::string uid;     // Run::uid; empty in checkpoints of before runs had one
};

// "step-00000100"
std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> step_of_checkpoint(const std::string& name);

CheckpointState read_checkpoint_state(const std::filesystem::path& folder);  // throws DataError
std::string to_json(const CheckpointState& state);

// The contents of checksums.txt for the files that are there. Throws DataError.
std::string checkpoint_checksums_of(const std::filesystem::path& folder);

// Reads every file of a checkpoint, a piece at a time. Throws DataError, which names the file, if one has changed since
// it was saved. An old checkpoint, without checksums, passes.
void verify_checkpoint(const std::filesystem::path& folder);

// As verify_checkpoint, but reads only state.json, and returns it.
CheckpointState verified_state(const std::filesystem::path& folder);

}  // namespace stepladder
