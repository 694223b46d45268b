#include "storage/database/example.h"

#include <gtest/gtest.h>

#include <fstream>

#include "../temporary_folder.h"
#include "storage/analysis/compare.h"

namespace stepladder {
namespace {

const std::filesystem::path assets = std::filesystem::path(STEPLADDER_SOURCE_DIR) / "assets";

TEST(Example, is_the_ladder_of_the_log) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  add_example(store, assets);

  ASSERT_EQ(store.ladders().size(), 1u);
  const Ladder ladder = store.ladders().front();
  EXPECT_EQ(ladder.name, "A100, three rungs");
  EXPECT_EQ(ladder.source, "example");
  const std::vector<stepladder::Run> runs = store.runs_of(ladder.id);
  ASSERT_EQ(runs.size(), 3u);

  const std::vector<std::string> stages{"baseline", "unnamed-change", "tf32"};
  const std::vector<std::string> precisions{"fp32", "fp32", "tf32"};
  // Medians of `time` over steps 6 to 50, calculated without this program; loss of the first and the last step.
  const std::vector<double> dt_ms{1298.9661693572998, 301.0420799255371, 125.82159042358398};
  const std::vector<double> loss_first{10.957832336425781, 10.953851699829102, 11.01377010345459};
  const std::vector<double> loss_last{5.6001200675964355, 5.548121929168701, 5.593912124633789};
  std::int64_t steps = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(stages[i]);
    const stepladder::Run& run = runs[i];
    EXPECT_EQ(run.rung, static_cast<int>(i));
    EXPECT_EQ(run.stage, stages[i]);
    EXPECT_EQ(run.precision, precisions[i]);
    EXPECT_EQ(run.name, "a100-three-rungs: " + run.title);
    EXPECT_EQ(run.status, RunStatus::finished);
    EXPECT_EQ(run.hardware, "NVIDIA A100");
    EXPECT_EQ(run.tokens_per_step, 4096);
    EXPECT_EQ(run.sync, Sync::unknown);
    EXPECT_EQ(run.params, 0);
    const Summary summary = store.summary(run);
    EXPECT_EQ(summary.warmup_steps, 5);
    EXPECT_NEAR(summary.dt_ms_median, dt_ms[i], 1e-8 * dt_ms[i]);
    EXPECT_NEAR(summary.tokens_per_s, 4096000 / dt_ms[i], 1e-8 * summary.tokens_per_s);
    EXPECT_EQ(summary.loss_first, loss_first[i]);
    EXPECT_EQ(summary.loss_last, loss_last[i]);
    steps += summary.steps;
  }
  EXPECT_EQ(steps, 150);
  EXPECT_TRUE(runs[0].changed.empty());
  EXPECT_EQ(runs[2].changed, "precision fp32 -> tf32");
  EXPECT_NEAR(speedup(store.summary(runs[0]), store.summary(runs[2])), 10.32, 0.01);
}

TEST(Example, is_added_once) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  add_example(store, assets);
  add_example(store, assets);
  add_example(store, folder / "no such folder");
  EXPECT_EQ(store.runs().size(), 3u);
  EXPECT_EQ(store.ladders().size(), 1u);
}

TEST(Example, a_missing_or_malformed_file_is_named_and_adds_nothing) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const std::filesystem::path file = folder / "examples/a100-three-rungs.csv";
  const auto refused = [&](const std::string& content) {
    std::ofstream(file) << content;
    return complaint<StorageError>([&] { add_example(store, folder.path()); });
  };
  EXPECT_EQ(complaint<StorageError>([&] { add_example(store, folder.path()); }),
            file.string() + " cannot be opened: No such file or directory");

  std::filesystem::create_directory(folder / "examples");
  const std::string header = "# comment\nrung,stage,title,precision,step,loss,dt_ms,tokens\n";
  EXPECT_EQ(refused(""), file.string() + " holds no steps");
  EXPECT_EQ(refused("step,loss\n1,2\n"),
            file.string() + ", line 1, does not name the columns rung,stage,title,precision,step,loss,dt_ms,tokens");
  EXPECT_EQ(refused(header + "0,a,A,fp32,1,11.5,x,4096\n"), file.string() + ", line 3, has 'x' instead of a number");
  EXPECT_EQ(refused(header + "0,a,A,fp32,1,11.5,9\n"), file.string() + ", line 3, has 7 fields instead of 8");
  EXPECT_EQ(refused(header + "0,a,A,fp32,1,11.5,9,4096,7\n"), file.string() + ", line 3, has 9 fields instead of 8");
  EXPECT_TRUE(store.runs().empty());
  EXPECT_TRUE(store.ladders().empty());
  EXPECT_FALSE(store.settings().get("example_added"));
}

TEST(Example, stays_away_from_a_project_that_has_runs) {
  RunStore store = RunStore::in_memory();
  const RunId own = store.create_run({.name = "own", .status = RunStatus::finished});
  add_example(store, assets);
  EXPECT_TRUE(store.ladders().empty());
  store.curation().set(own, {.deleted_at = 1000});
  add_example(store, assets);
  EXPECT_TRUE(store.ladders().empty()) << "later neither";
}

}  // namespace
}  // namespace stepladder
