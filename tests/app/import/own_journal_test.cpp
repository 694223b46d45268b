// Journals of Stepladder's own runs, followed: the same rows as in the database of the process that trained them.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "app/import/journal_follower.h"
#include "storage/database/process.h"
#include "storage/importers/journal/run_events.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

using Json = nlohmann::ordered_json;

const std::string uid = "0123456789abcdef0123456789abcdef";

PlannedRun planned_run() {
  return {.run = {.uid = uid,
                  .name = "nano: bf16 #2",
                  .rung = 2,
                  .repeat = 1,
                  .stands_on = 0,
                  .looks_up_to = 6,
                  .loss_against = 1,
                  .stage = "bf16",
                  .title = "bf16",
                  .changed = "autocast",
                  .source = "launched",
                  .source_path = "/data/text.txt",
                  .created_at = 1000.125,
                  .planned_steps = 3,
                  .tokens_per_step = 64,
                  .warmup_steps = 0,
                  .device = "auto",
                  .precision = "bf16",
                  .recipe = R"({"batch":4, "model":"nano"})",
                  .environment = R"({"host":"node7"})"},
          .ladder = Ladder{.uid = std::string(32, 'a'),
                           .name = "nano",
                           .source = "launched",
                           .source_path = "/data/text.txt",
                           .notes = "a note",
                           .created_at = 999.5}};
}

// A run of three steps with all that a run can have, from this step on.
std::vector<RunEvent> events(std::int64_t first = 1, std::int64_t last = 3) {
  std::vector<RunEvent> all = {ConsoleText{.at = 1001, .text = std::string("a note\n\xff\0", 9)},
                               RunStarted{.at = 1002.5,
                                          .tokens_per_step = 64,
                                          .params = 1234,
                                          .loss_floor = 2.0 / 3,
                                          .device = "cuda",
                                          .hardware = "NVIDIA H200",
                                          .precision = "bf16",
                                          .attention = "flash",
                                          .setup_ms = 0.1,
                                          .sync = Sync::event,
                                          .recipe = R"({"batch":4})",
                                          .torch_version = "2.11"}};
  for (std::int64_t step = first; step <= last; ++step) {
    all.push_back(
        StepRecord{.step = step,
                   .loss = step == 2 ? std::numeric_limits<double>::quiet_NaN() : 10.0 / static_cast<double>(3 * step),
                   .val_loss = step == 3 ? std::numeric_limits<double>::infinity() : missing,
                   .dt_ms = 12.5 + 0.1 * static_cast<double>(first),
                   .tokens = 64,
                   .lr = 1e-3 / 3,
                   .grad_norm = 0.7,
                   .at = 1003.0 + static_cast<double>(step),
                   .parts = {.data_ms = 0.5, .forward_ms = 4, .backward_ms = 6}});
    all.push_back(MetricValues{.step = step, .at = 1003, .values = {{"expert load", 1.0 / 3}}});
  }
  all.push_back(SystemMetrics{
      .step = 2,
      .at = 1004.25,
      .cpu_load = 0.3,
      .process_cores = 1.5,
      .resident_bytes = 1 << 30,
      .gpu_load = 0.9,
      .gpu_memory_bytes = 77,
      .throttle_reason = "power",
      .contention = {.other_cores = 0.5, .program_cores = 0.25, .other_gpu_load = 0.1, .cores = 8, .needed_cores = 2}});
  all.push_back(TextSample{.step = 2, .at = 1004, .text = "To be\n\xe2\x82"});
  all.push_back(CheckpointSaved{.step = 2, .at = 1005, .folder = "/far/step-2", .bytes = 5});
  all.push_back(StepProfile{
      .at = 1006,
      .steps = 2,
      .operators = {
          {.part = "forward", .name = "aten::addmm", .shapes = "2x3 3x4", .calls = 2, .self_ms = 1.0 / 7, .flops = 48},
          {.part = "backward", .name = "autograd", .calls = 1, .self_ms = 0.01}}});
  return all;
}

RunEnded ending(RunStatus status = RunStatus::finished) {
  return {.at = 1010, .status = status, .peak_memory_bytes = 4096};
}

std::string header(int attempt = 1, const PlannedRun& planned = planned_run()) {
  const ProcessIdentity self = this_process();
  return journal_line({{"e", "run"},
                       {"v", 1},
                       {"uid", planned.run.uid},
                       {"id", "nano"},
                       {"name", planned.run.name},
                       {"attempt", attempt},
                       {"rank", 0},
                       {"world", 1},
                       {"t", 1000.0},
                       {"pid", self.pid},
                       {"pid_start", 1},  // it has exited
                       {"boot", self.boot},
                       {"stepladder", planned.fields()}});
}

