// Runs whose rows are being written or deleted in slices.
#include <gtest/gtest.h>

#include "storage/database/database.h"
#include "storage/database/run_store.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

class HiddenRuns : public testing::Test {
 protected:
  static std::vector<StepRecord> steps(std::int64_t count) {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= count; ++step)
      steps.push_back({.step = step, .loss = 3, .dt_ms = 40, .tokens = 1024, .at = 1000.0 + static_cast<double>(step)});
    return steps;
  }
  RunId hidden_run(LadderId ladder, std::int64_t count) {
    const RunId id = store_.hidden_runs().create({.name = "imported", .ladder = ladder, .status = RunStatus::finished});
    store_.append_steps(id, steps(count));
    return id;
  }
  // A run with rows in every table.
  RunId run_with_everything() {
    const RunId id = store_.create_run({.name = "run"});
    std::vector<RunEvent> events{RunStarted{.run = id, .at = 1}};
    for (StepRecord step : steps(5000)) {
      step.run = id;
      events.emplace_back(step);
    }
    events.emplace_back(SystemMetrics{.run = id, .step = 1, .at = 2});
    events.emplace_back(TextSample{.run = id, .step = 1, .at = 2, .text = "text"});
    events.emplace_back(ConsoleText{.run = id, .at = 2, .text = "printed"});
    events.emplace_back(StepProfile{.run = id, .at = 2, .steps = 3, .operators = {{.part = "forward", .name = "a"}}});
    events.emplace_back(RunEnded{.run = id, .at = 3, .status = RunStatus::finished});
    store_.apply(events);
    store_.curation().set(id, {.deleted_at = 1000});
    return id;
  }
  void execute(const std::string& sql) { Database(file_, Database::Mode::read_write).execute(sql); }
  std::int64_t integer(const std::string& sql) { return Database(file_, Database::Mode::read_only).integer(sql); }
  std::int64_t rows_of_runs() {
    std::int64_t rows = 0;
    for (const char* table : {"runs", "steps", "lanes", "samples", "console", "profiles", "operators", "overviews",
                              "overview_chunks", "summaries", "curation"})
      rows += integer("SELECT count(*) FROM " + std::string(table));
    return rows;
  }
  void let_owner_die() { execute("UPDATE runs SET owner_start = owner_start - 1 WHERE hidden <> 0"); }

  TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "runs.db";
  RunStore store_ = RunStore::open(file_);
};

TEST_F(HiddenRuns, AreNowhereUntilTheyAreShown) {
  const LadderId ladder = store_.create_ladder({.name = "ladder"});
  const RunId first = hidden_run(ladder, 10), second = hidden_run(ladder, 10);
  RunStore other = RunStore::open(file_);
  EXPECT_TRUE(other.runs().empty());
  EXPECT_TRUE(other.runs_with_summaries().empty());
  EXPECT_TRUE(other.runs_of(ladder).empty());
  EXPECT_TRUE(other.ladders().empty());
  EXPECT_FALSE(other.run(first));
  EXPECT_EQ(other.processes().close_dead_runs(), 0);
  other.curation().set(first, {.deleted_at = 1});
  EXPECT_TRUE(other.bin().empty(2).empty());
  EXPECT_EQ(other.apply(std::vector<RunEvent>{RunStarted{.run = first, .at = 1}}), std::vector{first});
  other.curation().set(first, {});

  store_.hidden_runs().show(std::vector{first, second});
  EXPECT_EQ(other.runs_of(ladder).size(), 2u);
  EXPECT_EQ(other.summary(*other.run(second)).steps, 10);
  EXPECT_EQ(integer("SELECT count(*) FROM runs WHERE owner_pid IS NOT NULL"), 0);
  EXPECT_THROW(store_.hidden_runs().show(std::vector{first}), StorageError) << "shown already";
}

TEST_F(HiddenRuns, AreRemovedOnceTheirProcessHasExited) {
  const LadderId ladder = store_.create_ladder({.name = "ladder"});
  hidden_run(ladder, 5000);
  hidden_run(ladder, 1);
  RunStore other = RunStore::open(file_);
  other.bin().finish_deletions();
  EXPECT_EQ(integer("SELECT count(*) FROM runs"), 2) << "the import is still running";
  EXPECT_EQ(other.bin().left_to_delete(), 0u);
  let_owner_die();
  EXPECT_EQ(other.bin().left_to_delete(), 2u);
  other.processes().close_dead_runs();
  EXPECT_EQ(rows_of_runs(), 0);
  EXPECT_TRUE(other.ladders().empty()) << "nor is the ladder left without runs";
}

