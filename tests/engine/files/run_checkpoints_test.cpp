// Whose a checkpoint is, whether it is as it was saved, and when it gets and loses its name.
#include "engine/files/run_checkpoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/engine/files/saved_checkpoint.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

class RunCheckpoints : public testing::Test {
 protected:
  CheckpointOwner owner(const std::string& uid, RunId run = 1) const {
    return {.database = folder_ / "runs.db", .run = run, .uid = uid, .created_at = unix_now() - 10};
  }
  // As versions before there were uids and checksums wrote them.
  fs::path save_old(RunId run, std::int64_t step) const {
    const fs::path folder = root() / ("run-" + std::to_string(run)) / checkpoint_name(step);
    fs::create_directories(folder);
    fill_checkpoint(folder, {}, step);
    return folder;
  }
  fs::path root() const { return folder_ / "runs.db.checkpoints"; }

  // Of every file and folder below, with each file's bytes.
  std::map<fs::path, std::string> everything(const fs::path& folder) const {
    std::map<fs::path, std::string> found;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      std::ifstream in(entry.path(), std::ios::binary);
      found[entry.path()] = entry.is_regular_file() ? std::string(std::istreambuf_iterator<char>(in), {}) : "";
    }
    return found;
  }

  TemporaryFolder folder_;
  const CheckpointOwner first_ = owner("0123456789abcdef0123456789abcdef");
  const CheckpointOwner second_ = owner("fedcba9876543210fedcba9876543210");
};

TEST_F(RunCheckpoints, TheNewestAreKeptInTheRunsFolder) {
  for (const int step : {10, 20, 30}) save_test_checkpoint(first_, step, 100, 2);
  EXPECT_EQ(steps_of(run_checkpoints(first_)), "20 30");
  EXPECT_EQ(run_checkpoints(first_).back().folder, root() / "run-1" / "step-00000030");
  EXPECT_EQ(choose_checkpoint(first_).checkpoint.step, 30);
  EXPECT_EQ(choose_checkpoint(first_, 20).checkpoint.step, 20);
  EXPECT_EQ(complaint<DataError>([&] { choose_checkpoint(first_, 25); }),
            "run 1 has no checkpoint of step 25; it has: 20, 30");
}

TEST_F(RunCheckpoints, AnotherRunsFolderIsLeftAsItIs) {
  for (const int step : {10, 20, 30}) save_test_checkpoint(first_, step);
  const auto before = everything(root() / "run-1");
  EXPECT_TRUE(run_checkpoints(second_).empty());
  EXPECT_NE(complaint<DataError>([&] { choose_checkpoint(second_); }).find("are another run's"), std::string::npos);
  for (const int step : {10, 15}) save_test_checkpoint(second_, step, 100, 1);
  EXPECT_EQ(steps_of(run_checkpoints(second_)), "15");
  EXPECT_EQ(run_checkpoints(second_).back().folder, root() / "run-1-fedcba98" / "step-00000015");
  remove_checkpoint_leftovers(second_);
  EXPECT_EQ(remove_run_checkpoints(second_), "");
  EXPECT_FALSE(fs::exists(root() / "run-1-fedcba98"));
  EXPECT_EQ(everything(root() / "run-1"), before);
  EXPECT_EQ(steps_of(run_checkpoints(first_)), "10 20 30");
}

TEST_F(RunCheckpoints, OnesWithoutAUidBelongToARunWithoutOneThatIsOlder) {
  save_old(1, 10);
  EXPECT_TRUE(run_checkpoints(first_).empty());
  EXPECT_EQ(run_checkpoint_folder(first_), root() / "run-1-01234567");
  EXPECT_EQ(steps_of(run_checkpoints(owner(""))), "10");
  EXPECT_EQ(choose_checkpoint(owner("")).checkpoint.step, 10);
  CheckpointOwner younger = owner("");
  younger.created_at = unix_now() + 100;
  EXPECT_TRUE(run_checkpoints(younger).empty());
  EXPECT_NE(run_checkpoint_folder(younger), root() / "run-1");
}

TEST_F(RunCheckpoints, ALinkIsNotFollowed) {
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directories(elsewhere);
  fs::create_directories(root());
  fs::create_directory_symlink(elsewhere, root() / "run-1");
  save_test_checkpoint(first_, 10);
  EXPECT_TRUE(fs::is_empty(elsewhere));
  EXPECT_EQ(run_checkpoints(first_).back().folder, root() / "run-1-01234567" / "step-00000010");
}

