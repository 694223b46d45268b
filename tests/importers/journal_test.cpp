#include "storage/importers/journal/journal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "storage/checksum.h"
#include "storage/importers/journal/journal_reader.h"
#include "storage/importers/journal/journal_run.h"
#include "storage/importers/journal/run_events.h"
#include "storage/name_pattern.h"
#include "tests/importers/collecting_sink.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

std::string line(const std::string& json) {
  char checksum[16];
  std::snprintf(checksum, sizeof checksum, "\t%08x\n", crc32(json));
  return json + checksum;
}

std::string header(int rank = 0, int world = 1, int attempt = 1) {
  return line(R"({"e":"run","v":1,"uid":"0123456789abcdef0123456789abcdef","id":"demo-1","name":"demo","attempt":)" +
              std::to_string(attempt) + R"(,"rank":)" + std::to_string(rank) + R"(,"world":)" + std::to_string(world) +
              R"(,"t":1000.0,"host":"here","pid":7})");
}

std::string log(int step, double at, const std::string& values) {
  return line(R"({"e":"log","s":)" + std::to_string(step) + R"(,"t":)" + std::to_string(at) + R"(,"v":{)" + values +
              "}}");
}

std::string timed(int step, double ms, int tokens, const std::string& how = "event") {
  return line(R"({"e":"step","s":)" + std::to_string(step) + R"(,"t":1001.0,"ms":)" + std::to_string(ms) + R"(,"y":")" +
              how + R"(","n":)" + std::to_string(tokens) + "}");
}

const std::string end = line(R"({"e":"end","t":2000.0,"status":"finished","code":0})");

std::vector<std::string> kinds_of(JournalReader& reader) {
  std::vector<std::string> kinds;
  JournalEvent event;
  while (reader.next(event)) kinds.push_back(event.kind);
  return kinds;
}

CollectingSink imported(const std::string& bytes) {
  CollectingSink sink;
  MemoryInput input(bytes, "/runs/demo-1/rank-0.1.jsonl");
  EXPECT_EQ(importer_for(input, {}).id, "journal");
  importers::journal().read(input, {}, sink);
  return sink;
}

std::string steps_as_text(const std::vector<StepRecord>& steps) {
  std::string text;
  for (const StepRecord& step : steps) {
    char part[200];
    std::snprintf(part, sizeof part, "%d loss %g val %g dt %g n %d; ", static_cast<int>(step.step), step.loss,
                  step.val_loss, step.dt_ms, static_cast<int>(step.tokens));
    text += part;
  }
  return text;
}

TEST(JournalReader, ReadsTheSameInPiecesOfAnySize) {
  const std::string bytes = header() + log(0, 1000.5, R"("loss":1.5)") + line(R"({"e":"later","x":[{}]})") + end;
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    JournalReader reader;
    std::vector<std::string> kinds;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      reader.take(std::string_view(bytes).substr(at, size));
      for (std::string& kind : kinds_of(reader)) kinds.push_back(std::move(kind));
    }
    ASSERT_EQ(kinds, (std::vector<std::string>{"run", "log", "later", "end"}));
    ASSERT_EQ(reader.good(), bytes.size());
  }
}

TEST(JournalReader, ACutAtAnyByteIsNotYetAndReadingGoesOnFromTheLastGoodByte) {
  const std::string bytes = header() + log(0, 1000.5, R"("loss":1.5)") + log(1, 1000.6, R"("loss":"NaN")") + end;
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    for (const std::string& tail : {std::string(), std::string(50, '\0'), std::string(50, '\0') + "\n"}) {
      JournalReader first;
      first.take(bytes.substr(0, cut) + tail);
      std::vector<std::string> kinds = kinds_of(first);
      ASSERT_LE(first.good(), cut);
      ASSERT_EQ(first.is_stuck(), tail.ends_with('\n'));
      JournalReader second(first.good());
      second.take(std::string_view(bytes).substr(first.good()));
      for (std::string& kind : kinds_of(second)) kinds.push_back(std::move(kind));
      ASSERT_EQ(kinds, (std::vector<std::string>{"run", "log", "log", "end"})) << cut;
      ASSERT_EQ(second.good(), bytes.size());
    }
  }
}

