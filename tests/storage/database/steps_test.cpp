#include <array>

#include "run_store_fixture.h"

namespace stepladder {
namespace {

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

TEST_F(RunStoreTest, a_loss_that_is_none_of_the_runs_is_forgotten_where_the_run_has_it) {
  const RunId id = store.create_run({.name = "r"});
  const std::vector<StepRecord> printed{{.run = id, .step = 0, .loss = 3, .dt_ms = 5},
                                        {.run = id, .step = 1, .loss = nan, .dt_ms = 6},
                                        {.run = id, .step = 2, .loss = 2, .dt_ms = 7}};
  for (const StepRecord& step : printed) apply({step});
  store.following().complete_steps(id, std::vector<StepRecord>{{.step = 0, .loss = 3.5}});
  std::vector<StepRecord> withdrawn = printed;
  withdrawn.push_back({.step = 9, .loss = 1});
  store.following().complete_steps(id, withdrawn, Completion::withdraw_loss);
  const Series series = store.series(id);
  ASSERT_EQ(series.step, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(series.dt_ms, (std::vector<double>{5, 6, 7}));
  EXPECT_EQ(series.loss[0], 3.5);
  EXPECT_TRUE(is_missing(series.loss[1]));
  EXPECT_TRUE(is_missing(series.loss[2]));
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

TEST_F(RunStoreTest, the_cache_is_used_and_never_stale) {
  const RunId id = store.insert_finished({.name = "r", .created_at = 1, .tokens_per_step = 10},
                                         std::vector<StepRecord>{{.step = 1, .loss = 3, .dt_ms = 5}});
  EXPECT_EQ(store.run(id)->status, RunStatus::finished);
  execute("UPDATE steps SET loss = 99");
  EXPECT_EQ(store.summary(*store.run(id)).loss_last, 3) << "not read from the cache";
  EXPECT_EQ(store.runs_with_summaries().at(0).summary.loss_last, 3);
  execute("UPDATE steps SET loss = 3");

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
