#include "app/record/published_records.h"

#include <gtest/gtest.h>

#include <fstream>

#include "storage/errors.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

TEST(PublishedRecords, the_shipped_history_is_whole) {
  const PublishedRecords published =
      read_published_records(std::string(STEPLADDER_SOURCE_DIR) + "/assets/records/modded-nanogpt.json");
  ASSERT_EQ(published.records.size(), 92u);
  EXPECT_EQ(published.records.front().minutes, 45);
  EXPECT_NEAR(published.total_factor(), 45 / 0.665, 1e-9);
  std::size_t described = 0;
  for (std::size_t i = 0; i < published.records.size(); ++i) {
    const PublishedRecord& record = published.records[i];
    EXPECT_EQ(record.number, static_cast<int>(i) + 1);
    described += !record.what.empty();
    if (i == 0) continue;
    EXPECT_GE(record.day_s, published.records[i - 1].day_s) << record.number;
    EXPECT_GT(record.factor, 1) << record.number << ": slower than the record before";
  }
  EXPECT_EQ(described, 87u);
  EXPECT_NEAR(published.records[21].factor, 3.014 / 2.990, 1e-9) << "by the rules of timing since then";
  EXPECT_EQ(published.records[2].date, "2024-10-04");
  EXPECT_EQ(published.records[2].day_s, 1'728'000'000);
}

TEST(PublishedRecords, a_bad_file_is_named) {
  const TemporaryFolder folder;
  const auto file = folder / "records.json";
  EXPECT_THROW(read_published_records(file), StorageError);
  for (const char* text : {"", "[]", R"({"title":"a","source":"b","read":"c","notes":[],"retimed":[],"records":[{}]})",
                           R"({"title":"a","source":"b","read":"c","notes":[],"retimed":[],)"
                           R"("records":[{"n":1,"minutes":1,"date":"2024-13-01","what":null}]})"}) {
    std::ofstream(file) << text;
    try {
      read_published_records(file);
      FAIL() << text;
    } catch (const StorageError& error) {
      EXPECT_NE(std::string(error.what()).find("records.json"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace stepladder
