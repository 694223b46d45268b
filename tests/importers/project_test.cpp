// Imports of Stepladder's own project files: everything that a sink can take, of every version.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "storage/database/database.h"
#include "storage/database/run_store.h"
#include "storage/database/schema.h"
#include "storage/importers/importer.h"
#include "tests/importers/collecting_sink.h"
#include "tests/storage/database/old_file.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

std::string take(const fs::path& file, CollectingSink& sink) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  MemoryInput input(bytes, file);
  return complaint<ImportError>([&] {
    const Importer& importer = importer_for(input, {});
    EXPECT_EQ(importer.id, "stepladder");
    importer.read(input, {}, sink);
  });
}

void expect_same(const StepRecord& found, const StepRecord& expected) {
  SCOPED_TRACE(expected.step);
  const auto expect_value = [](double value, double wanted) {
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(is_missing(value), is_missing(wanted));
    } else {
      EXPECT_NEAR(value, wanted, std::fabs(wanted) * 1e-6);
    }
  };
  EXPECT_EQ(found.step, expected.step);
  EXPECT_EQ(found.tokens, expected.tokens);
  expect_value(found.loss, expected.loss);
  expect_value(found.val_loss, expected.val_loss);
  expect_value(found.dt_ms, expected.dt_ms);
  expect_value(found.lr, expected.lr);
  expect_value(found.grad_norm, expected.grad_norm);
  expect_value(found.at, expected.at);
  for (const NamedStepPart& part : all_step_parts) expect_value(found.parts.*part.ms, expected.parts.*part.ms);
}

TEST(ProjectImport, takes_ladders_runs_and_every_attempt_of_a_step) {
  TemporaryFolder folder;
  const fs::path file = folder / "theirs.stepladder";
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<StepRecord> first = {
      {.step = 1,
       .loss = 4.25,
       .val_loss = 4.5,
       .dt_ms = 12.5,
       .tokens = 1024,
       .lr = 3e-4,
       .grad_norm = 1.5,
       .at = 1.7e9,
       .parts = {.data_ms = 1, .forward_ms = 4, .backward_ms = 6, .optimizer_ms = 1}},
      {.step = 2, .loss = nan, .grad_norm = nan},
      {.step = 3, .loss = 3.5}};
  const std::vector<StepRecord> again = {{.step = 2, .loss = 3.75}, {.step = 3, .loss = 3.25}};
  {
    RunStore store = RunStore::open(file);
    const LadderId ladder = store.create_ladder({.name = "their ladder", .notes = "a note"});
    const stepladder::Run rung{.name = "fast",
                               .ladder = ladder,
                               .rung = 1,
                               .stage = "tf32",
                               .status = RunStatus::stopped,
                               .reason = "by hand",
                               .created_at = 5,
                               .params = 100,
                               .recipe = "{\"seq\":8}"};
    const RunId run = store.insert_finished(rung, first);
    store.append_steps(run, again);
    store.metrics().describe(run, {.name = "acc", .unit = "%", .direction = Direction::higher});
    store.metrics().append(run, "acc", std::vector<MetricPoint>{{1, 0.25}, {2, nan, 1.8e9}});
    store.metrics().append(run, "acc", std::vector<MetricPoint>{{1, 0.5}});
    store.insert_finished({.name = "alone"}, std::vector<StepRecord>{{.step = 1, .loss = 2}});
    store.insert_finished({.name = "base", .ladder = ladder}, first);
    store.curation().set(store.insert_finished({.name = "binned"}, first), {.deleted_at = 7});
    store.create_run({.name = "queued"});
    store.hidden_runs().create({.name = "being written"});
    store.insert_finished({.name = "being deleted"}, first);
  }
  Database(file, Database::Mode::read_write).execute("UPDATE runs SET hidden = 2 WHERE name = 'being deleted'");
  CollectingSink sink;
  EXPECT_EQ(take(file, sink), "");
  ASSERT_EQ(sink.runs.size(), 4u);
  EXPECT_EQ(sink.runs[0].run.name, "base");
  EXPECT_EQ(sink.runs[0].rung, 0);
  const CollectingSink::Told& fast = sink.runs[1];
  EXPECT_EQ(fast.run.name, "fast");
  EXPECT_EQ(fast.ladder, "their ladder");
  EXPECT_EQ(fast.rung, 1);
  EXPECT_EQ(fast.run.status, RunStatus::stopped);
  EXPECT_EQ(fast.run.reason, "by hand");
  EXPECT_EQ(fast.run.recipe, "{\"seq\":8}");
  EXPECT_EQ(fast.run.params, 100);
  EXPECT_EQ(fast.run.created_at, 5);
  ASSERT_EQ(fast.steps.size(), 5u);
  expect_same(fast.steps[0], first[0]);
  expect_same(fast.steps[1], first[1]);
  expect_same(fast.steps[2], again[0]);
  expect_same(fast.steps[3], first[2]);
  expect_same(fast.steps[4], again[1]);
  const std::vector<MetricPoint>& accuracy = fast.metrics.at("acc");
  ASSERT_EQ(accuracy.size(), 3u);
  EXPECT_EQ(accuracy[0].value, 0.25) << "the earlier attempt";
  EXPECT_EQ(accuracy[1].value, 0.5);
  EXPECT_TRUE(std::isnan(accuracy[2].value) && !is_missing(accuracy[2].value));
  EXPECT_EQ(accuracy[2].at, 1.8e9);
  EXPECT_TRUE(sink.runs[0].metrics.empty());
  EXPECT_EQ(sink.runs[2].run.name, "alone");
  EXPECT_EQ(sink.runs[2].rung, -1);
  EXPECT_EQ(sink.runs[3].run.status, RunStatus::interrupted);
  EXPECT_TRUE(sink.noted("3 runs were left out: in the bin, or not yet whole"));
}

