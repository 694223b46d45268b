// Tests which files open, and the error for a file that isn't a project.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "../temporary_folder.h"
#include "storage/database/run_store.h"
#include "storage/database/schema.h"
#include "tests/storage/database/old_file.h"

namespace stepladder {
namespace {

using Mode = RunStore::Mode;

std::string refusal_of_opening(const std::filesystem::path& file, Mode mode = Mode::read_write) {
  return complaint<StorageError>([&] { RunStore::open(file, mode); });
}

void execute(const std::filesystem::path& file, const std::string& sql) {
  Database(file, Database::Mode::read_write).execute(sql);
}

std::string content(const std::filesystem::path& file) {
  std::ifstream input(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(input), {}};
}

// Root may write everywhere, so this process temporarily becomes the user nobody.
class WithoutPrivileges {
 public:
  WithoutPrivileges() : was_(geteuid()) {
    if (was_ == 0 && seteuid(65534) != 0) usable_ = false;
  }
  ~WithoutPrivileges() {
    if (was_ == 0 && usable_ && seteuid(0) != 0) std::abort();
  }
  bool usable() const { return usable_; }

 private:
  uid_t was_;
  bool usable_ = true;
};

TEST(Opening, makes_the_file_and_its_folder) {
  TemporaryFolder folder;
  const auto file = folder / "deep/er/project.db";
  RunStore store = RunStore::open(file);
  EXPECT_EQ(store.file(), file);
  EXPECT_FALSE(store.read_only());
  EXPECT_EQ(store.upkeep().integrity_check(), "ok");

  Database raw(file, Database::Mode::read_write);
  EXPECT_EQ(raw.integer("PRAGMA application_id"), application_id);
  EXPECT_EQ(raw.integer("PRAGMA user_version"), static_cast<std::int64_t>(migrations().size()));
  EXPECT_EQ(raw.text("PRAGMA journal_mode"), "wal");
  EXPECT_EQ(raw.integer("PRAGMA foreign_keys"), 1);
  EXPECT_EQ(raw.integer("PRAGMA synchronous"), 2);
}

TEST(Opening, waits_for_a_lock_and_takes_it) {
  TemporaryFolder folder;
  Database first(folder / "a.db", Database::Mode::read_write);
  Database second(folder / "a.db", Database::Mode::read_write);
  first.use_write_ahead_log();
  first.execute("BEGIN IMMEDIATE");
  second.set_patience(std::chrono::milliseconds(50));
  EXPECT_EQ(complaint<StorageError>([&] { second.execute("BEGIN IMMEDIATE"); }),
            (folder / "a.db").string() + " is locked by another process");
  second.set_patience(std::chrono::minutes(5));
  std::thread releases([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    first.execute("COMMIT");
  });
  second.execute("BEGIN IMMEDIATE");
  releases.join();
}

TEST(Opening, leaves_one_file_behind) {
  TemporaryFolder folder;
  { RunStore::open(folder / "a.db").create_ladder({.name = "l"}); }
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1);
  EXPECT_EQ(RunStore::open(folder / "a.db").ladders().size(), 1u);
}

TEST(Opening, a_name_that_sqlite_would_take_for_something_else_is_a_file) {
  TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_TRUE(RunStore::in_memory().runs().empty());
  { RunStore::open(":memory:").create_ladder({.name = "l"}); }
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::exists(folder / ":memory:"));
}

TEST(Opening, refuses_what_is_no_database) {
  TemporaryFolder folder;
  const auto file = folder / "notes.txt";
  const std::string text(5000, 'x');
  std::ofstream(file) << text;
  EXPECT_EQ(refusal_of_opening(file), file.string() + " is not a SQLite database");
  EXPECT_EQ(refusal_of_opening(file, Mode::read_only), file.string() + " is not a SQLite database");
  std::ofstream(file) << "short";
  EXPECT_EQ(refusal_of_opening(file), file.string() + " is not a SQLite database");
  EXPECT_EQ(content(file), "short");
}

TEST(Opening, refuses_folders_devices_and_missing_files) {
  TemporaryFolder folder;
  EXPECT_EQ(refusal_of_opening(folder.path()), folder.path().string() + " is a folder, not a database file");
  EXPECT_EQ(refusal_of_opening("/dev/null"), "/dev/null is not a regular file");
  EXPECT_EQ(refusal_of_opening(""), "the database's file name is empty");
  const auto absent = folder / "absent.db";
  EXPECT_EQ(refusal_of_opening(absent, Mode::read_only), absent.string() + " does not exist");
  EXPECT_FALSE(std::filesystem::exists(absent));
  std::ofstream(folder / "file") << "x";
  const std::string below_a_file = refusal_of_opening(folder / "file/a.db");
  EXPECT_NE(below_a_file.find((folder / "file/a.db").string()), std::string::npos) << below_a_file;
  EXPECT_NE(below_a_file.find("Not a directory"), std::string::npos) << below_a_file;
}

