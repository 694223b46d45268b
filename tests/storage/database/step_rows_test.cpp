// How steps are stored: what comes back, what other programs see, and how much space it takes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "../not_finite.h"
#include "../temporary_folder.h"
#include "storage/database/database.h"
#include "storage/database/run_store.h"

namespace stepladder {
namespace {

bool same_bits(double a, double b) {
  return a == b || (is_missing(a) && is_missing(b)) ||
         (std::isnan(a) && std::isnan(b) && is_missing(a) == is_missing(b));
}

bool within(double a, double b, double tolerance) {
  return same_bits(a, b) || std::abs(a - b) <= tolerance * std::abs(b);
}

const std::vector<double> odd_values = {
    missing, 0,     infinity, -infinity, 1,      -1,           1.0 / 3,       -1e-300, 5e-324,
    1e-12,   1e-30, 3e-4,     2.5e-7,    1e12,   1e15,         123456789.25,  3.4e38,  1e290,
    -1e290,  0.1,   1e-9,     9.1e18,    9.3e18, 50.123456789, 1790000000.123};

TEST(StepRows, odd_values_come_back) {
  RunStore store = RunStore::in_memory();
  std::vector<StepRecord> steps;
  for (const double value : odd_values)
    steps.push_back({.step = std::ssize(steps) + 1,
                     .loss = value,
                     .val_loss = -value,
                     .dt_ms = value,
                     .lr = value,
                     .grad_norm = value,
                     .at = value});
  steps.push_back({.step = 1000, .loss = nan, .val_loss = 1, .grad_norm = nan});
  steps.push_back({.step = 1001, .loss = 1, .val_loss = nan, .grad_norm = 1});
  const RunId run = store.insert_finished({.name = "r"}, steps);
  const Series series = store.series(run);
  ASSERT_EQ(series.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE(steps[i].loss);
    EXPECT_TRUE(same_bits(series.loss[i], steps[i].loss)) << series.loss[i];
    EXPECT_TRUE(same_bits(series.val_loss[i], is_missing(steps[i].loss) ? series.val_loss[i] : steps[i].val_loss));
    EXPECT_TRUE(within(series.dt_ms[i], steps[i].dt_ms, 1e-8)) << series.dt_ms[i];
    EXPECT_TRUE(within(series.lr[i], steps[i].lr, 1e-8)) << series.lr[i];
    EXPECT_TRUE(within(series.grad_norm[i], steps[i].grad_norm, 1e-8)) << series.grad_norm[i];
    EXPECT_TRUE(within(series.at[i], steps[i].at, 1e-8)) << series.at[i];
  }
}

TEST(StepRows, any_loss_comes_back_to_the_bit) {
  RunStore store = RunStore::in_memory();
  std::mt19937_64 random(7);
  std::vector<StepRecord> steps;
  while (steps.size() < 2000) {
    const double loss = std::bit_cast<double>(random());
    const double val_loss = std::bit_cast<double>(random());
    if (std::isnan(loss) || std::isnan(val_loss)) continue;
    steps.push_back({.step = std::ssize(steps) + 1, .loss = loss, .val_loss = val_loss});
  }
  const RunId run = store.insert_finished({.name = "r"}, steps);
  const Series series = store.series(run);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(series.loss[i], steps[i].loss);
    EXPECT_EQ(series.val_loss[i], steps[i].val_loss);
  }
}

TEST(StepRows, of_what_was_measured_nothing_is_lost) {
  RunStore store = RunStore::in_memory();
  std::vector<StepRecord> steps;
  for (std::int64_t ns = 1; ns < 100'000'000'000; ns = ns * 3 / 2 + 7)
    steps.push_back({.step = std::ssize(steps) + 1, .dt_ms = static_cast<double>(ns) / 1e6});
  const RunId run = store.insert_finished({.name = "r"}, steps);
  const Series series = store.series(run);
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(series.dt_ms[i], steps[i].dt_ms) << "a clock's nanoseconds";
}

TEST(StepRows, parts_are_kept_to_the_microsecond) {
  RunStore store = RunStore::in_memory();
  const RunId run = store.insert_finished(
      {.name = "r"}, std::vector<StepRecord>{{.step = 1, .parts = {0.1234567, 12.3456789, missing, 0, 1e5}}});
  store.for_steps(run, [](std::span<const StepRecord> steps) {
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].parts.data_ms, 0.123);
    EXPECT_EQ(steps[0].parts.forward_ms, 12.346);
    EXPECT_TRUE(is_missing(steps[0].parts.backward_ms));
    EXPECT_EQ(steps[0].parts.optimizer_ms, 0);
    EXPECT_EQ(steps[0].parts.communication_ms, 1e5);
  });
}

