#include "storage/database/run_store.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <thread>

#include "../temporary_folder.h"
#include "storage/bounded_text.h"
#include "storage/database/database.h"

namespace stepladder {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

// Equal where both are missing, or both NaN but not missing, or equal.
testing::AssertionResult alike(double a, double b) {
  const bool same =
      is_missing(a) || is_missing(b) ? is_missing(a) == is_missing(b) : (std::isnan(a) && std::isnan(b)) || a == b;
  if (same) return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << (is_missing(a) ? " (missing)" : "") << " and " << b
                                     << (is_missing(b) ? " (missing)" : "");
}

void expect_alike(const Run& a, const Run& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.ladder, b.ladder);
  EXPECT_EQ(a.rung, b.rung);
  EXPECT_EQ(a.repeat, b.repeat);
  EXPECT_EQ(a.loss_against, b.loss_against);
  EXPECT_EQ(a.parent, b.parent);
  EXPECT_EQ(a.forked_at_step, b.forked_at_step);
  EXPECT_EQ(a.stage, b.stage);
  EXPECT_EQ(a.title, b.title);
  EXPECT_EQ(a.changed, b.changed);
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.source_path, b.source_path);
  EXPECT_TRUE(alike(a.created_at, b.created_at));
  EXPECT_TRUE(alike(a.started_at, b.started_at));
  EXPECT_TRUE(alike(a.ended_at, b.ended_at));
  EXPECT_EQ(a.planned_steps, b.planned_steps);
  EXPECT_EQ(a.tokens_per_step, b.tokens_per_step);
  EXPECT_EQ(a.warmup_steps, b.warmup_steps);
  EXPECT_EQ(a.params, b.params);
  EXPECT_TRUE(alike(a.model_flops_per_token, b.model_flops_per_token));
  EXPECT_TRUE(alike(a.loss_floor, b.loss_floor));
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.hardware, b.hardware);
  EXPECT_EQ(a.precision, b.precision);
  EXPECT_EQ(a.attention, b.attention);
  EXPECT_TRUE(alike(a.setup_ms, b.setup_ms));
  EXPECT_EQ(a.peak_memory_bytes, b.peak_memory_bytes);
  EXPECT_EQ(a.sync, b.sync);
  EXPECT_EQ(a.recipe, b.recipe);
  EXPECT_EQ(a.environment, b.environment);
  EXPECT_EQ(a.printed.unit, b.printed.unit);
  EXPECT_TRUE(alike(a.printed.tokens_per_s, b.printed.tokens_per_s));
  EXPECT_EQ(a.parent, b.parent);
  EXPECT_EQ(a.forked_at_step, b.forked_at_step);
  EXPECT_EQ(a.loss_against, b.loss_against);
  EXPECT_EQ(a.attention, b.attention);
  EXPECT_TRUE(alike(a.setup_ms, b.setup_ms));
  EXPECT_EQ(a.peak_memory_bytes, b.peak_memory_bytes);
}

void expect_alike(const Summary& a, const Summary& b) {
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.first_step, b.first_step);
  EXPECT_EQ(a.last_step, b.last_step);
  EXPECT_EQ(a.warmup_steps, b.warmup_steps);
  EXPECT_TRUE(alike(a.loss_first, b.loss_first));
  EXPECT_TRUE(alike(a.loss_last, b.loss_last));
  EXPECT_TRUE(alike(a.loss_min, b.loss_min));
  EXPECT_TRUE(alike(a.val_loss_last, b.val_loss_last));
  EXPECT_TRUE(alike(a.val_loss_min, b.val_loss_min));
  EXPECT_TRUE(alike(a.dt_ms_median, b.dt_ms_median));
  EXPECT_TRUE(alike(a.dt_ms_p25, b.dt_ms_p25));
  EXPECT_TRUE(alike(a.dt_ms_p75, b.dt_ms_p75));
  EXPECT_TRUE(alike(a.tokens_per_s, b.tokens_per_s));
  EXPECT_TRUE(alike(a.tokens_per_s_p25, b.tokens_per_s_p25));
  EXPECT_TRUE(alike(a.tokens_per_s_p75, b.tokens_per_s_p75));
}

class RunStoreTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  std::filesystem::path file = folder / "a.db";
  RunStore store = RunStore::open(file);

  void apply(const std::vector<RunEvent>& events) { store.apply(events); }

  std::int64_t integer(const std::string& sql) { return Database(file, Database::Mode::read_only).integer(sql); }
  void execute(const std::string& sql) { Database(file, Database::Mode::read_write).execute(sql); }
};

TEST_F(RunStoreTest, every_field_of_a_run_comes_back) {
  const LadderId ladder = store.create_ladder({.name = "ladder",
                                               .source = "import",
                                               .source_path = "/logs/a.txt",
                                               .notes = "two\nlines",
                                               .created_at = 1700000000.25});
  const Ladder read = store.ladders().at(0);
  EXPECT_EQ(read.id, ladder);
  EXPECT_EQ(read.name, "ladder");
  EXPECT_EQ(read.source, "import");
  EXPECT_EQ(read.source_path, "/logs/a.txt");
  EXPECT_EQ(read.notes, "two\nlines");
  EXPECT_EQ(read.created_at, 1700000000.25);

  const RunId parent = store.create_run({.name = "parent"});
  const stepladder::Run full{.id = 99,
                             .name = "nämé ' \" 训练",
                             .ladder = ladder,
                             .rung = 3,
                             .repeat = 2,
                             .loss_against = 1,
                             .parent = parent,
                             .forked_at_step = 250,
                             .stage = "tf32",
                             .title = "TF32 matmuls",
                             .changed = "matmul fp32 -> tf32",
                             .status = RunStatus::failed,
                             .reason = "out of memory",
                             .source = "launched",
                             .source_path = "/somewhere",
                             .created_at = 1700000001.5,
                             .started_at = 1700000002.125,
                             .ended_at = 1700000003.0625,
                             .planned_steps = 400,
                             .tokens_per_step = 524288,
                             .warmup_steps = 0,
                             .params = 124439808,
                             .model_flops_per_token = 746638848,
                             .loss_floor = 0.1,
                             .device = "cuda",
                             .hardware = "NVIDIA A100-SXM4-40GB",
                             .precision = "tf32",
                             .attention = "flash",
                             .setup_ms = 1234.5,
                             .peak_memory_bytes = 23'400'000'000,
                             .sync = Sync::event,
                             .recipe = R"({"batch":4})",
                             .environment = R"({"host":"h"})",
                             .printed = {.unit = "tokens/ms printed as \"tok/s\"", .tokens_per_s = 1234.5}};
  const RunId id = store.create_run(full);
  EXPECT_NE(id, 99);
  ASSERT_TRUE(store.run(id));
  EXPECT_EQ(store.run(id)->id, id);
  expect_alike(*store.run(id), full);
  EXPECT_FALSE(store.run(id + 1));
}

TEST_F(RunStoreTest, printed_units_of_an_old_project_are_read) {
  const RunId id = store.create_run({.name = "r"});
  const auto keep = [&](const std::string& environment) {
    execute("UPDATE runs SET environment = '" + environment + "' WHERE id = " + std::to_string(id));
    return *store.run(id);
  };
  stepladder::Run run = keep(R"({"printed_tokens_per_s":11.57,"throughput_unit":"tokens/ms printed as tokens/sec"})");
  EXPECT_EQ(run.printed.unit, "tokens/ms printed as tokens/sec");
  EXPECT_EQ(run.printed.tokens_per_s, 11.57);
  EXPECT_EQ(run.environment, "");
  store.update_run(run);
  EXPECT_EQ(store.run(id)->printed.unit, run.printed.unit);
  run = keep(R"({"host":"h","printed_tokens_per_s":"many","throughput_unit":3})");
  EXPECT_FALSE(run.printed.known());
  EXPECT_EQ(run.environment, R"({"host":"h"})");
  EXPECT_EQ(keep("throughput_unit, but not JSON").environment, "throughput_unit, but not JSON");
}

TEST_F(RunStoreTest, what_is_not_known_is_null_and_comes_back_as_not_known) {
  const RunId id = store.create_run({.name = "bare", .created_at = 5});
  stepladder::Run expected;
  expected.name = "bare";
  expected.created_at = 5;
  expect_alike(*store.run(id), expected);
  EXPECT_EQ(integer("SELECT count(*) FROM runs WHERE stage IS NULL AND tokens_per_step IS NULL AND params IS NULL AND "
                    "warmup_steps IS NULL AND loss_floor IS NULL AND ladder_id IS NULL AND recipe IS NULL"),
            1);
}

