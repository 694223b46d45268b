#include <thread>

#include "run_store_fixture.h"

namespace stepladder {
namespace {

TEST_F(RunStoreTest, settings) {
  EXPECT_FALSE(store.settings().get("k"));
  store.settings().set("k", "1");
  store.settings().set("k", "");
  EXPECT_EQ(store.settings().get("k"), "");
}

TEST_F(RunStoreTest, two_connections_see_what_the_other_committed) {
  RunStore other = RunStore::open(file);
  RunStore reader = RunStore::open(file, RunStore::Mode::read_only);
  const RunId id = store.create_run({.name = "r"});
  other.apply(std::vector<RunEvent>{StepRecord{.run = id, .step = 1, .loss = 4}});
  apply({StepRecord{.run = id, .step = 2, .loss = 3}});
  for (RunStore* any : {&store, &other, &reader}) EXPECT_EQ(any->series(id).loss, (std::vector<double>{4, 3}));
}

TEST_F(RunStoreTest, many_connections_may_write_at_once) {
  constexpr int writers = 4;
  constexpr int batches = 50;
  const RunId id = store.create_run({.name = "r"});
  std::vector<std::string> failures(writers);
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer)
    threads.emplace_back([&, writer] {
      failures[static_cast<std::size_t>(writer)] = complaint<StorageError>([&] {
        RunStore own = RunStore::open(file);
        for (int batch = 0; batch < batches; ++batch)
          own.apply(std::vector<RunEvent>{StepRecord{.run = id, .step = batch * writers + writer + 1, .loss = 1}});
      });
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  EXPECT_EQ(store.series(id).size(), static_cast<std::size_t>(writers * batches));
  EXPECT_EQ(store.upkeep().integrity_check(), "ok");
}

TEST(OthersRuns, are_found_when_another_connection_has_written) {
  TemporaryFolder folder;
  RunStore window = RunStore::open(folder / "a.db");
  window.processes().others_have_written();
  EXPECT_FALSE(window.processes().others_have_written());
  const RunId own = window.create_run({.name = "own"});
  EXPECT_FALSE(window.processes().others_have_written()) << "own writing doesn't count";
  RunStore training = RunStore::open(folder / "a.db");
  const RunId other = training.create_run({.name = "other"});
  training.insert_finished({.name = "over"}, {});
  EXPECT_TRUE(window.processes().others_have_written());
  EXPECT_FALSE(window.processes().others_have_written());
  std::vector<RunId> under_way;
  for (const auto& run : window.processes().runs_under_way()) under_way.push_back(run.id);
  EXPECT_EQ(under_way, (std::vector{own, other}));
}

}  // namespace
}  // namespace stepladder
