#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "storage/database/database.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

using namespace std::chrono_literals;

class Slices : public testing::Test {
 protected:
  Slices() {
    database_.use_write_ahead_log();
    database_.execute("CREATE TABLE numbers (number INTEGER PRIMARY KEY)");
  }
  void add() { database_.execute("INSERT INTO numbers DEFAULT VALUES"); }
  std::int64_t count() { return Database(file_, Database::Mode::read_only).integer("SELECT count(*) FROM numbers"); }

  TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "a.db";
  Database database_{file_, Database::Mode::read_write};
};

TEST_F(Slices, LetOthersWriteInBetween) {
  std::atomic<bool> begun = false, written = false;
  std::thread other([&] {
    while (!begun) std::this_thread::yield();
    Database another(file_, Database::Mode::read_write);
    another.execute("INSERT INTO numbers VALUES (1000000000)");
    written = true;
  });
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  in_slices(database_, [&] {
    add();
    begun = true;
    std::this_thread::sleep_for(1ms);
    return !written && std::chrono::steady_clock::now() < deadline;
  });
  EXPECT_TRUE(written);
  other.join();
}

TEST_F(Slices, KeepWhatWasCommittedBeforeAnError) {
  int pieces = 0;
  const auto work = [&] {
    add();
    std::this_thread::sleep_for(1ms);
    if (count() > 0) throw std::runtime_error("enough");  // an earlier slice is in the file
    return ++pieces < 100'000;
  };
  EXPECT_THROW(in_slices(database_, work), std::runtime_error);
  EXPECT_FALSE(database_.in_transaction());
  EXPECT_EQ(count(), pieces) << "the last piece is not";
}

TEST_F(Slices, AreOneTransactionInsideAnother) {
  {
    Transaction transaction(database_);
    const auto until = std::chrono::steady_clock::now() + 100ms;
    in_slices(database_, [&] {
      add();
      return std::chrono::steady_clock::now() < until;
    });
    EXPECT_EQ(count(), 0);
  }
  EXPECT_EQ(count(), 0);
}

}  // namespace
}  // namespace stepladder