TEST_F(RunStoreTest, a_run_without_a_time_was_created_now) {
  const double before = static_cast<double>(time(nullptr));
  const RunId id = store.create_run({.name = "r"});
  EXPECT_GE(store.run(id)->created_at, before);
  EXPECT_LE(store.run(id)->created_at, before + 60);
}

TEST_F(RunStoreTest, lists_are_in_order) {
  const LadderId ladder = store.create_ladder({.name = "l"});
  store.create_run({.name = "c", .ladder = ladder, .rung = 1, .repeat = 1, .created_at = 30});
  store.create_run({.name = "a", .ladder = ladder, .rung = 1, .repeat = 0, .created_at = 40});
  store.create_run({.name = "d", .ladder = ladder, .rung = 0, .repeat = 0, .created_at = 50});
  store.create_run({.name = "b", .created_at = 10});
  const auto names = [](const std::vector<stepladder::Run>& runs) {
    std::string all;
    for (const stepladder::Run& run : runs) all += run.name;
    return all;
  };
  EXPECT_EQ(names(store.runs()), "bcad");
  EXPECT_EQ(names(store.runs_of(ladder)), "dac");
  EXPECT_TRUE(store.runs_of(ladder + 1).empty());
}

TEST_F(RunStoreTest, nan_infinity_and_missing_stay_apart) {
  const RunId id = store.create_run({.name = "r"});
  const std::vector<StepRecord> steps{
      {.run = id, .step = 1, .loss = nan, .val_loss = missing, .dt_ms = 1.5, .tokens = 8, .lr = 1e-3, .grad_norm = 2},
      {.run = id, .step = 2, .loss = missing, .val_loss = nan, .dt_ms = missing, .grad_norm = infinity},
      {.run = id, .step = 3, .loss = infinity, .val_loss = -infinity, .dt_ms = 0.1, .tokens = 8, .grad_norm = nan},
      {.run = id, .step = 4},
      {.run = id, .step = 5, .loss = 0.1 + 0.2, .val_loss = 5e-324, .dt_ms = 1e300, .lr = 0.0, .grad_norm = -0.0}};
  for (const StepRecord& step : steps) apply({step});

  const Series series = store.series(id);
  ASSERT_EQ(series.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(series.step[i], steps[i].step);
    EXPECT_EQ(series.tokens[i], steps[i].tokens);
    EXPECT_TRUE(alike(series.loss[i], steps[i].loss));
    EXPECT_TRUE(alike(series.val_loss[i], steps[i].val_loss));
    EXPECT_TRUE(alike(series.dt_ms[i], steps[i].dt_ms));
    EXPECT_TRUE(alike(series.lr[i], steps[i].lr));
    EXPECT_TRUE(alike(series.grad_norm[i], steps[i].grad_norm));
  }
  EXPECT_EQ(integer("SELECT nan_mask FROM latest_steps WHERE step = 1"), 1);
  EXPECT_EQ(integer("SELECT nan_mask FROM latest_steps WHERE step = 2"), 2);
  EXPECT_EQ(integer("SELECT nan_mask FROM latest_steps WHERE step = 3"), 4);
  EXPECT_EQ(integer("SELECT count(*) FROM latest_steps WHERE nan_mask = 0 AND loss IS NULL"), 1);
}

