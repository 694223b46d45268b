#include "app/import/journal_follower.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "storage/checksum.h"
#include "storage/database/process.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

const std::string demo_uid = "0123456789abcdef0123456789abcdef";

std::string line_with_checksum(const std::string& json) {
  char checksum[16];
  std::snprintf(checksum, sizeof checksum, "\t%08x\n", crc32(json));
  return json + checksum;
}

// Of a process on this machine that has exited, unless `alive`.
std::string first_line(int rank = 0, int attempt = 1, bool alive = false) {
  const ProcessIdentity self = this_process();
  return line_with_checksum(R"({"e":"run","v":1,"uid":")" + demo_uid + R"(","id":"demo","name":"demo","attempt":)" +
                            std::to_string(attempt) + R"(,"rank":)" + std::to_string(rank) +
                            R"(,"world":2,"t":1000.0,"pid":)" + std::to_string(self.pid) + R"(,"pid_start":)" +
                            std::to_string(alive ? self.start : 1) + R"(,"boot":")" + self.boot + "\"}");
}

std::string logged(int step, const std::string& values) {
  return line_with_checksum(R"({"e":"log","s":)" + std::to_string(step) + R"(,"t":)" + std::to_string(1001 + step) +
                            R"(,"v":{)" + values + "}}");
}

const std::string last_line = line_with_checksum(R"({"e":"end","t":2000.0,"status":"finished","code":0})");

class JournalFollowing : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name, std::ios::binary | std::ios::trunc) << bytes;
  }

  // What a follower that has just been started takes in.
  void follow(const std::string& folder = ".", const std::string& machine = {}) {
    JournalFollower follower(store_,
                             {.paths = {folder_.path() / folder}, .is_far = !machine.empty(), .origin = machine},
                             [this](const std::string& text) { told_.push_back(text); });
    follower.scan();
    while (follower.poll()) {
    }
  }

  std::string losses() {
    std::string text;
    const Series series = store_.series(1);
    for (std::size_t i = 0; i < series.size(); ++i) {
      char part[100];
      std::snprintf(part, sizeof part, "%d %g %g %g; ", static_cast<int>(series.step[i]), series.loss[i],
                    series.val_loss[i], series.dt_ms[i]);
      text += part;
    }
    return text;
  }

  std::vector<MetricPoint> points(const std::string& name) { return store_.metrics().points(1, name); }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::in_memory();
  std::vector<std::string> told_;
};

TEST_F(JournalFollowing, AJournalThatGrowsByteByByteIsStoredOnceByFollowersThatAreRestartedEachTime) {
  std::string bytes = first_line() + line_with_checksum(R"({"e":"config","v":{"lr":0.001}})");
  for (int i = 0; i < 4; ++i) {
    bytes +=
        line_with_checksum(R"({"e":"step","s":)" + std::to_string(i) + R"(,"t":1001,"ms":12.5,"y":"event","n":8})");
    bytes += logged(
        i, R"("loss":)" + (i == 2 ? std::string("\"NaN\"") : std::to_string(4 - i)) + R"(,"acc":)" + std::to_string(i));
  }
  bytes += logged(3, R"("val/loss":2.5)") + last_line;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    write("rank-0.1.jsonl", bytes.substr(0, size));
    follow();
  }
  ASSERT_EQ(store_.runs().size(), 1u);
  EXPECT_EQ(losses(), "0 4 nan 12.5; 1 3 nan 12.5; 2 nan nan 12.5; 3 1 2.5 12.5; ");
  EXPECT_EQ(store_.recorded_steps(1).records, 4) << "no step was superseded";
  ASSERT_EQ(points("acc").size(), 4u);
  EXPECT_EQ(points("acc")[3].value, 3);
  const stepladder::Run run = store_.existing_run(1);
  EXPECT_EQ(run.status, RunStatus::finished);
  EXPECT_EQ(run.sync, Sync::event);
  EXPECT_EQ(run.tokens_per_step, 8);
  EXPECT_EQ(run.recipe, R"({"lr":0.001})");
  follow();
  EXPECT_EQ(store_.recorded_steps(1).records, 4);
}

TEST_F(JournalFollowing, ALaterAttemptSupersedesAndOtherRanksAddMetrics) {
  write("rank-0.1.jsonl", first_line() + logged(0, R"("loss":4)") + logged(1, R"("loss":3)"));
  follow();
  EXPECT_EQ(store_.existing_run(1).status, RunStatus::interrupted);
  EXPECT_NE(store_.existing_run(1).reason.find("last step 1"), std::string::npos);
  write("rank-1.1.jsonl", first_line(1) + line_with_checksum(R"({"e":"step","s":0,"t":1001,"ms":30,"y":"event"})"));
  write("rank-0.2.jsonl", first_line(0, 2) + logged(1, R"("loss":2)") + last_line);
  follow();
  EXPECT_EQ(losses(), "0 4 nan nan; 1 2 nan nan; ");
  EXPECT_EQ(store_.recorded_steps(1).records, 3);
  EXPECT_EQ(points("rank/1/dt_ms").at(0).value, 30);
  EXPECT_EQ(store_.existing_run(1).status, RunStatus::finished);
  EXPECT_EQ(store_.runs().size(), 1u);
}

