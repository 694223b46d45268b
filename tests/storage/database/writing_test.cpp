#include <cmath>

#include "run_store_fixture.h"

namespace stepladder {
namespace {

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
  const std::vector<SystemMetrics> kept = store.recordings().system_metrics(id);
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
  EXPECT_NEAR(store.recordings().mean_parts(*store.run(two), 1).forward_ms, 51, 1e-6);
}

TEST_F(RunStoreTest, the_time_of_a_step_by_the_wall_clock_is_in_the_summary) {
  // 0.55 s a step, every second step printed, with a pause for an evaluation.
  const auto summary_of = [&](double clock_s) {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 2; step <= 200; step += 2) {
      const double at = 1.7e9 + 0.55 * static_cast<double>(step) + (step > 100 ? 60 : 0);
      steps.push_back({.step = step, .loss = 1, .dt_ms = 90, .at = clock_s * std::floor(at / clock_s)});
    }
    const stepladder::Run run = *store.run(store.insert_finished({.name = "timed"}, steps));
    EXPECT_TRUE(alike(store.summary(run).wall_ms_median, store.summary(run).wall_ms_median)) << "and kept";
    return store.summary(run).wall_ms_median;
  };
  EXPECT_NEAR(summary_of(0.001), 550, 1);
  EXPECT_TRUE(is_missing(summary_of(1))) << "blocks of eight seconds are too short for a clock of whole ones";
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

TEST(Console, ComesBackInTheOrderOfPrinting) {
  RunStore store = RunStore::in_memory();
  const RunId run = store.create_run({.name = "watched"});
  const RunId other = store.create_run({.name = "another"});
  const std::string bytes("a\0b\x1b[1m\xff\n", 9);
  store.apply(std::vector<RunEvent>{ConsoleText{.run = run, .text = "first "},
                                    ConsoleText{.run = other, .text = "else"}, ConsoleText{.run = run, .text = bytes}});
  EXPECT_EQ(store.recordings().console(run), "first " + bytes);
  EXPECT_EQ(store.recordings().console(run, 3), bytes) << "the last pieces";
  EXPECT_EQ(store.recordings().console(other), "else");
  EXPECT_EQ(store.recordings().console(99), "");
}

}  // namespace
}  // namespace stepladder
