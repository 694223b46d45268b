#include "storage/database/events/spill_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "../../temporary_folder.h"
#include "storage/database/events/event_bytes.h"

namespace stepladder {
namespace {

std::vector<RunEvent> one_of_each() {
  return {
      RunStarted{.run = 1,
                 .at = 2,
                 .tokens_per_step = 3,
                 .params = 4,
                 .loss_floor = 0.5,
                 .device = "cpu",
                 .hardware = "h",
                 .precision = "bf16",
                 .attention = "flash",
                 .setup_ms = 9,
                 .sync = Sync::event,
                 .recipe = "{\"a\": 1}",
                 .torch_version = "2.11"},
      StepRecord{.run = 1,
                 .step = 2,
                 .loss = std::nan(""),
                 .val_loss = 4,
                 .dt_ms = 5,
                 .tokens = 6,
                 .lr = 7,
                 .grad_norm = 8,
                 .at = 9,
                 .parts = {1, 2, 3, 4, missing}},
      RunEnded{.run = 1, .at = 2, .status = RunStatus::stopped, .reason = "why", .peak_memory_bytes = 5},
      SystemMetrics{
          .run = 1,
          .step = 2,
          .at = 3,
          .cpu_load = 0.5,
          .throttle_reason = "hot",
          .contention =
              {.other_cores = 1.3, .program_cores = 0.2, .other_gpu_load = 0.4, .cores = 2, .needed_cores = 1}},
      CheckpointSaved{.run = 1, .step = 2, .at = 3, .folder = "/f", .bytes = 4, .error = "e"},
      TextSample{.run = 1, .step = 2, .at = 3, .text = std::string("a\0b", 3)},
      ConsoleText{.run = 1, .at = 3, .text = "\x1b[31m"},
      StepProfile{.run = 1,
                  .at = 2,
                  .steps = 3,
                  .operators =
                      {{.part = "forward", .name = "aten::mm", .shapes = "2x3", .calls = 2, .self_ms = 1.5, .flops = 7},
                       {.name = "autograd"}}},
      MetricValues{.run = 1, .step = 2, .at = 3, .values = {{"val/acc", 0.5}, {"", std::nan("")}}}};
}

std::string bytes_of(const RunEvent& event) {
  std::string bytes;
  append_event(bytes, event);
  return bytes;
}

TEST(EventBytes, every_event_comes_back_as_it_was) {
  const std::vector<RunEvent> events = one_of_each();
  ASSERT_EQ(events.size(), std::variant_size_v<RunEvent>);
  for (std::size_t kind = 0; kind < events.size(); ++kind) {
    ASSERT_EQ(events[kind].index(), kind);
    const std::string bytes = bytes_of(events[kind]);
    const auto back = event_from(bytes);
    ASSERT_TRUE(back) << kind;
    EXPECT_EQ(bytes_of(*back), bytes) << kind;
    EXPECT_EQ(back->index(), kind);
  }
  const auto profile = std::get<StepProfile>(*event_from(bytes_of(events[7])));
  EXPECT_EQ(profile.operators[0].name, "aten::mm");
  EXPECT_EQ(std::get<StepRecord>(*event_from(bytes_of(events[1]))).parts.optimizer_ms, 4);
}

// At the end of SystemMetrics; earlier versions wrote none, and then all but the last number.
constexpr std::size_t contention_bytes = 40, program_cores_bytes = 8;

TEST(EventBytes, a_sample_of_an_earlier_version_is_read_without_what_it_lacks) {
  const std::string bytes = bytes_of(one_of_each()[3]);
  const auto back = event_from(bytes.substr(0, bytes.size() - contention_bytes));
  ASSERT_TRUE(back);
  const auto& sample = std::get<SystemMetrics>(*back);
  EXPECT_EQ(sample.throttle_reason, "hot");
  EXPECT_TRUE(is_missing(sample.contention.other_cores));
  EXPECT_EQ(sample.contention.cores, 0);
  EXPECT_EQ(std::get<SystemMetrics>(*event_from(bytes)).contention.needed_cores, 1);
  const auto newer = event_from(bytes.substr(0, bytes.size() - program_cores_bytes));
  ASSERT_TRUE(newer);
  EXPECT_EQ(std::get<SystemMetrics>(*newer).contention.needed_cores, 1);
  EXPECT_TRUE(is_missing(std::get<SystemMetrics>(*newer).contention.program_cores));
}

TEST(EventBytes, anything_else_is_refused) {
  for (const RunEvent& event : one_of_each()) {
    const std::string bytes = bytes_of(event);
    const bool is_sample = std::holds_alternative<SystemMetrics>(event);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::size_t left_out = bytes.size() - size;
      const bool is_earlier = is_sample && (left_out == contention_bytes || left_out == program_cores_bytes);
      EXPECT_EQ(event_from(bytes.substr(0, size)).has_value(), is_earlier);
    }
    EXPECT_FALSE(event_from(bytes + "x"));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(~changed[i]);
      event_from(changed);  // must not crash or allocate without bound
    }
  }
  std::string status = bytes_of(RunEnded{.run = 1, .status = RunStatus::interrupted});
  status[24] = 17;
  EXPECT_FALSE(event_from(status)) << "no status has this number";
}