TEST_F(JournalFollowing, ARunWhoseProcessLivesIsRunningAndItsBadTailIsTriedAgain) {
  const std::string begin = first_line(0, 1, true) + logged(0, R"("loss":4)");
  JournalFollower follower(store_, {.paths = {folder_.path()}, .name = "mine"}, [](const std::string&) {});
  write("rank-0.1.jsonl", begin + std::string(40, '\0') + "\n");
  follower.scan();
  while (follower.poll()) {
  }
  EXPECT_EQ(store_.existing_run(1).status, RunStatus::running);
  EXPECT_EQ(store_.existing_run(1).name, "mine");
  EXPECT_EQ(store_.processes().close_dead_runs(), 0) << "its owner is the process that logs";
  write("rank-0.1.jsonl", begin + logged(1, R"("loss":3)") + last_line);
  while (follower.poll()) {
  }
  EXPECT_EQ(losses(), "0 4 nan nan; 1 3 nan 1000; ");
  EXPECT_EQ(store_.existing_run(1).status, RunStatus::finished);
}

TEST_F(JournalFollowing, ATimedStepWaitsForItsNumbers) {
  const auto timed = [](int step) {
    return line_with_checksum(R"({"e":"step","s":)" + std::to_string(step) + R"(,"t":1001,"ms":12.5,"y":"event"})");
  };
  const std::string begin = first_line(0, 1, true) + timed(0) + logged(0, R"("loss":4)");
  JournalFollower follower(store_, {.paths = {folder_.path()}}, [](const std::string&) {});
  write("rank-0.1.jsonl", begin + timed(1));
  follower.scan();
  while (follower.poll()) {
  }
  EXPECT_EQ(losses(), "0 4 nan 12.5; ");
  while (follower.poll()) {
  }
  EXPECT_EQ(losses(), "0 4 nan 12.5; 1 nan nan 12.5; ") << "but not for long";
  write("rank-0.1.jsonl", begin + timed(1) + logged(1, R"("loss":3)"));
  while (follower.poll()) {
  }
  EXPECT_EQ(losses(), "0 4 nan 12.5; 1 3 nan 12.5; ");
}

TEST_F(JournalFollowing, TwoFollowersAtOnceStoreEachValueOnce) {
  JournalFollower first(store_, {.paths = {folder_.path()}}, [](const std::string&) {});
  JournalFollower second(store_, {.paths = {folder_.path()}}, [](const std::string&) {});
  std::string bytes = first_line(0, 1, true);
  for (int i = 0; i < 20; ++i) {
    bytes += logged(i, R"("loss":1,"x":)" + std::to_string(i));
    write("rank-0.1.jsonl", bytes);
    for (JournalFollower* follower : {&first, &second}) {
      follower->scan();
      while (follower->poll()) {
      }
    }
  }
  EXPECT_EQ(store_.recorded_steps(1).records, 20);
  EXPECT_EQ(points("x").size(), 20u);
  EXPECT_EQ(store_.runs().size(), 1u);
}

TEST_F(JournalFollowing, AddsNothingToARunThatWasLaunchedHere) {
  store_.create_run({.uid = demo_uid, .name = "mine", .status = RunStatus::running, .source = "launched"});
  store_.append_steps(1, std::vector<StepRecord>{{.step = 0, .loss = 9}, {.step = 1, .loss = 8}});
  write("rank-0.1.jsonl", first_line() + logged(0, R"("loss":1)") + logged(1, R"("loss":1)") + last_line);
  write("rank-0.2.jsonl", first_line(0, 2) + logged(1, R"("loss":1)") + last_line);
  follow();
  EXPECT_EQ(losses(), "0 9 nan nan; 1 8 nan nan; ");
  EXPECT_EQ(store_.recorded_steps(1).records, 2);
  EXPECT_EQ(store_.existing_run(1).status, RunStatus::running);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_NE(told_[0].find("rank-0.1.jsonl names run 1 as its own, which was launched here"), std::string::npos)
      << told_[0];
  follow(".", "far 00000000000000000000000000000001");
  EXPECT_EQ(losses(), "0 9 nan nan; 1 8 nan nan; ");
  EXPECT_EQ(store_.runs().size(), 1u);
}

