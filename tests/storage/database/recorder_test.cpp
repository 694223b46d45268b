#include "storage/database/recorder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <ctime>

#include "../temporary_folder.h"

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
  EXPECT_EQ(recorder.error(), "");
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

TEST(Recorder, commits_soon_without_being_asked) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = store.create_run({.name = "r"});
  Recorder recorder(folder / "a.db", no_error);
  const auto posted = std::chrono::steady_clock::now();
  recorder.post(StepRecord{.run = run, .step = 1, .loss = 1});
  while (store.series(run).empty() && std::chrono::steady_clock::now() - posted < 5s) std::this_thread::sleep_for(1ms);
  ASSERT_EQ(store.series(run).size(), 1u);
  // 0.1 s is promised; a machine under test may be busy with other things.
  EXPECT_LT(std::chrono::steady_clock::now() - posted, 1s);
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
  Recorder recorder(folder / "a.db", no_error, [&](RunId run, RunRequest) { asked = run; });
  recorder.post(RunStarted{.run = running, .at = 1});
  recorder.post(RunEnded{.run = queued, .at = 2, .status = RunStatus::stopped});
  recorder.flush();
  store.request(running, RunRequest::pause);
  const auto begun = std::chrono::steady_clock::now();
  while (asked == 0 && std::chrono::steady_clock::now() - begun < 5s) {
    recorder.post(StepRecord{.run = running, .step = 1, .loss = 1});
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(asked, running);
}

TEST(Recorder, a_file_that_cannot_be_opened_reaches_the_caller) {
  TemporaryFolder folder;
  EXPECT_THROW(Recorder(folder.path(), no_error), StorageError);
}

TEST(Recorder, keeps_its_first_error_and_tells_once) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = store.create_run({.name = "r"});
  std::atomic<int> told = 0;
  std::string message;
  {
    Recorder recorder(folder / "a.db", [&](const std::string& error) {
      ++told;
      message = error;
    });
    recorder.post(StepRecord{.run = run, .step = 1, .loss = 1});
    recorder.flush();
    recorder.post(RunEnded{.run = 4242});
    recorder.flush();
    const std::string first = recorder.error();
    EXPECT_NE(first.find("run 4242 is not in"), std::string::npos) << first;
    recorder.post(RunEnded{.run = 4343});
    recorder.post(StepRecord{.run = run, .step = 2, .loss = 1});
    recorder.flush();
    EXPECT_EQ(recorder.error(), first);
  }
  EXPECT_EQ(told, 1);
  EXPECT_NE(message.find("4242"), std::string::npos);
  EXPECT_EQ(store.series(run).size(), 1u) << "written after the error";
}

// Posts steps until the recorder fails; returns the error.
std::string fill(const std::filesystem::path& file, int& told) {
  RunStore store = RunStore::open(file);
  const RunId run = store.create_run({.name = "r"});
  Recorder recorder(file, [&](const std::string&) { ++told; });
  for (int step = 1; step <= 200000 && recorder.error().empty(); ++step) {
    recorder.post(StepRecord{.run = run, .step = step, .loss = 1, .dt_ms = 2, .tokens = 3, .lr = 4, .grad_norm = 5});
    if (step % 500 == 0) recorder.flush();
  }
  recorder.flush();
  EXPECT_FALSE(store.series(run).empty()) << "what fitted is still there";
  return recorder.error();
}

TEST(Recorder, says_that_no_space_is_left) {
  TemporaryFolder folder;
  const auto volume = folder / "small";
  std::filesystem::create_directory(volume);
  if (mount("tmpfs", volume.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "a small volume can only be mounted by root";
  int told = 0;
  const std::string said = fill(volume / "a.db", told);
  umount2(volume.c_str(), MNT_DETACH);
  EXPECT_EQ(said, "no space is left on the volume of " + (volume / "a.db").string());
  EXPECT_EQ(told, 1);
}

TEST(Recorder, says_that_the_file_cannot_grow) {
  TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 400000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  int told = 0;
  const std::string said = fill(folder / "a.db", told);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(said, (folder / "a.db").string() + " could not be read or written: File too large");
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace stepladder