TEST(EventBytes, records_end_where_a_write_was_cut_short) {
  std::string bytes;
  for (const RunEvent& event : one_of_each()) append_record(bytes, bytes_of(event));
  const EventRecords all = read_records(bytes, 100);
  EXPECT_EQ(all.events.size(), one_of_each().size());
  EXPECT_EQ(all.used, bytes.size());
  EXPECT_EQ(read_records(bytes, 3).events.size(), 3u);
  const EventRecords cut = read_records(std::string_view(bytes).substr(0, bytes.size() - 1), 100);
  EXPECT_EQ(cut.events.size(), one_of_each().size() - 1);
  EXPECT_EQ(cut.damaged, 0u);
  std::string flipped = bytes;
  flipped[20] = static_cast<char>(flipped[20] ^ 1);
  EXPECT_EQ(read_records(flipped, 100).events.size(), one_of_each().size() - 1);
  EXPECT_EQ(read_records(flipped, 100).damaged, 1u);
  EXPECT_EQ(read_records(std::string(100, '\xff'), 100).damaged, 1u) << "a length beyond every record";
}

TEST(SpillFile, returns_its_events_in_order_and_is_gone_after_them) {
  TemporaryFolder folder;
  SpillFile spill(origin_of_this_process(folder / "a.db"), "events");
  EXPECT_TRUE(spill.empty());
  std::vector<RunEvent> events;
  for (int step = 1; step <= 10; ++step) events.emplace_back(StepRecord{.run = 1, .step = step});
  ASSERT_TRUE(spill.append(events, "locked"));
  ASSERT_TRUE(spill.append(one_of_each(), "locked"));
  EXPECT_EQ(spill.steps(), 11);
  EXPECT_EQ(spill.file().parent_path(), (folder / "a.db").string() + ".spill");
  std::vector<RunEvent> read;
  ASSERT_TRUE(spill.read(read, 4));
  ASSERT_TRUE(spill.read(read, 4)) << "not forgotten, so the same again";
  EXPECT_EQ(std::get<StepRecord>(read[3]).step, 4);
  spill.forget();
  ASSERT_TRUE(spill.read(read, 100));
  EXPECT_EQ(read.size(), 6 + one_of_each().size());
  EXPECT_EQ(std::get<StepRecord>(read[0]).step, 5);
  spill.forget();
  EXPECT_TRUE(spill.empty());
  EXPECT_FALSE(std::filesystem::exists((folder / "a.db").string() + ".spill"));
}

TEST(SpillFile, long_texts_need_more_than_one_piece) {
  TemporaryFolder folder;
  SpillFile spill(origin_of_this_process(folder / "a.db"), "events");
  const std::vector<RunEvent> events{ConsoleText{.run = 1, .text = std::string(5 << 20, 'x')},
                                     StepRecord{.run = 1, .step = 7}};
  ASSERT_TRUE(spill.append(events, ""));
  std::vector<RunEvent> read;
  std::size_t count = 0;
  for (; !spill.empty() && spill.read(read, 100); spill.forget()) count += read.size();
  EXPECT_EQ(count, 2u);
}

TEST(SpillFile, goes_to_the_cache_where_the_databases_folder_refuses) {
  TemporaryFolder folder;
  const std::filesystem::path taken = (folder / "a.db").string() + ".spill";
  std::ofstream(taken) << "a file, not a folder";
  ::setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  SpillFile spill(origin_of_this_process(folder / "a.db"), "events");
  EXPECT_TRUE(spill.append(one_of_each(), ""));
  EXPECT_EQ(spill.file().parent_path(), folder / "cache/stepladder/spill");
  std::ofstream(folder / "blocked") << "a file";
  ::setenv("XDG_CACHE_HOME", (folder / "blocked").c_str(), 1);
  SpillFile nowhere(origin_of_this_process(folder / "a.db"), "events");
  EXPECT_FALSE(nowhere.append(one_of_each(), ""));
  EXPECT_TRUE(nowhere.empty());
  ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace stepladder
