#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../temporary_folder.h"
#include "storage/database/database.h"
#include "storage/database/process.h"
#include "storage/database/run_store.h"

// What closes the runs of processes that have exited.
namespace stepladder {
namespace {

// A child that owns runs in `file`: one with steps, one without, one that has ended; then is killed or waits.
struct Child {
  pid_t pid = 0;
  void kill_and_reap() const {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
};

Child child_with_runs(const std::filesystem::path& file) {
  int ready[2];
  if (pipe(ready) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends with a test that crashes
    try {
      RunStore own = RunStore::open(file);
      const RunId run = own.create_run({.name = "with steps", .created_at = 10});
      own.apply(std::vector<RunEvent>{RunStarted{.run = run, .at = 11},
                                      StepRecord{.run = run, .step = 411, .loss = 2, .at = 20.5},
                                      StepRecord{.run = run, .step = 412, .loss = 1, .at = 21.5}});
      own.create_run({.name = "without steps", .created_at = 12});
      const RunId over = own.create_run({.name = "over", .created_at = 13});
      own.apply(std::vector<RunEvent>{RunStarted{.run = over, .at = 13}, RunEnded{.run = over, .at = 14}});
      if (write(ready[1], "x", 1) != 1) _exit(1);
      while (true) pause();
    } catch (...) {
      _exit(1);
    }
  }
  close(ready[1]);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  return {pid};
}

TEST(DeadRuns, are_closed_once_their_process_is_gone) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  const Child child = child_with_runs(file);
  RunStore store = RunStore::open(file);
  store.create_run({.name = "mine", .created_at = 15});
  EXPECT_EQ(store.processes().close_dead_runs(), 0) << "the child lives";
  child.kill_and_reap();
  EXPECT_EQ(RunStore::open(file, RunStore::Mode::read_only).processes().close_dead_runs(), 0);
  EXPECT_EQ(store.processes().close_dead_runs(), 2);
  EXPECT_EQ(store.processes().close_dead_runs(), 0);

  const std::vector<stepladder::Run> runs = store.runs();
  ASSERT_EQ(runs.size(), 4u);
  const std::string gone = "the process that ran it (pid " + std::to_string(child.pid) + ") has exited; ";
  EXPECT_EQ(runs[0].status, RunStatus::interrupted);
  EXPECT_EQ(runs[0].reason, gone + "last step 412");
  EXPECT_EQ(runs[0].ended_at, 21.5);
  EXPECT_EQ(store.summary(runs[0]).last_step, 412);
  EXPECT_EQ(runs[1].status, RunStatus::interrupted);
  EXPECT_EQ(runs[1].reason, gone + "it recorded no step");
  EXPECT_EQ(runs[1].ended_at, 12);
  EXPECT_EQ(runs[2].status, RunStatus::finished);
  EXPECT_EQ(runs[3].status, RunStatus::queued) << "this process lives";
}

// A process keeps RunStarted in its memory and steps in its ring, which outlives it.
TEST(DeadRuns, a_run_with_steps_has_begun) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = store.create_run({.name = "killed at once", .created_at = 10});
  store.apply(std::vector<RunEvent>{StepRecord{.run = run, .step = 1, .loss = 2, .at = 20.5},
                                    StepRecord{.run = run, .step = 2, .loss = 2, .at = 21.5}});
  ASSERT_TRUE(is_missing(store.run(run)->started_at));
  Database(folder / "a.db", Database::Mode::read_write).execute("UPDATE runs SET owner_boot = 'before'");
  EXPECT_EQ(store.processes().close_dead_runs(), 1);
  EXPECT_EQ(store.run(run)->started_at, 20.5);
  EXPECT_EQ(store.run(run)->ended_at, 21.5);
}

TEST(DeadRuns, a_killed_process_that_nobody_reaped_is_gone_too) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  const Child child = child_with_runs(file);
  kill(child.pid, SIGKILL);
  siginfo_t ignored;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid), &ignored, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(RunStore::open(file).processes().close_dead_runs(), 2);
  child.kill_and_reap();
}

TEST(DeadRuns, a_pid_given_again_or_another_boot_is_not_the_owner) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  RunStore store = RunStore::open(file);
  for (const char* name : {"untouched", "later process", "other boot", "nobody's"}) store.create_run({.name = name});
  Database(file, Database::Mode::read_write)
      .execute(
          "UPDATE runs SET owner_start = owner_start + 1 WHERE name = 'later process';"
          "UPDATE runs SET owner_boot = 'before' WHERE name = 'other boot';"
          "UPDATE runs SET owner_pid = NULL WHERE name = 'nobody''s'");
  EXPECT_EQ(store.processes().close_dead_runs(), 2);
  const std::vector<stepladder::Run> runs = store.runs();
  EXPECT_EQ(runs[0].status, RunStatus::queued);
  EXPECT_EQ(runs[1].status, RunStatus::interrupted);
  EXPECT_EQ(runs[2].status, RunStatus::interrupted);
  EXPECT_EQ(runs[3].status, RunStatus::queued);
}

TEST(DeadRuns, a_run_that_this_process_resumed_is_its_own) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  const Child child = child_with_runs(file);
  child.kill_and_reap();
  RunStore store = RunStore::open(file);
  ASSERT_EQ(store.processes().close_dead_runs(), 2);
  const RunId id = store.runs()[0].id;
  store.apply(std::vector<RunEvent>{RunStarted{.run = id, .at = 30}});
  EXPECT_EQ(store.processes().close_dead_runs(), 0);
  EXPECT_EQ(store.run(id)->status, RunStatus::running);
  EXPECT_EQ(store.run(id)->reason, "");
  EXPECT_TRUE(is_missing(store.run(id)->ended_at));
}

TEST(Process, this_one_is_alive_and_fully_known) {
  const ProcessIdentity self = this_process();
  EXPECT_EQ(self.pid, getpid());
  EXPECT_GT(self.start, 0);
  EXPECT_EQ(self.boot.size(), 36u);
  EXPECT_TRUE(is_alive(self));
}

TEST(Process, one_that_is_named_by_its_pid_alone_is_nobodys) {
  EXPECT_FALSE(is_alive({.pid = getpid()}));
  EXPECT_FALSE(is_alive({.pid = 0, .start = this_process().start, .boot = this_process().boot}));
  EXPECT_FALSE(is_alive({.pid = -1, .start = 1, .boot = this_process().boot}));
  EXPECT_TRUE(is_alive({.pid = getpid(), .boot = this_process().boot}));
}

}  // namespace
}  // namespace stepladder
