// Files of earlier versions: their steps move to the compact table, wherever that is cut off.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <thread>

#include "../not_finite.h"
#include "../temporary_folder.h"
#include "old_file.h"
#include "storage/database/process.h"
#include "storage/database/run_store.h"

namespace stepladder {
namespace {

using Mode = RunStore::Mode;
namespace fs = std::filesystem;

std::int64_t integer(const fs::path& file, const std::string& sql) {
  return Database(file, Database::Mode::read_only).integer(sql);
}

std::string text(const fs::path& file, const std::string& sql) {
  return Database(file, Database::Mode::read_only).text(sql);
}

std::string refusal(const fs::path& file, Mode mode = Mode::read_write) {
  return complaint<StorageError>([&] { RunStore::open(file, mode); });
}

// Steps of old_run, all there and in order.
void expect_whole(RunStore& store, RunId run, std::size_t steps) {
  const Series series = store.series(run);
  ASSERT_EQ(series.size(), steps);
  for (std::size_t i = 0; i < steps; ++i) {
    const auto step = static_cast<double>(i + 1);
    ASSERT_EQ(series.step[i], static_cast<std::int64_t>(i + 1));
    ASSERT_EQ(series.loss[i], 1.0 / step);
    ASSERT_NEAR(series.dt_ms[i], 50 + step / 128, 1e-6);
    ASSERT_EQ(series.at[i], 1790000000 + step);
  }
}

// A file in the middle of the move: these steps are moved, those aren't.
void make_half_moved_file(const fs::path& file, int moved, int all) {
  make_old_file(file, old_run(1, all));
  Database database(file, Database::Mode::read_write);
  database.execute(migrations()[8]);
  database.execute(
      "PRAGMA user_version = 9; INSERT INTO steps (run_id, step, loss, dt_ns, tokens, at_ms) SELECT run_id, "
      "step, loss, CAST(dt_ms * 1e6 AS INTEGER), tokens, CAST(at * 1000 AS INTEGER) FROM steps_to_move "
      "WHERE step <= " +
      std::to_string(moved) + "; DELETE FROM steps_to_move WHERE step <= " + std::to_string(moved));
}

TEST(StepMove, keeps_every_step_attempt_and_odd_value) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  make_old_file(file, old_run(1, 1000) + old_run(2, 1) + old_run(4, 300) +
                          "INSERT INTO runs (id, name, status, created_at) VALUES (3, 'odd', 'finished', 2.0);"
                          "INSERT INTO steps (run_id, step, attempt, loss, val_loss, dt_ms, tokens, lr, grad_norm, at, "
                          "nan_mask, data_ms, forward_ms, backward_ms, optimizer_ms, communication_ms) VALUES "
                          "(3, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL),"
                          "(3, 2, 1, NULL, NULL, 1, 1, 1, NULL, 1, 7, 1, 2, 3, 4, 5),"
                          "(3, 3, 1, 9e999, -9e999, 9e999, 7, -9e999, 9e999, 5, 0, 1, 2, 3, 4, 5),"
                          "(3, 4, 1, 41, 1, 1, 1, 1, NULL, 1, 4, 1, 2, 3, 4, 5),"
                          "(3, 4, 2, NULL, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5),"
                          "(3, 4, 5, 43, 0.1, 1, 1, 1e-30, 1e30, 1, 0, 1, 2, 3, 4, 5),"
                          "(3, -5, 1, 5e-324, 1, 1, 1, 1, 1, 1, 0, 1, 2, 3, 4, 5);");
  RunStore store = RunStore::open(file);
  EXPECT_EQ(store.upkeep().integrity_check(), "ok");
  expect_whole(store, 1, 1000);
  expect_whole(store, 2, 1);
  expect_whole(store, 4, 300);
  const Series odd = store.series(3);
  ASSERT_EQ(odd.step, (std::vector<std::int64_t>{-5, 1, 2, 3, 4}));
  EXPECT_EQ(odd.loss[0], 5e-324);
  EXPECT_TRUE(is_missing(odd.loss[1]) && is_missing(odd.grad_norm[1]));
  for (const double value : {odd.loss[2], odd.val_loss[2], odd.grad_norm[2]})
    EXPECT_TRUE(std::isnan(value) && !is_missing(value));
  EXPECT_EQ(odd.loss[3], infinity);
  EXPECT_EQ(odd.lr[3], -infinity);
  EXPECT_EQ(odd.loss[4], 43);
  EXPECT_DOUBLE_EQ(odd.lr[4], 1e-30);
  EXPECT_DOUBLE_EQ(odd.grad_norm[4], 1e30);
  EXPECT_EQ(text(file,
                 "SELECT group_concat(attempt || ':' || coalesce(loss, 'null') || ':' || nan_mask) FROM "
                 "superseded_steps WHERE run_id = 3 AND step = 4"),
            "1:41.0:4,2:null:1");
  EXPECT_EQ(integer(file, "SELECT count(*) FROM sqlite_master WHERE name = 'steps_to_move'"), 0);
  EXPECT_EQ(integer(file, "PRAGMA foreign_keys"), 0);  // of a connection, and this one is new
}

TEST(StepMove, moves_rows_that_name_a_run_that_is_not_there) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  make_old_file(file,
                "PRAGMA foreign_keys = OFF; INSERT INTO steps (run_id, step, attempt, loss) VALUES (77, 1, 1, 5)");
  EXPECT_EQ(refusal(file), "");
  EXPECT_EQ(integer(file, "SELECT loss FROM steps WHERE run_id = 77"), 5);
}

