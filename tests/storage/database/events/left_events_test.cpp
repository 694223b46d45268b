// What a killed process left is stored by the next one: rings and spill files.
#include "storage/database/events/left_events.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "../../temporary_folder.h"
#include "storage/database/database.h"
#include "storage/database/events/event_bytes.h"
#include "storage/database/events/event_ring.h"
#include "storage/database/recorder.h"

namespace stepladder {
namespace {

using namespace std::chrono_literals;

StepRecord left_step(RunId run, std::int64_t step) {
  return {.run = run, .step = step, .loss = 1.0 / static_cast<double>(step), .at = 1e9 + static_cast<double>(step)};
}

// Runs `work` in a child, which is killed when it has called `ready`.
template <class Work>
void kill_when_ready(const Work& work) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      work([&] {
        if (write(ready[1], "x", 1) != 1) _exit(1);
        while (true) pause();
      });
    } catch (...) {
    }
    _exit(1);
  }
  close(ready[1]);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1) << "the child failed";
  close(ready[0]);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

void expect_steps(RunStore& store, RunId run, std::int64_t last) {
  const Series series = store.series(run);
  ASSERT_EQ(std::ssize(series.step), last);
  for (std::size_t i = 0; i < series.size(); ++i) {
    ASSERT_EQ(series.step[i], static_cast<std::int64_t>(i) + 1);
    ASSERT_EQ(series.loss[i], 1.0 / static_cast<double>(series.step[i]));
  }
  EXPECT_EQ(store.summary(*store.run(run)).repeated_steps, 0);
}

bool has_spill(const std::filesystem::path& file) {
  return std::filesystem::exists(file.string() + ".spill");
}

TEST(LeftEvents, every_posted_step_outlives_a_kill) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  constexpr std::int64_t steps = 3000;
  kill_when_ready([&](const auto& ready) {
    RunStore store = RunStore::open(file);
    const RunId run = store.create_run({.name = "r"});
    Recorder recorder(file, [](const std::string&) {});
    recorder.post(RunStarted{.run = run, .at = 1});
    recorder.flush();
    for (std::int64_t step = 1; step <= steps; ++step) recorder.post(left_step(run, step));
    ready();
  });
  RunStore store = RunStore::open(file);
  EXPECT_EQ(store.series(1).size(), 0u) << "killed within the second in which steps are gathered";
  EXPECT_EQ(store.processes().close_dead_runs(), 1);
  expect_steps(store, 1, steps);
  EXPECT_EQ(store.run(1)->status, RunStatus::interrupted);
  EXPECT_NE(store.run(1)->reason.find("last step 3000"), std::string::npos) << store.run(1)->reason;
  EXPECT_TRUE(store.processes().left_behind().empty());
  EXPECT_TRUE(LeftEvents::of_database(file).empty()) << "taken in, so it is gone";
}

TEST(LeftEvents, another_process_that_looks_at_a_ring_is_not_taken_for_its_owner) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  std::string ring;
  {
    RunStore store = RunStore::open(file);
    const EventOrigin origin = origin_of_this_process(file);
    EventRing left(origin);
    ring = left.file().string();
    ASSERT_TRUE(left.post(left_step(1, 1)));
  }
  if (ring.empty()) GTEST_SKIP() << "no shared memory";
  const int looking = ::open(ring.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(looking, 0);
  ASSERT_EQ(::flock(looking, LOCK_SH | LOCK_NB), 0);
  std::thread looks([&] {
    std::this_thread::sleep_for(50ms);
    ::close(looking);
  });
  const auto found = LeftEvents::of_database(file);
  looks.join();
  ASSERT_EQ(found.size(), 1u);
  found.front()->remove();
}

TEST(LeftEvents, a_process_that_was_killed_while_the_database_was_locked_loses_nothing) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  const RunId run = RunStore::open(file).create_run({.name = "r"});
  RunStore::open(file).create_run({.name = "of another process"});
  {
    // Held by this process, so that the child cannot store anything.
    Database other(file, Database::Mode::read_write);
    kill_when_ready([&](const auto& ready) {
      Recorder recorder(file, [](const std::string&) {});
      recorder.post(RunStarted{.run = run, .at = 1, .device = "cpu"});
      recorder.flush();
      Database lock(file, Database::Mode::read_write);
      lock.execute("BEGIN IMMEDIATE");
      for (std::int64_t step = 1; step <= 500; ++step) recorder.post(left_step(run, step));
      recorder.post(ConsoleText{.run = run, .at = 3, .text = "printed"});
      recorder.post(TextSample{.run = run, .step = 500, .at = 3, .text = "is to be stored at once"});
      std::this_thread::sleep_for(2s);  // the first steps are in the spill file now
      for (std::int64_t step = 501; step <= 600; ++step) recorder.post(left_step(run, step));
      ready();
    });
    EXPECT_TRUE(has_spill(file));
  }
  RunStore store = RunStore::open(file);
  store.processes().close_dead_runs();
  expect_steps(store, run, 600);
  EXPECT_EQ(store.recordings().console(run), "printed");
  EXPECT_NE(store.run(run)->reason.find("is locked by another process"), std::string::npos) << store.run(run)->reason;
  EXPECT_FALSE(has_spill(file));
}

