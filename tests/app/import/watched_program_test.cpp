#include "app/import/watched_program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "app/exit_status.h"
#include "app/import/live_sink.h"
#include "storage/errors.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

std::string line_of(int step) {
  std::string line = "step " + std::to_string(step) + " loss 2.5 ";
  line.resize(127, 'x');
  return line + "\n";
}

constexpr int lines = 640 << 10;  // 80 MiB

// The output of a program that has ended, as its keeper leaves it.
Spool spool_of(const fs::path& database) {
  Spool spool(database, {.tokens_per_step = 7, .hardware = "\"NVIDIA\""});
  std::string text;
  for (int step = 0; step < lines; ++step) text += line_of(step);
  EXPECT_EQ(::write(spool.output(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  spool.state().ended = 1;
  spool.belongs_to(1);
  return spool;
}

TEST(Spool, FreesTheMiddleOfALongOutputOnly) {
  const TemporaryFolder folder;
  Spool spool = spool_of(folder.path() / "runs.db");
  const auto on_disk = [&] {
    struct stat facts = {};
    ::fstat(spool.output(), &facts);
    return facts.st_blocks * 512;
  };
  EXPECT_EQ(spool.options().tokens_per_step, 7);
  EXPECT_EQ(spool.options().hardware, "\"NVIDIA\"");
  spool.free_until(Spool::kept_whole - 1);
  EXPECT_EQ(spool.state().freed, 0);
  EXPECT_GE(on_disk(), 80 << 20);
  spool.free_until(70 << 20);
  EXPECT_EQ(spool.state().freed, 70 << 20);
  EXPECT_LT(on_disk(), 12 << 20);
  EXPECT_EQ(spool.size(), 80 << 20);
  spool.remove();
  EXPECT_FALSE(fs::exists(folder.path() / "runs.db.watch"));
}

TEST(Spool, NamesNoProcessThatDoesNotWriteItsOutput) {
  const TemporaryFolder folder;
  const fs::path database = folder.path() / "runs.db";
  {
    Spool spool(database, ImportOptions{});
    spool.belongs_to(1);
    spool.state().keeper.set(process_identity(::getppid()));
  }
  EXPECT_NE(complaint<StorageError>([&] { Spool::open(database, 1); }).find("doesn't write this output"),
            std::string::npos);
  EXPECT_TRUE(unread_outputs(database).empty());
  remove_unread_outputs(database, [](std::int64_t) { return false; });
  EXPECT_TRUE(fs::exists(folder / "runs.db.watch/run-1.out")) << "nobody knows whose it is";
}

TEST(Spool, FollowsNoLinks) {
  const TemporaryFolder folder;
  const fs::path database = folder.path() / "runs.db";
  fs::create_directories(folder / "elsewhere");
  { Spool(folder / "elsewhere/x.db", ImportOptions{}).belongs_to(1); }
  fs::rename(folder / "elsewhere/x.db.watch", folder / "kept");
  fs::create_directory_symlink(folder / "kept", folder / "runs.db.watch");
  EXPECT_FALSE(complaint<StorageError>([&] { Spool(database, ImportOptions{}); }).empty());
  EXPECT_FALSE(complaint<StorageError>([&] { Spool::open(database, 1); }).empty());
  remove_unread_outputs(database, [](std::int64_t) { return false; });
  EXPECT_TRUE(fs::exists(folder / "kept/run-1.state"));
  fs::remove(folder / "runs.db.watch");
  fs::rename(folder / "kept", folder / "runs.db.watch");
  fs::create_hard_link(folder / "runs.db.watch/run-1.out", folder / "another name");
  EXPECT_FALSE(complaint<StorageError>([&] { Spool::open(database, 1); }).empty());
}

TEST(Spool, HasOneTrackerAtATime) {
  const TemporaryFolder folder;
  const fs::path database = folder.path() / "runs.db";
  EXPECT_FALSE(Spool::open(database, 1));
  {
    const Spool spool = spool_of(database);
    EXPECT_THROW(Spool::open(database, 1), UsageError);
    EXPECT_TRUE(unread_outputs(database).empty());
  }
  ASSERT_EQ(unread_outputs(database).size(), 1u);
  EXPECT_EQ(unread_outputs(database).front().run, 1);
  EXPECT_FALSE(unread_outputs(database).front().is_running);
  remove_unread_outputs(database, [](std::int64_t) { return true; });
  EXPECT_TRUE(Spool::open(database, 1));
  remove_unread_outputs(database, [](std::int64_t) { return false; });
  EXPECT_FALSE(Spool::open(database, 1));
}

TEST(WatchedProgram, ReadsTheStartAndWhatWasNotFreed) {
  const TemporaryFolder folder;
  Spool spool = spool_of(folder.path() / "runs.db");
  spool.free_until(70 << 20);
  WatchedProgram program(spool);
  std::vector<char> piece(100'000);
  std::string text;
  int jumps = 0;
  while (const std::size_t size = program.read(piece)) {
    if (program.jumps()) {
      EXPECT_EQ(text.size(), static_cast<std::size_t>(Spool::head));
      ++jumps;
    }
    text.append(piece.data(), size);
  }
  EXPECT_EQ(jumps, 1);
  EXPECT_EQ(text.size(), static_cast<std::size_t>(Spool::head + (10 << 20)));
  EXPECT_EQ(text.substr(0, 128), line_of(0));
  EXPECT_EQ(text.substr(text.size() - 128), line_of(lines - 1));
  EXPECT_TRUE(program.at_end());
}

// The state file as the versions before 2026-11-26 write it, byte by byte: programs that they watch may still run.
TEST(WatchedProgram, ReadsTheOutputThatAnEarlierVersionHasKept) {
  const TemporaryFolder folder;
  const fs::path database = folder.path() / "runs.db";
  fs::create_directories(folder / "runs.db.watch");
  fs::permissions(folder / "runs.db.watch", fs::perms::owner_all);
  const auto bytes_of = [](auto value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto identity = [&](std::int64_t pid) {
    return bytes_of(pid) + bytes_of(std::int64_t{1}) + std::string(48, '\0');
  };
  const std::string options = R"({"format":"","hardware":"","params":0,"tokens_per_step":7})";
  std::ofstream(folder / "runs.db.watch/run-1.state")
      << "StWatch1" << identity(999'999'999) << identity(999'999'998) << bytes_of(std::int32_t{1})  // it has ended
      << bytes_of(std::int32_t{3 << 8}) << bytes_of(std::int32_t{0}) << std::string(4, '\0')
      << bytes_of(std::int64_t{0}) << bytes_of(std::int64_t{0}) << bytes_of(std::int64_t{0}) << options
      << std::string(3072 - options.size(), '\0');
  std::ofstream(folder / "runs.db.watch/run-1.out") << line_of(1);
  std::optional<Spool> spool = Spool::open(database, 1);
  ASSERT_TRUE(spool);
  EXPECT_EQ(spool->options().tokens_per_step, 7);
  WatchedProgram program(*spool);
  std::vector<char> piece(1000);
  EXPECT_EQ(program.read(piece), line_of(1).size());
  EXPECT_EQ(program.read(piece), 0u);
  EXPECT_TRUE(program.end().known);
  EXPECT_EQ(WEXITSTATUS(program.end().status), 3);
}

// What a second tracker posts of a run that has `recorded` already.
std::vector<std::int64_t> posted_again(const std::vector<std::int64_t>& printed, RecordedSteps recorded, bool whole,
                                       std::size_t gap_before = SIZE_MAX) {
  const TemporaryFolder folder;
  const fs::path database = folder.path() / "runs.db";
  RunStore store = RunStore::open(database);
  Run run{.name = "watched", .status = RunStatus::running, .started_at = 1};
  run.id = store.create_run(run);
  {
    Recorder recorder(database, [](const std::string& error) { FAIL() << error; });
    LiveSink sink([&](const Run& next) { return store.create_run(next); }, recorder, run, {{run.id, recorded, false}},
                  whole);
    sink.begin_run(run);
    for (std::size_t i = 0; i < printed.size(); ++i) {
      if (i == gap_before) sink.skip_gap();
      sink.step({.step = printed[i], .loss = 2});
    }
    sink.end(RunStatus::finished, "");
  }
  std::vector<std::int64_t> steps;
  store.for_steps(run.id, [&](std::span<const StepRecord> some) {
    for (const StepRecord& step : some) steps.push_back(step.step);
  });
  return steps;
}

using Steps = std::vector<std::int64_t>;

TEST(LiveSink, PostsOnlyWhatIsNotRecorded) {
  EXPECT_EQ(posted_again({1, 2, 3, 4}, {.records = 0}, true), (Steps{1, 2, 3, 4}));
  EXPECT_EQ(posted_again({1, 2, 3, 4}, {.records = 3, .last_step = 3}, true), (Steps{4}));
  // A resumed program prints steps again.
  EXPECT_EQ(posted_again({1, 2, 3, 2, 3, 4}, {.records = 4, .last_step = 3}, true), (Steps{3, 4}));
}

TEST(LiveSink, GoesOnAfterTheLastRecordedStepBehindAGap) {
  EXPECT_EQ(posted_again({1, 2, 7, 8, 9, 10}, {.records = 8, .last_step = 8}, false, 2), (Steps{9, 10}));
  EXPECT_EQ(posted_again({1, 2, 7, 8, 9, 3}, {.records = 8, .last_step = 8}, false, 2), (Steps{3, 9}));
}

}  // namespace
}  // namespace stepladder
