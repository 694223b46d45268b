// Damaged project files: what is saved of them, and what is said to be lost.
#include "storage/database/rescue/rescue.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <random>

#include "../temporary_folder.h"
#include "old_file.h"
#include "storage/database/database.h"
#include "storage/database/rescue/write_ahead_log.h"
#include "storage/database/run_store.h"
#include "storage/database/schema.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& file) {
  std::string bytes(fs::file_size(file), '\0');
  std::ifstream(file, std::ios::binary).read(bytes.data(), std::ssize(bytes));
  return bytes;
}

void write_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

std::size_t page_size_in(const std::string& file) {
  return static_cast<std::size_t>(static_cast<unsigned char>(file[16]) << 8 | static_cast<unsigned char>(file[17]));
}

constexpr std::int64_t all_steps = 2'500;

std::vector<StepRecord> steps_of(std::int64_t first, std::int64_t last) {
  std::vector<StepRecord> steps;
  for (std::int64_t step = first; step <= last; ++step)
    steps.push_back({.step = step,
                     .loss = 3 + 1.0 / static_cast<double>(step),
                     .dt_ms = 10.25,
                     .tokens = 1024,
                     .lr = 1e-3,
                     .at = 1.7e9 + static_cast<double>(step),
                     .parts = {.forward_ms = 4, .backward_ms = 5}});
  return steps;
}

