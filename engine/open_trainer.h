// Finds and opens libstepladder_trainer, which holds all of LibTorch.
#pragma once

#include <filesystem>
#include <string>

#include "engine/trainer_library.h"

namespace stepladder {

// Opened at the first call, which takes a third of a second, and never closed. Throws std::runtime_error with a
// sentence. Any thread.
const TrainerLibrary& trainer_library();

// Why there is no trainer to open, as a sentence; empty: there is one. Doesn't load it. Any thread.
std::string missing_trainer();

// How far ./run is with building it in the background ("35 of 92 files, about 06:12 left"), which missing_trainer()
// says too; empty if it isn't being built. Any thread.
std::string trainer_progress();

// The version of torch that this build's trainer works with; empty: this build has no trainer.
std::string trainer_torch_version();

// The folder of the user that `stepladder setup-training` fills: a Python environment with torch and the trainer, used
// if there is no trainer beside the program.
struct TrainingFolder {
  std::filesystem::path path;
  std::filesystem::path mark() const { return path / "stepladder-training"; }  // says that the folder is ours
  std::filesystem::path environment() const { return path / "venv"; }
  // Written last, so that a half-made folder has none: the trainer's file, then its interface.
  std::filesystem::path complete() const { return path / "complete"; }

  static TrainingFolder of_user();
  // The trainer there, complete and for this program; else empty.
  std::filesystem::path trainer() const;
  // Finds the trainer in the environment, loads it to see that it works, and marks the folder as complete. Throws
  // std::runtime_error with a sentence. Loads LibTorch into this process.
  void finish() const;
};

}  // namespace stepladder