TEST_F(HiddenRuns, AreRemovedByTheImportThatFails) {
  const RunId kept = store_.insert_finished({.name = "kept"}, steps(3));
  const RunId hidden = hidden_run(store_.create_ladder({.name = "ladder"}), 5000);
  // `kept` is another's run by now: its number was given to a run of a slice that was rolled back.
  store_.hidden_runs().remove(std::vector{hidden, kept});
  ASSERT_EQ(store_.runs().size(), 1u);
  EXPECT_EQ(store_.series(kept).size(), 3u);
  EXPECT_EQ(integer("SELECT count(*) FROM steps"), 3);
  EXPECT_TRUE(store_.ladders().empty());
}

TEST_F(HiddenRuns, AnEmptiedBinLeavesNoRow) {
  run_with_everything();
  EXPECT_GT(integer("SELECT count(*) FROM overview_chunks"), 0);
  EXPECT_GT(integer("SELECT count(*) FROM operators"), 0);
  EXPECT_EQ(store_.bin().empty(2000).size(), 1u);
  EXPECT_EQ(rows_of_runs(), 0);
}

TEST_F(HiddenRuns, ADeletionThatWasCutShortIsContinued) {
  const RunId id = run_with_everything();
  const auto die = [](auto) { throw StorageError("killed"); };
  EXPECT_THROW(store_.bin().empty(2000, die), StorageError);
  EXPECT_TRUE(store_.curation().all().at(id).deleted()) << "nothing has happened";
  // As if the process had been killed after hiding it and deleting some rows.
  execute(
      "UPDATE runs SET hidden = 2, owner_pid = 1, owner_start = 1, owner_boot = 'x'; DELETE FROM steps WHERE step < 9");
  RunStore::open(file_).bin().finish_deletions();
  EXPECT_EQ(rows_of_runs(), 0);
}

TEST_F(HiddenRuns, ADeletionThatEndsEarlyIsContinuedByTheNext) {
  run_with_everything();
  run_with_everything();
  int pieces = 0;
  EXPECT_EQ(store_.bin().empty(2000, {}, [&](std::size_t) { return ++pieces < 3; }).size(), 2u);
  EXPECT_TRUE(store_.runs().empty());
  EXPECT_GT(rows_of_runs(), 0);
  EXPECT_EQ(store_.bin().left_to_delete(), 0u) << "its process is alive";
  let_owner_die();
  RunStore other = RunStore::open(file_);
  EXPECT_EQ(other.bin().left_to_delete(), 2u);
  EXPECT_TRUE(other.bin().empty(0).empty());
  EXPECT_EQ(rows_of_runs(), 0);
}

TEST_F(HiddenRuns, DeletedRowsMakeTheFileSmaller) {
  const std::int64_t before = store_.upkeep().space().content_bytes;
  const RunId id = store_.insert_finished({.name = "long"}, steps(30'000));
  store_.curation().set(id, {.deleted_at = 1000});
  EXPECT_GT(store_.upkeep().space().content_bytes, before + 300'000);
  store_.bin().empty(2000);
  const FileSpace after = store_.upkeep().space();
  EXPECT_LT(after.file_bytes, before + 100'000);
  EXPECT_EQ(after.free_bytes, 0);
}

TEST_F(HiddenRuns, AFileOfAnEarlierVersionIsCompactedWhenAsked) {
  execute("PRAGMA auto_vacuum = NONE; VACUUM");
  store_ = RunStore::open(file_);
  const std::int64_t before = store_.upkeep().space().content_bytes;
  const RunId id = store_.insert_finished({.name = "long"}, steps(30'000));
  store_.insert_finished({.name = "kept"}, steps(3));
  store_.curation().set(id, {.deleted_at = 1000});
  store_.bin().empty(2000);
  EXPECT_GT(store_.upkeep().space().free_bytes, 300'000) << "unused, but part of the file";
  {
    RunStore other = RunStore::open(file_);
    EXPECT_THROW(store_.upkeep().compact(), StorageError) << "somebody has it open";
    EXPECT_EQ(other.runs().size(), 1u);
    other.insert_finished({.name = "another"}, steps(3));
  }
  store_.upkeep().compact();
  EXPECT_LT(store_.upkeep().space().file_bytes, before + 200'000);
  EXPECT_EQ(store_.upkeep().space().free_bytes, 0);
  RunStore other = RunStore::open(file_);
  EXPECT_EQ(other.runs().size(), 2u);
  EXPECT_EQ(integer("PRAGMA auto_vacuum"), 2) << "from now on it shrinks by itself";
  EXPECT_EQ(Database(file_, Database::Mode::read_only).text("PRAGMA journal_mode"), "wal");
  EXPECT_EQ(store_.upkeep().integrity_check(), "ok");
}

}  // namespace
}  // namespace stepladder