TEST(JournalReader, GivesUpABadLineOnlyWhenTold) {
  std::string bad = log(0, 1000.5, R"("loss":1.5)");
  bad[20] ^= 1;
  JournalReader reader;
  reader.take(header() + bad + std::string(30, '\0') + end);
  EXPECT_EQ(kinds_of(reader), std::vector<std::string>{"run"});
  EXPECT_TRUE(reader.is_stuck());
  EXPECT_EQ(kinds_of(reader), std::vector<std::string>{});
  reader.skip();
  EXPECT_EQ(kinds_of(reader), std::vector<std::string>{});  // the zeros
  reader.skip();
  EXPECT_EQ(kinds_of(reader), std::vector<std::string>{"end"});
  EXPECT_EQ(reader.skipped_bytes(), bad.size() + 30);
}

TEST(JournalReader, HostileLinesAreBounded) {
  JournalReader reader;
  reader.take(line(R"({"e":"run","x":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}") + line("[1]") +
              line("5") + line("{}") + line(R"({"e":5})") + line("") + end);
  EXPECT_EQ(kinds_of(reader), std::vector<std::string>{"end"});
  EXPECT_EQ(reader.malformed_lines(), 6u);
  reader.take(std::string(JournalReader::longest_line + 1, 'x'));
  EXPECT_EQ(kinds_of(reader), std::vector<std::string>{});
  EXPECT_TRUE(reader.is_stuck());
}

