#include "app/runs/find_run.h"

#include <gtest/gtest.h>

#include "app/exit_status.h"

namespace stepladder {
namespace {

class FindRunTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"nano a", "nano b", "twice", "twice", "4-5", "gone", "a,b"}) {
      stepladder::Run run;
      run.name = name;
      run.status = RunStatus::finished;
      ids_.push_back(store_.insert_finished(run, {}));
    }
    store_.curation().set(6, {.deleted_at = 1});
  }
  std::vector<RunId> ids(const std::vector<std::string>& words, Among among = Among::listed) {
    std::vector<RunId> found;
    for (const stepladder::Run& run : find_runs(store_, words, among)) found.push_back(run.id);
    return found;
  }
  std::string problem_of(const std::string& word, Among among = Among::listed) {
    try {
      find_runs(store_, {word}, among);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "none";
  }

  RunStore store_ = RunStore::in_memory();
  std::vector<RunId> ids_;
};
using Ids = std::vector<RunId>;

TEST_F(FindRunTest, ByNumberNameAndBeginning) {
  ASSERT_EQ(ids_, (Ids{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(ids({"2"}), Ids{2});
  EXPECT_EQ(ids({"nano b"}), Ids{2});
  EXPECT_EQ(ids({"latest"}), Ids{7});
  EXPECT_NE(problem_of("nano").find("2 runs begin with 'nano'"), std::string::npos);
  EXPECT_NE(problem_of("twice").find("2 runs are called 'twice'; give its number"), std::string::npos);
  EXPECT_NE(problem_of("none").find("there is no run none"), std::string::npos);
  EXPECT_NE(problem_of("").find("there is no run ''"), std::string::npos);
  EXPECT_NE(problem_of("99").find("there is no run 99"), std::string::npos);
}

TEST_F(FindRunTest, RangesListsAndFilters) {
  EXPECT_EQ(ids({"2-4", "3", "1"}), (Ids{2, 3, 4, 1})) << "each once, in the order of the words";
  EXPECT_EQ(ids({"1,3-4,latest"}), (Ids{1, 3, 4, 7}));
  EXPECT_EQ(ids({"name~nano or id=4"}), (Ids{1, 2, 4}));
  EXPECT_EQ(ids({"4-5"}), Ids{5}) << "a name that looks like a range";
  EXPECT_EQ(ids({"a,b"}), Ids{7}) << "a name that looks like a list";
  EXPECT_NE(problem_of("5-7").find("only 5,7 are runs"), std::string::npos) << "6 is in the bin";
  EXPECT_NE(problem_of("1-99999").find("only 1-5,7 are runs"), std::string::npos);
  EXPECT_NE(problem_of("20-30").find("there is no such run"), std::string::npos);
  EXPECT_NE(problem_of("4-2").find("ends before it begins"), std::string::npos);
  EXPECT_NE(problem_of("1,99").find("there is no run 99"), std::string::npos);
  EXPECT_NE(problem_of("1,").find("there is no run ''"), std::string::npos);
  EXPECT_NE(problem_of("status=failed").find("no run matches"), std::string::npos);
  EXPECT_THROW(find_run(store_, "1-2"), UsageError);
  EXPECT_EQ(find_run(store_, "3-3").id, 3);
}

TEST_F(FindRunTest, InTheBin) {
  EXPECT_NE(problem_of("6").find("run 6 is in the bin; `stepladder restore 6`"), std::string::npos);
  EXPECT_NE(problem_of("gone").find("run 6 is in the bin"), std::string::npos);
  EXPECT_EQ(ids({"6"}, Among::binned), Ids{6});
  EXPECT_EQ(ids({"latest"}, Among::binned), Ids{6});
  EXPECT_EQ(ids({"name=gone"}, Among::binned), Ids{6});
  EXPECT_NE(problem_of("1", Among::binned).find("the bin has no run '1'"), std::string::npos);
}

TEST_F(FindRunTest, OnlyWordsForSeveralAreLists) {
  for (const char* word : {"1-2", "1,2", "id=1", "status=finished"}) EXPECT_TRUE(is_for_several(word)) << word;
  for (const char* word : {"1", "latest", "nano a", "4-x"}) EXPECT_FALSE(is_for_several(word)) << word;
}

TEST_F(FindRunTest, Ladders) {
  EXPECT_THROW(find_ladder(store_, "latest"), UsageError);
  const LadderId first = store_.create_ladder({.name = "rtx3080"}), second = store_.create_ladder({.name = "a100"});
  EXPECT_EQ(find_ladder(store_, "latest").id, second);
  EXPECT_EQ(find_ladder(store_, "rtx").id, first);
  EXPECT_EQ(find_ladder(store_, std::to_string(first)).name, "rtx3080");
  EXPECT_THROW(find_ladder(store_, "b"), UsageError);
}

}  // namespace
}  // namespace stepladder