TEST(StepRows, a_nan_goes_when_its_step_is_written_again) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = store.create_run({.name = "r"});
  const auto write = [&](double loss) { store.append_steps(run, std::vector<StepRecord>{{.step = 1, .loss = loss}}); };
  write(nan);
  EXPECT_TRUE(std::isnan(store.series(run).loss.at(0)));
  write(missing);
  EXPECT_TRUE(is_missing(store.series(run).loss.at(0)));
  write(nan);
  Database raw(folder / "a.db", Database::Mode::read_only);
  EXPECT_EQ(raw.text("SELECT group_concat(attempt || ':' || nan_mask) FROM superseded_steps"), "1:1,2:0");
  EXPECT_EQ(raw.integer("SELECT nan_mask FROM latest_steps"), 1);
}

TEST(StepRows, other_programs_read_the_values_by_their_names) {
  TemporaryFolder folder;
  {
    RunStore store = RunStore::open(folder / "a.db");
    store.insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 7,
                                                                  .loss = 0.1,
                                                                  .val_loss = 2,
                                                                  .dt_ms = 51.25,
                                                                  .tokens = 4096,
                                                                  .lr = 6e-4,
                                                                  .grad_norm = 1.5,
                                                                  .at = 1790000000.125,
                                                                  .parts = {1, 2.5, 3, 4, 0.75}}});
  }
  Database raw(folder / "a.db", Database::Mode::read_only);
  for (const char* table : {"steps", "latest_steps"}) {
    Statement row(raw,
                  std::string("SELECT step, loss, val_loss, dt_ms, tokens, lr, grad_norm, at, data_ms, forward_ms, "
                              "backward_ms, optimizer_ms, communication_ms, tokens_per_s FROM ") +
                      table);
    ASSERT_TRUE(row.step());
    const std::vector<double> expected{7, 0.1, 2, 51.25, 4096, 6e-4,           1.5, 1790000000.125,
                                       1, 2.5, 3, 4,     0.75, 4096000 / 51.25};
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(row.real(static_cast<int>(i)), expected[i]) << i;
  }
  EXPECT_EQ(raw.text("SELECT typeof(dt_ns) || typeof(lr_e12) || typeof(at_ms) FROM steps"), "integerintegerinteger");
}

// As the recorder writes a training of 50 ms a step: the steps of 1.5 s and three samples of the machine a commit.
TEST(StepRows, a_step_takes_about_64_bytes_and_500_of_the_log) {
  TemporaryFolder folder;
  const auto file = folder / "a.db";
  constexpr int commits = 200;
  constexpr int steps_a_commit = 30;
  constexpr int steps = commits * steps_a_commit;
  std::mt19937_64 random(7);
  const auto around = [&](double mean, double spread) {
    return std::normal_distribution<double>(mean, spread)(random);
  };
  RunStore store = RunStore::open(file);
  const RunId run = store.create_run({.name = "r", .status = RunStatus::running});
  const auto log_before = std::filesystem::file_size(file.string() + "-wal");
  double at = 1'790'000'000;
  for (int commit = 0; commit < commits; ++commit) {
    std::vector<RunEvent> events;
    for (int i = 1; i <= steps_a_commit; ++i) {
      const double dt_ms = std::round(around(50e6, 1e6)) / 1e6;
      at += dt_ms / 1000;
      const int step = commit * steps_a_commit + i;
      events.push_back(
          StepRecord{.run = run,
                     .step = step,
                     .loss = static_cast<float>(around(3, 0.1)),
                     .dt_ms = dt_ms,
                     .tokens = 8192,
                     .lr = 6e-4 * (1 + std::cos(3.14159265 * step / steps)) / 2,
                     .grad_norm = std::abs(static_cast<float>(around(1, 0.3))),
                     .at = at,
                     .parts = {around(0.15, 0.01), around(15, 0.3), around(30, 0.3), around(4, 0.3), missing}});
      if (step % 10 == 0)
        events.push_back(SystemMetrics{.run = run,
                                       .step = step,
                                       .at = at,
                                       .cpu_load = around(0.5, 0.1),
                                       .process_cores = around(2, 0.1),
                                       .resident_bytes = 1 << 30});
    }
    store.apply(events);
  }
  const auto log = std::filesystem::file_size(file.string() + "-wal") - log_before;
  RecordProperty("log_bytes_a_step", std::to_string(log / steps));
  EXPECT_LE(log / steps, 500u);
  Database raw(file, Database::Mode::read_write);
  raw.execute("DELETE FROM lanes; VACUUM");
  const std::int64_t with = raw.integer("PRAGMA page_count");
  raw.execute("DELETE FROM steps; VACUUM");
  const std::int64_t bytes = (with - raw.integer("PRAGMA page_count")) * raw.integer("PRAGMA page_size");
  RecordProperty("bytes_a_step", std::to_string(static_cast<double>(bytes) / steps));
  EXPECT_LE(bytes, 66 * steps);
}

}  // namespace
}  // namespace stepladder