std::string written_lines(const std::vector<RunEvent>& events) {
  std::string text;
  for (const RunEvent& event : events) text += line_of(event);
  return text;
}

class OwnJournal : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name, std::ios::binary | std::ios::trunc) << bytes;
  }
  void follow() {
    JournalFollower follower(near_, {.paths = {folder_.path()}}, [this](const std::string& text) {
      told_ = text;
      told_all_ += text + "\n";
    });
    follower.scan();
    while (follower.poll()) {
    }
  }

  // What the process that trains the run writes into its own database.
  void queue(const PlannedRun& planned = planned_run()) {
    stepladder::Run run = planned.run;
    run.ladder = far_.create_ladder(*planned.ladder);
    far_run_ = far_.create_run(run);
  }
  void train(std::vector<RunEvent> all) {
    for (RunEvent& event : all) std::visit([&](auto& each) { each.run = far_run_; }, event);
    far_.apply(all);
  }

  static std::string all_of(RunStore& store, RunId id) {
    stepladder::Run run = store.existing_run(id);
    PlannedRun planned{.run = run, .ladder = store.ladders().at(0)};
    Json text = planned.fields();
    text["status"] = to_string(run.status);
    text["reason"] = run.reason;
    text["ended_at"] = is_missing(run.ended_at) ? Json() : Json(run.ended_at);
    std::string all = text.dump(1) + "\n";
    const auto add = [&](RunEvent event) {
      std::visit([](auto& each) { each.run = 0; }, event);
      all += line_of(event);
    };
    store.for_steps(id, [&](std::span<const StepRecord> steps) { std::for_each(steps.begin(), steps.end(), add); });
    for (const SystemMetrics& sample : store.recordings().system_metrics(id)) add(sample);
    for (const TextSample& sample : store.recordings().samples(id)) add(sample);
    add(ConsoleText{.at = 0, .text = store.recordings().console(id)});
    add(store.recordings().profile(id));
    for (const MetricPoint& point : store.metrics().points(id, "expert load"))
      add(MetricValues{.step = point.step, .at = point.at, .values = {{"expert load", point.value}}});
    return all + std::to_string(store.recorded_steps(id).records) + " records\n";
  }

  TemporaryFolder folder_;
  RunStore near_ = RunStore::in_memory();
  RunStore far_ = RunStore::in_memory();
  RunId far_run_ = 0;
  std::string told_;
  std::string told_all_;
};

TEST_F(OwnJournal, GivesTheSameRunHoweverItIsCutAndByFollowersThatAreRestartedEachTime) {
  const std::string bytes = header() + written_lines(events()) + line_of(ending());
  std::size_t lines_seen = 0;
  for (std::size_t size = 0; size <= bytes.size(); size += lines_seen < 4 ? 1 : 7) {
    if (size > 0 && bytes[size - 1] == '\n') ++lines_seen;
    write("rank-0.1.jsonl", bytes.substr(0, size));
    follow();
    if (size < bytes.size() - 1 && !near_.runs().empty()) {
      EXPECT_EQ(near_.runs().at(0).status, RunStatus::interrupted);
    }
  }
  write("rank-0.1.jsonl", bytes);
  follow();
  follow();
  queue();
  train(events());
  train({ending()});
  ASSERT_EQ(near_.runs().size(), 1u);
  EXPECT_EQ(all_of(near_, 1), all_of(far_, far_run_));
  EXPECT_EQ(near_.runs().at(0).status, RunStatus::finished);
  EXPECT_EQ(near_.recordings().console(1).size(), 9u);
  EXPECT_EQ(near_.ladders().size(), 1u);
}

TEST_F(OwnJournal, OfTwoAttemptsTheLaterSupersedesAlsoIfBothAreReadAtOnce) {
  PlannedRun again = planned_run();
  again.run.planned_steps = 5;
  write("rank-0.1.jsonl", header() + written_lines(events(1, 3)) + line_of(ending(RunStatus::stopped)));
  write("rank-0.2.jsonl", header(2, again) + written_lines(events(3, 5)) + line_of(ending()));
  follow();
  queue();
  train(events(1, 3));
  train({ending(RunStatus::stopped)});
  far_.processes().queue_again(far_run_, 5);
  train(events(3, 5));
  train({ending()});
  EXPECT_EQ(all_of(near_, 1), all_of(far_, far_run_));
  EXPECT_EQ(near_.recorded_steps(1).records, 6);
  EXPECT_NEAR(near_.series(1).dt_ms.at(2), 12.8, 1e-9) << "the later attempt's";
}

