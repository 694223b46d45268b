// Tests which files emptying the bin removes from the disk, and which it keeps.
#include "app/bin.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/files/checkpoint_folder.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

class Bin : public testing::Test {
 protected:
  RunId run_with_checkpoint(const std::string& name, std::int64_t bytes) {
    const RunId id = store_.insert_finished({.name = name}, {});
    const fs::path saved = folder_of(id) / checkpoint_name(10);
    fs::create_directories(saved);
    std::ofstream(saved / checkpoint_weights) << std::string(static_cast<std::size_t>(bytes), 'w');
    return id;
  }
  fs::path folder_of(RunId run) const { return run_checkpoint_folder(file_, run); }

  TemporaryFolder folder_;
  const fs::path file_ = folder_ / "runs.db";
  RunStore store_ = RunStore::open(file_);
};

TEST_F(Bin, CheckpointsGoWithTheirRunAndNotBefore) {
  const RunId kept = run_with_checkpoint("kept", 100);
  const RunId deleted = run_with_checkpoint("deleted", 3000);
  const RunId fork = store_.insert_finished({.name = "fork", .parent = deleted, .forked_at_step = 10}, {});
  fs::create_directories(folder_of(fork) / checkpoint_name(20));
  store_.curate(deleted, {.deleted_at = 1000});
  ASSERT_EQ(runs_in_bin(store_).size(), 1u);
  EXPECT_EQ(runs_in_bin(store_).front().checkpoint_bytes, 3000);

  EXPECT_TRUE(empty_bin(store_, 500).runs.empty()) << "too young";
  EXPECT_TRUE(fs::exists(folder_of(deleted) / checkpoint_name(10) / checkpoint_weights)) << "it can be taken back";
  store_.curate(deleted, {});
  EXPECT_TRUE(empty_bin(store_, 2000).runs.empty());
  EXPECT_EQ(checkpoints_in(folder_of(deleted)).size(), 1u);

  store_.curate(deleted, {.deleted_at = 1000});
  const EmptiedBin emptied = empty_bin(store_, 2000);
  EXPECT_EQ(emptied.runs, std::vector{deleted});
  EXPECT_EQ(emptied.freed_bytes, 3000);
  EXPECT_EQ(emptied_text(emptied), "Permanently deleted 1 run, 3.00 kB of checkpoints freed");
  EXPECT_FALSE(fs::exists(folder_of(deleted)));
  EXPECT_EQ(checkpoints_in(folder_of(kept)).size(), 1u);
  EXPECT_EQ(checkpoints_in(folder_of(fork)).size(), 1u);
}

TEST_F(Bin, NothingOutsideARunsOwnFolderGoes) {
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directories(elsewhere);
  std::ofstream(elsewhere / "weights") << "precious";
  const RunId linked = store_.insert_finished({.name = "its folder is a link"}, {});
  fs::create_directories(folder_of(linked).parent_path());
  fs::create_directory_symlink(elsewhere, folder_of(linked));
  const RunId links = run_with_checkpoint("a link in its folder", 10);
  fs::create_directory_symlink(elsewhere, folder_of(links) / "step-00000099");
  for (const RunId run : {linked, links}) store_.curate(run, {.deleted_at = 1000});
  const EmptiedBin emptied = empty_bin(store_, 2000);
  EXPECT_EQ(emptied.runs.size(), 2u);
  EXPECT_EQ(emptied.freed_bytes, 10) << "what a link leads to is still there";
  EXPECT_TRUE(fs::exists(elsewhere / "weights"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder_of(linked))));
  EXPECT_FALSE(fs::exists(folder_of(links)));
}

TEST_F(Bin, WhatCouldNotBeRemovedGoesTheNextTime) {
  const RunId deleted = run_with_checkpoint("deleted", 3000);
  store_.curate(deleted, {.deleted_at = 1000});
  // As if the process had exited after the rows but before the folder.
  EXPECT_EQ(store_.empty_bin(2000).size(), 1u);
  store_.set_setting("checkpoints_to_remove", std::to_string(deleted));
  const RunId next = run_with_checkpoint("next", 50);
  EXPECT_NE(next, deleted);
  const EmptiedBin emptied = empty_bin(store_, 2000);
  EXPECT_TRUE(emptied.runs.empty());
  EXPECT_EQ(emptied.freed_bytes, 3000);
  EXPECT_FALSE(fs::exists(folder_of(deleted)));
  EXPECT_TRUE(fs::exists(folder_of(next)));
  EXPECT_EQ(empty_bin(store_, 2000).freed_bytes, 0) << "and is forgotten";
}

}  // namespace
}  // namespace stepladder
