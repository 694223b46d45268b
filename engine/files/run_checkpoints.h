// The checkpoints of a run, beside its database: DATABASE.checkpoints/run-ID/step-NNNNNNNN. If run-ID is a link, cannot
// be read, or holds checkpoints of another run (of a database that was deleted, say), the run uses run-ID-UID with the
// first 8 digits of its uid. Nothing here changes a checkpoint of another run, and nothing is saved or removed where
// DATABASE.checkpoints is a link: it may come from a stranger.
//
// A checkpoint is written under a temporary name, step-N.UID.part, and gets its own when all of it is on disk and the
// run's steps up to it are in the database. One that has to go is renamed to step-N.UID.removed first. Each change of
// names is synced before the next step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/checkpoint_folder.h"
#include "storage/records.h"

namespace stepladder {

// The run that checkpoints belong to. A checkpoint with a uid belongs to the run with that uid. One without (from an
// older version) belongs to a run without, if it is younger than the run.
struct CheckpointOwner {
  std::filesystem::path database;  // empty: in memory, which has no checkpoints
  RunId run = 0;
  std::string uid;
  double created_at = missing;
  // A folder that outlives the database and is used in place of the one beside it: run-UID in it holds the run's
  // checkpoints.
  std::filesystem::path shared_folder = {};
};
CheckpointOwner checkpoint_owner(const std::filesystem::path& database, const Run& run);

// The folder that the run's next checkpoint is saved in. Reads the disk.
std::filesystem::path run_checkpoint_folder(const CheckpointOwner& owner);

// A run's checkpoints, oldest first; also damaged ones that no other run can own.
std::vector<Checkpoint> run_checkpoints(const CheckpointOwner& owner);

struct ChosenCheckpoint {
  Checkpoint checkpoint;
  std::vector<std::string> passed_over;  // a sentence for each newer one: why it isn't used
};

// A run's newest undamaged checkpoint, or the checkpoint of a step. `why_not` may refuse one: it returns a sentence's
// end, or an empty text. Reads all of the checkpoint. Throws DataError, which lists the existing ones.
ChosenCheckpoint choose_checkpoint(const CheckpointOwner& owner, std::optional<std::int64_t> step = std::nullopt,
                                   const std::function<std::string(std::int64_t step)>& why_not = {});

// Writes a checkpoint with `write`, which gets the folder to fill (without checksums.txt). `store_steps` blocks until
// the run's steps are in the database and returns an empty text, or why they aren't. Then deletes all but the newest
// `keep` (0: keeps all). Returns the checkpoint's folder. Throws, and leaves every other checkpoint as it was.
std::filesystem::path save_checkpoint(const CheckpointOwner& owner, std::int64_t step, int keep,
                                      const std::function<void(const std::filesystem::path&)>& write,
                                      const std::function<std::string()>& store_steps);

// Deletes what killed processes have written or deleted only in part for this run, which must not be running.
void remove_checkpoint_leftovers(const CheckpointOwner& owner);

// The size of everything that belongs to the run, and its removal, which returns why something remains, or an empty
// text.
std::int64_t checkpoint_bytes(const CheckpointOwner& owner);
std::string remove_run_checkpoints(const CheckpointOwner& owner);

// The runs that have a folder beside the database, by the folders' names.
std::vector<RunId> runs_with_checkpoint_folders(const std::filesystem::path& database);

}  // namespace stepladder
