#include "app/curves/curve_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = std::chrono::minutes(5);
constexpr auto no_wait = 0ms;

class ReadCurves : public testing::Test {
 protected:
  ReadCurves() {
    std::vector<MetricPoint> points;
    for (std::int64_t step = 1; step <= 20'000; ++step)
      points.push_back({step, step == 777 ? 9 : std::sin(static_cast<double>(step) / 1000)});
    run_ = store_.insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 1, .loss = 4}});
    for (const char* name : {"a", "b", "c"}) store_.metrics().append(run_, name, points);
  }
  CurveWanted whole(const char* name) const { return {.run = run_, .quantity = quantity_named(name)}; }
  CurveWanted part(const char* name, std::int64_t first, std::int64_t last) const {
    return {.run = run_, .quantity = quantity_named(name), .zoom = std::pair(first, last)};
  }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::open(folder_ / "runs.db");
  RunId run_ = 0;
};

TEST_F(ReadCurves, AreReadOnAnotherThreadWhichWakesTheWindow) {
  std::atomic<int> woken = 0;
  CurveReader reader(store_, [&] { ++woken; });
  EXPECT_FALSE(reader.is_busy());
  CurveWanted zoomed = part("b", 700, 900);
  zoomed.asked_at = 3;
  zoomed.logged = 4;
  reader.want({whole("a"), whole("a"), zoomed});
  EXPECT_TRUE(reader.is_busy());
  std::vector<CurveRead> read = reader.take(patience);
  ASSERT_EQ(read.size(), 2u) << "the same curve is read once";
  EXPECT_FALSE(reader.is_busy());
  EXPECT_TRUE(reader.take(patience).empty());
  const OverviewCurve& coarse = *read[0].curve;
  EXPECT_FALSE(coarse.overview.exact());
  EXPECT_EQ(*std::max_element(coarse.points.y.begin(), coarse.points.y.end()), 9);
  const OverviewCurve& fine = *read[1].curve;
  EXPECT_TRUE(fine.overview.exact());
  EXPECT_EQ(fine.points.x.size(), 201u);
  EXPECT_EQ(fine.first, 700);
  EXPECT_EQ(fine.last, 900);
  EXPECT_EQ(read[1].wanted.asked_at, 3u);
  EXPECT_EQ(read[1].wanted.logged, 4u);
  for (const auto until = std::chrono::steady_clock::now() + patience;
       woken == 0 && std::chrono::steady_clock::now() < until;)
    std::this_thread::sleep_for(1ms);
  EXPECT_GT(woken, 0);
}

TEST_F(ReadCurves, OfAViewThatHasMovedOnAreNotRead) {
  CurveReader reader(store_, [] {});
  std::vector<CurveRead> all;
  const auto take = [&](std::chrono::milliseconds wait) {
    for (CurveRead& each : reader.take(wait)) all.push_back(std::move(each));
  };
  constexpr int frames = 200;
  for (int frame = 0; frame < frames; ++frame) {
    reader.want({part("a", frame * 50 + 1, frame * 50 + 5000), part("b", frame * 50 + 1, frame * 50 + 5000)});
    take(no_wait);
  }
  reader.want({whole("c")});
  take(patience);
  EXPECT_EQ(all.back().wanted.quantity, quantity_named("c"));
  EXPECT_FALSE(all.back().wanted.zoom);
  const auto older = [](const CurveRead& a, const CurveRead& b) {
    return a.wanted.quantity == b.wanted.quantity && a.wanted.zoom > b.wanted.zoom;
  };
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end(), older), all.end()) << "the newest view wins";
  reader.want({whole("a"), whole("b")});
  reader.want({});
  take(patience);
  EXPECT_FALSE(reader.is_busy());
}

TEST_F(ReadCurves, ThatCannotBeReadSayWhyAndAreReadLater) {
  CurveReader reader(store_, [] {});
  const std::filesystem::path away = folder_ / "away.db";
  const std::filesystem::path file = store_.file();
  { const RunStore closes_the_log = std::move(store_); }
  std::filesystem::rename(file, away);
  std::filesystem::create_directory(file);
  reader.want({whole("a")});
  std::vector<CurveRead> read = reader.take(patience);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].curve, nullptr);
  EXPECT_NE(read[0].problem.find("runs.db"), std::string::npos) << read[0].problem;
  std::filesystem::remove(file);
  std::filesystem::rename(away, file);
  reader.want({whole("a")});
  read = reader.take(patience);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_NE(read[0].curve, nullptr) << read[0].problem;
}

TEST_F(ReadCurves, StepsAreReadAgainAsTheyAreNow) {
  CurveReader reader(store_, [] {});
  CurveWanted wanted = part("a", 1, 2);
  wanted.is_steps = true;
  EXPECT_FALSE(wanted.key() == part("a", 1, 2).key());
  store_.following().complete_steps(run_, std::vector<StepRecord>{{.step = 1, .val_loss = 3}});
  reader.want({wanted});
  const std::vector<CurveRead> read = reader.take(patience);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].curve, nullptr);
  EXPECT_EQ(read[0].steps->step, std::vector<std::int64_t>{1});
  EXPECT_EQ(read[0].steps->loss, std::vector<double>{4});
  EXPECT_EQ(read[0].steps->val_loss, std::vector<double>{3});
}

TEST_F(ReadCurves, OfAProjectInMemoryAreReadWhenTheyAreTaken) {
  RunStore store = RunStore::in_memory();
  const RunId run = store.insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 1, .loss = 4}});
  CurveReader reader(store, [] {});
  reader.want({{.run = run, .quantity = Quantity::loss}});
  const std::vector<CurveRead> read = reader.take(no_wait);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].curve->points.y, std::vector<double>{4});
  EXPECT_FALSE(reader.is_busy());
}

TEST_F(ReadCurves, AreLeftAtOnceWhenTheWindowCloses) {
  CurveReader reader(store_, [] {});
  reader.want({whole("a"), whole("b"), whole("c")});
}

}  // namespace
}  // namespace stepladder
