// Metrics: what comes back, how much room it takes, and what is derived from it.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>

#include "../not_finite.h"
#include "../temporary_folder.h"
#include "storage/database/database.h"
#include "storage/database/run_store.h"

namespace stepladder {
namespace {

std::vector<MetricPoint> line(std::int64_t first, std::int64_t last, double slope = 1) {
  std::vector<MetricPoint> points;
  for (std::int64_t step = first; step <= last; ++step) points.push_back({step, slope * static_cast<double>(step)});
  return points;
}

RunId run_of_steps(RunStore& store, std::int64_t steps) {
  std::vector<StepRecord> records;
  for (std::int64_t step = 1; step <= steps; ++step)
    records.push_back({.step = step, .loss = 4, .at = 1000 + static_cast<double>(step)});
  return store.insert_finished({.name = "r"}, records);
}

std::int64_t number(RunStore& store, const std::string& sql) {
  Database database(store.file(), Database::Mode::read_only);
  return database.integer(sql);
}

TEST(Metrics, any_value_comes_back_to_the_bit) {
  RunStore store = RunStore::in_memory();
  const RunId run = run_of_steps(store, 3);
  std::mt19937_64 random(7);
  std::vector<MetricPoint> points{{0, nan}, {1, infinity}, {2, -infinity}, {3, 0.1F}, {4, 5e-324}, {5, -0.0}, {6, 3}};
  while (points.size() < 40'000) {
    const double value = std::bit_cast<double>(random());
    if (!std::isnan(value)) points.push_back({std::ssize(points), value});
  }
  store.metrics().append(run, "val/acc", points);
  const std::vector<MetricPoint> back = store.metrics().points(run, "val/acc");
  ASSERT_EQ(back.size(), points.size());
  EXPECT_TRUE(std::isnan(back[0].value) && !is_missing(back[0].value));
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_EQ(back[i].step, points[i].step);
    EXPECT_EQ(back[i].value, points[i].value);
  }
  EXPECT_TRUE(store.metrics().points(run, "val").empty());
  EXPECT_TRUE(store.metrics().points(run + 1, "val/acc").empty());
}

TEST(Metrics, the_first_of_many_are_read_alone_and_all_of_them_in_pages) {
  const TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "runs.db");
  const RunId run = run_of_steps(store, 3);
  constexpr int many = 4100;  // more than two pages
  store.in_one_transaction([&] {
    for (int i = 0; i < many; ++i) store.metrics().append(run, "m" + std::to_string(10'000 + i), line(1, 1 + i % 3));
    store.metrics().describe(run, {.name = "without a value"});
  });
  EXPECT_EQ(store.metrics().count(run), many + 1);
  EXPECT_EQ(store.metrics().names(run, 2).back().name, "m10001");
  const std::vector<MetricAndFigures> few = store.metrics().all_of_run(run, 3);
  ASSERT_EQ(few.size(), 4u) << "the loss, too";
  EXPECT_EQ(few[0].metric.name, "loss");
  EXPECT_EQ(few[3].figures.count, 3);
  EXPECT_EQ(number(store, "SELECT count(*) FROM metric_figures"), 3) << "no more are made";
  std::map<std::string, std::int64_t> points;
  store.metrics().for_all_points(
      run, [&](const Metric& metric, std::span<const MetricPoint> some) { points[metric.name] += std::ssize(some); });
  const std::vector<MetricAndFigures> all = store.metrics().all_of_run(run);
  ASSERT_EQ(points.size(), all.size());
  for (const auto& [metric, figures] : all) EXPECT_EQ(points[metric.name], figures.count) << metric.name;
  EXPECT_EQ(number(store, "SELECT count(*) FROM metric_figures"), many + 1);
}

TEST(Metrics, a_time_is_that_of_its_step_or_its_own) {
  RunStore store = RunStore::in_memory();
  const RunId run = run_of_steps(store, 3);
  store.metrics().append(run, "m", std::vector<MetricPoint>{{1, 1, 1001.004}, {2, 1, 1002.5}, {3, 1}, {9, 1, 2000.25}});
  const std::vector<MetricPoint> back = store.metrics().points(run, "m");
  EXPECT_DOUBLE_EQ(back[0].at, 1001);  // within a hundredth of a second
  EXPECT_DOUBLE_EQ(back[1].at, 1002.5);
  EXPECT_DOUBLE_EQ(back[2].at, 1003);
  EXPECT_DOUBLE_EQ(back[3].at, 2000.25);
}

TEST(Metrics, a_newer_attempt_counts_and_the_older_one_is_kept) {
  const TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = run_of_steps(store, 10);
  store.metrics().append(run, "m", line(1, 10));
  store.metrics().append(run, "m", line(6, 12, 2));
  store.metrics().append(run, "m", line(6, 12, 2));  // told twice
  const std::vector<MetricPoint> back = store.metrics().points(run, "m");
  ASSERT_EQ(back.size(), 12U);
  EXPECT_EQ(back[4].value, 5);
  EXPECT_EQ(back[5].value, 12);
  EXPECT_EQ(number(store, "SELECT count(*) FROM superseded_metric_values"), 5);
  EXPECT_EQ(number(store, "SELECT value FROM superseded_metric_values WHERE step = 6"), 6);
  EXPECT_EQ(number(store, "SELECT value FROM metric_points WHERE run_id = 1 AND name = 'm' AND step = 6"), 12);
}

TEST(Metrics, what_is_known_of_a_metric_is_kept) {
  RunStore store = RunStore::in_memory();
  const RunId run = run_of_steps(store, 2);
  store.metrics().describe(run, {.name = "acc", .unit = "%", .direction = Direction::higher});
  store.metrics().describe(run, {.name = "acc", .section = "quality"});
  store.metrics().describe(run, {.name = "train/loss", .direction = Direction::lower, .field = "loss"});
  store.metrics().append(run, "acc", line(1, 2));
  const std::vector<MetricAndFigures> metrics = store.metrics().of_run(run);
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_EQ(metrics[0].metric.name, "acc");
  EXPECT_EQ(metrics[0].metric.unit, "%");
  EXPECT_EQ(metrics[0].metric.direction, Direction::higher);
  EXPECT_EQ(metrics[0].metric.section, "quality");
  EXPECT_EQ(metrics[1].figures.count, 2) << "the steps' losses";
  EXPECT_EQ(metrics[1].figures.last, 4);
  EXPECT_EQ(store.metrics().points(run, "train/loss").at(1).value, 4);
}

TEST(Metrics, figures_are_those_of_the_values) {
  RunStore store = RunStore::in_memory();
  const RunId run = run_of_steps(store, 1);
  store.metrics().append(run, "m",
                         std::vector<MetricPoint>{{1, nan}, {2, 4}, {4, -1}, {8, infinity}, {16, 3}, {32, 10}});
  for (int round = 0; round < 2; ++round) {  // computed, then cached
    const MetricFigures figures = store.metrics().of_run(run).at(0).figures;
    EXPECT_EQ(figures.count, 6);
    EXPECT_EQ(figures.not_finite, 2);
    EXPECT_EQ(figures.first_step, 1);
    EXPECT_EQ(figures.last_step, 32);
    EXPECT_TRUE(std::isnan(figures.first) && !is_missing(figures.first));
    EXPECT_EQ(figures.last, 10);
    EXPECT_EQ(figures.lowest, -1);
    EXPECT_EQ(figures.highest, 10);
    EXPECT_EQ(figures.mean, 4);
    EXPECT_EQ(figures.median, 3.5);
  }
  store.metrics().append(run, "m", line(64, 64));
  EXPECT_EQ(store.metrics().of_run(run).at(0).figures.last, 64) << "the cache is out of date";
}

TEST(Metrics, a_long_metric_has_overviews) {
  const TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = run_of_steps(store, 1);
  std::vector<MetricPoint> points = line(1, 100'000);
  points[70'000].value = 1e9;
  store.metrics().append(run, "m", points);
  const auto highest = [](const Overview& overview) {
    double most = 0;
    for (const Bucket& bucket : overview.buckets) most = std::max(most, bucket.max);
    return most;
  };
  const Overview whole = store.metrics().overview(run, "m");
  EXPECT_EQ(number(store, "SELECT count(*) FROM metric_overviews"), 1) << "of 32 values each";
  EXPECT_LE(whole.buckets.size(), most_in_chunk);
  EXPECT_EQ(whole.values(), 100'000);
  EXPECT_EQ(highest(whole), 1e9) << "no spike vanishes";
  const Overview part = store.metrics().overview(run, "m", 69'990, 70'010, 100);
  EXPECT_TRUE(part.exact());
  EXPECT_EQ(part.values(), 21);
  EXPECT_EQ(highest(part), 1e9);
  EXPECT_EQ(highest(store.metrics().overview(run, "m", 1, 60'000, 100)), 60'000);
}

TEST(Metrics, a_value_takes_24_bytes_or_less) {
  const TemporaryFolder folder;
  constexpr std::int64_t steps = 20'000;
  constexpr int names = 10;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = run_of_steps(store, steps);
  std::mt19937 random(1);
  const auto bytes = [&] { return store.upkeep().space().content_bytes; };
  const std::int64_t before = bytes();
  for (std::int64_t first = 1; first <= steps; first += 40) {  // as they come: some steps of all metrics at a time
    std::vector<RunEvent> events;
    for (std::int64_t step = first; step < first + 40; ++step) {
      MetricValues values{.run = run, .step = step, .at = 1000 + static_cast<double>(step)};
      for (int name = 0; name < names; ++name)
        values.values.emplace_back("layer/" + std::to_string(name), std::generate_canonical<double, 53>(random));
      events.emplace_back(values);
    }
    store.apply(events);
  }
  EXPECT_LE(static_cast<double>(bytes() - before) / (steps * names), 24);
  EXPECT_EQ(store.metrics().of_run(run).size(), 10U);
  EXPECT_EQ(store.metrics().points(run, "layer/7").size(), 20'000U);
}

TEST(Metrics, deleting_a_run_deletes_its_metrics) {
  const TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "a.db");
  const RunId run = run_of_steps(store, 10);
  const RunId other = run_of_steps(store, 10);
  for (const char* const name : {"a", "b"}) {
    store.metrics().append(run, name, line(1, 9000));
    store.metrics().append(run, name, line(5, 5, 7));
    store.metrics().append(other, name, line(1, 10));
  }
  store.metrics().of_run(run);
  store.curation().set(run, {.deleted_at = 1});
  EXPECT_EQ(store.bin().empty(2), std::vector<RunId>{run});
  for (const char* const table : {"superseded_metric_values", "metric_overviews", "metric_figures"})
    EXPECT_EQ(number(store, "SELECT count(*) FROM " + std::string(table)), 0) << table;
  EXPECT_EQ(number(store, "SELECT count(*) FROM metric_values"), 20);
  EXPECT_EQ(number(store, "SELECT count(*) FROM metrics"), 2);
}

double cell(const FigureTable& table, RunId run, const std::string& figure) {
  return table.value(run, metric_figure_from(figure).value());
}

TEST(Metrics, a_table_has_figures_of_all_listed_runs) {
  RunStore store = RunStore::in_memory();
  const RunId first = run_of_steps(store, 3);
  const RunId second = store.insert_finished(
      {.name = "other"},
      std::vector<StepRecord>{{.step = 1, .loss = 3, .dt_ms = 20}, {.step = 2, .loss = nan, .dt_ms = 40}});
  const RunId binned = run_of_steps(store, 3);
  store.metrics().append(first, "val/acc", std::vector<MetricPoint>{{1, 0.5}, {2, nan}, {4, 0.25}});
  store.metrics().append(second, "val/acc", std::vector<MetricPoint>{{1, nan}});
  store.metrics().append(second, "only here", std::vector<MetricPoint>{{7, -infinity}, {9, 8}});
  store.metrics().append(binned, "val/acc", line(1, 3));
  store.curation().set(binned, {.deleted_at = 1});
  std::vector<MetricFigure> asked;
  for (const char* text : {"last(val/acc)", "min(val/acc)", "max(val/acc)", "median(val/acc)", "at(val/acc, 2)",
                           "at(val/acc, 3)", "max(only here)", "at(only here, 7)", "last(loss)", "min(loss)",
                           "median(dt_ms)", "at(loss, 2)", "last(nothing)"})
    asked.push_back(metric_figure_from(text).value());
  for (const int round : {1, 2}) {  // the second one from the cache
    const FigureTable table = store.metrics().table(asked);
    EXPECT_EQ(cell(table, first, "last(val/acc)"), 0.25) << round;
    EXPECT_EQ(cell(table, first, "min(val/acc)"), 0.25);
    EXPECT_EQ(cell(table, first, "max(val/acc)"), 0.5);
    EXPECT_EQ(cell(table, first, "median(val/acc)"), 0.375);
    EXPECT_TRUE(std::isnan(cell(table, first, "at(val/acc, 2)")));
    EXPECT_FALSE(is_missing(cell(table, first, "at(val/acc, 2)"))) << "it was logged as NaN";
    EXPECT_TRUE(is_missing(cell(table, first, "at(val/acc, 3)"))) << "no value of this very step";
    EXPECT_TRUE(is_missing(cell(table, first, "max(only here)")));
    EXPECT_FALSE(is_missing(cell(table, second, "last(val/acc)"))) << "NaN";
    EXPECT_TRUE(is_missing(cell(table, second, "min(val/acc)")));
    EXPECT_EQ(cell(table, second, "max(only here)"), 8);
    EXPECT_EQ(cell(table, second, "at(only here, 7)"), -infinity);
    EXPECT_EQ(cell(table, first, "last(loss)"), 4);
    EXPECT_FALSE(is_missing(cell(table, second, "last(loss)")));
    EXPECT_TRUE(std::isnan(cell(table, second, "at(loss, 2)")));
    EXPECT_EQ(cell(table, second, "min(loss)"), 3);
    EXPECT_EQ(cell(table, second, "median(dt_ms)"), 30);
    EXPECT_TRUE(is_missing(cell(table, first, "median(dt_ms)")));
    EXPECT_TRUE(is_missing(cell(table, first, "last(nothing)")));
    EXPECT_TRUE(is_missing(cell(table, binned, "last(val/acc)"))) << "in the bin";
    EXPECT_TRUE(is_missing(table.value(first, {.metric = "not asked for"})));
  }
  int asks = 0;
  const FigureTable cut = store.metrics().table(asked, [&] { return ++asks > 1; });
  EXPECT_EQ(asks, 2);
}

TEST(Metrics, a_name_that_is_longer_than_any_of_ours_is_read_once) {
  const TemporaryFolder folder;
  RunStore store = RunStore::open(folder / "runs.db");
  const RunId run = run_of_steps(store, 3);
  store.metrics().append(run, "a", line(1, 3));
  store.metrics().append(run, "z", line(1, 3));
  Database(store.file(), Database::Mode::read_write).execute("UPDATE metrics SET name = printf('%.*c', 1000, name)");
  std::string initials;
  store.metrics().for_all_points(
      run, [&](const Metric& metric, std::span<const MetricPoint>) { initials += metric.name.substr(0, 1); });
  EXPECT_EQ(initials, "laz") << "the loss, too";
  store.metrics().keep_figures(run);
  EXPECT_EQ(number(store, "SELECT count(*) FROM metric_figures"), 2);
}

TEST(Metrics, a_table_follows_a_run_under_way) {
  RunStore store = RunStore::in_memory();
  const RunId run = store.create_run({.name = "r", .status = RunStatus::running});
  const std::vector<MetricFigure> asked{{.metric = "m"}};
  store.metrics().append(run, "m", line(1, 3));
  EXPECT_EQ(store.metrics().table(asked).value(run, asked[0]), 3);
  store.metrics().append(run, "m", line(4, 5));
  EXPECT_EQ(store.metrics().table(asked).value(run, asked[0]), 5);
}

TEST(Metrics, a_field_that_a_metric_was_taken_for_is_found_under_both_names) {
  RunStore store = RunStore::in_memory();
  const RunId run = run_of_steps(store, 3);
  store.metrics().describe(run, {.name = "train/loss", .field = "loss"});
  const std::vector<MetricFigure> asked{{.metric = "train/loss"}, {.metric = "loss"}};
  const FigureTable table = store.metrics().table(asked);
  EXPECT_EQ(table.value(run, asked[0]), 4);
  EXPECT_EQ(table.value(run, asked[1]), 4);
}

TEST(Metrics, every_name_is_listed_once) {
  RunStore store = RunStore::in_memory();
  const RunId first = run_of_steps(store, 1), second = run_of_steps(store, 1), binned = run_of_steps(store, 1);
  store.metrics().describe(first, {.name = "val/acc"});
  store.metrics().describe(second, {.name = "val/acc", .unit = "%", .direction = Direction::higher});
  store.metrics().describe(second, {.name = "loss", .field = "loss"});
  store.metrics().describe(binned, {.name = "gone"});
  store.curation().set(binned, {.deleted_at = 1});
  std::vector<std::string> names;
  for (const Metric& metric : store.metrics().all_names()) names.push_back(metric.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"loss", "val/acc", "val_loss", "dt_ms", "tokens_per_s", "lr", "grad_norm"}));
  EXPECT_EQ(store.metrics().all_names()[1].unit, "%");
  EXPECT_EQ(store.metrics().all_names()[1].direction, Direction::higher);
}

}  // namespace
}  // namespace stepladder
