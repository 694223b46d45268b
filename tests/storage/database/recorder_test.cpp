#include "storage/database/recorder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "../temporary_folder.h"
#include "storage/database/database.h"

namespace stepladder {
namespace {

using namespace std::chrono_literals;

void no_error(const std::string& message) {
  ADD_FAILURE() << message;
}

TEST(Recorder, keeps_every_step_of_several_threads) {
  constexpr int threads = 4;
  constexpr int steps = 2500;
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  std::vector<RunId> runs;
  for (int i = 0; i < threads; ++i) runs.push_back(store.create_run({.name = "r"}));

  Recorder recorder(folder / "a.db", no_error);
  std::vector<std::thread> posters;
  for (const RunId run : runs)
    posters.emplace_back([&, run] {
      recorder.post(RunStarted{.run = run, .at = 1});
      for (int step = 1; step <= steps; ++step) {
        recorder.post(StepRecord{.run = run, .step = step, .loss = 1.0 / step, .dt_ms = 2});
        if (step % 1000 == 0) recorder.flush();
      }
      recorder.post(RunEnded{.run = run, .at = 2});
    });
  for (std::thread& poster : posters) poster.join();
  recorder.flush();

  for (const RunId run : runs) {
    EXPECT_EQ(store.run(run)->status, RunStatus::finished);
    EXPECT_EQ(store.summary(*store.run(run)).steps, steps);
    EXPECT_EQ(store.series(run).loss.at(steps - 1), 1.0 / steps);
  }
  EXPECT_EQ(recorder.unstored().why, "");
}

TEST(Recorder, flush_waits_for_what_was_posted_before) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = store.create_run({.name = "r"});
  Recorder recorder(folder / "a.db", no_error);
  recorder.flush();
  for (int step = 1; step <= 50; ++step) {
    recorder.post(StepRecord{.run = run, .step = step, .loss = 1});
    recorder.flush();
    ASSERT_EQ(store.series(run).size(), static_cast<std::size_t>(step));
  }
}

TEST(Recorder, a_copy_of_the_file_alone_is_complete_once_nobody_writes) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  Recorder recorder(folder / "a.db", no_error);
  const RunId run = store.create_run({.name = "r"});  // by another connection
  recorder.post(StepRecord{.run = run, .step = 1, .loss = 1});
  recorder.post(RunEnded{.run = run, .at = 2});
  recorder.flush();
  const auto steps_in_copy = [&] {
    std::filesystem::copy_file(folder / "a.db", folder / "copy.db", std::filesystem::copy_options::overwrite_existing);
    try {
      RunStore copy = RunStore::open(folder / "copy.db", RunStore::Mode::read_only);
      const bool has_run = copy.run(run).has_value();
      return has_run ? copy.series(run).size() : std::size_t{0};
    } catch (const StorageError&) {  // the file alone has no tables yet
      return std::size_t{0};
    }
  };
  EXPECT_EQ(steps_in_copy(), 0u) << "the log has it";
  const auto begun = std::chrono::steady_clock::now();
  while (steps_in_copy() == 0 && std::chrono::steady_clock::now() - begun < 5min) std::this_thread::sleep_for(100ms);
  EXPECT_EQ(steps_in_copy(), 1u);
}

TEST(Recorder, commits_soon_without_being_asked) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = store.create_run({.name = "r"});
  Recorder recorder(folder / "a.db", no_error);
  const auto posted = std::chrono::steady_clock::now();
  recorder.post(StepRecord{.run = run, .step = 1, .loss = 1});
  while (store.series(run).empty() && std::chrono::steady_clock::now() - posted < 5min)
    std::this_thread::sleep_for(1ms);
  ASSERT_EQ(store.series(run).size(), 1u);
}

TEST(Recorder, writes_what_is_left_when_it_goes) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = store.create_run({.name = "r"});
  for (int round = 1; round <= 20; ++round) {
    Recorder recorder(folder / "a.db", no_error);
    recorder.post(StepRecord{.run = run, .step = round, .loss = 1});
  }
  EXPECT_EQ(store.series(run).size(), 20u);
}

TEST(Recorder, sleeps_while_there_is_nothing_to_write) {
  TemporaryFolder folder;
  Recorder recorder(folder / "a.db", no_error);
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(300ms);
  const double busy_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(busy_s, 0.03);
}

TEST(Recorder, a_queued_run_that_is_stopped_does_not_end_the_look_for_requests) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId running = store.create_run({.name = "running"});
  const RunId queued = store.create_run({.name = "queued"});
  std::atomic<RunId> asked = 0;
  Recorder recorder(folder / "a.db", no_error, [&](RunId run, const RunChange&) { asked = run; });
  recorder.post(RunStarted{.run = running, .at = 1});
  recorder.post(RunEnded{.run = queued, .at = 2, .status = RunStatus::stopped});
  recorder.flush();
  store.processes().request(running, RunRequest::pause);
  const auto begun = std::chrono::steady_clock::now();
  while (asked == 0 && std::chrono::steady_clock::now() - begun < 5min) {
    recorder.post(StepRecord{.run = running, .step = 1, .loss = 1});
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(asked, running);
}

TEST(Recorder, a_file_that_cannot_be_opened_reaches_the_caller) {
  TemporaryFolder folder;
  EXPECT_THROW(Recorder(folder.path(), no_error), StorageError);
}