TEST_F(RunStoreTest, a_step_written_twice_is_kept_twice_and_the_newer_counts) {
  const RunId id = store.create_run({.name = "r"});
  apply({StepRecord{.run = id, .step = 2, .loss = 20}, StepRecord{.run = id, .step = 1, .loss = 10}});
  apply({StepRecord{.run = id, .step = 2, .loss = 21}, StepRecord{.run = id, .step = 3, .loss = 30}});
  apply({StepRecord{.run = id, .step = 2, .loss = 22}});
  EXPECT_EQ(store.series(id).step, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(store.series(id).loss, (std::vector<double>{10, 22, 30}));
  EXPECT_EQ(integer("SELECT count(*) FROM steps"), 3);
  EXPECT_EQ(integer("SELECT group_concat(attempt || ':' || loss) = '1:20.0,2:21.0' FROM (SELECT attempt, loss FROM "
                    "superseded_steps WHERE step = 2 ORDER BY attempt)"),
            1);
  EXPECT_EQ(integer("SELECT sum(loss) FROM latest_steps"), 62);
}

TEST_F(RunStoreTest, recorded_steps_counts_a_step_that_was_written_twice_as_two) {
  const RunId run = store.create_run({.name = "watched", .status = RunStatus::running});
  EXPECT_EQ(store.recorded_steps(run).records, 0);
  store.apply(std::vector<RunEvent>{StepRecord{.run = run, .step = 1}, StepRecord{.run = run, .step = 5},
                                    StepRecord{.run = run, .step = 1}});
  EXPECT_EQ(store.recorded_steps(run).records, 3);
  EXPECT_EQ(store.recorded_steps(run).last_step, 5);
}

TEST_F(RunStoreTest, for_steps_passes_all_that_was_recorded_of_the_newest_attempts) {
  const RunId id = store.create_run({.name = "r"});
  const StepRecord whole{.run = id,
                         .step = 2,
                         .loss = nan,
                         .val_loss = infinity,
                         .dt_ms = 1.0 / 3,
                         .tokens = 768,
                         .lr = 1e-3,
                         .grad_norm = 0.1,
                         .at = 1790000000.25,
                         .parts = {1, 2, 3, 4, 5}};
  apply({StepRecord{.run = id, .step = 2, .loss = 20}, StepRecord{.run = id, .step = 1, .loss = 10}});
  apply({whole});
  std::vector<StepRecord> steps;
  store.for_steps(id, [&](std::span<const StepRecord> some) { steps.insert(steps.end(), some.begin(), some.end()); });
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].loss, 10);
  for (const double value : {steps[0].val_loss, steps[0].at, steps[0].parts.forward_ms}) EXPECT_TRUE(is_missing(value));
  const auto values = [](const StepRecord& s) {
    return std::array{s.loss,
                      s.val_loss,
                      s.dt_ms,
                      s.lr,
                      s.grad_norm,
                      s.at,
                      s.parts.data_ms,
                      s.parts.forward_ms,
                      s.parts.backward_ms,
                      s.parts.optimizer_ms,
                      s.parts.communication_ms};
  };
  for (std::size_t i = 0; i < values(whole).size(); ++i) EXPECT_TRUE(alike(values(steps[1])[i], values(whole)[i])) << i;
  EXPECT_EQ(steps[1].tokens, 768);
  EXPECT_EQ(steps[1].run, id);
}

TEST_F(RunStoreTest, the_generated_column_agrees_with_the_series) {
  const RunId id = store.create_run({.name = "r"});
  apply({StepRecord{.run = id, .step = 1, .dt_ms = 125.82159042358398, .tokens = 4096},
         StepRecord{.run = id, .step = 2, .dt_ms = 3, .tokens = 7}, StepRecord{.run = id, .step = 3, .tokens = 7},
         StepRecord{.run = id, .step = 4, .dt_ms = 3}, StepRecord{.run = id, .step = 5, .dt_ms = 0, .tokens = 7},
         StepRecord{.run = id, .step = 6, .dt_ms = -3, .tokens = 7}});
  const Series series = store.series(id);
  Database database(file, Database::Mode::read_only);
  Statement rows(database, "SELECT tokens_per_s FROM steps ORDER BY step");
  std::size_t i = 0;
  for (; rows.step(); ++i) EXPECT_TRUE(alike(rows.real(0), series.tokens_per_s(i))) << i;
  EXPECT_EQ(i, 6u);
  EXPECT_NEAR(series.tokens_per_s(0), 32554.03, 0.01);
}

