// Saves runs and resumes them. Layout: engine/files/checkpoint_folder.h, run_checkpoints.h.
#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <future>
#include <vector>

#include "engine/recipe.h"
#include "engine/trainer/model.h"
#include "engine/trainer/optimizer.h"
#include "engine/training_job.h"
#include "storage/records.h"

namespace stepladder {

// Verifies the checkpoint, restores weights, moments and the random generator, and returns the step after which they
// were saved. Throws DataError with a sentence that names the file, and the tensor if one is at fault.
std::int64_t restore_checkpoint(const std::filesystem::path& folder, const Recipe& recipe, Gpt& model,
                                AdamW& optimizer);

// Saves a run while it trains: tensors are copied on the training thread and written on another, so training never
// waits for the disk. Used by the training thread.
class CheckpointSaver {
 public:
  CheckpointSaver(RunId run, CheckpointPlace place, const Recipe& recipe);
  ~CheckpointSaver();  // waits for the disk
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Saves, unless the last checkpoint is still being written; then the next call saves instead.
  void after_step(std::int64_t step, const Gpt& model, const AdamW& optimizer);

  // Call at the end of the run: saves the last step if necessary, and waits for the disk.
  void finish(std::int64_t step, const Gpt& model, const AdamW& optimizer, AtStop at_stop);

  // Checkpoints that have reached the disk since the last call.
  std::vector<CheckpointSaved> results();

 private:
  void start(std::int64_t step, const Gpt& model, const AdamW& optimizer);
  void wait();

  const RunId run_;
  const CheckpointPlace place_;
  const Recipe recipe_;
  bool due_ = false;
  std::int64_t saved_step_ = 0;
  std::future<CheckpointSaved> writing_;
  std::vector<CheckpointSaved> written_;
};

}  // namespace stepladder