// A lock that another program holds.
class Lock {
 public:
  explicit Lock(const std::filesystem::path& file) : database_(file, Database::Mode::read_write) {
    database_.execute("BEGIN EXCLUSIVE");
  }

 private:
  Database database_;
};

StepRecord step_of(RunId run, std::int64_t step) {
  return {.run = run,
          .step = step,
          .loss = 1.0 / static_cast<double>(step),
          .dt_ms = 2,
          .tokens = 3,
          .lr = 4,
          .grad_norm = 5,
          .at = 1e9 + static_cast<double>(step)};
}

void expect_steps(RunStore& store, RunId run, std::int64_t first, std::int64_t last) {
  const Series series = store.series(run);
  ASSERT_EQ(std::ssize(series.step), last - first + 1);
  for (std::size_t i = 0; i < series.size(); ++i) {
    ASSERT_EQ(series.step[i], first + static_cast<std::int64_t>(i));
    ASSERT_EQ(series.loss[i], 1.0 / static_cast<double>(series.step[i]));
  }
  EXPECT_EQ(store.summary(*store.run(run)).repeated_steps, 0);
}

std::chrono::milliseconds lock_time() {
  return std::getenv("STEPLADDER_LONG") ? 60s : 2500ms;
}

TEST(Recorder, a_lock_of_another_program_loses_no_step) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = store.create_run({.name = "r"});
  std::vector<std::string> said;
  {
    Recorder recorder(folder / "a.db", [&](const std::string& why) { said.push_back(why); });
    recorder.post(RunStarted{.run = run, .at = 1});
    ASSERT_TRUE(recorder.flush());
    std::int64_t step = 0;
    {
      const Lock lock(folder / "a.db");
      const auto begun = std::chrono::steady_clock::now();
      for (; std::chrono::steady_clock::now() - begun < lock_time(); std::this_thread::sleep_for(2ms)) {
        recorder.post(step_of(run, ++step));
        if (step == 1) recorder.flush(1ms);  // so that the first attempt is made now
      }
      EXPECT_FALSE(recorder.flush(100ms)) << "nothing can be stored";
      const Unstored unstored = recorder.unstored();
      EXPECT_EQ(unstored.why, (folder / "a.db").string() + " is locked by another process");
      EXPECT_GT(unstored.steps, 0);
      EXPECT_LT(std::abs(unstored.since - unix_now() + std::chrono::duration<double>(lock_time()).count()), 30);
    }
    recorder.post(step_of(run, ++step));
    recorder.post(RunEnded{.run = run, .at = 2});
    EXPECT_TRUE(recorder.flush());
    EXPECT_EQ(recorder.unstored().why, "");
    expect_steps(store, run, 1, step);
  }
  EXPECT_EQ(store.run(run)->status, RunStatus::finished);
  EXPECT_EQ(said, (std::vector<std::string>{(folder / "a.db").string() + " is locked by another process", ""}));
}

TEST(Recorder, a_run_that_was_deleted_does_not_hold_up_the_others) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = store.create_run({.name = "r"});
  std::string said;
  {
    Recorder recorder(folder / "a.db", no_error);
    recorder.post(step_of(run, 1));
    recorder.post(step_of(4242, 1));
    recorder.post(RunEnded{.run = 4242});
    recorder.post(step_of(run, 2));
    EXPECT_TRUE(recorder.flush());
    said = recorder.unstored().kept_apart;
  }
  expect_steps(store, run, 1, 2);
  EXPECT_EQ(said.find("run 4242 is not in " + (folder / "a.db").string() + "; 1 steps are kept in "), 0u) << said;
  EXPECT_TRUE(std::filesystem::exists((folder / "a.db").string() + ".spill"));
}

// Posts steps until some have waited for a second; returns why, and stores them once `make_room` was called.
template <class MakeRoom>
std::string fill(const std::filesystem::path& file, const MakeRoom& make_room) {
  RunStore store = RunStore::open(file);
  const RunId run = store.create_run({.name = "r"});
  Recorder recorder(file, [](const std::string&) {});
  std::int64_t step = 0;
  const auto begun = std::chrono::steady_clock::now();
  for (; recorder.unstored().why.empty() && std::chrono::steady_clock::now() - begun < 5min;
       std::this_thread::sleep_for(20ms)) {
    for (int i = 0; i < 500; ++i) recorder.post(step_of(run, ++step));
  }
  const std::string why = recorder.unstored().why;
  EXPECT_FALSE(store.series(run).empty()) << "what fitted is there";
  make_room();
  EXPECT_TRUE(recorder.flush(5min));
  expect_steps(store, run, 1, step);
  return why;
}

TEST(Recorder, a_full_volume_loses_no_step) {
  TemporaryFolder folder;
  const auto volume = folder / "small";
  std::filesystem::create_directory(volume);
  if (mount("tmpfs", volume.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "a small volume can only be mounted by root";
  const std::string why =
      fill(volume / "a.db", [&] { EXPECT_EQ(mount("tmpfs", volume.c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0); });
  umount2(volume.c_str(), MNT_DETACH);
  EXPECT_EQ(why, "no space is left on the volume of " + (volume / "a.db").string());
}

TEST(Recorder, a_file_that_cannot_grow_for_a_while_loses_no_step) {
  TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 400000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string why = fill(folder / "a.db", [&] { setrlimit(RLIMIT_FSIZE, &before); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(why, (folder / "a.db").string() + " could not be read or written: File too large");
}

}  // namespace
}  // namespace stepladder