TEST_F(RunStoreTest, the_life_of_a_run) {
  const RunId id = store.create_run({.name = "r", .recipe = R"({"device":"auto"})", .environment = R"({"host":"h"})"});
  apply({RunStarted{.run = id,
                    .at = 100,
                    .tokens_per_step = 768,
                    .params = 1000,
                    .loss_floor = 1.25,
                    .device = "cpu",
                    .hardware = "a CPU",
                    .precision = "fp32",
                    .sync = Sync::device,
                    .recipe = R"({"device":"cpu"})",
                    .torch_version = "2.11.0"}});
  stepladder::Run run = *store.run(id);
  EXPECT_EQ(run.status, RunStatus::running);
  EXPECT_EQ(run.started_at, 100);
  EXPECT_EQ(run.tokens_per_step, 768);
  EXPECT_EQ(run.params, 1000);
  EXPECT_EQ(run.model_flops_per_token, 6000);
  EXPECT_EQ(run.loss_floor, 1.25);
  EXPECT_EQ(run.device, "cpu");
  EXPECT_EQ(run.hardware, "a CPU");
  EXPECT_EQ(run.precision, "fp32");
  EXPECT_EQ(run.sync, Sync::device);
  EXPECT_EQ(run.recipe, R"({"device":"cpu"})");
  EXPECT_EQ(run.environment, R"({"host":"h","torch_version":"2.11.0"})");
  EXPECT_TRUE(is_missing(run.ended_at));

  apply({StepRecord{.run = id, .step = 1, .loss = 5, .dt_ms = 10, .tokens = 768}});
  EXPECT_EQ(store.summary(run).steps, 1);
  EXPECT_EQ(integer("SELECT count(*) FROM summaries"), 0) << "nothing is cached while it runs";
  apply({StepRecord{.run = id, .step = 2, .loss = nan, .dt_ms = 20, .tokens = 768},
         RunEnded{.run = id, .at = 200, .status = RunStatus::stopped, .reason = "asked to"}});
  run = *store.run(id);
  EXPECT_EQ(run.status, RunStatus::stopped);
  EXPECT_EQ(run.reason, "asked to");
  EXPECT_EQ(run.ended_at, 200);
  EXPECT_EQ(integer("SELECT count(*) FROM summaries"), 1);
  const Summary computed = summarise(store.series(id), run.warmup_steps, run.tokens_per_step);
  EXPECT_EQ(computed.steps, 2);
  expect_alike(store.summary(run), computed);
}

TEST_F(RunStoreTest, what_others_used_is_kept_and_its_sum_is_in_the_summary) {
  const RunId id = store.create_run({.name = "r", .status = RunStatus::running, .warmup_steps = 2});
  std::vector<RunEvent> events;
  for (int step = 1; step <= 10; ++step) {
    events.push_back(
        StepRecord{.run = id, .step = step, .loss = 2, .dt_ms = 500, .tokens = 10, .at = 100 + 0.5 * step});
    events.push_back(SystemMetrics{.run = id,
                                   .step = step,
                                   .at = 100 + 0.5 * step,
                                   .contention = {.other_cores = step > 5 ? 1.5 : 0, .cores = 2, .needed_cores = 2}});
  }
  events.push_back(RunEnded{.run = id, .at = 200});
  store.apply(events);
  const std::vector<SystemMetrics> kept = store.system_metrics(id);
  ASSERT_EQ(kept.size(), 10u);
  EXPECT_EQ(kept[9].contention.other_cores, 1.5);
  EXPECT_TRUE(is_missing(kept[9].contention.other_gpu_load));
  EXPECT_EQ(kept[9].contention.cores, 2);
  EXPECT_EQ(kept[9].contention.needed_cores, 2);
  const auto run = *store.run(id);
  EXPECT_EQ(integer("SELECT disturbed_steps FROM summaries"), 5);
  for (const Summary& summary : {store.summary(run), store.runs_with_summaries().at(0).summary,
                                 summarise(store.series(id), run.warmup_steps, run.tokens_per_step, kept)}) {
    EXPECT_EQ(summary.watched_steps, 8);
    EXPECT_EQ(summary.disturbed_steps, 5);
    EXPECT_NEAR(summary.disturbance.other_cores, 1.5, 1e-6);
    EXPECT_EQ(summary.disturbance.cores, 2);
    EXPECT_EQ(summary.disturbance.needed_cores, 2);
  }
}

TEST_F(RunStoreTest, an_environment_that_is_not_json_is_begun_anew) {
  for (const char* environment : {"", "not json"}) {
    const RunId id = store.create_run({.name = "r", .environment = environment});
    apply({RunStarted{.run = id, .torch_version = "2.11.0"}});
    EXPECT_EQ(store.run(id)->environment, R"({"torch_version":"2.11.0"})");
  }
}