TEST(Opening, refuses_a_database_of_another_program_and_leaves_it_as_it_is) {
  TemporaryFolder folder;
  const auto file = folder / "bookmarks.db";
  execute(file, "CREATE TABLE bookmarks (url TEXT)");
  const std::string before = content(file);
  EXPECT_EQ(refusal_of_opening(file), file.string() + " is a SQLite database of another program");
  EXPECT_EQ(refusal_of_opening(file, Mode::read_only), file.string() + " is a SQLite database of another program");
  EXPECT_EQ(content(file), before);

  const auto named = folder / "named.db";
  execute(named, "PRAGMA application_id = 77");
  EXPECT_EQ(refusal_of_opening(named), named.string() + " is a SQLite database of another program");
}

TEST(Opening, refuses_a_newer_version) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  { RunStore::open(file); }
  execute(file, "PRAGMA user_version = 99");
  for (const Mode mode : {Mode::read_write, Mode::read_only})
    EXPECT_EQ(refusal_of_opening(file, mode),
              file.string() +
                  " was written by a newer version of Stepladder (its format is 99, this version "
                  "knows up to " +
                  std::to_string(migrations().size()) + ")");
}

TEST(Opening, an_empty_file_is_a_new_project_but_only_for_writing) {
  TemporaryFolder folder;
  const auto file = folder / "empty.db";
  std::ofstream(file).flush();
  EXPECT_EQ(refusal_of_opening(file, Mode::read_only), file.string() + " is an empty database");
  EXPECT_TRUE(RunStore::open(file).runs().empty());
}

TEST(Opening, a_damaged_file_is_said_to_be) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  {
    RunStore store = RunStore::open(file);
    std::vector<StepRecord> steps;
    for (int step = 1; step <= 2000; ++step) steps.push_back({.step = step, .loss = 1});
    store.insert_finished({.name = "r"}, steps);
  }
  std::string bytes = content(file);
  ASSERT_GT(bytes.size(), 40000u);
  for (std::size_t page = 8; page < bytes.size() / 4096; ++page)
    bytes.replace(page * 4096, 4096, std::string(4096, '\x5a'));
  std::ofstream(file, std::ios::binary) << bytes;
  const std::string said = complaint<StorageError>([&] { RunStore::open(file).series(1); });
  EXPECT_EQ(said.find(file.string() + " is damaged: "), 0u) << said;
}

TEST(Opening, read_only_reads_and_never_writes) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  {
    RunStore store = RunStore::open(file);
    store.insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 1, .loss = 2}});
  }
  execute(file, "DELETE FROM summaries");
  const std::string before = content(file);
  RunStore store = RunStore::open(file, Mode::read_only);
  EXPECT_TRUE(store.read_only());
  EXPECT_EQ(store.runs_with_summaries().at(0).summary.loss_last, 2);
  EXPECT_EQ(store.summary(store.runs().at(0)).loss_last, 2);
  EXPECT_EQ(store.processes().close_dead_runs(), 0);
  EXPECT_EQ(complaint<StorageError>([&] { store.create_run({.name = "no"}); }),
            file.string() + " is read-only and cannot be written");
  EXPECT_EQ(content(file), before);
}

TEST(Opening, a_file_or_folder_that_may_not_be_written) {
  TemporaryFolder folder;
  const auto file = folder / "with ? and %41.db";
  { RunStore::open(file).create_ladder({.name = "kept"}); }
  ASSERT_EQ(chmod(file.c_str(), 0444), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  WithoutPrivileges nobody;
  if (!nobody.usable()) GTEST_SKIP() << "this root cannot give up its privileges";

  EXPECT_EQ(refusal_of_opening(file), file.string() + " is read-only and cannot be written");
  EXPECT_EQ(RunStore::open(file, Mode::read_only).ladders().at(0).name, "kept");
  const auto absent = folder / "new.db";
  EXPECT_EQ(refusal_of_opening(absent),
            absent.string() + " cannot be written: its folder is read-only (Permission denied)");
  const std::string below = refusal_of_opening(folder / "new/new.db");
  EXPECT_EQ(below, "the folder of " + (folder / "new/new.db").string() + " could not be created: Permission denied");
}

TEST(Opening, a_writable_file_in_a_read_only_folder) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  { RunStore::open(file); }
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  WithoutPrivileges nobody;
  if (!nobody.usable()) GTEST_SKIP() << "this root cannot give up its privileges";
  const std::string said = refusal_of_opening(file);
  EXPECT_EQ(said.find(file.string()), 0u) << said;
  EXPECT_NE(said.find("read-only"), std::string::npos) << said;
}

