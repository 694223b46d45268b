// Saves checkpoints whose weights are any bytes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "engine/files/run_checkpoints.h"

namespace stepladder {

inline void fill_checkpoint(const std::filesystem::path& folder, const CheckpointOwner& owner, std::int64_t step,
                            std::size_t weight_bytes = 100) {
  std::ofstream(folder / checkpoint_weights) << std::string(weight_bytes, 'w');
  std::ofstream(folder / checkpoint_optimizer) << std::string(200, 'o');
  std::ofstream(folder / checkpoint_config) << "{}\n";
  std::ofstream(folder / checkpoint_state)
      << to_json(CheckpointState{.step = step, .optimizer_steps = step, .recipe = "{}", .uid = owner.uid});
}

inline std::filesystem::path save_test_checkpoint(const CheckpointOwner& owner, std::int64_t step,
                                                  std::size_t weight_bytes = 100, int keep = 0) {
  return save_checkpoint(
      owner, step, keep,
      [&](const std::filesystem::path& folder) { fill_checkpoint(folder, owner, step, weight_bytes); }, {});
}

inline std::string steps_of(const std::vector<Checkpoint>& checkpoints) {
  std::string steps;
  for (const Checkpoint& checkpoint : checkpoints)
    steps += (steps.empty() ? "" : " ") + std::to_string(checkpoint.step);
  return steps;
}

}  // namespace stepladder