TEST_F(RunStoreTest, events_of_a_run_that_is_not_there_do_not_hold_up_others) {
  const RunId id = store.create_run({.name = "r"});
  const std::vector<RunEvent> events{StepRecord{.run = id, .step = 1, .loss = 1}, RunStarted{.run = 77},
                                     StepRecord{.run = 78, .step = 1, .loss = 1}, RunEnded{.run = 77},
                                     StepRecord{.run = id, .step = 2, .loss = 1}};
  EXPECT_EQ(store.apply(events), (std::vector<RunId>{77, 78}));
  EXPECT_EQ(store.series(id).size(), 2u);
}

TEST_F(RunStoreTest, a_batch_of_steps_is_stored_with_its_parts_and_its_order) {
  const RunId one = store.create_run({.name = "one"});
  const RunId two = store.create_run({.name = "two"});
  std::vector<RunEvent> events;
  for (std::int64_t step = 1; step <= 100; ++step) {
    for (const RunId run : {one, two}) {
      StepRecord record{.run = run, .step = step, .loss = static_cast<double>(10 * run + step)};
      record.parts.forward_ms = static_cast<double>(step);
      events.emplace_back(record);
    }
  }
  events.emplace_back(StepRecord{.run = one, .step = 50, .loss = 7});  // again, later
  events.emplace_back(StepRecord{.run = one, .step = 101, .loss = 8});
  apply(events);
  EXPECT_EQ(store.series(two).loss.at(99), 10.0 * static_cast<double>(two) + 100);
  EXPECT_EQ(store.series(one).loss.at(49), 7);
  EXPECT_EQ(store.series(one).loss.at(100), 8);
  EXPECT_EQ(store.summary(*store.run(one)).repeated_steps, 1);
  EXPECT_NEAR(store.mean_parts(*store.run(two), 1).forward_ms, 51, 1e-6);
}

TEST_F(RunStoreTest, the_cache_is_used_and_never_stale) {
  const RunId id = store.insert_finished({.name = "r", .created_at = 1, .tokens_per_step = 10},
                                         std::vector<StepRecord>{{.step = 1, .loss = 3, .dt_ms = 5}});
  EXPECT_EQ(store.run(id)->status, RunStatus::finished);
  execute("UPDATE summaries SET loss_last = 99");
  EXPECT_EQ(store.summary(*store.run(id)).loss_last, 99) << "not read from the cache";
  EXPECT_EQ(store.runs_with_summaries().at(0).summary.loss_last, 99);

  stepladder::Run other_warmup = *store.run(id);
  other_warmup.warmup_steps = 0;
  EXPECT_EQ(store.summary(other_warmup).loss_last, 3) << "made with another warm-up";
  execute("UPDATE runs SET warmup_steps = 0");
  EXPECT_EQ(store.runs_with_summaries().at(0).summary.loss_last, 3);
  EXPECT_EQ(integer("SELECT loss_last FROM summaries"), 3) << "not kept again";

  execute("UPDATE summaries SET loss_last = 99");
  apply({StepRecord{.run = id, .step = 2, .loss = 2, .dt_ms = 5}});
  EXPECT_EQ(store.summary(*store.run(id)).loss_last, 2) << "a late step";

  execute("DELETE FROM summaries");
  EXPECT_EQ(store.summary(*store.run(id)).steps, 2);
  EXPECT_EQ(integer("SELECT count(*) FROM summaries"), 1);

  execute("UPDATE summaries SET loss_last = 99");
  apply({RunStarted{.run = id, .at = 9}});
  EXPECT_EQ(integer("SELECT count(*) FROM summaries"), 0) << "resumed";
  EXPECT_EQ(store.runs_with_summaries().at(0).summary.loss_last, 2);
  EXPECT_EQ(integer("SELECT count(*) FROM summaries"), 0);
}

TEST_F(RunStoreTest, a_reader_has_its_answer_though_the_cache_cannot_be_written) {
  const RunId id = store.insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 1, .loss = 3}});
  execute("DELETE FROM summaries; CREATE TRIGGER t BEFORE INSERT ON summaries BEGIN SELECT raise(ABORT, 'no'); END");
  EXPECT_EQ(store.summary(*store.run(id)).loss_last, 3);
  EXPECT_EQ(store.runs_with_summaries().at(0).summary.loss_last, 3);
}