TEST_F(OwnJournal, AFinishedRunThatLacksStepsHasFailedAndUnknownWordsClaimNothing) {
  write("rank-0.1.jsonl", header() + written_lines(events(2, 3)) + line_of(ending()));
  follow();
  EXPECT_EQ(near_.existing_run(1).status, RunStatus::failed);
  EXPECT_NE(near_.existing_run(1).reason.find("step 1"), std::string::npos) << near_.existing_run(1).reason;
  write("rank-0.2.jsonl",
        header(2) + written_lines(events(1, 1)) + journal_line({{"e", "end"}, {"t", 1.0}, {"status", "ascended"}}));
  follow();
  EXPECT_EQ(near_.existing_run(1).status, RunStatus::failed);
}

TEST_F(OwnJournal, QueuedRunsWaitAndADamagedOrHostileLineStopsNothing) {
  write("rank-0.1.jsonl", header());
  follow();
  EXPECT_EQ(near_.existing_run(1).status, RunStatus::interrupted) << "its process has exited";
  std::string hostile = header();
  for (const char* const line :
       {R"({"e":"step"})", R"({"e":"step","s":-5,"ms":1})", R"({"e":"step","s":1e300,"t":"x","v":[],"parts":3})",
        R"({"e":"machine","s":1})", R"({"e":"machine","t":"NaN"})", R"({"e":"text","t":null})",
        R"({"e":"profile","t":1,"operators":[3,{},{}]})",
        R"({"e":"started","sync":"maybe","tokens_per_step":-3,"recipe":17})", R"({"e":"log","s":3,"v":{"":1,"a":"b"}})",
        R"({"e":"out","t":1,"b":"\u20ac"})", R"({"e":"checkpoint","t":1,"bytes":"many"})", R"({"e":"tomorrow"})"})
    hostile += journal_line(Json::parse(line));
  write("rank-0.1.jsonl", hostile + written_lines(events()) + line_of(ending()));
  follow();
  EXPECT_EQ(near_.existing_run(1).status, RunStatus::finished);
  EXPECT_EQ(near_.recorded_steps(1).records, 3);
}

TEST_F(OwnJournal, AddsNothingToTheDatabaseThatHasTheRunItself) {
  stepladder::Run run = planned_run().run;
  near_.create_run(run);
  write("rank-0.1.jsonl", header() + written_lines(events()) + line_of(ending()));
  follow();
  EXPECT_EQ(near_.runs().size(), 1u);
  EXPECT_EQ(near_.recorded_steps(1).records, 0);
  EXPECT_NE(told_.find("names run 1 as its own, which was launched here"), std::string::npos) << told_;
}

TEST_F(OwnJournal, BecomesNoRungOfALadderFromElsewhereAndNoForkOfARunFromElsewhere) {
  const LadderId ladder = near_.create_ladder(*planned_run().ladder);
  const std::string parent(32, 'b');
  near_.create_run({.uid = parent, .name = "mine", .ladder = ladder, .source = "launched"});
  PlannedRun planned = planned_run();
  planned.parent_uid = parent;
  write("rank-0.1.jsonl", header(1, planned) + written_lines(events()) + line_of(ending()));
  follow();
  ASSERT_EQ(near_.runs().size(), 2u);
  EXPECT_EQ(near_.existing_run(2).status, RunStatus::finished);
  EXPECT_FALSE(near_.existing_run(2).ladder);
  EXPECT_FALSE(near_.existing_run(2).parent);
  EXPECT_NE(told_all_.find("names ladder 1"), std::string::npos) << told_all_;
  EXPECT_NE(told_all_.find("names run 1 as its parent"), std::string::npos) << told_all_;
}

TEST_F(OwnJournal, JournalsOfOneFolderShareLadderAndParent) {
  write("a/rank-0.1.jsonl", header() + written_lines(events()) + line_of(ending()));
  follow();
  PlannedRun fork = planned_run();
  fork.run.uid = std::string(32, 'c');
  fork.parent_uid = uid;
  write("b/rank-0.1.jsonl", header(1, fork) + written_lines(events()) + line_of(ending()));
  write("elsewhere/c/rank-0.1.jsonl", [&] {
    fork.run.uid = std::string(32, 'd');
    return header(1, fork) + written_lines(events()) + line_of(ending());
  }());
  follow();
  ASSERT_EQ(near_.runs().size(), 3u);
  const auto of = [&](char digit) {
    return near_.existing_run(*near_.following().run_with_uid(std::string(32, digit)));
  };
  EXPECT_EQ(of('c').ladder, near_.existing_run(1).ladder);
  EXPECT_EQ(of('c').parent, std::optional<RunId>(1));
  EXPECT_FALSE(of('d').ladder);
  EXPECT_FALSE(of('d').parent);
}

}  // namespace
}  // namespace stepladder
