#include "storage/speedrun/speedrun_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "storage/errors.h"
#include "storage/speedrun/log_line.h"
#include "storage/speedrun/record_pool.h"
#include "tests/storage/speedrun/speedrun_text.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

TEST(SpeedrunLog, names_its_validation_tokens_as_a_number_or_a_product) {
  const auto tokens = [](const std::string& line) {
    return read_speedrun_log(line + "\nstep:1/1 val_loss:3 train_time:5ms\n", {}).val_tokens;
  };
  EXPECT_EQ(tokens("val_tokens = 10_485_760"), 10'485'760);
  EXPECT_EQ(tokens("val_tokens: int = 8*1310720 # tokens"), 10'485'760);
  EXPECT_EQ(tokens("val_tokens=10485760 // 8"), 1'310'720);
  EXPECT_EQ(tokens("val_tokens = 8 * 1024 * 1280"), 10'485'760);
  for (const char* other : {"val_tokens = 8 * size", "val_tokens = 8 +", "val_tokens = 8 * ", "my_val_tokens = 8"})
    EXPECT_EQ(tokens(other), 0) << other;
}

TEST(SpeedrunLog, says_what_was_printed) {
  const SpeedrunLog log = read_speedrun_log(LogText{.seed = "1337"}.text(), {});
  EXPECT_EQ(log.problem, "");
  EXPECT_EQ(log.final.step, 400);
  EXPECT_DOUBLE_EQ(log.final.value, 3.2781);
  EXPECT_DOUBLE_EQ(log.final.time_ms, 39000);
  EXPECT_EQ(log.scheduled_steps, 400);
  EXPECT_EQ(log.evaluations.size(), 5u);
  EXPECT_EQ(log.torch, "2.9.0.dev20250718+cu126");
  EXPECT_EQ(log.driver, "560.35.03");
  EXPECT_EQ(log.seed, "1337");
  ASSERT_EQ(log.gpus.size(), 8u);
  EXPECT_EQ(log.gpus[3], "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(log.bus_ids[3], "00000000:19:03.0");
  EXPECT_EQ(log.started_at_s, 1756929480);  // date -u -d '2025-09-03 19:58:00' +%s
  EXPECT_TRUE(log.script.starts_with("import os"));
  EXPECT_TRUE(log.script.ends_with("return lr\n\n"));
  EXPECT_EQ(log.script_hash.size(), 16u);
}

TEST(SpeedrunLog, a_last_line_that_may_be_cut_does_not_count) {
  const std::string whole = LogText{}.text();
  const std::string unended = whole.substr(0, whole.size() - 1);
  EXPECT_EQ(read_speedrun_log(unended, {}).problem, "") << "it ends as the lines before it do";
  for (const std::size_t missing_bytes : {3u, 20u, 45u}) {
    const SpeedrunLog log = read_speedrun_log(whole.substr(0, whole.size() - 1 - missing_bytes), {});
    EXPECT_NE(log.problem.find("may be cut"), std::string::npos) << missing_bytes << ": " << log.problem;
  }
}

TEST(SpeedrunLog, takes_the_last_scheduled_evaluation_not_the_lowest) {
  const SpeedrunLog log = read_speedrun_log(
      "step:0/20 val_loss:9 train_time:0ms\nstep:10/20 val_loss:3.1 train_time:100ms\n"
      "step:20/20 val_loss:3.3 train_time:200ms\n",
      {});
  EXPECT_EQ(log.problem, "");
  EXPECT_DOUBLE_EQ(log.final.value, 3.3);
  const SpeedrunLog nan =
      read_speedrun_log("step:1/2 val_loss:3 train_time:1s\nstep:2/2 val_loss:nan train_time:2s\n", {});
  EXPECT_EQ(nan.problem, "");
  EXPECT_TRUE(std::isnan(nan.final.value));
  EXPECT_DOUBLE_EQ(nan.final.time_ms, 2000);
}

TEST(SpeedrunLog, excludes_what_is_no_finished_run) {
  const auto problem = [](std::string_view text) { return read_speedrun_log(text, {}).problem; };
  EXPECT_EQ(problem(""), "is empty");
  EXPECT_EQ(problem("hello\nworld"), "holds no training steps");
  EXPECT_EQ(problem(LogText{}.script), "holds no training steps");
  const SpeedrunLog cut = read_speedrun_log(LogText{.printed = 250}.text(), {});
  EXPECT_EQ(cut.problem, "ends at step 250 of 400; its last val_loss is that of step 200");
  EXPECT_TRUE(cut.unfinished);
  EXPECT_EQ(problem("step:1/9 train_time:5ms\n"), "ends at step 1 of 9 and never printed val_loss");
  EXPECT_FALSE(read_speedrun_log("step:8/9 train_time:5ms\nstep:9/9 train_time:6ms\n", {}).unfinished)
      << "it ran to its end, and was never validated";
  EXPECT_EQ(problem(LogText{}.text() + LogText{}.text().substr(LogText{}.text().find("step:0/"))),
            "holds 2 finished runs; give each a file of its own");
  EXPECT_EQ(problem("2026-01-01 epoch 3 accuracy 0.5\n"), "holds no training steps");
}

TEST(SpeedrunLog, reads_other_programs) {
  const SpeedrunLog llmc =
      read_speedrun_log("s:0 tel:11.0\ns:1 trl:9.1 lr:0.1 norm:2\ns:2 trl:8.2 lr:0.1 norm:2\ns:2 tel:3.29\n", {});
  EXPECT_EQ(llmc.problem, "");
  EXPECT_DOUBLE_EQ(llmc.final.value, 3.29);
  EXPECT_TRUE(is_missing(llmc.final.time_ms));
  const SpeedrunLog golf = read_speedrun_log(
      "step:100/20000 val_loss:2.2 val_bpb:1.3 train_time:599000ms\nstopping_early: wallclock_cap step:100/20000\n"
      "final_int8_zlib_roundtrip_exact val_loss:2.07 val_bpb:1.22\n",
      {"val_bpb", "final_", true});
  EXPECT_EQ(golf.problem, "");
  EXPECT_DOUBLE_EQ(golf.final.value, 1.22);
  EXPECT_DOUBLE_EQ(golf.final.time_ms, 599000);
  const SpeedrunLog chat = read_speedrun_log(
      "step 00009/10 (90%) | loss: 2.1 | dt: 498ms | total time: 2.50m\nStep 00010 | CORE metric: 0.2602\n",
      {"core_metric"});
  EXPECT_EQ(chat.problem, "");
  EXPECT_DOUBLE_EQ(chat.final.value, 0.2602);
  EXPECT_DOUBLE_EQ(chat.final.time_ms, 150000);
}

TEST(RecordPool, follows_no_link_in_a_folder) {
  const TemporaryFolder place;
  const std::filesystem::path pool = place.path() / "pool";
  std::filesystem::create_directory(pool);
  std::ofstream(place.path() / "elsewhere.txt") << LogText{}.text();
  std::ofstream(pool / "log.txt") << LogText{.final_loss = 3.27}.text();
  std::ofstream(pool / "cut.txt") << LogText{.printed = 100}.text();
  std::ofstream(pool / "notes.txt") << "a secret\n";
  std::filesystem::create_symlink("../elsewhere.txt", pool / "link.txt");
  RecordPool read;
  add_logs(read, pool, {});
  ASSERT_EQ(read.logs.size(), 1u);
  EXPECT_EQ(read.logs[0].file, pool / "log.txt");
  ASSERT_EQ(read.excluded.size(), 3u);
  EXPECT_TRUE(read.excluded[0].has_steps && read.excluded[0].unfinished);
  EXPECT_FALSE(read.excluded[1].has_steps) << read.excluded[1].file;
  EXPECT_EQ(read.excluded[2].why, link_problem);
  EXPECT_FALSE(read.excluded[2].has_steps);
  RecordPool named;
  add_logs(named, pool / "link.txt", {});
  EXPECT_EQ(named.logs.size(), 1u) << "a link that the user names";
  for (const char* file : {"log.txt", "cut.txt", "notes.txt"}) std::filesystem::remove(pool / file);
  EXPECT_THROW(add_logs(named, pool, {}), StorageError);
}

TEST(SpeedrunLog, survives_any_bytes) {
  const std::string whole = LogText{}.text();
  for (std::size_t size = 0; size < whole.size(); size += 97) read_speedrun_log(whole.substr(0, size), {});
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    std::string text = whole.substr(0, 3000) + whole.substr(whole.size() - 3000);
    for (int k = 0; k < 200; ++k) text[random() % text.size()] = static_cast<char>(random());
    read_speedrun_log(text, {});
  }
  EXPECT_EQ(read_speedrun_log(std::string(1 << 20, '\0'), {}).problem, "holds no training steps");
  EXPECT_EQ(read_speedrun_log("step:99999999999999999999/3 val_loss:1\n", {}).problem, "holds no training steps");
  EXPECT_NE(load_speedrun_log("/nowhere/at/all.txt", {}).problem, "");
}

