#include "app/journal/run_journals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "storage/errors.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::seconds patience(400);

PlannedRun planned(RunId id, char digit, const std::string& name = "a run: with / and ..") {
  return {.run = {.id = id, .uid = std::string(32, digit), .name = name, .source = "launched"}};
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<JournalEvent> events_in(const fs::path& file) {
  JournalReader reader;
  reader.take(content(file));
  std::vector<JournalEvent> events;
  for (JournalEvent event; reader.next(event);) events.push_back(event);
  EXPECT_FALSE(reader.is_stuck());
  EXPECT_FALSE(reader.has_rest());
  return events;
}

class Journals : public ::testing::Test {
 protected:
  fs::path of(const std::string& run, int attempt = 1) {
    return folder_.path() / "j" / run / ("rank-0." + std::to_string(attempt) + ".jsonl");
  }
  TemporaryFolder folder_;
};

TEST_F(Journals, HaveTheirFirstLineAtOnceAndEachEventInOrder) {
  RunJournals journals(folder_.path() / "j");
  journals.begin(planned(1, 'a'));
  journals.begin(planned(2, 'b', "../../x"));
  const fs::path first = of("a-run-with-and-..-aaaaaaaa");
  ASSERT_EQ(events_in(first).size(), 1u);
  ASSERT_EQ(events_in(of("x-bbbbbbbb")).size(), 1u) << "no name leads out of the folder";
  for (int step = 1; step <= 20'000; ++step) journals.post(StepRecord{.run = 1, .step = step, .loss = 0.1 * step});
  journals.post(RunEvent(StepRecord{.run = 3, .step = 1}));  // of nobody
  journals.post(RunEvent(RunEnded{.run = 1, .status = RunStatus::finished}));
  ASSERT_TRUE(journals.flush(patience));
  const std::vector<JournalEvent> events = events_in(first);
  ASSERT_EQ(events.size(), 20'002u);
  for (int step = 1; step <= 20'000; ++step)
    ASSERT_EQ(std::get<StepRecord>(*run_event_of(events[static_cast<std::size_t>(step)], 1)).loss, 0.1 * step);
  EXPECT_EQ(events.back().kind, "end");
  EXPECT_EQ(journals.trouble(), "");
}

TEST_F(Journals, ARunThatIsQueuedAgainGetsTheNextAttemptInItsFolderAlsoInAnotherProcess) {
  {
    RunJournals journals(folder_.path() / "j");
    journals.begin(planned(1, 'a', "run"));
    journals.post(RunEvent(RunEnded{.run = 1, .status = RunStatus::stopped}));
    journals.begin(planned(1, 'a', "run"));
  }
  RunJournals again(folder_.path() / "j");
  again.begin(planned(7, 'a', "renamed"));
  EXPECT_EQ(events_in(of("run-aaaaaaaa")).back().kind, "end");
  EXPECT_EQ(integer_in(events_in(of("run-aaaaaaaa", 3)).front().fields, "attempt"), 3);
  EXPECT_EQ(content(folder_.path() / "j" / "run-aaaaaaaa" / "uid"), std::string(32, 'a') + "\n");
  PlannedRun twin = planned(8, 'a', "run");
  twin.run.uid.back() = 'c';
  again.begin(twin);  // the same first digits
  EXPECT_TRUE(fs::exists(of("run-aaaaaaaa-" + twin.run.uid)));
}

TEST_F(Journals, AFolderThatCannotBeWrittenIsRefusedWithItsName) {
  std::ofstream(folder_.path() / "file") << "x";
  EXPECT_THROW(RunJournals(folder_.path() / "file"), StorageError);
  EXPECT_THROW(RunJournals(folder_.path() / "file" / "j"), StorageError);
}

// A limit on files' sizes refuses writes as a full disk does.
TEST_F(Journals, AFullDiskLosesNothingOnceItHasRoomAgain) {
  ::signal(SIGXFSZ, SIG_IGN);
  RunJournals journals(folder_.path() / "j");
  journals.begin(planned(1, 'a', "run"));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &full);
  for (int step = 1; step <= 1000; ++step) journals.post(StepRecord{.run = 1, .step = step});
  EXPECT_FALSE(journals.flush(std::chrono::milliseconds(300)));
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (journals.trouble().empty() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_NE(journals.trouble().find("run-aaaaaaaa"), std::string::npos) << journals.trouble();
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(journals.flush(patience));
  EXPECT_EQ(events_in(of("run-aaaaaaaa")).size(), 1001u);
  EXPECT_EQ(journals.trouble(), "");
}

// Hundreds of queued runs need no more open files than a few.
TEST_F(Journals, QueuedRunsKeepNoFileOpen) {
  RunJournals journals(folder_.path() / "j");
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = open_files();
  for (RunId run = 1; run <= 50; ++run) {
    PlannedRun each = planned(run, 'a', "run");
    each.run.uid.replace(0, 2, std::to_string(run + 10));
    journals.begin(each);
    journals.post(RunEvent(ConsoleText{.run = run, .at = 1, .text = "waits"}));
  }
  ASSERT_TRUE(journals.flush(patience));
  EXPECT_LT(open_files(), before + 10);
}

}  // namespace
}  // namespace stepladder
