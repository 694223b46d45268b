// Tests which files emptying the bin removes from the disk, and which it keeps.
#include "app/runs/bin.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/engine/files/saved_checkpoint.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

class Bin : public testing::Test {
 protected:
  RunId run_with_checkpoint(const std::string& name, std::int64_t bytes) {
    const RunId id = store_.insert_finished({.name = name}, {});
    save_test_checkpoint(owner_of(id), 10, static_cast<std::size_t>(bytes));
    return id;
  }
  CheckpointOwner owner_of(RunId run) { return checkpoint_owner(file_, store_.existing_run(run)); }
  std::string steps_saved(RunId run) { return steps_of(run_checkpoints(owner_of(run))); }
  fs::path folder_of(RunId run) const { return (folder_ / "runs.db.checkpoints") / ("run-" + std::to_string(run)); }

  TemporaryFolder folder_;
  const fs::path file_ = folder_ / "runs.db";
  RunStore store_ = RunStore::open(file_);
};

TEST_F(Bin, CheckpointsGoWithTheirRunAndNotBefore) {
  const RunId kept = run_with_checkpoint("kept", 100);
  const RunId deleted = run_with_checkpoint("deleted", 3000);
  const RunId fork = store_.insert_finished({.name = "fork", .parent = deleted, .forked_at_step = 10}, {});
  save_test_checkpoint(owner_of(fork), 20);
  store_.curation().set(deleted, {.deleted_at = 1000});
  ASSERT_EQ(runs_in_bin(store_).size(), 1u);
  const std::int64_t bytes = runs_in_bin(store_).front().checkpoint_bytes;
  EXPECT_GT(bytes, 3000);

  EXPECT_TRUE(empty_bin(store_, 500).runs.empty()) << "too young";
  EXPECT_TRUE(fs::exists(folder_of(deleted) / checkpoint_name(10) / checkpoint_weights)) << "it can be taken back";
  store_.curation().set(deleted, {});
  EXPECT_TRUE(empty_bin(store_, 2000).runs.empty());
  EXPECT_EQ(steps_saved(deleted), "10");

  store_.curation().set(deleted, {.deleted_at = 1000});
  const EmptiedBin emptied = empty_bin(store_, 2000);
  EXPECT_EQ(emptied.runs, std::vector{deleted});
  EXPECT_EQ(emptied.freed_bytes, bytes);
  EXPECT_TRUE(emptied_text(emptied).starts_with("Permanently deleted 1 run, 3.")) << emptied_text(emptied);
  EXPECT_FALSE(fs::exists(folder_of(deleted)));
  EXPECT_EQ(steps_saved(kept), "10");
  EXPECT_EQ(steps_saved(fork), "20");
}

TEST_F(Bin, OnlyARunsOwnCheckpointsGo) {
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directories(elsewhere);
  std::ofstream(elsewhere / "weights") << "precious";
  const RunId linked = store_.insert_finished({.name = "its folder is a link"}, {});
  fs::create_directories(folder_of(linked).parent_path());
  fs::create_directory_symlink(elsewhere, folder_of(linked));
  const RunId links = run_with_checkpoint("a link beside its checkpoint", 10);
  fs::create_directory_symlink(elsewhere, folder_of(links) / "step-00000099");
  const RunId again = store_.insert_finished({.name = "its folder is another run's"}, {});
  const CheckpointOwner other{.database = file_, .run = again, .uid = "0123456789abcdef0123456789abcdef"};
  const fs::path others = save_test_checkpoint(other, 10);
  const fs::path own = save_test_checkpoint(owner_of(again), 10);
  for (const RunId run : {linked, links, again}) store_.curation().set(run, {.deleted_at = 1000});
  const EmptiedBin emptied = empty_bin(store_, 2000);
  EXPECT_EQ(emptied.runs.size(), 3u);
  EXPECT_TRUE(fs::exists(elsewhere / "weights"));
  EXPECT_TRUE(fs::is_symlink(folder_of(linked)));
  EXPECT_FALSE(fs::exists(folder_of(links) / checkpoint_name(10)));
  EXPECT_TRUE(fs::is_symlink(folder_of(links) / "step-00000099"));
  EXPECT_FALSE(fs::exists(own.parent_path()));
  EXPECT_EQ(others.parent_path(), folder_of(again));
  EXPECT_EQ(steps_of(run_checkpoints(other)), "10");
}

TEST_F(Bin, WhatCouldNotBeRemovedGoesTheNextTime) {
  const RunId deleted = run_with_checkpoint("deleted", 3000);
  const std::string uid = store_.existing_run(deleted).uid;
  store_.curation().set(deleted, {.deleted_at = 1000});
  // As if the process had exited after the rows but before the folder.
  EXPECT_EQ(store_.bin().empty(2000).size(), 1u);
  store_.settings().set("checkpoints_to_remove", std::to_string(deleted) + "/" + uid + "/1000.5");
  const RunId next = run_with_checkpoint("next", 50);
  EXPECT_NE(next, deleted);
  const EmptiedBin emptied = empty_bin(store_, 2000);
  EXPECT_TRUE(emptied.runs.empty());
  EXPECT_GT(emptied.freed_bytes, 3000);
  EXPECT_FALSE(fs::exists(folder_of(deleted)));
  EXPECT_TRUE(fs::exists(folder_of(next)));
  EXPECT_EQ(empty_bin(store_, 2000).freed_bytes, 0) << "and is forgotten";
}

}  // namespace
}  // namespace stepladder
