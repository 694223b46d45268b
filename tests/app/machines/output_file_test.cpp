// The output of a program elsewhere: pieced together from journals, for this user alone, and through no link.
#include "app/machines/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "storage/importers/journal/journal_line.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    fs::create_directories(journal_.parent_path());
    std::ofstream(journal_) << journal_line(std::string(R"({"e":"out","t":1,"b":"step 1\n"})"))
                            << journal_line(std::string(R"({"e":"out","t":2,"b":"step 2\n"})"));
    std::ofstream(victim_) << "mine";
  }

  void take_in() {
    output_.ingest(journal_, fs::file_size(journal_), [&](std::string_view text) { shown_ += text; });
  }

  TemporaryFolder folder_;
  const fs::path machines_ = folder_.path() / "runs.db.machines", run_ = machines_ / "uid";
  const fs::path journal_ = run_ / "keeper" / "rank-0.1.jsonl", victim_ = folder_.path() / "victim";
  FarOutputFile output_{run_ / "output.log"};
  std::string shown_;
};

TEST_F(OutputFileTest, IsForThisUserAlone) {
  take_in();
  take_in();
  EXPECT_EQ(content_of(output_.path()), "step 1\nstep 2\n");
  EXPECT_EQ(shown_, "step 1\nstep 2\n");
  EXPECT_EQ(output_.tail(7), "step 2\n");
  EXPECT_DOUBLE_EQ(output_.written_at(8), 2);
  struct stat status = {};
  ASSERT_EQ(::stat(output_.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  FarOutputFile again{output_.path()};
  again.ingest(journal_, fs::file_size(journal_), {});
  EXPECT_EQ(content_of(output_.path()), "step 1\nstep 2\n");
}

TEST_F(OutputFileTest, FollowsNoLink) {
  fs::create_symlink(victim_, output_.path());
  EXPECT_THROW(take_in(), std::runtime_error);
  EXPECT_EQ(content_of(victim_), "mine");
  fs::remove(output_.path());
  take_in();  // nothing is lost
  EXPECT_EQ(content_of(output_.path()), "step 1\nstep 2\n");
  fs::remove(output_.path());
  fs::create_symlink(victim_, output_.path());
  EXPECT_EQ(output_.tail(100), "");
}

TEST_F(OutputFileTest, WritesIntoNoOtherFolder) {
  const fs::path elsewhere = folder_.path() / "elsewhere";
  for (const fs::path& linked : {run_, machines_}) {
    fs::rename(linked, elsewhere);
    fs::create_directory_symlink(elsewhere, linked);
    EXPECT_THROW(take_in(), std::runtime_error) << linked;
    EXPECT_FALSE(fs::exists(output_.path())) << linked;
    fs::remove(linked);
    fs::rename(elsewhere, linked);
  }
  fs::rename(journal_, victim_);
  fs::create_symlink(victim_, journal_);
  EXPECT_THROW(take_in(), std::runtime_error);
}

TEST_F(OutputFileTest, ReadsNoPipe) {
  fs::remove(journal_);
  ASSERT_EQ(::mkfifo(journal_.c_str(), 0600), 0);
  EXPECT_THROW(output_.ingest(journal_, 100, {}), std::runtime_error);
}

}  // namespace
}  // namespace stepladder
