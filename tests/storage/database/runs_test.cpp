#include "run_store_fixture.h"
#include "storage/bounded_text.h"

namespace stepladder {
namespace {

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
  const stepladder::Run full{
      .id = 99,
      .name = "nämé ' \" 训练",
      .ladder = ladder,
      .rung = 3,
      .repeat = 2,
      .stands_on = 0,
      .looks_up_to = 6,
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
      .printed = {
          .unit = "tokens/ms printed as \"tok/s\"", .tokens_per_s = 1234.5, .per_step = {{per_step::mfu, 14.6}}}};
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

TEST_F(RunStoreTest, an_environment_that_is_not_json_is_begun_anew) {
  for (const char* environment : {"", "not json"}) {
    const RunId id = store.create_run({.name = "r", .environment = environment});
    apply({RunStarted{.run = id, .torch_version = "2.11.0"}});
    EXPECT_EQ(store.run(id)->environment, R"({"torch_version":"2.11.0"})");
  }
}

TEST_F(RunStoreTest, no_name_is_longer_than_people_can_read) {
  const std::string huge(3'000'000, 'x');
  const LadderId ladder = store.create_ladder({.name = huge, .notes = huge});
  const RunId written =
      store.create_run({.name = huge, .ladder = ladder, .stage = huge, .title = huge, .reason = huge});
  store.curation().set(written, {.tags = {huge}, .note = huge});
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
  EXPECT_LE(store.curation().all()[written].tags.front().size(), longest_line);
  EXPECT_LE(store.curation().all()[written].note.size(), longest_note);
  store.rename_run(read, huge);
  store.rename_ladder(ladder, huge);
  EXPECT_EQ(store.existing_run(read).name, bounded(huge, longest_name));
  EXPECT_EQ(store.ladders().front().name, bounded(huge, longest_name));
}

TEST_F(RunStoreTest, a_run_of_a_ladder_that_is_not_there_is_refused) {
  EXPECT_THROW(store.create_run({.name = "r", .ladder = 5}), StorageError);
  EXPECT_TRUE(store.runs().empty());
}

}  // namespace
}  // namespace stepladder