TEST_F(RunCheckpoints, EveryFlippedBitIsNoticedAndTheOneBeforeIsUsed) {
  save_test_checkpoint(first_, 10);
  const fs::path newest = save_test_checkpoint(first_, 20);
  int tried = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(newest)) {
    const auto size = static_cast<std::int64_t>(file.file_size());
    for (std::int64_t at = 0; at < size; at += std::max<std::int64_t>(1, size / 40)) {
      const int bit = static_cast<int>(at) % 8;
      std::fstream bytes(file.path(), std::ios::binary | std::ios::in | std::ios::out);
      const auto flip = [&] {
        bytes.seekg(at);
        const auto byte = static_cast<char>(bytes.get());
        bytes.seekp(at);
        bytes.put(static_cast<char>(byte ^ (1 << bit))).flush();
      };
      flip();
      const std::string where = file.path().string() + " byte " + std::to_string(at);
      const ChosenCheckpoint chosen = choose_checkpoint(first_);
      EXPECT_EQ(chosen.checkpoint.step, 10) << where;
      ASSERT_EQ(chosen.passed_over.size(), 1u) << where;
      EXPECT_NE(chosen.passed_over[0].find("the checkpoint of step 20 is not used: "), std::string::npos) << where;
      EXPECT_NE(chosen.passed_over[0].find(newest.string()), std::string::npos) << chosen.passed_over[0];
      EXPECT_EQ(run_checkpoint_folder(first_), root() / "run-1") << where;
      EXPECT_THROW(choose_checkpoint(first_, 20), DataError) << where;
      flip();
      ++tried;
    }
  }
  EXPECT_GT(tried, 100);
  EXPECT_EQ(choose_checkpoint(first_).checkpoint.step, 20);
}

TEST_F(RunCheckpoints, AMissingFileIsNoticed) {
  save_test_checkpoint(first_, 10);
  for (const char* name :
       {checkpoint_weights, checkpoint_optimizer, checkpoint_config, checkpoint_state, checkpoint_checksums}) {
    const fs::path newest = save_test_checkpoint(first_, 20);
    fs::remove(newest / name);
    EXPECT_EQ(choose_checkpoint(first_).checkpoint.step, 10) << name;
  }
  fs::remove(root() / "run-1" / checkpoint_name(10) / checkpoint_weights);
  const std::string none = complaint<DataError>([&] { choose_checkpoint(first_); });
  EXPECT_NE(none.find("run 1 has no usable checkpoint: the checkpoint of step 20"), std::string::npos) << none;
  EXPECT_NE(none.find("the checkpoint of step 10"), std::string::npos) << none;
}

TEST_F(RunCheckpoints, ADamagedOneOfUnknownOwnersIsNotAdopted) {
  fs::remove(save_test_checkpoint(first_, 10) / checkpoint_state);
  EXPECT_EQ(run_checkpoint_folder(second_), root() / "run-1-fedcba98");
  save_test_checkpoint(second_, 10);
  EXPECT_EQ(remove_run_checkpoints(second_), "");
  EXPECT_TRUE(fs::exists(root() / "run-1" / checkpoint_name(10)));
}

TEST_F(RunCheckpoints, NoNameAndNoPruningBeforeTheStepsAreStored) {
  save_test_checkpoint(first_, 10, 100, 1);
  std::string while_waiting;
  const auto write = [&](const fs::path& folder) { fill_checkpoint(folder, first_, 20); };
  const auto fails = [&] {
    while_waiting = steps_of(run_checkpoints(first_));
    return std::string("its steps are not stored yet");
  };
  EXPECT_EQ(complaint<DataError>([&] { save_checkpoint(first_, 20, 1, write, fails); }),
            "its steps are not stored yet");
  EXPECT_EQ(while_waiting, "10");
  EXPECT_EQ(steps_of(run_checkpoints(first_)), "10");
  EXPECT_EQ(std::distance(fs::directory_iterator(root() / "run-1"), {}), 1) << "nothing else is left";
  save_checkpoint(first_, 20, 1, write, [] { return std::string(); });
  EXPECT_EQ(steps_of(run_checkpoints(first_)), "20");
}

TEST_F(RunCheckpoints, OnesAfterTheStepAreOfAnAttemptThatWasGivenUp) {
  for (const int step : {10, 20, 40}) save_test_checkpoint(first_, step);
  save_test_checkpoint(first_, 30, 100, 2);
  EXPECT_EQ(steps_of(run_checkpoints(first_)), "20 30");
}

TEST_F(RunCheckpoints, LeftoversOfTheRunGoAndOthersStay) {
  save_test_checkpoint(first_, 10);
  const fs::path folder = root() / "run-1";
  for (const char* name :
       {"step-00000020.01234567.part", "step-00000005.01234567.removed", "step-00000020.fedcba98.part", "notes"})
    fs::create_directories(folder / name / "inside");
  remove_checkpoint_leftovers(first_);
  std::vector<std::string> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) left.push_back(entry.path().filename());
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"notes", "step-00000010", "step-00000020.fedcba98.part"}));
}

TEST_F(RunCheckpoints, AUidFromAStrangersFileNamesNoOtherPlace) {
  const CheckpointOwner stranger = owner("../../../../elsewhere");
  EXPECT_EQ(run_checkpoint_folder(stranger).parent_path(), root());
  save_test_checkpoint(first_, 10);
  EXPECT_EQ(run_checkpoint_folder(stranger).parent_path(), root());
  EXPECT_NE(run_checkpoint_folder(stranger), root() / "run-1");
}

}  // namespace
}  // namespace stepladder