TEST(Opening, a_log_that_cannot_be_read_in_is_not_passed_over) {
  TemporaryFolder folder;
  TemporaryFolder copy;
  const auto file = copy / "a.db";
  {
    RunStore store = RunStore::open(folder / "a.db");
    store.create_ladder({.name = "still in the log"});
    std::filesystem::copy_file(folder / "a.db", file);
    std::filesystem::copy_file(folder / "a.db-wal", copy / "a.db-wal");
  }
  for (const char* name : {"a.db", "a.db-wal"}) ASSERT_EQ(chmod((copy / name).c_str(), 0644), 0);
  {
    ASSERT_EQ(chmod(copy.path().c_str(), 0555), 0);
    WithoutPrivileges nobody;
    if (!nobody.usable()) GTEST_SKIP() << "this root cannot give up its privileges";
    EXPECT_EQ(refusal_of_opening(file, Mode::read_only),
              file.string() + " cannot be read in a folder that is read-only, since " + file.string() +
                  "-wal holds changes that are not yet in it");
  }
  ASSERT_EQ(chmod(copy.path().c_str(), 0755), 0);
  EXPECT_EQ(RunStore::open(file, Mode::read_only).ladders().size(), 1u);
}

TEST(Opening, an_unreadable_file) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  { RunStore::open(file); }
  ASSERT_EQ(chmod(file.c_str(), 0), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  WithoutPrivileges nobody;
  if (!nobody.usable()) GTEST_SKIP() << "this root cannot give up its privileges";
  EXPECT_EQ(refusal_of_opening(file), file.string() + " could not be opened: Permission denied");
}

TEST(Schema, missing_indices_are_made_again) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  const auto indices = [&] {
    return Database(file, Database::Mode::read_only)
        .integer("SELECT count(*) FROM sqlite_master WHERE name IN ('runs_by_ladder', 'runs_not_over')");
  };
  { RunStore::open(file); }
  EXPECT_EQ(indices(), 2);
  execute(file, "DROP INDEX runs_by_ladder; DROP INDEX runs_not_over");
  { RunStore::open(file, Mode::read_only); }
  EXPECT_EQ(indices(), 0);
  { RunStore::open(file); }
  EXPECT_EQ(indices(), 2);
}

TEST(Schema, a_run_that_a_text_reported_was_called_finished) {
  TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.db";
  make_old_file(file,
                "CREATE INDEX runs_not_over ON runs(status) WHERE status IN ('queued', 'running');"
                "INSERT INTO runs (id, name, status, reason, created_at) VALUES (1, 'a', 'finished', NULL, 1.0), "
                "(2, 'b', 'failed', 'no memory', 1.0), "
                "(3, 'c', 'finished', 'reported: its figure has no steps behind it', 1.0);",
                23);
  RunStore store = RunStore::open(file);
  EXPECT_EQ(store.existing_run(1).status, RunStatus::finished);
  EXPECT_EQ(store.existing_run(2).status, RunStatus::failed);
  EXPECT_EQ(store.existing_run(3).status, RunStatus::reported);
}

// After the highest number that there is none can follow, so no run could be recorded beside such a stranger's.
TEST(Schema, a_run_with_the_highest_number_leaves_room_for_others) {
  TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.db";
  make_old_file(file,
                "INSERT INTO runs (id, name, status, created_at) VALUES (7, 'a', 'finished', 1.0), "
                "(9223372036854775807, 'b', 'finished', 1.0);"
                "INSERT INTO settings (key, value) VALUES ('highest_run', '9223372036854775807');",
                23);
  RunStore store = RunStore::open(file);
  EXPECT_EQ(store.create_run({.name = "c"}), 8);
}

TEST(Schema, indices_are_used) {
  TemporaryFolder folder;
  { RunStore::open(folder / "a.db"); }
  Database database(folder / "a.db", Database::Mode::read_only);
  const auto plan = [&](const std::string& sql) {
    Statement rows(database, "EXPLAIN QUERY PLAN " + sql);
    std::string text;
    while (rows.step()) text += rows.text(3) + "\n";
    return text;
  };
  EXPECT_NE(plan("SELECT id FROM runs WHERE status IN ('queued', 'running')").find("runs_not_over"), std::string::npos);
  EXPECT_NE(plan("SELECT id FROM runs WHERE ladder_id = 1 ORDER BY rung, repeat").find("runs_by_ladder"),
            std::string::npos);
  EXPECT_NE(plan("SELECT id FROM runs WHERE hidden <> 0").find("runs_hidden"), std::string::npos);
  EXPECT_NE(plan("SELECT id FROM runs WHERE parent_id = 1").find("runs_by_parent"), std::string::npos);
  EXPECT_EQ(plan("SELECT loss FROM steps WHERE run_id = 1 ORDER BY step"),
            "SEARCH steps USING PRIMARY KEY (run_id=?)\n");
}

