// Checkpoints as folders, without torch. A run's own folder holds one folder for each checkpoint:
//
//   step-00000100/model.safetensors      Hugging Face's GPT-2 names and layout; with config.json beside it,
// config.json            GPT2LMHeadModel.from_pretrained can load the folder
//                 optimizer.safetensors  both moments of each parameter, and the state of the random generator
//                 state.json             the step and the recipe, which give the place in the data
//
// Files are written into a folder with a temporary name, which is renamed once they are all on disk: a folder called
// step-N is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/data_error.h"

namespace stepladder {

inline constexpr const char* checkpoint_weights = "model.safetensors";
inline constexpr const char* checkpoint_config = "config.json";
inline constexpr const char* checkpoint_optimizer = "optimizer.safetensors";
inline constexpr const char* checkpoint_state = "state.json";

struct Checkpoint {
  std::int64_t step = 0;  // the last one done, which determines the next training batch
  std::filesystem::path folder;
};

// The contents of state.json.
struct CheckpointState {
  std::int64_t step = 0;
  std::int64_t optimizer_steps = 0;
  std::string recipe;  // JSON
};

// The folder of a run's checkpoints, beside the project's database.
std::filesystem::path run_checkpoint_folder(const std::filesystem::path& database, std::int64_t run);

// The checkpoints in a run's folder, oldest first; empty if the folder doesn't exist.
std::vector<Checkpoint> checkpoints_in(const std::filesystem::path& run_folder);

// A run's newest checkpoint, or that of a step. Throws DataError, which lists the existing ones.
Checkpoint find_checkpoint(const std::filesystem::path& database, std::int64_t run,
                           std::optional<std::int64_t> step = std::nullopt);

// "step-00000100"
std::string checkpoint_name(std::int64_t step);

CheckpointState read_checkpoint_state(const std::filesystem::path& folder);  // throws DataError
std::string to_json(const CheckpointState& state);

// Deletes all but the newest `keep` (0: keeps all), and the unfinished folders of processes that were killed.
void prune_checkpoints(const std::filesystem::path& run_folder, int keep);

}  // namespace stepladder