TEST_F(RunStoreTest, runs_with_summaries_agrees_with_one_by_one) {
  store.insert_finished({.name = "b", .created_at = 2, .tokens_per_step = 100},
                        std::vector<StepRecord>{{.step = 1, .loss = nan, .val_loss = nan, .dt_ms = 4},
                                                {.step = 2, .loss = 3, .dt_ms = 6}});
  store.insert_finished({.name = "empty", .status = RunStatus::failed, .created_at = 3}, {});
  const RunId running = store.create_run({.name = "a", .created_at = 1});
  apply({RunStarted{.run = running}, StepRecord{.run = running, .step = 1, .loss = 1}});
  for (const bool cached : {true, false}) {
    if (!cached) execute("DELETE FROM summaries");
    const std::vector<RunAndSummary> all = store.runs_with_summaries();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].run.name + all[1].run.name + all[2].run.name, "abempty");
    for (const auto& [run, summary] : all) {
      SCOPED_TRACE(run.name);
      expect_alike(run, *store.run(run.id));
      expect_alike(summary, summarise(store.series(run.id), run.warmup_steps, run.tokens_per_step));
    }
    EXPECT_EQ(integer("SELECT count(*) FROM summaries"), 2);
  }
}

TEST_F(RunStoreTest, no_name_is_longer_than_people_can_read) {
  const std::string huge(3'000'000, 'x');
  const LadderId ladder = store.create_ladder({.name = huge, .notes = huge});
  const RunId written =
      store.create_run({.name = huge, .ladder = ladder, .stage = huge, .title = huge, .reason = huge});
  store.curate(written, {.tags = {huge}, .note = huge});
  // As somebody else's file may hold it.
  const RunId read = store.create_run({.name = "short"});
  execute(
      "UPDATE runs SET (name, device, reason) = (SELECT h, h, h FROM (SELECT hex(zeroblob(3000000)) AS h)) WHERE id "
      "= " +
      std::to_string(read));
  EXPECT_EQ(integer("SELECT max(length(CAST(name AS BLOB))) FROM ladders"), std::ssize(bounded(huge, longest_name)));
  for (const stepladder::Run& run : store.runs()) {
    EXPECT_EQ(run.name.size(), bounded(huge, longest_name).size());
    EXPECT_LE(run.stage.size() + run.title.size() + run.device.size(), 2 * longest_name);
    EXPECT_LE(run.reason.size(), longest_line);
  }
  EXPECT_LE(store.ladders().front().notes.size(), longest_note);
  EXPECT_LE(store.curations()[written].tags.front().size(), longest_line);
  EXPECT_LE(store.curations()[written].note.size(), longest_note);
  store.rename_run(read, huge);
  store.rename_ladder(ladder, huge);
  EXPECT_EQ(store.existing_run(read).name, bounded(huge, longest_name));
  EXPECT_EQ(store.ladders().front().name, bounded(huge, longest_name));
}

TEST_F(RunStoreTest, settings) {
  EXPECT_FALSE(store.setting("k"));
  store.set_setting("k", "1");
  store.set_setting("k", "");
  EXPECT_EQ(store.setting("k"), "");
}

TEST_F(RunStoreTest, one_transaction_is_undone_where_its_work_throws) {
  const LadderId kept = store.create_ladder({.name = "kept"});
  EXPECT_THROW(store.in_one_transaction([&] {
    const LadderId ladder = store.create_ladder({.name = "l"});
    store.insert_finished({.name = "r", .ladder = ladder}, std::vector<StepRecord>{{.step = 1, .loss = 1}});
    throw std::logic_error("enough");
  }),
               std::logic_error);
  EXPECT_EQ(store.ladders().size(), 1u);
  EXPECT_TRUE(store.runs().empty());

  store.in_one_transaction([&] {
    // A part that fails is rolled back alone if its error is caught.
    const RunId id = store.insert_finished({.name = "r", .ladder = kept}, {});
    EXPECT_THROW(store.in_one_transaction([&] {
      apply({StepRecord{.run = id, .step = 1}});
      store.create_run({.name = "r", .ladder = 5});
    }),
                 StorageError);
  });
  ASSERT_EQ(store.runs_of(kept).size(), 1u);
  EXPECT_TRUE(store.series(store.runs_of(kept)[0].id).empty());
}

