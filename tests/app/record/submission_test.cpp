// A submission holds the bytes that were judged, whatever has happened to their names since.
#include "app/record/submission.h"

#include <gtest/gtest.h>

#include <fstream>

#include "storage/errors.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

TEST(Submission, copies_what_was_judged_or_nothing) {
  const TemporaryFolder folder;
  const auto log = [](double loss) {
    return "step:1/2 val_loss:4 train_time:1s\nstep:2/2 val_loss:" + std::to_string(loss) + " train_time:2s\n";
  };
  fs::create_directory(folder / "pool");
  for (const char* name : {"a.log", "b.log"}) write(folder / "pool" / name, log(3.25));
  write(folder / "secret.log", log(1.5));
  RecordPool pool;
  add_logs(pool, folder / "pool", {});
  ASSERT_EQ(pool.logs.size(), 2u);
  const RecordClaim claim = judge_record(pool, nullptr, std::nullopt, {});
  const std::optional<RecordRule> rule;
  Submission submission{
      .pool = pool, .claim = claim, .rule = rule, .options = {}, .claim_json = {}, .explanations = {}};
  for (const std::string& flag : unexplained_flags(submission)) submission.explanations[flag] = "made up";
  write_submission(folder / "whole", submission);
  EXPECT_TRUE(fs::exists(folder / "whole" / "logs" / "a.log"));
  fs::remove(folder / "pool" / "b.log");
  fs::create_symlink(folder / "secret.log", folder / "pool" / "b.log");
  EXPECT_THROW(write_submission(folder / "swapped", submission), StorageError);
  EXPECT_FALSE(fs::exists(folder / "swapped"));
}

TEST(Submission, a_link_in_a_pool_is_not_read) {
  const TemporaryFolder folder;
  write(folder / "a.log", "step:1/1 val_loss:4 train_time:1s\n");
  fs::create_symlink(folder / "a.log", folder / "link.log");
  EXPECT_EQ(load_speedrun_log(folder / "link.log", {}, Links::refused).problem, "is a link");
  EXPECT_EQ(load_speedrun_log(folder / "link.log", {}).problem, "") << "one that the user named";
}

}  // namespace
}  // namespace stepladder