TEST(Journal, ARunWithTimedSteps) {
  std::string bytes = header() + line(R"({"e":"config","v":{"lr":0.001,"model":{"layers":2}}})") +
                      line(R"({"e":"env","v":{"device":"cuda","gpu":"NVIDIA H100"}})");
  for (int i = 0; i < 3; ++i)
    bytes += timed(i, 10 + i, 64) + log(i, 1001 + i, R"("loss":)" + std::to_string(3 - i) + R"(,"dt_ms":99,"x":1)");
  bytes += log(2, 1010, R"("val/loss":"Infinity","val/acc":0.5)") +
           line(R"({"e":"metric","name":"val/*","unit":"%"})") + line(R"({"e":"skipped","v":{"Image":{"sample":3}}})") +
           line(R"({"e":"news"})") + end;
  const CollectingSink sink = imported(bytes);
  ASSERT_EQ(sink.runs.size(), 1u);
  const stepladder::Run& run = sink.runs[0].run;
  EXPECT_EQ(run.status, RunStatus::finished);
  EXPECT_EQ(run.name, "demo") << "as follow names it";
  EXPECT_EQ(run.sync, Sync::event);
  EXPECT_EQ(run.hardware, "NVIDIA H100");
  EXPECT_EQ(run.device, "cuda");
  EXPECT_EQ(run.tokens_per_step, 64);
  EXPECT_EQ(run.started_at, 1000);
  EXPECT_EQ(run.ended_at, 2000);
  EXPECT_EQ(run.recipe, R"({"lr":0.001,"model.layers":2})");
  EXPECT_EQ(steps_as_text(sink.runs[0].steps),
            "0 loss 3 val nan dt 10 n 64; 1 loss 2 val nan dt 11 n 64; 2 loss 1 val inf dt 12 n 64; ");
  EXPECT_EQ(sink.runs[0].metrics.at("x").size(), 3u);
  EXPECT_EQ(sink.runs[0].metrics.at("val/acc")[0].value, 0.5);
  EXPECT_TRUE(sink.noted("3 Image (sample)"));
  EXPECT_TRUE(sink.noted("1 event of a kind that this version doesn't know: news"));
}

TEST(Journal, WithoutTimedStepsTheLogsTimesAreUsed) {
  std::string bytes = header();
  for (int i = 0; i < 4; ++i) bytes += log(10 * i, 1000 + i, R"("loss":2)");
  const CollectingSink sink = imported(bytes);
  EXPECT_EQ(steps_as_text(sink.runs[0].steps),
            "0 loss 2 val nan dt nan n 0; 10 loss 2 val nan dt 100 n 0; 20 loss 2 val nan dt 100 n 0; "
            "30 loss 2 val nan dt 100 n 0; ");
  EXPECT_EQ(sink.runs[0].run.status, RunStatus::interrupted);
  EXPECT_EQ(sink.runs[0].run.sync, Sync::unknown);
}

TEST(Journal, AFolderOfRanksAndAttemptsIsOneRun) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder.path() / name, std::ios::binary) << bytes;
  };
  write("rank-0.1.jsonl",
        header(0, 2) + timed(0, 10, 8) + log(0, 1001, R"("loss":3)") + timed(1, 11, 8) + log(1, 1002, R"("loss":2)"));
  write("rank-0.2.jsonl", header(0, 2, 2) + timed(1, 12, 8) + log(1, 1003, R"("loss":1)") + end);
  write("rank-1.1.jsonl", header(1, 2) + timed(0, 30, 8) + log(0, 1001, R"("loss":9)"));
  write("uid", "0123456789abcdef0123456789abcdef\n");
  CollectingSink sink;
  read_journal_folder(folder.path(), sink);
  ASSERT_EQ(sink.runs.size(), 1u);
  EXPECT_EQ(steps_as_text(sink.runs[0].steps),
            "0 loss 3 val nan dt 10 n 8; 1 loss 2 val nan dt 11 n 8; 1 loss 1 val nan dt 12 n 8; ");
  EXPECT_EQ(sink.runs[0].metrics.at("rank/0/dt_ms").size(), 3u);
  EXPECT_EQ(sink.runs[0].metrics.at("rank/1/dt_ms")[0].value, 30);
  EXPECT_EQ(sink.runs[0].metrics.at("rank/1/loss")[0].value, 9);
  EXPECT_EQ(sink.runs[0].run.status, RunStatus::finished);
}

TEST(Journal, OnlyAnEndThatSaysSoIsFinished) {
  using enum RunStatus;
  const struct {
    std::string fields;
    RunStatus status;
    std::string reason;
  } cases[] = {{R"("status":"finished","code":0)", finished, ""},
               {R"("status":"finished")", finished, ""},
               {R"("status":"finished","code":null)", finished, ""},
               {R"("code":0)", finished, ""},
               {R"("status":"finished","code":137)", failed, "exit code 137"},
               {R"("status":"finished","code":"x")", failed, "exit code \"x\""},
               {R"("status":"finished","code":1,"reason":"OOM")", failed, "OOM"},
               {R"("code":1)", failed, "exit code 1"},
               {R"("status":null,"code":-9)", failed, "exit code -9"},
               {R"("status":"crashed","code":1,"reason":"OOM")", failed, "OOM"},
               {R"("status":"faster")", failed, "its journal ends with the unknown status \"faster\""},
               {R"("status":"running")", failed, "its journal ends with the unknown status \"running\""},
               {R"("status":5)", failed, "its journal ends with the unknown status 5"},
               {R"("status":"stopped","code":130)", stopped, ""},
               {R"("status":"interrupted")", interrupted, ""},
               {R"("x":1)", interrupted, "its journal doesn't say how it ended"}};
  for (const auto& each : cases) {
    const CollectingSink sink =
        imported(header() + log(0, 1001, R"("loss":3)") + line(R"({"e":"end","t":2000.0,)" + each.fields + "}"));
    ASSERT_EQ(sink.runs.size(), 1u);
    EXPECT_EQ(sink.runs[0].run.status, each.status) << each.fields;
    EXPECT_EQ(sink.runs[0].run.reason, each.reason) << each.fields;
    // A run that Stepladder trained is read by the same rule.
    JournalReader reader;
    reader.take(line(R"({"e":"end","t":2000.0,)" + each.fields + "}"));
    JournalEvent event;
    ASSERT_TRUE(reader.next(event));
    const std::optional<RunEvent> own = run_event_of(event, 1);
    ASSERT_TRUE(own);
    EXPECT_EQ(std::get<RunEnded>(*own).status, each.status) << each.fields;
    EXPECT_EQ(std::get<RunEnded>(*own).reason, each.reason) << each.fields;
  }
}

TEST(Journal, AFolderThatCannotBeReadSaysWhy) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& bytes) {
    std::ofstream(folder.path() / "rank-0.1.jsonl", std::ios::binary) << bytes;
    CollectingSink sink;
    try {
      read_journal_folder(folder.path(), sink);
    } catch (const ImportError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(line(R"({"e":"run","v":2,"uid":"0123456789abcdef0123456789abcdef"})") + end),
            "holds no readable journal: rank-0.1.jsonl is a journal of format 2, which a newer version of Stepladder "
            "wrote; this version reads format 1");
  EXPECT_EQ(refusal(line(R"({"e":"run","v":1,"uid":"0123456789abcdef0123456789abcdef","stepladder":{"name":"L"}})")),
            "holds no readable journal: rank-0.1.jsonl is the journal of a run that Stepladder trained; `stepladder "
            "follow` takes all of it in");
}

TEST(Journal, OtherFilesAreRefused) {
  CollectingSink sink;
  for (const std::string& bytes : {std::string(), end, std::string("{\"e\":\"run\",\"v\":1}\n"),
                                   line(R"({"e":"run","v":2})"), header().substr(0, 40)}) {
    MemoryInput input(bytes);
    EXPECT_THROW(importers::journal().read(input, {}, sink), ImportError) << bytes;
  }
  EXPECT_TRUE(sink.runs.empty());
}

// Merges two parts of a step's record, as the database does.
void merge(StepRecord& into, const StepRecord& part) {
  for (double StepRecord::*field : {&StepRecord::loss, &StepRecord::val_loss, &StepRecord::dt_ms, &StepRecord::lr})
    if (!is_missing(part.*field)) into.*field = part.*field;
  if (part.tokens > 0) into.tokens = part.tokens;
}

TEST(LoggedSteps, AnyBatchesGiveTheSameStepsAsOne) {
  const auto add = [](LoggedSteps& steps, int i) {
    steps.add("train/loss", i, 3.0 / (i + 1), 1000 + i);
    steps.add("lr", i, 1e-3 * i, 1000 + i);
    steps.add("tokens_seen", i, 100.0 * i, 1000 + i);
    if (i % 3 == 0) steps.add("eval/loss", i, 2.5, 1000 + i);
  };
  LoggedSteps whole;
  for (int i = 0; i < 12; ++i) add(whole, i);
  const std::string expected = steps_as_text(whole.take().steps);
  for (int size = 1; size < 12; ++size) {
    std::map<std::int64_t, StepRecord> merged;
    std::string state;
    for (int begin = 0; begin < 12; begin += size) {
      LoggedSteps part(state);
      for (int i = begin; i < std::min(begin + size, 12); ++i) add(part, i);
      const LoggedBatch batch = part.take();
      EXPECT_FALSE(batch.may_have(12));
      for (const StepRecord& record : batch.steps) {
        EXPECT_FALSE(batch.may_have(record.step)) << "each step is in one batch";
        if (merged.contains(record.step))
          merge(merged[record.step], record);
        else
          merged[record.step] = record;
      }
      state = part.state();
    }
    std::vector<StepRecord> steps;
    for (const auto& [step, record] : merged) steps.push_back(record);
    EXPECT_EQ(steps_as_text(steps), expected) << size;
  }
}

TEST(LoggedSteps, ABrokenStateIsIgnored) {
  for (const std::string state :
       {"", "[]", "{\"chosen\":5,\"last_at\":\"x\",\"lowest\":1e300}", "{\"chosen\":{\"loss\":[]}}"}) {
    LoggedSteps steps(state);
    steps.add("loss", 1, 2.0, 1000);
    EXPECT_EQ(steps_as_text(steps.take().steps), "1 loss 2 val nan dt nan n 0; ");
  }
}

TEST(JournalRun, Patterns) {
  EXPECT_TRUE(matches_pattern("val/*", "val/acc"));
  EXPECT_TRUE(matches_pattern("*acc", "val/acc"));
  EXPECT_TRUE(matches_pattern("loss", "loss"));
  EXPECT_FALSE(matches_pattern("val/*", "val"));
  EXPECT_FALSE(matches_pattern("ab*ba", "aba"));
  EXPECT_TRUE(matches_pattern("*/layer/*", "grad/layer/0"));
}

}  // namespace
}  // namespace stepladder