TEST_F(RunStoreTest, a_run_of_a_ladder_that_is_not_there_is_refused) {
  EXPECT_THROW(store.create_run({.name = "r", .ladder = 5}), StorageError);
  EXPECT_TRUE(store.runs().empty());
}

TEST_F(RunStoreTest, two_connections_see_what_the_other_committed) {
  RunStore other = RunStore::open(file);
  RunStore reader = RunStore::open(file, RunStore::Mode::read_only);
  const RunId id = store.create_run({.name = "r"});
  other.apply(std::vector<RunEvent>{StepRecord{.run = id, .step = 1, .loss = 4}});
  apply({StepRecord{.run = id, .step = 2, .loss = 3}});
  for (RunStore* any : {&store, &other, &reader}) EXPECT_EQ(any->series(id).loss, (std::vector<double>{4, 3}));
}

TEST_F(RunStoreTest, many_connections_may_write_at_once) {
  constexpr int writers = 4;
  constexpr int batches = 50;
  const RunId id = store.create_run({.name = "r"});
  std::vector<std::string> failures(writers);
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer)
    threads.emplace_back([&, writer] {
      failures[static_cast<std::size_t>(writer)] = complaint<StorageError>([&] {
        RunStore own = RunStore::open(file);
        for (int batch = 0; batch < batches; ++batch)
          own.apply(std::vector<RunEvent>{StepRecord{.run = id, .step = batch * writers + writer + 1, .loss = 1}});
      });
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  EXPECT_EQ(store.series(id).size(), static_cast<std::size_t>(writers * batches));
  EXPECT_EQ(store.integrity_check(), "ok");
}

TEST(OthersRuns, are_found_when_another_connection_has_written) {
  TemporaryFolder folder;
  RunStore window = RunStore::open(folder / "a.db");
  window.others_have_written();
  EXPECT_FALSE(window.others_have_written());
  const RunId own = window.create_run({.name = "own"});
  EXPECT_FALSE(window.others_have_written()) << "own writing doesn't count";
  RunStore training = RunStore::open(folder / "a.db");
  const RunId other = training.create_run({.name = "other"});
  training.insert_finished({.name = "over"}, {});
  EXPECT_TRUE(window.others_have_written());
  EXPECT_FALSE(window.others_have_written());
  std::vector<RunId> under_way;
  for (const auto& run : window.runs_under_way()) under_way.push_back(run.id);
  EXPECT_EQ(under_way, (std::vector{own, other}));
}

TEST(Console, ComesBackInTheOrderOfPrinting) {
  RunStore store = RunStore::in_memory();
  const RunId run = store.create_run({.name = "watched"});
  const RunId other = store.create_run({.name = "another"});
  const std::string bytes("a\0b\x1b[1m\xff\n", 9);
  store.apply(std::vector<RunEvent>{ConsoleText{.run = run, .text = "first "},
                                    ConsoleText{.run = other, .text = "else"}, ConsoleText{.run = run, .text = bytes}});
  EXPECT_EQ(store.console(run), "first " + bytes);
  EXPECT_EQ(store.console(run, 3), bytes) << "the last pieces";
  EXPECT_EQ(store.console(other), "else");
  EXPECT_EQ(store.console(99), "");
}

TEST(RunStore, AnImportWithoutTimesHasTheThroughputThatItsLogPrints) {
  RunStore store = RunStore::in_memory();
  stepladder::Run run;
  run.name = "printed";
  run.source = "import";
  run.printed = {.unit = "tokens/s", .tokens_per_s = 12'345};
  const std::vector<StepRecord> steps{{.step = 1, .loss = 5}, {.step = 2, .loss = 4}};
  run.id = store.insert_finished(run, steps);
  EXPECT_DOUBLE_EQ(store.summary(run).tokens_per_s, 12'345);
  EXPECT_DOUBLE_EQ(store.runs_with_summaries().front().summary.tokens_per_s, 12'345) << "from the cache";
  stepladder::Run timed = run;
  timed.tokens_per_step = 1000;
  const std::vector<StepRecord> with_times{{.step = 1, .loss = 5, .dt_ms = 100}, {.step = 2, .loss = 4, .dt_ms = 100}};
  timed.id = store.insert_finished(timed, with_times);
  EXPECT_DOUBLE_EQ(store.summary(timed).tokens_per_s, 10'000) << "measured counts more";
}

}  // namespace
}  // namespace stepladder