TEST(StepMove, goes_on_where_it_was_cut_off_and_shows_no_hole_meanwhile) {
  for (const int moved : {0, 1, 2600, 4999, 5000}) {
    SCOPED_TRACE(moved);
    TemporaryFolder folder;
    const auto file = folder / "a.db";
    make_half_moved_file(file, moved, 5000);
    EXPECT_EQ(refusal(file, Mode::read_only), file.string() +
                                                  " was written by an older version of Stepladder and has to "
                                                  "be opened for writing once");
    RunStore store = RunStore::open(file);
    expect_whole(store, 1, 5000);
    RunStore reader = RunStore::open(file, Mode::read_only);
    expect_whole(reader, 1, 5000);
  }
}

// Whenever the process is killed, each step is in one of the tables.
TEST(StepMove, survives_kills) {
  constexpr int steps = 30'000;
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  make_old_file(file, old_run(1, steps) + old_run(2, 10));
  int in_the_middle = 0;
  for (int kill_after_ms = 1; integer(file, "PRAGMA user_version") < 10; kill_after_ms += 15) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      RunStore::open(file);
      _exit(0);
    }
    usleep(static_cast<useconds_t>(kill_after_ms) * 1000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    Database database(file, Database::Mode::read_write);  // undoes what the child had begun
    Transaction one_state(database, Transaction::Kind::read);
    const bool is_moving = database.integer("SELECT count(*) FROM sqlite_master WHERE name = 'steps_to_move'") == 1;
    std::int64_t rows = database.integer("SELECT count(*) FROM steps");
    if (is_moving) {
      in_the_middle += rows > 0;
      rows += database.integer("SELECT count(*) FROM steps_to_move");
    }
    ASSERT_EQ(rows, steps + 10);
  }
  RecordProperty("killed_in_the_middle", in_the_middle);
  RunStore store = RunStore::open(file);
  expect_whole(store, 1, steps);
  expect_whole(store, 2, 10);
  EXPECT_EQ(store.upkeep().integrity_check(), "ok");
}