// Three runs of a ladder, 2,500 steps together, with recipes that need overflow pages, a note and samples.
void make_project(const fs::path& file) {
  RunStore store = RunStore::open(file);
  const LadderId ladder = store.create_ladder({.name = "a ladder"});
  for (const auto& [name, steps] : std::map<std::string, std::int64_t>{{"a", 300}, {"b", 2'000}, {"c", 200}}) {
    const RunId run = store.insert_finished({.name = name,
                                             .ladder = ladder,
                                             .source = "launched",
                                             .planned_steps = steps,
                                             .recipe = "{\"text\":\"" + std::string(9'000, 'x') + "\"}"},
                                            steps_of(1, steps));
    store.curation().set(run, {.tags = {"fast"}, .note = "a note"});
    std::vector<MetricPoint> points;
    for (std::int64_t step = 1; step <= 200; ++step) points.push_back({step, 1.0 / static_cast<double>(step)});
    store.metrics().append(run, "val/acc", points);
  }
  store.settings().set("example_added", "1");
}

struct Saved {
  RescueReport report;
  std::int64_t steps = 0;
  std::int64_t said_to_miss = 0;
  bool more = false;
};

Saved rescued(const fs::path& file, const fs::path& out) {
  fs::remove(out);
  Saved saved{.report = rescue(file, out)};
  RunStore store = RunStore::open(out, RunStore::Mode::read_only);
  EXPECT_EQ(store.upkeep().integrity_check(), "ok");
  for (const auto& run : store.runs()) {
    const RecordedSteps recorded = store.recorded_steps(run.id);
    saved.steps += recorded.records;
    const auto damaged = std::find_if(saved.report.runs.begin(), saved.report.runs.end(),
                                      [&](const DamagedRun& it) { return it.id == run.id; });
    if (damaged == saved.report.runs.end()) {
      EXPECT_EQ(run.status, RunStatus::finished) << run.reason;
      EXPECT_EQ(recorded.records, run.planned_steps) << "nobody says that it lacks something";
    } else {
      EXPECT_EQ(run.status, RunStatus::interrupted);
      EXPECT_NE(run.reason.find("rescued from a damaged file"), std::string::npos) << run.reason;
      EXPECT_EQ(damaged->steps, recorded.records);
    }
  }
  for (const DamagedRun& run : saved.report.runs) {
    saved.said_to_miss += run.missing_steps;
    saved.more = saved.more || run.more_may_be_missing;
  }
  return saved;
}

TEST(Rescue, a_sound_file_is_copied_whole) {
  TemporaryFolder folder;
  make_project(folder / "a.db");
  const std::string before = bytes_of(folder / "a.db");
  rescue(folder / "a.db", folder / "first.db");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 2)
      << "nothing is left over";
  const Saved saved = rescued(folder / "a.db", folder / "out.stepladder");
  EXPECT_TRUE(saved.report.is_whole());
  EXPECT_EQ(saved.steps, all_steps);
  EXPECT_EQ(saved.report.runs_saved, 3);
  EXPECT_EQ(saved.report.steps_saved, all_steps);
  EXPECT_TRUE(saved.report.notes.empty());
  EXPECT_EQ(bytes_of(folder / "a.db"), before);
  struct stat status {};
  ASSERT_EQ(stat((folder / "out.stepladder").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);

  RunStore from = RunStore::open(folder / "a.db", RunStore::Mode::read_only);
  RunStore to = RunStore::open(folder / "out.stepladder", RunStore::Mode::read_only);
  for (const auto& run : from.runs()) {
    const auto copy = to.existing_run(run.id);
    EXPECT_EQ(copy.recipe, run.recipe);
    EXPECT_EQ(copy.uid, run.uid);
    const Series steps = from.series(run.id), copied = to.series(run.id);
    EXPECT_EQ(copied.loss, steps.loss);
    EXPECT_EQ(copied.at, steps.at);
    EXPECT_EQ(to.metrics().points(run.id, "val/acc").size(), 200u);
  }
  EXPECT_EQ(to.curation().all().size(), 3u);
  EXPECT_EQ(to.ladders().at(0).name, "a ladder");
  EXPECT_EQ(to.settings().get("example_added"), "1");
}

// Whatever page of those that are tried is damaged: the file it becomes is sound, has 98 % of the steps, and says what
// it lacks. Behind the first pages, which hold the root of each table, only each third is tried, unless in the long
// form.
void try_each_page(const std::function<std::string(std::size_t)>& damage) {
  TemporaryFolder folder;
  make_project(folder / "sound.db");
  const std::string sound = bytes_of(folder / "sound.db");
  const std::size_t page_size = page_size_in(sound), pages = sound.size() / page_size;
  ASSERT_GT(pages, 100u);
  std::int64_t worst = all_steps;
  const std::size_t stride = std::getenv("STEPLADDER_LONG") ? 1 : 3;
  for (std::size_t page = 0; page < pages; page += page < 60 ? 1 : stride) {
    SCOPED_TRACE("page " + std::to_string(page + 1) + " of " + std::to_string(pages));
    std::string bytes = sound;
    bytes.replace(page * page_size, page_size, damage(page_size));
    write_bytes(folder / "damaged.db", bytes);
    const Saved saved = rescued(folder / "damaged.db", folder / "out.db");
    worst = std::min(worst, saved.steps);
    EXPECT_GE(saved.steps, all_steps * 98 / 100);
    if (saved.steps < all_steps) {
      EXPECT_FALSE(saved.report.is_whole());
      EXPECT_TRUE(saved.more || saved.said_to_miss == all_steps - saved.steps)
          << saved.said_to_miss << " are said to be missing, not " << all_steps - saved.steps;
    }
    EXPECT_LE(saved.said_to_miss, all_steps - saved.steps);
    EXPECT_EQ(bytes_of(folder / "damaged.db"), bytes);
  }
  EXPECT_LT(worst, all_steps) << "no page was a page of steps";
  ::testing::Test::RecordProperty("pages", std::to_string(pages));
  ::testing::Test::RecordProperty("fewest_steps", std::to_string(worst));
}

TEST(Rescue, values_of_a_metric_whose_name_is_lost_are_kept) {
  TemporaryFolder folder;
  make_project(folder / "a.db");
  Database(folder / "a.db", Database::Mode::read_write)
      .execute("PRAGMA foreign_keys = OFF; DELETE FROM metrics WHERE id = 2");
  const RescueReport report = rescue(folder / "a.db", folder / "out.db");
  EXPECT_EQ(report.runs_saved, 4);
  RunStore store = RunStore::open(folder / "out.db", RunStore::Mode::read_only);
  EXPECT_EQ(store.metrics().points(4, "metric 2 (rescued)").size(), 200u);
  EXPECT_EQ(store.metrics().points(1, "val/acc").size(), 200u);
  EXPECT_TRUE(store.metrics().of_run(2).empty());
}

TEST(Rescue, saves_98_percent_of_the_steps_whatever_page_is_zero) {
  try_each_page([](std::size_t bytes) { return std::string(bytes, '\0'); });
}

TEST(Rescue, saves_98_percent_of_the_steps_whatever_page_is_garbage) {
  std::mt19937 dice(1);
  try_each_page([&](std::size_t bytes) {
    std::string garbage(bytes, '\0');
    for (char& byte : garbage) byte = static_cast<char>(dice());
    return garbage;
  });
}

TEST(Rescue, a_page_that_overwrites_another_loses_only_that_one) {
  TemporaryFolder folder;
  make_project(folder / "sound.db");
  const std::string sound = bytes_of(folder / "sound.db");
  const std::size_t page_size = page_size_in(sound);
  const auto holds_steps = [&](std::size_t page) { return sound[page * page_size] == '\x0a'; };  // a leaf of an index
  int tried = 0;
  for (std::size_t page = 60; page + 30 < sound.size() / page_size && tried < 10; ++page) {
    if (!holds_steps(page) || !holds_steps(page + 30)) continue;
    ++tried;
    std::string bytes = sound;
    bytes.replace(page * page_size, page_size, sound, (page + 30) * page_size, page_size);
    write_bytes(folder / "damaged.db", bytes);
    const Saved saved = rescued(folder / "damaged.db", folder / "out.db");
    EXPECT_GE(saved.steps, all_steps * 98 / 100) << page;
    EXPECT_FALSE(saved.report.is_whole()) << page;
  }
  EXPECT_GT(tried, 0);
}

TEST(Rescue, an_overflow_page_that_another_overwrites_is_noticed) {
  TemporaryFolder folder;
  make_project(folder / "sound.db");
  const std::string sound = bytes_of(folder / "sound.db");
  const std::size_t page_size = page_size_in(sound);
  std::vector<std::size_t> overflow, last;
  for (std::size_t page = 1; page < sound.size() / page_size; ++page) {
    if (sound[page * page_size + 100] != 'x') continue;
    overflow.push_back(page);
    if (sound.compare(page * page_size, 4, std::string(4, '\0')) == 0) last.push_back(page);
  }
  ASSERT_EQ(last.size(), 3u);
  const std::size_t leaf = sound.find('\x0a', 40 * page_size) / page_size;
  std::vector<std::pair<std::size_t, std::size_t>> tried{{overflow.front(), last.front()}};
  for (const std::size_t page : overflow) tried.emplace_back(page, leaf);
  for (const auto& [page, by] : tried) {
    SCOPED_TRACE(std::to_string(page) + " by " + std::to_string(by));
    std::string bytes = sound;
    bytes.replace(page * page_size, page_size, sound, by * page_size, page_size);
    write_bytes(folder / "damaged.db", bytes);
    const Saved saved = rescued(folder / "damaged.db", folder / "out.db");
    EXPECT_EQ(saved.steps, all_steps);
    EXPECT_FALSE(saved.report.is_whole());
  }
}

TEST(Rescue, files_of_earlier_versions_are_brought_up_to_date) {
  for (std::size_t version = 1; version <= newest_old_version; ++version) {
    SCOPED_TRACE(version);
    TemporaryFolder folder;
    make_old_file(folder / "old.db",
                  "INSERT INTO runs (id, name, status, created_at) VALUES (7, 'old', 'finished', 1);"
                  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500) "
                  "INSERT INTO steps (run_id, step, attempt, loss, dt_ms) SELECT 7, i, 1, 3.5, 2.5 FROM n;"
                  "INSERT INTO steps (run_id, step, attempt, loss) VALUES (7, 9, 2, NULL);"
                  "UPDATE steps SET nan_mask = 1 WHERE attempt = 2",
                  version);
    const RescueReport report = rescue(folder / "old.db", folder / "new.db");
    EXPECT_TRUE(report.is_whole());
    EXPECT_EQ(report.steps_saved, 500);
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      EXPECT_TRUE(entry.path().filename() == "old.db" || entry.path().filename() == "new.db") << entry.path();
    }
    RunStore store = RunStore::open(folder / "new.db", RunStore::Mode::read_only);
    EXPECT_EQ(store.existing_run(7).name, "old");
    EXPECT_EQ(store.recorded_steps(7).records, 501);
    const Series series = store.series(7);
    ASSERT_EQ(series.size(), 500u);
    EXPECT_EQ(series.loss[0], 3.5);
    EXPECT_EQ(series.dt_ms[0], 2.5);
    EXPECT_TRUE(std::isnan(series.loss[8]) && !is_missing(series.loss[8]));
  }
}

// Since version 9 steps have another table, and the old one is emptied bit by bit.
TEST(Rescue, a_file_whose_steps_are_being_moved_is_brought_up_to_date) {
  if (migrations().size() < 9) GTEST_SKIP();
  TemporaryFolder folder;
  {
    Database database(folder / "old.db", Database::Mode::read_write);
    for (std::size_t i = 0; i < 8; ++i) database.execute(migrations()[i]);
    database.execute(
        "INSERT INTO runs (id, name, status, created_at) VALUES (7, 'old', 'finished', 1);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500) "
        "INSERT INTO steps (run_id, step, attempt, loss, dt_ms) SELECT 7, i, 1, 3.5, 2.5 FROM n");
    database.execute(migrations()[8]);
    database.execute(
        "INSERT INTO steps (run_id, step, loss, dt_ns) SELECT run_id, step, loss, 2500000 FROM steps_to_move WHERE "
        "step "
        "<= 200; DELETE FROM steps_to_move WHERE step <= 200; PRAGMA user_version = 9; PRAGMA application_id = " +
        std::to_string(application_id));
  }
  const RescueReport report = rescue(folder / "old.db", folder / "new.db");
  EXPECT_TRUE(report.is_whole());
  EXPECT_EQ(report.steps_saved, 500);
  const Series series = RunStore::open(folder / "new.db", RunStore::Mode::read_only).series(7);
  ASSERT_EQ(series.size(), 500u);
  EXPECT_EQ(series.dt_ms, std::vector<double>(500, 2.5));
}

TEST(Rescue, one_that_is_stopped_leaves_nothing_behind) {
  TemporaryFolder folder;
  make_project(folder / "a.db");
  const std::string before = bytes_of(folder / "a.db");
  int asked = 0;
  EXPECT_EQ(complaint<StorageError>([&] { rescue(folder / "a.db", folder / "out.db", [&] { return ++asked == 20; }); }),
            "the rescue was stopped");
  EXPECT_EQ(asked, 20);
  EXPECT_EQ(bytes_of(folder / "a.db"), before);
  for (const auto& entry : fs::directory_iterator(folder / "."))
    EXPECT_FALSE(entry.path().filename().string().starts_with("out.db")) << entry.path();
}

TEST(Rescue, refuses_what_it_must_not_read_or_write) {
  TemporaryFolder folder;
  make_project(folder / "a.db");
  write_bytes(folder / "there.db", "mine");
  EXPECT_EQ(complaint<StorageError>([&] { rescue(folder / "a.db", folder / "there.db"); }),
            (folder / "there.db").string() + " exists already");
  EXPECT_EQ(bytes_of(folder / "there.db"), "mine");
  EXPECT_EQ(complaint<StorageError>([&] { rescue(folder / "none.db", folder / "out.db"); }),
            (folder / "none.db").string() + " does not exist");
  { Database(folder / "other.db", Database::Mode::read_write).execute("CREATE TABLE t (a)"); }
  EXPECT_EQ(complaint<StorageError>([&] { rescue(folder / "other.db", folder / "out.db"); }),
            (folder / "other.db").string() + " is a SQLite database of another program");
  write_bytes(folder / "noise.db", std::string(50'000, 'x'));
  EXPECT_EQ(complaint<StorageError>([&] { rescue(folder / "noise.db", folder / "out.db"); }),
            (folder / "noise.db").string() + " holds no table of Stepladder that could be rescued");
  EXPECT_FALSE(fs::exists(folder / "out.db"));
}

TEST(LostSteps, are_found_where_a_summary_counts_more) {
  TemporaryFolder folder;
  make_project(folder / "a.db");
  EXPECT_EQ(RunStore::open(folder / "a.db").upkeep().integrity_check(), "ok");
  Database(folder / "a.db", Database::Mode::read_write)
      .execute("DELETE FROM steps WHERE run_id = 2 AND step BETWEEN 1000 AND 1009");
  EXPECT_EQ(RunStore::open(folder / "a.db").upkeep().integrity_check(),
            "run 2 has 1,990 of the 2,000 steps that its summary counts");
}

// A file with its log, as a process that is killed leaves them. Each transaction adds ten steps.
struct LogCase {
  TemporaryFolder folder;
  fs::path file = folder / "copy.db";
  std::string log;
  std::size_t page_size = 0;

  explicit LogCase(int transactions) {
    RunStore store = RunStore::open(folder / "live.db");
    const RunId run = store.create_run({.name = "r", .status = RunStatus::stopped});
    Database(folder / "live.db", Database::Mode::read_write).execute("PRAGMA wal_checkpoint(TRUNCATE)");
    for (int i = 0; i < transactions; ++i) store.append_steps(run, steps_of(10 * i + 1, 10 * i + 10));
    fs::copy_file(folder / "live.db", file);
    log = bytes_of(folder / "live.db-wal");
    page_size = page_size_in(bytes_of(file));
    restore();
  }
  void restore() const { write_bytes(file.string() + "-wal", log); }
  std::size_t frames() const { return (log.size() - 32) / (24 + page_size); }
  // Transactions that end behind this frame.
  std::int64_t commits_behind(std::size_t frame) const {
    std::int64_t commits = 0;
    for (std::size_t i = frame + 1; i < frames(); ++i)
      commits += log.substr(32 + i * (24 + page_size) + 4, 4) != std::string(4, '\0') ? 1 : 0;
    return commits;
  }
  void damage(std::size_t frame) const {
    std::string bytes = log;
    const std::size_t at = 32 + frame * (24 + page_size) + 24 + 500;
    bytes[at] = static_cast<char>(~bytes[at]);
    write_bytes(file.string() + "-wal", bytes);
  }
};

TEST(WriteAheadLog, damage_with_transactions_behind_it_is_reported_and_rescued) {
  const LogCase log(20);
  ASSERT_GE(log.frames(), 20u);
  EXPECT_EQ(damage_of_write_ahead_log(log.file), "");
  log.damage(3);
  const std::string said = damage_of_write_ahead_log(log.file);
  EXPECT_NE(said.find("copy.db-wal is damaged: opening the file would drop the last "), std::string::npos) << said;
  const RescueReport report = rescue(log.file, log.folder / "out.db");
  EXPECT_GE(report.lost_transactions, 10);
  EXPECT_EQ(RunStore::open(log.folder / "out.db").recorded_steps(1).records, 200)
      << "the page of the damaged frame was written again later";
}

TEST(WriteAheadLog, a_file_whose_log_lost_committed_transactions_is_not_opened) {
  const LogCase log(20);
  log.damage(3);
  for (const auto mode : {RunStore::Mode::read_write, RunStore::Mode::read_only})
    EXPECT_EQ(complaint<DamagedFile>([&] { RunStore::open(log.file, mode); }), damage_of_write_ahead_log(log.file));
  log.restore();
  EXPECT_EQ(RunStore::open(log.file).recorded_steps(1).records, 200);
}

TEST(WriteAheadLog, an_unfinished_transaction_at_the_end_is_no_damage) {
  const LogCase log(20);
  log.damage(log.frames() - 1);
  EXPECT_EQ(damage_of_write_ahead_log(log.file), "");
  std::string torn = log.log;
  torn.resize(torn.size() - 1'000);
  write_bytes(log.file.string() + "-wal", torn);
  EXPECT_EQ(damage_of_write_ahead_log(log.file), "");
  const RescueReport report = rescue(log.file, log.folder / "out.db");
  EXPECT_EQ(RunStore::open(log.folder / "out.db").recorded_steps(1).records, 190);
  EXPECT_EQ(report.lost_transactions, 0);
}

TEST(WriteAheadLog, each_damaged_frame_is_noticed_and_nothing_that_SQLite_reads_is_lost) {
  const LogCase log(12);
  RecordProperty("frames", std::to_string(log.frames()));
  for (std::size_t frame = 0; frame < log.frames(); ++frame) {
    SCOPED_TRACE(frame);
    log.damage(frame);
    const auto out = log.folder / ("out" + std::to_string(frame)).c_str();
    const RescueReport report = rescue(log.file, out);
    const std::int64_t saved = RunStore::open(out).recorded_steps(1).records;
    EXPECT_EQ(report.lost_transactions, log.commits_behind(frame) < 2 ? 0 : log.commits_behind(frame));
    fs::copy_file(log.file, log.folder / "sqlite.db", fs::copy_options::overwrite_existing);
    fs::copy_file(log.file.string() + "-wal", log.folder / "sqlite.db-wal", fs::copy_options::overwrite_existing);
    Database sqlite(log.folder / "sqlite.db", Database::Mode::read_write);
    EXPECT_GE(saved, sqlite.integer("SELECT count(*) FROM steps"));
  }
}

TEST(WriteAheadLog, a_log_that_was_moved_into_the_file_is_left_over) {
  const LogCase log(20);
  {
    Database database(log.file, Database::Mode::read_write);
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  std::string bytes = log.log;
  bytes[0] = 'x';  // the header of a new log, half written
  write_bytes(log.file.string() + "-wal", bytes);
  EXPECT_EQ(damage_of_write_ahead_log(log.file), "");
}

TEST(WriteAheadLog, a_damaged_header_is_noticed) {
  const LogCase log(20);
  std::string bytes = log.log;
  bytes[0] = 'x';
  write_bytes(log.file.string() + "-wal", bytes);
  EXPECT_NE(damage_of_write_ahead_log(log.file), "");
  rescue(log.file, log.folder / "out.db");
  EXPECT_EQ(RunStore::open(log.folder / "out.db").recorded_steps(1).records, 200);
}

}  // namespace
}  // namespace stepladder