TEST(Schema, a_migration_happens_whole_or_not_at_all) {
  TemporaryFolder folder;
  const auto known = static_cast<std::int64_t>(migrations().size());
  std::vector<const char*> broken(migrations().begin(), migrations().end());
  broken.push_back("CREATE TABLE extra (x); INSERT INTO extra VALUES (5)");
  std::vector<const char*> mended = broken;
  broken.push_back("CREATE TABLE later (x); INSERT INTO no_such_table VALUES (1)");
  mended.push_back("CREATE TABLE later (x)");
  const auto file = folder / "a.db";
  {
    Database database(file, Database::Mode::read_write);
    EXPECT_NE(complaint<StorageError>([&] { prepare_schema(database, broken); }).find(file.string()),
              std::string::npos);
    EXPECT_EQ(database.integer("PRAGMA user_version"), 0);
    EXPECT_EQ(database.integer("SELECT count(*) FROM sqlite_master"), 0) << "a new file is made whole";
  }
  {
    Database database(file, Database::Mode::read_write);
    prepare_schema(database, mended);
    EXPECT_EQ(database.integer("PRAGMA user_version"), known + 2);
    EXPECT_EQ(database.integer("SELECT count(*) FROM extra"), 1) << "an older migration ran again";
  }
  EXPECT_NE(refusal_of_opening(file).find("newer version"), std::string::npos);

  Database older(folder / "older.db", Database::Mode::read_write);
  prepare_schema(older);
  EXPECT_NE(complaint<StorageError>([&] { prepare_schema(older, broken); }), "");
  EXPECT_EQ(older.integer("PRAGMA user_version"), known);
  EXPECT_EQ(older.integer("SELECT count(*) FROM sqlite_master WHERE name IN ('extra', 'later')"), 0);
}

TEST(Schema, an_error_within_a_transaction_in_memory_is_told) {
  Database database{Database::InMemory()};
  Transaction transaction(database);
  EXPECT_NE(complaint<StorageError>([&] {
              database.execute("CREATE TABLE a (x); INSERT INTO no_such_table VALUES (1)");
            }).find("no_such_table"),
            std::string::npos);
}

TEST(Schema, an_older_file_is_not_brought_up_to_date_by_a_reader) {
  TemporaryFolder folder;
  { RunStore::open(folder / "a.db"); }
  std::vector<const char*> longer(migrations().begin(), migrations().end());
  longer.push_back("CREATE TABLE extra (x)");
  Database database(folder / "a.db", Database::Mode::read_only);
  EXPECT_NE(complaint<StorageError>([&] { prepare_schema(database, longer); }).find("older version"),
            std::string::npos);
}

TEST(Schema, many_may_make_the_same_file_at_once) {
  TemporaryFolder folder;
  for (int round = 0; round < 5; ++round) {
    const auto file = folder.path() / ("a" + std::to_string(round) + ".db");
    std::vector<std::string> failures(6);
    std::vector<std::thread> threads;
    for (std::string& failure : failures)
      threads.emplace_back(
          [&] { failure = complaint<StorageError>([&] { RunStore::open(file).create_ladder({.name = "l"}); }); });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& failure : failures) EXPECT_EQ(failure, "");
    EXPECT_EQ(RunStore::open(file).ladders().size(), 6u);
  }
}

TEST(DefaultFile, follows_the_environment) {
  const auto with = [](const char* db, const char* data, const char* home) {
    const auto set = [](const char* name, const char* value) { value ? setenv(name, value, 1) : unsetenv(name); };
    set("STEPLADDER_DB", db);
    set("XDG_DATA_HOME", data);
    set("HOME", home);
    return default_database_file();
  };
  const auto kept = [](const char* name) {
    const char* value = getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
  const auto db = kept("STEPLADDER_DB"), data = kept("XDG_DATA_HOME"), home = kept("HOME");
  EXPECT_EQ(with("/x/y.db", "/data", "/home/a"), "/x/y.db");
  EXPECT_EQ(with(nullptr, "/data", "/home/a"), "/data/stepladder/stepladder.db");
  EXPECT_EQ(with("", "relative", "/home/a"), "/home/a/.local/share/stepladder/stepladder.db");
  EXPECT_EQ(with(nullptr, nullptr, "/home/a"), "/home/a/.local/share/stepladder/stepladder.db");
  EXPECT_TRUE(with(nullptr, nullptr, nullptr).is_absolute());
  with(db ? db->c_str() : nullptr, data ? data->c_str() : nullptr, home ? home->c_str() : nullptr);
}

}  // namespace
}  // namespace stepladder