TEST_F(JournalFollowing, AddsNothingToARunThatIsFollowedFromElsewhere) {
  write("a/rank-0.1.jsonl", first_line() + logged(0, R"("loss":4)"));
  follow();
  EXPECT_EQ(losses(), "0 4 nan nan; ");
  // With the uid of the other folder's: the same bytes and more, a later attempt, another rank.
  write("b/rank-0.1.jsonl", first_line() + logged(0, R"("loss":4)") + logged(1, R"("loss":1)"));
  write("b/rank-0.2.jsonl", first_line(0, 2) + logged(0, R"("loss":1)") + last_line);
  write("b/rank-1.1.jsonl", first_line(1) + logged(0, R"("acc":1)"));
  follow();
  follow("b");
  follow("b", "far 00000000000000000000000000000001");
  EXPECT_EQ(losses(), "0 4 nan nan; ");
  EXPECT_TRUE(points("rank/1/acc").empty());
  EXPECT_EQ(store_.existing_run(1).status, RunStatus::interrupted);
  EXPECT_NE(told_.back().find("run 1"), std::string::npos) << told_.back();
  EXPECT_NE(told_.back().find((folder_.path() / "a").string()), std::string::npos) << told_.back();
  // The folder that has made it goes on, also by another path.
  std::filesystem::create_directory_symlink(folder_.path() / "a", folder_.path() / "link");
  write("a/rank-0.2.jsonl", first_line(0, 2) + logged(1, R"("loss":3)") + last_line);
  follow("link");
  EXPECT_EQ(losses(), "0 4 nan nan; 1 3 nan nan; ");
  EXPECT_EQ(store_.existing_run(1).status, RunStatus::finished);
  EXPECT_EQ(store_.runs().size(), 1u);
}

TEST_F(JournalFollowing, AFolderThatWasMovedGoesOn) {
  write("a/rank-0.1.jsonl", first_line() + logged(0, R"("loss":4)"));
  follow();
  if (JournalOrigin::of_folder(folder_.path() / "a").folder.identity.empty())
    GTEST_SKIP() << "the file system doesn't know when a folder was made";
  std::filesystem::create_directories(folder_.path() / "moved");
  std::filesystem::rename(folder_.path() / "a", folder_.path() / "moved/a");
  write("moved/a/rank-0.1.jsonl", first_line() + logged(0, R"("loss":4)") + logged(1, R"("loss":3)") + last_line);
  follow();
  EXPECT_EQ(losses(), "0 4 nan nan; 1 3 nan 1000; ");
  EXPECT_EQ(store_.existing_run(1).status, RunStatus::finished);
  EXPECT_EQ(store_.runs().size(), 1u);
}

TEST_F(JournalFollowing, ARunWhoseOriginWasNotStoredBelongsToTheFolderThatItNames) {
  write("a/rank-0.1.jsonl", first_line() + logged(0, R"("loss":4)"));
  follow();
  const std::string source = "journal " + demo_uid + " 0 1";
  for (const bool is_lost : {false, true}) {  // by an earlier version; with the position
    SCOPED_TRACE(is_lost);
    FollowedSource position = *store_.following().position(source);
    position.state = R"({"steps":{},"metrics":[]})";
    store_.following().set_position(source, position);
    if (is_lost) store_.following().adopt_all();
    write("b/rank-0.2.jsonl", first_line(0, 2) + logged(0, R"("loss":1)") + last_line);
    follow("b");
    EXPECT_EQ(losses(), "0 4 nan nan; ");
    EXPECT_EQ(store_.recorded_steps(1).records, 1);
    follow("a");
    follow("b");
    EXPECT_EQ(losses(), "0 4 nan nan; ");
    EXPECT_EQ(store_.recorded_steps(1).records, 1);
    EXPECT_TRUE(JournalOrigin::in(store_.following().position(source)->state).has_value());
  }
}

TEST_F(JournalFollowing, ALossThatIsReplacedIsSuperseded) {
  write("rank-0.1.jsonl", first_line() + logged(0, R"("loss":4)"));
  follow();
  write("rank-0.1.jsonl", first_line() + logged(0, R"("loss":4)") + logged(0, R"("loss":3)") +
                              logged(1, R"("loss":2)") + logged(1, R"("loss":1)") + logged(1, R"("loss":1)"));
  follow();
  EXPECT_EQ(losses(), "0 3 nan nan; 1 1 nan 1000; ");
  EXPECT_EQ(store_.recorded_steps(1).records, 4);
}

TEST_F(JournalFollowing, OtherFilesAreSaidOnceAndLeftAlone) {
  write("rank-0.1.jsonl", line_with_checksum(R"({"e":"run","v":2})"));
  JournalFollower follower(store_, {.paths = {folder_.path()}},
                           [this](const std::string& text) { told_.push_back(text); });
  for (int i = 0; i < 3; ++i) {
    follower.scan();
    follower.poll();
  }
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_NE(told_[0].find("is a journal of format 2"), std::string::npos);
  EXPECT_TRUE(store_.runs().empty());
}

}  // namespace
}  // namespace stepladder