TEST(LeftEvents, what_is_stored_already_is_not_stored_again) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  RunStore store = RunStore::open(file);
  const RunId run = store.create_run({.name = "r"});
  std::vector<RunEvent> events{RunStarted{.run = run, .at = 1}};
  for (std::int64_t step = 1; step <= 100; ++step) events.emplace_back(left_step(run, step));
  events.emplace_back(ConsoleText{.run = run, .at = 2, .text = "once"});
  events.emplace_back(RunEnded{.run = run, .at = 3});
  const auto leave_them = [&] {
    SpillFile spill(origin_of_this_process(file), "events");
    ASSERT_TRUE(spill.append(events, "the disk was full"));
  };
  store.apply(std::span(events).first(60));
  leave_them();
  store.processes().close_dead_runs();
  expect_steps(store, run, 100);
  leave_them();
  store.processes().close_dead_runs();
  expect_steps(store, run, 100);
  EXPECT_EQ(store.recordings().console(run), "once");
  EXPECT_EQ(store.run(run)->status, RunStatus::finished);
  EXPECT_FALSE(has_spill(file));
}

TEST(LeftEvents, a_run_that_another_process_owns_by_now_is_left_alone) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  RunStore store = RunStore::open(file);
  const RunId run = store.create_run({.name = "r"});
  EventOrigin origin = origin_of_this_process(file);
  origin.process.start += 1;
  {
    SpillFile spill(origin, "events");
    ASSERT_TRUE(spill.append(std::vector<RunEvent>{left_step(run, 1), left_step(99, 1)}, ""));
  }
  store.processes().close_dead_runs();
  EXPECT_TRUE(store.series(run).empty());
  ASSERT_EQ(store.processes().left_behind().size(), 1u);
  EXPECT_NE(store.processes().left_behind()[0].find("holds events of run 1, which isn't in"), std::string::npos);
  EXPECT_TRUE(has_spill(file)) << "kept";
}

TEST(LeftEvents, a_damaged_file_gives_what_is_whole_and_is_kept) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  RunStore store = RunStore::open(file);
  const RunId run = store.create_run({.name = "r"});
  std::filesystem::path spilled;
  {
    SpillFile spill(origin_of_this_process(file), "events");
    ASSERT_TRUE(spill.append(std::vector<RunEvent>{left_step(run, 1), left_step(run, 2), left_step(run, 3)}, ""));
    spilled = spill.file();
  }
  {
    std::fstream bytes(spilled, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(-200, std::ios::end);  // in the second step
    bytes.put('!');
  }
  store.processes().close_dead_runs();
  EXPECT_EQ(store.series(run).step, (std::vector<std::int64_t>{1, 3}));
  ASSERT_EQ(store.processes().left_behind().size(), 1u);
  EXPECT_NE(store.processes().left_behind()[0].find("is damaged; 2 of its events are stored"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(spilled));
  // A last record that a kill cut short is no damage.
  std::filesystem::resize_file(spilled, std::filesystem::file_size(spilled) - 100);
}

TEST(LeftEvents, files_of_living_processes_and_others_are_not_touched) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  RunStore store = RunStore::open(file);
  const RunId run = store.create_run({.name = "r"});
  Recorder recorder(file, [](const std::string&) {});
  SpillFile spill(origin_of_this_process(file), "events");
  ASSERT_TRUE(spill.append(std::vector<RunEvent>{left_step(run, 1)}, ""));
  std::filesystem::path folder_of_spills = file.string() + ".spill";
  std::ofstream(folder_of_spills / "note.txt") << "not ours";
  std::filesystem::create_symlink("/etc/hostname", folder_of_spills / "link");
  EXPECT_TRUE(LeftEvents::of_database(file).empty());
  store.processes().close_dead_runs();
  EXPECT_TRUE(store.series(run).empty());
}

TEST(LeftEvents, a_recorder_that_gives_up_leaves_everything) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  RunStore store = RunStore::open(file);
  const RunId run = store.create_run({.name = "r"});
  {
    Database lock(file, Database::Mode::read_write);
    Recorder recorder(file, [](const std::string&) {});
    recorder.post(RunStarted{.run = run, .at = 1});
    ASSERT_TRUE(recorder.flush());
    lock.execute("BEGIN IMMEDIATE");
    for (std::int64_t step = 1; step <= 10; ++step) recorder.post(left_step(run, step));
    recorder.post(RunEnded{.run = run, .at = 2, .status = RunStatus::stopped, .reason = "stopped by hand"});
    recorder.give_up();
  }
  EXPECT_TRUE(store.series(run).empty());
  store.processes().close_dead_runs();
  expect_steps(store, run, 10);
  EXPECT_EQ(store.run(run)->status, RunStatus::stopped);
  EXPECT_EQ(store.run(run)->reason, "stopped by hand");
}

}  // namespace
}  // namespace stepladder
