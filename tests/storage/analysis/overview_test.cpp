#include "storage/analysis/overview.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "../temporary_folder.h"
#include "storage/checksum.h"
#include "storage/database/database.h"
#include "storage/database/run_store.h"
#include "tests/storage/not_finite.h"

namespace stepladder {
namespace {

void expect_alike(double a, double b) {
  EXPECT_TRUE((is_missing(a) && is_missing(b)) || a == b) << a << " and " << b;
}

void expect_alike(const Bucket& a, const Bucket& b) {
  EXPECT_EQ(a.first_step, b.first_step);
  EXPECT_EQ(a.last_step, b.last_step);
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.not_finite, b.not_finite);
  expect_alike(a.min, b.min);
  expect_alike(a.max, b.max);
  expect_alike(a.first, b.first);
  expect_alike(a.last, b.last);
}

// A noisy, falling curve in which every 977th value stands out and some are not finite or were not recorded.
double curve(std::int64_t i) {
  if (i % 5003 == 17) return i % 2 ? nan : infinity;
  if (i % 11 == 5) return missing;
  return 10 / (1 + 1e-3 * static_cast<double>(i)) + 0.01 * static_cast<double>(i * 7919 % 101) +
         (i % 977 == 3 ? 1000 : 0);
}

// Compares every bucket with the values that it represents.
void expect_true(const Overview& overview, const std::vector<std::pair<std::int64_t, double>>& values) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < overview.buckets.size(); ++i) {
    const Bucket& bucket = overview.buckets[i];
    ASSERT_LT(at, values.size());
    Bucket expected = bucket_of(values[at].first, values[at].second);
    double sum = std::isfinite(values[at].second) ? values[at].second : 0;
    const std::size_t end = std::min(values.size(), at + static_cast<std::size_t>(overview.width));
    for (++at; at < end; ++at) {
      merge(expected, bucket_of(values[at].first, values[at].second));
      if (std::isfinite(values[at].second)) sum += values[at].second;
    }
    expect_alike(bucket, expected);
    if (bucket.count > 0) {
      EXPECT_NEAR(bucket.mean, sum / bucket.count, 1e-9 * std::abs(sum));
    }
  }
  EXPECT_EQ(at, values.size());
}

TEST(Bucket, holds_what_was_merged_into_it) {
  Bucket bucket = bucket_of(3, nan);
  EXPECT_TRUE(is_missing(bucket.min) && is_missing(bucket.mean) && is_missing(bucket.last));
  for (const double value : {4.0, -2.0, infinity, 7.0}) merge(bucket, bucket_of(bucket.last_step + 2, value));
  EXPECT_EQ(bucket.first_step, 3);
  EXPECT_EQ(bucket.last_step, 11);
  EXPECT_EQ(bucket.min, -2);
  EXPECT_EQ(bucket.max, 7);
  EXPECT_DOUBLE_EQ(bucket.mean, 3);
  EXPECT_EQ(bucket.first, 4);
  EXPECT_EQ(bucket.last, 7);
  EXPECT_EQ(bucket.count, 3);
  EXPECT_EQ(bucket.not_finite, 2);
}

TEST(Overview, every_bucket_is_that_of_its_values_at_every_length) {
  for (const std::int64_t n : {0, 1, 4096, 4506, 4507, 30'000, 144'300, 150'000, 700'000}) {
    SCOPED_TRACE(n);
    std::vector<std::pair<std::int64_t, double>> values;
    OverviewBuilder builder;
    for (std::int64_t i = 0; i < n; ++i) {
      builder.add(10 * i, curve(i));
      if (!is_missing(curve(i))) values.emplace_back(10 * i, curve(i));
    }
    const Overview live = builder.top(Quantity::loss);
    expect_true(live, values);
    EXPECT_LE(live.buckets.size(), most_in_chunk + 1);
    builder.finish();
    const Overview done = builder.top(Quantity::loss);
    expect_true(done, values);
    EXPECT_LE(done.buckets.size(), most_in_chunk);
    EXPECT_EQ(done.values(), static_cast<std::int64_t>(values.size()));
  }
}