TEST(StepMove, several_may_open_the_file_at_once) {
  constexpr int steps = 20'000;
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  make_old_file(file, old_run(1, steps));
  std::vector<std::string> failures(4);
  std::vector<std::thread> threads;
  for (std::string& failure : failures)
    threads.emplace_back([&] {
      failure = complaint<std::exception>([&] {
        RunStore store = RunStore::open(file);
        if (store.series(1).size() != steps) throw std::runtime_error("a hole");
      });
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  EXPECT_TRUE(fs::exists(file.string() + ".before-9"));
  EXPECT_FALSE(fs::exists(file.string() + ".before-9-2")) << "one backup is enough";
}

// The first has its backup, and waits for the write lock while the second begins.
TEST(StepMove, two_make_one_backup) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  make_old_file(file, old_run(1, 10));
  const fs::path backup = file.string() + ".before-9";
  Database writer(file, Database::Mode::read_write);
  writer.use_write_ahead_log();
  auto lock = std::make_optional<Transaction>(writer);
  std::vector<std::string> failures(2);
  const auto open = [&](std::size_t i) { failures[i] = complaint<std::exception>([&] { RunStore::open(file); }); };
  std::thread first(open, 0u);
  while (!fs::exists(backup)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::thread second(open, 1u);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // in which it would make another
  lock.reset();
  first.join();
  second.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  EXPECT_FALSE(fs::exists(backup.string() + "-2"));
  EXPECT_EQ(integer(file, "SELECT count(*) FROM steps"), 10);
}

TEST(StepMove, leaves_a_file_alone_that_an_older_program_is_writing_to) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  const ProcessIdentity writer = this_process();
  make_old_file(file, old_run(1, 10) + "UPDATE runs SET status = 'running', owner_pid = " + std::to_string(writer.pid) +
                          ", owner_start = " + std::to_string(writer.start) + ", owner_boot = '" + writer.boot + "'");
  const std::string expected =
      file.string() + " was made by an older version of Stepladder, which is still writing run 1 to it (process " +
      std::to_string(writer.pid) + "); open it again when that run has ended";
  EXPECT_EQ(complaint<MigrationError>([&] { RunStore::open(file); }), expected);
  EXPECT_EQ(refusal(file, Mode::read_only), expected);
  EXPECT_EQ(integer(file, "PRAGMA user_version"), 8);
  EXPECT_FALSE(fs::exists(file.string() + ".before-9"));
  Database(file, Database::Mode::read_write).execute("UPDATE runs SET status = 'finished'");
  EXPECT_EQ(refusal(file), "");
}

TEST(StepMove, backs_the_file_up_first) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  make_old_file(file, old_run(1, 100));
  { RunStore::open(file); }
  const fs::path backup = file.string() + ".before-9";
  EXPECT_EQ(integer(backup, "PRAGMA user_version"), 8);
  EXPECT_EQ(integer(backup, "SELECT count(dt_ms) FROM steps WHERE attempt = 1"), 100);
  EXPECT_EQ(text(backup, "PRAGMA integrity_check"), "ok");
  struct stat status {};
  ASSERT_EQ(stat(backup.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_FALSE(fs::exists(backup.string() + ".part"));
  // It is a file like any other.
  fs::rename(backup, folder / "b.db");
  RunStore store = RunStore::open(folder / "b.db");
  expect_whole(store, 1, 100);
}

// Version 10 is the last one before runs knew what others used.
TEST(Contention, a_file_of_the_version_before_is_backed_up_and_its_runs_are_not_disturbed) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  {
    Database database(file, Database::Mode::read_write);
    for (std::size_t i = 0; i < 10; ++i) database.execute(i == 9 ? "DROP TABLE steps_to_move" : migrations()[i]);
    database.execute(
        "PRAGMA application_id = " + std::to_string(application_id) +
        "; PRAGMA user_version = 10; INSERT INTO runs (id, name, status, created_at) VALUES (1, 'r1', "
        "'finished', 1.0); INSERT INTO steps (run_id, step, loss, dt_ns, at_ms) VALUES (1, 1, 2, 1000000, "
        "5000), (1, 2, 2, 1000000, 5500); INSERT INTO lanes (run_id, at, step, cpu_load) VALUES (1, 5.5, 2, "
        "0.9)");
  }
  {
    RunStore store = RunStore::open(file);
    EXPECT_EQ(store.recordings().system_metrics(1).at(0).cpu_load, 0.9);
    EXPECT_TRUE(is_missing(store.recordings().system_metrics(1).at(0).contention.other_cores));
    EXPECT_EQ(store.summary(*store.run(1)).steps, 2);
    EXPECT_EQ(store.summary(*store.run(1)).watched_steps, 0);
  }
  EXPECT_EQ(integer(file, "PRAGMA user_version"), std::ssize(migrations()));
  EXPECT_EQ(integer(file.string() + ".before-11", "PRAGMA user_version"), 10);
}

TEST(StepMove, never_replaces_an_earlier_backup) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  make_old_file(file, old_run(1, 5));
  const fs::path earlier = file.string() + ".before-9";
  fs::copy_file(file, earlier);
  Database(file, Database::Mode::read_write).execute(old_run(2, 7));
  { RunStore::open(file); }
  EXPECT_EQ(integer(earlier, "SELECT count(*) FROM steps"), 5);
  EXPECT_EQ(integer(earlier.string() + "-2", "SELECT count(*) FROM steps"), 12);
}

TEST(StepMove, a_file_without_runs_needs_no_backup) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  make_old_file(file, "");
  { RunStore::open(file); }
  EXPECT_EQ(integer(file, "PRAGMA user_version"), std::ssize(migrations()));
  EXPECT_FALSE(fs::exists(file.string() + ".before-9"));
}

TEST(StepMove, without_a_backup_the_file_stays_as_it_was) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  make_old_file(file, old_run(1, 5));
  fs::create_directory(file.string() + ".before-9.part");
  EXPECT_EQ(complaint<MigrationError>([&] { RunStore::open(file); }),
            file.string() + " is as it was, and this version of Stepladder can't use it yet: the copy " +
                file.string() + ".before-9 could not be written: Is a directory");
  EXPECT_EQ(integer(file, "PRAGMA user_version"), 8);
  EXPECT_EQ(integer(file, "SELECT count(dt_ms) FROM steps WHERE attempt = 1"), 5);
}

}  // namespace
}  // namespace stepladder
