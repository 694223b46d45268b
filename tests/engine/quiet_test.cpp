#include "engine/quiet.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "engine/others_watch.h"
#include "storage/contention.h"

namespace stepladder {
namespace {

using namespace std::chrono_literals;

// A process that keeps one core busy.
class Burner {
 public:
  Burner() : pid_(::fork()) {
    if (pid_ == 0) {
      for (volatile unsigned i = 0;;) i = i + 1;
    }
  }
  ~Burner() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Burner(const Burner&) = delete;
  Burner& operator=(const Burner&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

Contention used(double others) {
  return {.other_cores = others, .cores = 2, .needed_cores = 2};
}

TEST(Quiet, OnAverageOverItsLooks) {
  Quiet quiet;
  EXPECT_FALSE(quiet.after(used(0)));
  EXPECT_FALSE(quiet.after(used(0)));
  EXPECT_FALSE(quiet.after(used(0)));
  EXPECT_TRUE(quiet.after(used(0.4))) << "0.1 on average";
  EXPECT_FALSE(quiet.after(used(1)));
  EXPECT_DOUBLE_EQ(quiet.average().other_cores, 0.35);
  for (int i = 0; i < 3; ++i) quiet.after(used(0));
  EXPECT_TRUE(quiet.after(used(0)));
}

TEST(OthersWatch, OthersAreThoseThatAreNotTheRun) {
  OthersWatch watch(OthersWatch::Run::whole_process);
  std::this_thread::sleep_for(200ms);
  if (is_missing(watch.sample().other_cores)) GTEST_SKIP() << "a control group limits the CPU time here";
  // Both look at the same time, so whatever else the machine does is the same for both.
  const Burner burner;
  OthersWatch apart(OthersWatch::Run::whole_process), together(OthersWatch::Run::whole_process, {burner.pid()});
  std::this_thread::sleep_for(1s);
  const Contention with = apart.sample(), without = together.sample();
  EXPECT_GT(with.cores, 0);
  EXPECT_GT(with.other_cores, without.other_cores + 0.1);
  EXPECT_GT(together.run_cores(), 0.1);
  EXPECT_LT(apart.run_cores(), together.run_cores());
  EXPECT_LE(with.other_cores, with.cores);
}

// Two threads of this process are busy: one trains, with a thread that it makes, and one draws.
TEST(OthersWatch, OfItsOwnProcessOnlyTheRunsThreadsAreTheRun) {
  std::atomic<bool> over = false;
  const auto burn = [&over] {
    while (!over) continue;
  };
  std::atomic<int> begun = 0;
  std::jthread trains([&] {
    become_run_thread();
    std::jthread helps([&] {
      ++begun;
      burn();
    });
    ++begun;
    burn();
  });
  std::jthread draws([&] {
    ++begun;
    burn();
  });
  while (begun < 3) std::this_thread::yield();
  OthersWatch run(OthersWatch::Run::run_threads), process(OthersWatch::Run::whole_process);
  std::this_thread::sleep_for(1s);
  const Contention with_window = run.sample(), without = process.sample();
  over = true;
  EXPECT_GT(run.run_cores(), 0.1);
  EXPECT_GT(process.run_cores(), run.run_cores() + 0.1) << "the thread that draws isn't the run's";
  if (is_missing(with_window.other_cores)) GTEST_SKIP() << "a control group limits the CPU time here";
  EXPECT_GT(with_window.program_cores, 0.1);
  EXPECT_GE(with_window.other_cores, with_window.program_cores);
  EXPECT_LT(without.program_cores, 0.05);
}

TEST(OthersWatch, TooShortATimeSaysNothing) {
  OthersWatch watch(OthersWatch::Run::whole_process);
  EXPECT_TRUE(is_missing(watch.sample().other_cores));
}

TEST(OthersWatch, HelpersAreTheRunsChildren) {
  const Burner burner;
  const std::vector<pid_t> helpers = run_helpers();
  EXPECT_NE(std::find(helpers.begin(), helpers.end(), burner.pid()), helpers.end());
}

TEST(WaitUntilQuiet, GivesUpAfterItsPatienceAndSaysSo) {
  std::vector<Burner> burners(2 * std::thread::hardware_concurrency());
  RunControl control;
  std::vector<std::string> said;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_TRUE(wait_until_quiet(cores, 3s, control, [&](const std::string& text) { said.push_back(text); }));
  ASSERT_FALSE(said.empty());
  if (said.front().starts_with("nobody can tell")) GTEST_SKIP() << said.front();
  EXPECT_TRUE(said.front().starts_with("waiting for a quiet machine: others used ")) << said.front();
  EXPECT_TRUE(said.back().starts_with("waited 3 s for a quiet machine and starts anyway: others used ")) << said.back();
}

TEST(WaitUntilQuiet, AStopEndsIt) {
  OthersWatch watch(OthersWatch::Run::whole_process);
  if (watch.sample().cores == 0) GTEST_SKIP() << "a control group limits the CPU time here";
  std::vector<Burner> burners(2 * std::thread::hardware_concurrency());
  RunControl control;
  std::vector<std::string> said;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(300ms);
    control.request_stop();
  });
  EXPECT_FALSE(wait_until_quiet(1000, until_quiet, control, [&](const std::string& text) { said.push_back(text); }));
}

}  // namespace
}  // namespace stepladder