TEST(Overview, every_level_is_taken_whole_and_in_order) {
  constexpr std::int64_t n = 600'000;
  std::vector<Overview> levels;
  OverviewBuilder builder([&](int level, std::span<const Bucket> buckets) {
    if (static_cast<int>(levels.size()) <= level) levels.resize(static_cast<std::size_t>(level) + 1);
    Overview& into = levels[static_cast<std::size_t>(level)];
    EXPECT_EQ(into.buckets.size() % most_in_chunk, 0u) << "the one before was full";
    into.buckets.insert(into.buckets.end(), buckets.begin(), buckets.end());
  });
  std::vector<std::pair<std::int64_t, double>> values;
  for (std::int64_t i = 0; i < n; ++i) {
    builder.add(i, curve(i));
    if (!is_missing(curve(i))) values.emplace_back(i, curve(i));
  }
  builder.finish();
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_TRUE(levels[0].buckets.empty()) << "the values themselves stand in the steps";
  for (int level = 1; level < 4; ++level) {
    Overview& of = levels[static_cast<std::size_t>(level)];
    of.width = width_of_level(level);
    expect_true(of, values);
  }
  EXPECT_EQ(width_of_level(3), 512);
}

TEST(Overview, level_has_a_bucket_for_every_two_columns) {
  EXPECT_EQ(level_for(1000, 2000), 0);
  EXPECT_EQ(level_for(31'999, 2000), 0);
  EXPECT_EQ(level_for(32'000, 2000), 1);
  EXPECT_EQ(level_for(127'999, 2000), 1);
  EXPECT_EQ(level_for(128'000, 2000), 2);
  EXPECT_EQ(level_for(0, 0), 0);
}

TEST(Overview, coarser_keeps_the_envelope) {
  Overview points;
  for (int i = 1; i <= 1001; ++i) points.buckets.push_back(bucket_of(i, i == 500 ? 99.0 : i == 700 ? nan : 1.0 / i));
  const Overview few = coarser(points, 100);
  EXPECT_EQ(few.width, 16);
  EXPECT_EQ(few.buckets.size(), 63u);
  EXPECT_EQ(few.values(), 1001);
  EXPECT_EQ(few.not_finite(), 1);
  EXPECT_EQ(few.buckets[31].max, 99);
}

void expect_round_trip(const std::vector<Bucket>& buckets) {
  const auto read = buckets_from(to_bytes(buckets));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), buckets.size());
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const Bucket& was = buckets[i];
    const Bucket& is = (*read)[i];
    EXPECT_EQ(is.first_step, was.first_step);
    EXPECT_EQ(is.last_step, was.last_step);
    EXPECT_EQ(is.count, was.count);
    EXPECT_EQ(is.not_finite, was.not_finite);
    if (was.count == 0) {
      EXPECT_TRUE(is_missing(is.min) && is_missing(is.max) && is_missing(is.mean));
      continue;
    }
    EXPECT_TRUE(is.min <= was.min || std::abs(was.min) > 3e38);
    EXPECT_TRUE(is.max >= was.max || std::abs(was.max) > 3e38);
    EXPECT_TRUE(std::isfinite(is.min) && std::isfinite(is.max));
    if (std::abs(was.max) < 1e38 && std::abs(was.max) > 1e-37) {
      EXPECT_NEAR(is.max, was.max, 1.2e-7 * std::abs(was.max));
    }
  }
}

TEST(Chunk, comes_back_from_bytes) {
  std::mt19937_64 random(1);
  std::vector<Bucket> buckets;
  expect_round_trip(buckets);
  for (std::int64_t i = 0; i < 300; ++i) {
    Bucket bucket =
        bucket_of(i * 32, std::ldexp(static_cast<double>(random() % 1'000'003) - 5e5, static_cast<int>(i) - 150));
    for (int k = 1; k < 32; ++k)
      merge(bucket, bucket_of(i * 32 + k, i == 7 ? nan : static_cast<double>(random() % 100)));
    buckets.push_back(bucket);
  }
  expect_round_trip(buckets);
  buckets.push_back(bucket_of(buckets.back().last_step + 1, infinity));  // the last one is shorter
  expect_round_trip(buckets);
  buckets[5].first_step += 3;  // and steps are not even
  expect_round_trip(buckets);
  expect_round_trip({bucket_of(std::numeric_limits<std::int64_t>::min(), 1e300),
                     bucket_of(std::numeric_limits<std::int64_t>::max(), -1e300), bucket_of(1, 5e-324)});
}

TEST(Chunk, what_never_changes_takes_no_space) {
  std::vector<Bucket> buckets;
  for (std::int64_t i = 0; i < 4096; ++i) {
    Bucket bucket = bucket_of(i * 32, 0.5);
    for (int k = 1; k < 32; ++k) merge(bucket, bucket_of(i * 32 + k, 0.5));
    buckets.push_back(bucket);
  }
  EXPECT_LT(to_bytes(buckets).size(), 100u);
}

TEST(Checksum, is_that_of_the_catalogues) {
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32("The quick brown fox jumps over the lazy dog"), 0x414fa339u);
  EXPECT_EQ(crc32(""), 0u);
}

TEST(Chunk, damage_is_noticed) {
  std::vector<Bucket> buckets;
  for (int i = 0; i < 40; ++i) buckets.push_back(bucket_of(i, 1.0 / (i + 1)));
  const std::string bytes = to_bytes(buckets);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(buckets_from(bytes.substr(0, size))) << size;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(buckets_from(damaged)) << i;
  }
}

class OverviewStoreTest : public testing::Test {
 protected:
  static constexpr std::int64_t steps = 200'000;

  TemporaryFolder folder;
  std::filesystem::path file = folder / "a.db";
  RunStore store = RunStore::open(file);

  static StepRecord step(std::int64_t i) {
    return {.step = i + 1,
            .loss = curve(i),
            .val_loss = i % 1000 == 999 ? 3.0 : missing,
            .dt_ms = 30 + static_cast<double>(i % 7),
            .tokens = 768,
            .lr = 1e-3};
  }
  RunId long_run() {
    std::vector<StepRecord> records;
    for (std::int64_t i = 0; i < steps; ++i) records.push_back(step(i));
    RunId id = 0;
    store.in_one_transaction([&] {
      id = store.create_run({.name = "long", .status = RunStatus::finished, .tokens_per_step = 768});
      store.append_steps(id, records);
    });
    store.summary(*store.run(id));
    return id;
  }
  std::int64_t integer(const std::string& sql) { return Database(file, Database::Mode::read_only).integer(sql); }
  void execute(const std::string& sql) { Database(file, Database::Mode::read_write).execute(sql); }
};

TEST_F(OverviewStoreTest, of_a_long_run_is_kept_and_no_spike_is_lost) {
  const RunId id = long_run();
  EXPECT_GT(integer("SELECT count(*) FROM overview_chunks"), 0) << "made with the summary";
  // Reads only the cache: the steps may be deleted.
  execute("CREATE TABLE put_aside AS SELECT * FROM steps; DELETE FROM steps");
  const Overview loss = store.overview(id, Quantity::loss);
  EXPECT_EQ(loss.width, 128);
  EXPECT_LE(loss.buckets.size(), most_in_chunk);
  EXPECT_EQ(loss.not_finite(), (steps + 5002 - 17) / 5003);
  std::size_t spiked = 0;
  for (const Bucket& bucket : loss.buckets) spiked += bucket.max > 900 ? 1 : 0;
  std::size_t expected = 0;
  for (std::int64_t i = 3; i < steps; i += 977) expected += curve(i) > 900 && std::isfinite(curve(i)) ? 1 : 0;
  EXPECT_EQ(spiked, expected) << "977 values apart, 128 to a bucket";

  const Overview validation = store.overview(id, Quantity::val_loss);
  EXPECT_TRUE(validation.exact());
  EXPECT_EQ(validation.buckets.size(), 200u);
  EXPECT_EQ(validation.buckets.at(1).first_step, 2000);
  EXPECT_TRUE(store.overview(id, Quantity::grad_norm).buckets.empty());
  const Overview rate = store.overview(id, Quantity::tokens_per_s);
  EXPECT_NEAR(rate.buckets.at(0).max, 768'000.0 / 30, 0.01);
  EXPECT_NEAR(rate.buckets.at(0).min, 768'000.0 / 36, 0.01);
}

TEST_F(OverviewStoreTest, a_part_is_as_fine_as_the_screen_and_in_the_end_exact) {
  const RunId id = long_run();
  const Overview wide = store.overview(id, Quantity::dt_ms, 1, steps, 2000);
  EXPECT_EQ(wide.width, 128);
  const Overview part = store.overview(id, Quantity::dt_ms, 50'001, 114'000, 2000);
  EXPECT_EQ(part.width, 32);
  EXPECT_GE(part.buckets.size(), 1000u);
  EXPECT_LE(part.buckets.front().first_step, 50'001);
  EXPECT_GT(part.buckets.front().last_step, 50'000);
  EXPECT_GE(part.buckets.back().last_step, 114'000);
  const Overview close = store.overview(id, Quantity::loss, 70'001, 75'000, 2000);
  EXPECT_TRUE(close.exact());
  std::size_t at = 0;
  for (std::int64_t i = 70'000; i < 75'000; ++i) {
    if (is_missing(curve(i))) continue;
    ASSERT_LT(at, close.buckets.size());
    EXPECT_EQ(close.buckets[at].first_step, i + 1);
    if (std::isfinite(curve(i))) {
      EXPECT_EQ(close.buckets[at].mean, curve(i)) << "all digits";
    }
    ++at;
  }
  EXPECT_EQ(at, close.buckets.size());
}

TEST_F(OverviewStoreTest, a_range_of_steps_is_the_records_themselves) {
  const RunId id = long_run();
  const Series part = store.series(id, 1000, 1009);
  ASSERT_EQ(part.size(), 10u);
  EXPECT_EQ(part.step.front(), 1000);
  EXPECT_EQ(part.val_loss.front(), 3);
  EXPECT_EQ(store.series(id, steps, steps + 100).size(), 1u);
  EXPECT_TRUE(store.series(id, 20, 10).empty());
  EXPECT_EQ(store.series(id).size(), static_cast<std::size_t>(steps));
}

TEST_F(OverviewStoreTest, an_excerpt_is_blocks_of_steps_at_the_same_places_in_every_run) {
  const RunId id = long_run();
  const Series part = store.excerpt(id, 20'000);
  const Series whole = store.series(id);
  EXPECT_GT(part.size(), 10'000u);
  EXPECT_LE(part.size(), 20'300u);
  std::size_t neighbours = 0;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const auto at = static_cast<std::size_t>(part.step[i] - 1);
    ASSERT_EQ(whole.step[at], part.step[i]);
    EXPECT_EQ(part.dt_ms[i], whole.dt_ms[at]);
    neighbours += i > 0 && part.step[i] == part.step[i - 1] + 1 ? 1 : 0;
  }
  EXPECT_GT(neighbours, part.size() * 99 / 100) << "blocks, so that what follows each other can be told";
  const Summary summary = store.summary(*store.run(id));
  for (std::int64_t i = 0; i < summary.warmup_steps; ++i) EXPECT_EQ(part.step[static_cast<std::size_t>(i)], i + 1);
  EXPECT_GT(part.step.back(), steps * 9 / 10);
  const Series coarser = store.excerpt(id, 5'000);
  EXPECT_TRUE(std::includes(part.step.begin(), part.step.end(), coarser.step.begin(), coarser.step.end()));
  EXPECT_EQ(store.excerpt(id, steps).size(), static_cast<std::size_t>(steps));
}

TEST_F(OverviewStoreTest, an_excerpt_ends_where_steps_were_deleted_behind_the_summary) {
  const RunId id = long_run();
  ASSERT_EQ(store.summary(*store.run(id)).steps, steps);
  execute("DELETE FROM steps");
  EXPECT_TRUE(store.excerpt(id, 20'000).empty());
}

TEST_F(OverviewStoreTest, what_is_missing_stale_or_damaged_is_made_again) {
  const RunId id = long_run();
  const auto chunks = integer("SELECT count(*) FROM overview_chunks");
  for (const char* harm :
       {"DELETE FROM overviews", "DELETE FROM overview_chunks; DELETE FROM overviews",
        "UPDATE overviews SET format = 0", "UPDATE overview_chunks SET buckets = substr(buckets, 1, 50)",
        "UPDATE overview_chunks SET buckets = 'text'"}) {
    SCOPED_TRACE(harm);
    execute(harm);
    EXPECT_EQ(store.overview(id, Quantity::loss).values(), store.overview(id, Quantity::loss, 1, steps, 50).values());
    EXPECT_EQ(integer("SELECT count(*) FROM overview_chunks"), chunks);
    EXPECT_EQ(integer("SELECT count(*) FROM overview_chunks WHERE length(buckets) < 60"), 0);
  }

  execute("DELETE FROM overviews");
  RunStore reader = RunStore::open(file, RunStore::Mode::read_only);
  EXPECT_EQ(reader.overview(id, Quantity::lr).values(), steps) << "made for itself alone";
  EXPECT_EQ(integer("SELECT count(*) FROM overviews"), 0);
  const Overview part = reader.overview(id, Quantity::dt_ms, 1, steps - 10, 1000);
  EXPECT_EQ(part.values(), steps - 10);
  EXPECT_EQ(part.width, 8) << "merged as they were read, into 16,000 to 32,000 buckets";
  EXPECT_EQ(part.buckets.at(1).first_step, 9);

  EXPECT_EQ(store.overview(id, Quantity::lr).values(), steps);
  execute("UPDATE overview_chunks SET buckets = 'text'");
  EXPECT_EQ(reader.overview(id, Quantity::lr).values(), steps) << "damaged, and nobody may mend it";
  store.apply(std::vector<RunEvent>{RunStarted{.run = id, .at = 1}});
  EXPECT_EQ(integer("SELECT count(*) FROM overviews"), 0) << "resumed";
  StepRecord again = step(steps);
  again.run = id;
  again.loss = 12345;
  store.apply(std::vector<RunEvent>{again});
  EXPECT_EQ(store.overview(id, Quantity::loss).buckets.back().max, 12345) << "while it runs";
  store.apply(std::vector<RunEvent>{RunEnded{.run = id, .at = 2}});
  EXPECT_EQ(integer("SELECT count(*) FROM overview_chunks"), chunks);
  EXPECT_EQ(store.overview(id, Quantity::loss).buckets.back().max, 12345);
}

TEST_F(OverviewStoreTest, short_runs_are_read_as_they_are) {
  std::vector<StepRecord> records;
  for (std::int64_t i = 0; i < 4096; ++i) records.push_back(step(i));
  const RunId id = store.insert_finished({.name = "short"}, records);
  EXPECT_EQ(integer("SELECT steps FROM overviews"), 4096);
  EXPECT_EQ(integer("SELECT count(*) FROM overview_chunks"), 0);
  EXPECT_TRUE(store.overview(id, Quantity::loss).exact());
  EXPECT_EQ(store.overview(id, Quantity::loss).buckets.at(1).mean, curve(1));
  EXPECT_EQ(store.overview(id, Quantity::dt_ms, 10, 19, 100).buckets.size(), 10u);
  EXPECT_TRUE(store.overview(id + 1, Quantity::loss).buckets.empty());
}

TEST_F(OverviewStoreTest, a_step_written_very_often_counts_once) {
  const RunId id = store.create_run({.name = "r", .status = RunStatus::finished});
  store.append_steps(id, std::vector<StepRecord>{{.step = 1, .loss = 5}, {.step = 3, .loss = 7}});
  execute(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) INSERT INTO "
      "superseded_steps (run_id, step, attempt, loss) SELECT " +
      std::to_string(id) + ", 2, i, i FROM n");
  store.append_steps(id, std::vector<StepRecord>{{.step = 2, .loss = 40000}});
  EXPECT_EQ(store.series(id).loss, (std::vector<double>{5, 40000, 7}));
  const Summary summary = store.summary(*store.run(id));
  EXPECT_EQ(summary.steps, 3);
  EXPECT_EQ(summary.repeated_steps, 1);
  EXPECT_EQ(summary.first_repeated_step, 2);
}

TEST_F(OverviewStoreTest, goes_with_its_run) {
  const RunId id = long_run();
  execute("PRAGMA foreign_keys = ON; DELETE FROM runs WHERE id = " + std::to_string(id));
  EXPECT_EQ(integer("SELECT (SELECT count(*) FROM overviews) + (SELECT count(*) FROM overview_chunks)"), 0);
}

}  // namespace
}  // namespace stepladder
