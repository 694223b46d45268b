// Copies of a file on demand, while others write to it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "../temporary_folder.h"
#include "storage/database/database.h"
#include "storage/database/run_store.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

TEST(Backup, is_complete_and_is_one_file_of_its_owner) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  store.insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 1, .loss = 2}, {.step = 2, .loss = 1}});
  const FileContents contents = store.upkeep().back_up(folder / "b.db");
  EXPECT_EQ(contents.runs, 1);
  EXPECT_EQ(contents.steps, 2);
  EXPECT_EQ(contents.bytes, static_cast<std::int64_t>(fs::file_size(folder / "b.db")));
  struct stat status {};
  ASSERT_EQ(stat((folder / "b.db").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  for (const char* ending : {".part", "-wal", "-shm", "-journal", ".part-journal"})
    EXPECT_FALSE(fs::exists((folder / "b.db").string() + ending)) << ending;
  RunStore copy = RunStore::open(folder / "b.db");
  EXPECT_EQ(copy.upkeep().integrity_check(), "ok");
  EXPECT_EQ(copy.series(1).loss, (std::vector<double>{2, 1}));
}

TEST(Backup, of_a_file_that_is_only_read) {
  TemporaryFolder folder;
  { RunStore::open(folder / "a.db").insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 1}}); }
  EXPECT_EQ(RunStore::open(folder / "a.db", RunStore::Mode::read_only).upkeep().back_up(folder / "b.db").steps, 1);
}

TEST(Backup, never_replaces_a_file) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const auto out = folder / "b.db";
  std::ofstream(out) << "mine";
  EXPECT_EQ(complaint<StorageError>([&] { store.upkeep().back_up(out); }),
            "the copy " + out.string() + " could not be written: it exists already");
  EXPECT_EQ(complaint<StorageError>([&] { store.upkeep().back_up(store.file()); }),
            "the copy " + store.file().string() + " could not be written: it exists already");
  EXPECT_EQ(fs::file_size(out), 4u);
  fs::create_symlink(folder / "nowhere", folder / "link");
  EXPECT_NE(complaint<StorageError>([&] { store.upkeep().back_up(folder / "link"); }).find("exists"),
            std::string::npos);
}

TEST(Backup, says_why_it_could_not_be_written_and_leaves_nothing) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const auto out = folder / "absent/b.db";
  EXPECT_EQ(complaint<StorageError>([&] { store.upkeep().back_up(out); }),
            "the copy " + out.string() + " could not be written: No such file or directory");
  EXPECT_FALSE(fs::exists(folder / "absent"));
}

TEST(Backup, a_part_that_was_cut_off_is_overwritten) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  std::ofstream(folder / "b.db.part") << "half of an earlier backup";
  store.upkeep().back_up(folder / "b.db");
  EXPECT_FALSE(fs::exists(folder / "b.db.part"));
  EXPECT_EQ(RunStore::open(folder / "b.db").upkeep().integrity_check(), "ok");
}

// The copy holds one state: all steps up to one of the commits, and no other.
TEST(Backup, is_one_state_of_a_file_that_is_written_to) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  RunStore store = RunStore::open(file);
  const RunId run = store.create_run({.name = "r", .status = RunStatus::running});
  const auto append = [&](std::int64_t first, std::int64_t count) {
    std::vector<RunEvent> events;
    for (std::int64_t i = 0; i < count; ++i) events.push_back(StepRecord{.run = run, .step = first + i, .loss = 1});
    store.apply(events);
  };
  append(1, 20'000);
  std::atomic<int> copies = 0;
  std::string failure;
  std::thread copier([&] {
    failure = complaint<std::exception>([&] {
      for (; copies < 5; ++copies) {
        RunStore other = RunStore::open(file);
        other.upkeep().back_up(folder.path() / std::to_string(copies));
      }
    });
    copies = 5;
  });
  std::int64_t steps = 20'000;
  for (; copies < 5; steps += 10) append(steps + 1, 10);
  copier.join();
  EXPECT_EQ(failure, "");
  for (int i = 0; i < 5; ++i) {
    Database copy(folder.path() / std::to_string(i), Database::Mode::read_only);
    const std::int64_t copied = copy.integer("SELECT count(*) FROM steps");
    EXPECT_GE(copied, 20'000);
    EXPECT_EQ(copied % 10, 0);
    EXPECT_EQ(copied, copy.integer("SELECT max(step) FROM steps"));
    EXPECT_EQ(copy.text("PRAGMA integrity_check"), "ok");
  }
  EXPECT_EQ(static_cast<std::int64_t>(store.series(run).size()), steps) << "the writer lost nothing";
}

}  // namespace
}  // namespace stepladder
