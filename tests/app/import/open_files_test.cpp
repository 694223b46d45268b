#include "app/import/open_files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

TEST(OpenNotices, AFileThatIsOpenForAMomentIsNoticed) {
  const TemporaryFolder folder;
  std::ofstream(folder / "watched.db") << "rows";
  std::ofstream(folder / "other.db") << "rows";
  OpenNotices notices;
  notices.add(folder / "watched.db");
  EXPECT_FALSE(notices.wait(milliseconds(0)));
  std::ifstream(folder / "other.db").get();
  EXPECT_FALSE(notices.wait(milliseconds(0)));
  std::ifstream(folder / "watched.db").get();
  EXPECT_TRUE(notices.wait(minutes(1)));
  EXPECT_FALSE(notices.wait(milliseconds(0)));
  notices.remove(folder / "watched.db");
  std::ifstream(folder / "watched.db").get();
  EXPECT_FALSE(notices.wait(milliseconds(0)));
}

TEST(OpenNotices, AFileThatIsOpenedAllTheTimeCountsALimitedNumberOfTimes) {
  const TemporaryFolder folder;
  std::ofstream(folder / "busy.db") << "rows";
  OpenNotices notices;
  notices.add(folder / "busy.db");
  int noticed = 0;
  for (int i = 0; i < 1500; ++i) {
    std::ifstream(folder / "busy.db").get();
    noticed += notices.wait(milliseconds(0)) ? 1 : 0;
  }
  EXPECT_EQ(noticed, 1000);
}

TEST(OpenNotices, WakeEndsAllWaiting) {
  OpenNotices notices;
  std::thread other([&] { notices.wake(); });
  EXPECT_FALSE(notices.wait(minutes(1)));
  EXPECT_FALSE(notices.wait(minutes(1)));
  other.join();
}

}  // namespace
}  // namespace stepladder