TEST(ProjectImport, reads_files_of_every_earlier_version) {
  for (std::size_t version = 1; version <= newest_old_version; ++version) {
    SCOPED_TRACE(version);
    TemporaryFolder folder;
    make_old_file(folder / "old.db",
                  "INSERT INTO runs (id, name, status, created_at) VALUES (7, 'old', 'finished', 1);"
                  "INSERT INTO steps (run_id, step, attempt, loss, dt_ms, nan_mask) VALUES (7, 1, 1, 3.5, 2.5, 0), "
                  "(7, 2, 1, NULL, NULL, 1), (7, 2, 2, 3.25, 2.75, 0)",
                  version);
    CollectingSink sink;
    EXPECT_EQ(take(folder / "old.db", sink), "");
    ASSERT_EQ(sink.runs.size(), 1u);
    EXPECT_EQ(sink.runs[0].run.name, "old");
    ASSERT_EQ(sink.runs[0].steps.size(), 3u);
    expect_same(sink.runs[0].steps[0], {.step = 1, .loss = 3.5, .dt_ms = 2.5});
    expect_same(sink.runs[0].steps[1], {.step = 2, .loss = std::numeric_limits<double>::quiet_NaN()});
    expect_same(sink.runs[0].steps[2], {.step = 2, .loss = 3.25, .dt_ms = 2.75});
  }
}

TEST(ProjectImport, reads_a_newer_version_as_far_as_it_is_known) {
  TemporaryFolder folder;
  RunStore::open(folder / "new.db").insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 4, .loss = 2}});
  Database(folder / "new.db", Database::Mode::read_write)
      .execute(
          "PRAGMA user_version = 99; ALTER TABLE runs ADD COLUMN mood TEXT; ALTER TABLE steps ADD COLUMN heat REAL; "
          "CREATE TABLE moons (id INTEGER PRIMARY KEY)");
  CollectingSink sink;
  EXPECT_EQ(take(folder / "new.db", sink), "");
  ASSERT_EQ(sink.runs.size(), 1u);
  ASSERT_EQ(sink.runs[0].steps.size(), 1u);
  expect_same(sink.runs[0].steps[0], {.step = 4, .loss = 2});
}

TEST(ProjectImport, steps_that_wait_in_the_log_are_read_and_the_file_stays_as_it_is) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "live.db");
  store.insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 1, .loss = 2}});
  const auto bytes = fs::file_size(folder / "live.db-wal");
  ASSERT_GT(bytes, 0u);
  CollectingSink sink;
  EXPECT_EQ(take(folder / "live.db", sink), "");
  EXPECT_EQ(sink.runs.size(), 1u);
  EXPECT_EQ(fs::file_size(folder / "live.db-wal"), bytes);
}

TEST(ProjectImport, a_project_without_runs_is_said_to_be_one) {
  TemporaryFolder folder;
  { RunStore::open(folder / "empty.db"); }
  CollectingSink sink;
  EXPECT_EQ(take(folder / "empty.db", sink), "is a Stepladder project without runs");
}

}  // namespace
}  // namespace stepladder