TEST(SpeedrunLog, odd_orders_of_steps_take_no_longer) {
  std::string text;
  for (int i = 1; i <= 100'000; ++i) text += "step:" + std::to_string(i) + "/9999999 train_time:1ms\n";
  for (int i = 0; i < 100'000; ++i)
    text += i % 2 ? "step:99999/9999999 val_loss:1 train_time:1ms\n" : "step:99998/9999999 train_time:1ms\n";
  for (int i = 0; i < 100'000; ++i) text += i % 2 ? "step:1/9 train_time:1ms\n" : "step:2/9 train_time:1ms\n";
  EXPECT_EQ(read_speedrun_log(text, {}).problem, "ends at step 1 of 9 and never printed val_loss");
  const SpeedrunLog resumed = read_speedrun_log(
      "step:2/4 val_loss:5 train_time:2ms\nstep:3/4 train_time:9ms\nstep:2/4 val_loss:4 train_time:2ms\nstep:3/4 "
      "train_time:3ms\n"
      "step:4/4 val_loss:3 train_time:4ms\n",
      {});
  EXPECT_EQ(resumed.problem, "");
  ASSERT_EQ(resumed.evaluations.size(), 2u);
  EXPECT_EQ(resumed.evaluations[0].value, 4);  // the later one counts
  EXPECT_EQ(resumed.clock.size(), 3u);
}

TEST(SpeedrunLog, real_logs_are_read) {
  const std::filesystem::path folder = std::filesystem::path(STEPLADDER_SOURCE_DIR).parent_path() / "shared/data/logs";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const SpeedrunLog fa3 = load_speedrun_log(folder / "fa3-2025-09-03.log", {});
  EXPECT_EQ(fa3.problem, "");
  EXPECT_DOUBLE_EQ(fa3.final.value, 3.2755);
  EXPECT_DOUBLE_EQ(fa3.final.time_ms, 163621);
  EXPECT_EQ(fa3.gpus.size(), 8u);
  EXPECT_EQ(load_speedrun_log(folder / "muon-2024-10-10.log", {}).final.time_ms, 1339067);
  EXPECT_DOUBLE_EQ(load_speedrun_log(folder / "flexattention-2024-11-19.log", {}).final.value, 3.2783);
  EXPECT_TRUE(load_speedrun_log(folder / "llmc-main.log", {}).unfinished);
}

TEST(PrintedDate, is_read_or_refused) {
  EXPECT_EQ(printed_date("Thu Jan  1 00:01:05 1970"), 65);
  for (const char* text :
       {"", "Thu Jan 32 00:01:05 1970", "Thu Foo  1 00:01:05 1970", "Thu Jan  1 25:01:05 1970", "Thu Jan  1 00:01"})
    EXPECT_FALSE(printed_date(text)) << text;
}

}  // namespace
}  // namespace stepladder
