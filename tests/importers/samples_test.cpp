// Golden samples: NAME.log or NAME.csv with the expected NAME.json. Also the logs of ../shared, if present.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/importers/told.h"

namespace stepladder {
namespace fs = std::filesystem;
using SortedJson = nlohmann::json;
namespace {

const fs::path sample_folder = fs::path(STEPLADDER_SOURCE_DIR) / "tests" / "importers" / "samples";
const fs::path shared = fs::path(STEPLADDER_SOURCE_DIR) / ".." / "shared";

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

Told import_file(const fs::path& file) {
  return import_text(content(file), {}, file.filename().string());
}

SortedJson number(double value) {
  if (is_missing(value)) return nullptr;
  if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : "inf";
  return value;
}

// Every step as [step, loss, val_loss, dt_ms], so that a reader can check it against the log; every metric as [step,
// value].
SortedJson described(const Told& told) {
  SortedJson runs = SortedJson::array();
  for (const ToldRun& it : told.runs) {
    SortedJson steps = SortedJson::array();
    for (const StepRecord& step : it.steps)
      steps.push_back({step.step, number(step.loss), number(step.val_loss), number(step.dt_ms)});
    SortedJson metrics = SortedJson::object();
    for (const auto& [name, points] : it.metrics)
      for (const MetricPoint& point : points) metrics[name].push_back({point.step, number(point.value)});
    runs.push_back({{"metrics", metrics},
                    {"stage", it.run.stage},
                    {"family", SortedJson::parse(it.run.recipe).at("log_family")},
                    {"tokens_per_step", it.run.tokens_per_step},
                    {"params", it.run.params},
                    {"hardware", it.run.hardware},
                    {"unit", it.run.printed.unit},
                    {"steps", steps}});
  }
  return runs;
}

void expect_alike(const SortedJson& got, const SortedJson& wanted, const std::string& where) {
  ASSERT_EQ(got.is_number(), wanted.is_number()) << where << ": " << got << " is not " << wanted;
  if (wanted.is_number()) {
    EXPECT_NEAR(got.get<double>(), wanted.get<double>(), 1e-6 * std::fabs(wanted.get<double>())) << where;
  } else if (wanted.is_array()) {
    ASSERT_EQ(got.size(), wanted.size()) << where;
    for (std::size_t i = 0; i < wanted.size(); ++i) expect_alike(got[i], wanted[i], where + "/" + std::to_string(i));
  } else if (wanted.is_object()) {
    for (const auto& [key, value] : wanted.items()) expect_alike(got.at(key), value, where + "/" + key);
  } else {
    EXPECT_EQ(got, wanted) << where;
  }
}

TEST(Samples, EachComesToWhatLiesBesideIt) {
  int checked = 0;
  for (const auto& entry : fs::directory_iterator(sample_folder)) {
    if (entry.path().extension() == ".json") continue;
    SCOPED_TRACE(entry.path().filename().string());
    fs::path beside = entry.path();
    const SortedJson got = described(import_file(entry.path()));
    beside.replace_extension(".json");
    // To make a new one, set STEPLADDER_WRITE_SAMPLES=1 and check the written file.
    if (std::getenv("STEPLADDER_WRITE_SAMPLES") && !fs::exists(beside)) std::ofstream(beside) << got.dump(1) << "\n";
    ASSERT_TRUE(fs::exists(beside)) << beside;
    expect_alike(got, SortedJson::parse(content(beside)), entry.path().filename().string());
    ++checked;
  }
  EXPECT_GE(checked, 25);
}

// The steps and losses of all runs.
std::string steps_of(const Told& told) {
  SortedJson runs = SortedJson::array();
  for (const ToldRun& it : told.runs) {
    SortedJson steps = SortedJson::array();
    for (const StepRecord& step : it.steps) steps.push_back({step.step, number(step.loss), number(step.val_loss)});
    runs.push_back(steps);
  }
  return runs.dump();
}

// The log as a launcher, container or logger would have written it.
std::string behind(const std::string& log, const std::string& prefix, const std::string& end) {
  std::istringstream lines(log);
  std::string changed;
  for (std::string line; std::getline(lines, line);) changed += prefix + line + end;
  return changed;
}

TEST(Samples, StepsAreTheSameBehindAnyPrefix) {
  const std::pair<const char*, const char*> prefixes[] = {
      {"", "\r\n"},
      {"\x1b[32m", "\x1b[0m\n"},
      {"0: ", "\n"},
      {"[rank0]: ", "\n"},
      {"[default0]:", "\n"},
      {"trainer-1  | ", "\n"},
      {"[pod/train-0/trainer] ", "\n"},
      {"Nov 26 10:00:00 host python[123]: ", "\n"},
      {"2026-11-26T10:00:00.123456Z ", "\n"},
      {"[2026-11-26 10:00:00,123][INFO] ", "\n"},
      {"2026-11-26 10:00:00.123 | INFO     | __main__:train:42 - ", "\n"},
      {"INFO:root:", "\n"}};
  for (const auto& entry : fs::directory_iterator(sample_folder)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".log" || name == "source-code") continue;  // a logger writes no source code
    SCOPED_TRACE(entry.path().filename().string());
    const std::string log = content(entry.path());
    const std::string steps = steps_of(import_text(log));
    EXPECT_EQ(steps_of(import_text("\xEF\xBB\xBF" + log)), steps) << "byte order mark";
    for (const auto& [prefix, end] : prefixes) try {
        EXPECT_EQ(steps_of(import_text(behind(log, prefix, end))), steps) << prefix;
      } catch (const ImportError& error) {
        ADD_FAILURE() << prefix << ": " << error.what();
      }
  }
}

// All that a reader reports, if its bytes come in pieces of this size.
std::string reported(const Importer& importer, const fs::path& file, const std::string& bytes, std::size_t piece) {
  ImportOptions options{.known_stages = &known_stages()};
  Told told;
  const auto reader = importer.reader(file, options, told);
  std::string failure;
  try {
    // The first piece has what the importer was recognised by.
    for (std::size_t at = 0, size = std::max<std::size_t>(64, piece); at < bytes.size(); at += size, size = piece)
      reader->take(std::string_view(bytes).substr(at, size));
    reader->finish();
  } catch (const ImportError& error) {
    failure = error.what();
  }
  SortedJson all = SortedJson::array({failure, told.notes, told.rungs});
  for (const ToldRun& run : told.runs) {
    for (const StepRecord& step : run.steps)
      all.push_back({step.step, number(step.loss), number(step.val_loss), number(step.dt_ms), number(step.at)});
    for (const auto& [name, points] : run.metrics)
      for (const MetricPoint& point : points) all.push_back({name, point.step, number(point.value), number(point.at)});
    all.push_back(
        {run.run.name, run.run.recipe, run.run.environment, run.run.tokens_per_step, to_string(run.run.status)});
  }
  return all.dump(-1, ' ', false, SortedJson::error_handler_t::replace);
}

TEST(Samples, ARunIsTheSameHoweverItsBytesAreCut) {
  std::set<std::string> formats;
  for (const fs::path& folder : {sample_folder, sample_folder.parent_path() / "stores"})
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file() || entry.path().extension() == ".json") continue;
      SCOPED_TRACE(entry.path().filename().string());
      const std::string bytes = content(entry.path());
      const auto importer = std::find_if(all_importers().begin(), all_importers().end(), [&](const Importer& each) {
        return each.recognises(std::string_view(bytes).substr(0, 65536), entry.path());
      });
      if (importer == all_importers().end() || importer->opens_file) continue;
      formats.insert(importer->id);
      const std::string whole = reported(*importer, entry.path(), bytes, bytes.size() + 1);
      for (const std::size_t piece : {std::size_t{1}, std::size_t{13}, std::size_t{4096}})
        EXPECT_EQ(reported(*importer, entry.path(), bytes, piece), whole) << piece;
    }
  EXPECT_TRUE(formats.contains("log") && formats.contains("csv") && formats.contains("tensorboard") &&
              formats.contains("wandb"))
      << formats.size();
}

TEST(Registry, EveryImporterHasAnIdOfItsOwnAndRefusesNothingAtAll) {
  std::vector<std::string> ids;
  for (const Importer& importer : all_importers()) {
    EXPECT_FALSE(importer.id.empty());
    EXPECT_FALSE(importer.title.empty());
    EXPECT_EQ(std::count(ids.begin(), ids.end(), importer.id), 0) << importer.id;
    ids.push_back(importer.id);
    MemoryInput nothing("");
    Told told;
    EXPECT_THROW(importer.read(nothing, {}, told), ImportError) << importer.id;
  }
  EXPECT_THROW(import_text("step 1 loss 2\n", {.format = "no such"}), ImportError);
}

class Shared : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(shared / "seeds")) GTEST_SKIP() << "the seed files are not here";
  }
};

TEST_F(Shared, ThreeRungsOnAnA100NewestFirst) {
  const Told told = import_file(shared / "seeds" / "a100-three-rungs.txt");
  ASSERT_EQ(told.runs.size(), 3u);
  EXPECT_EQ(told.rungs, (std::vector<int>{2, 1, 0}));
  for (const ToldRun& it : told.runs) {
    EXPECT_EQ(it.steps.size(), 50u);
    EXPECT_EQ(it.run.tokens_per_step, 4096);
    EXPECT_EQ(it.run.hardware, "NVIDIA A100");
    EXPECT_EQ(it.run.device, "cuda");
  }
  EXPECT_EQ(told.runs[0].run.stage, "OPTIMIZATION #1");
  EXPECT_EQ(told.runs[0].run.precision, "tf32");
  EXPECT_EQ(told.runs[0].run.printed.unit, "tokens/ms printed as throughput");
  EXPECT_EQ(told.runs[2].run.stage, "BASELINE");
  EXPECT_EQ(told.runs[2].steps[0].dt_ms, 1589.1225337982178);
  EXPECT_EQ(told.runs[0].steps[49].loss, 5.593912124633789);
}

TEST_F(Shared, TheLadderThatPrintsTokensPerMillisecond) {
  const Told told = import_file(shared / "seeds" / "rtx3080-4090-ladder.txt");
  ASSERT_EQ(told.runs.size(), 13u);
  const std::vector<std::int64_t> tokens = {2048, 2048, 2048, 3072, 3072, 3072, 3072, 6144, 6144, 6144, 6144};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(told.runs[i].steps.size(), 50u) << i;
    EXPECT_EQ(told.runs[i].run.tokens_per_step, tokens[i]) << i;
    EXPECT_EQ(told.runs[i].run.printed.unit, "tokens/ms printed as tokens/sec") << i;
    for (const StepRecord& step : told.runs[i].steps) EXPECT_GT(step.dt_ms, 0);
  }
  EXPECT_EQ(told.runs[0].steps[1].dt_ms, 177.27);
  EXPECT_EQ(told.runs[6].run.stage, "Speed-up-5, max-autotune");
  EXPECT_TRUE(told.runs[11].steps.empty());
  EXPECT_EQ(told.runs[12].run.printed.tokens_per_s, 211646);  // as its author reports
  EXPECT_EQ(told.runs[12].run.hardware, "");                  // an RTX 3080 and two RTX 4090 are named
  for (std::size_t i = 0; i < 13; ++i) EXPECT_EQ(told.runs[i].run.status == RunStatus::reported, i >= 11) << i;
  EXPECT_TRUE(told.noted("warning"));
}

TEST_F(Shared, SevenRungsFromMpsToCuda) {
  const Told told = import_file(shared / "seeds" / "mps-then-cuda.txt");
  ASSERT_EQ(told.runs.size(), 7u);
  const std::vector<std::int64_t> tokens = {0, 128, 128, 128, 1024, 1024, 16384};
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(told.runs[i].steps.size(), 50u) << i;
    EXPECT_EQ(told.runs[i].run.tokens_per_step, tokens[i]) << i;
    EXPECT_EQ(told.runs[i].run.device, i < 6 ? "mps" : "cuda");
  }
  EXPECT_EQ(told.runs[6].run.printed.unit, "tokens/s");
  EXPECT_EQ(told.runs[6].steps[1].dt_ms, 356.77);
}

TEST_F(Shared, TablesWithoutStepsSayWhatTheyAre) {
  for (const char* name : {"mosaic-mfu-tables.txt", "timeit-profiler.txt"}) {
    const Told told = import_file(shared / "seeds" / name);
    EXPECT_TRUE(told.runs.empty());
    EXPECT_TRUE(told.noted("no training steps")) << name;
  }
}

TEST_F(Shared, FourPublicLogsAreReadWhole) {
  struct Expected {
    const char* name;
    std::size_t steps;
    double first_dt, last_loss, last_val_loss;
  };
  const Expected logs[] = {{"fa3-2025-09-03.log", 1671, 473, missing, 3.2755},
                           {"flexattention-2024-11-19.log", 1876, 44119, 3.3139, 3.2783},
                           {"llmc-main.log", 2988, missing, 3.7620, missing},
                           {"muon-2024-10-10.log", 6201, 74416, 3.2533, 3.2785}};
  for (const Expected& log : logs) {
    SCOPED_TRACE(log.name);
    const Told told = import_file(shared / "data" / "logs" / log.name);
    ASSERT_EQ(told.runs.size(), 1u);
    const std::vector<StepRecord>& steps = told.runs[0].steps;
    EXPECT_EQ(steps.size(), log.steps);
    EXPECT_EQ(told.runs[0].run.tokens_per_step, 0);
    EXPECT_EQ(is_missing(steps[1].dt_ms), is_missing(log.first_dt));
    if (!is_missing(log.first_dt)) {
      EXPECT_EQ(steps[1].dt_ms, log.first_dt);
    }
    if (!is_missing(log.last_loss)) {
      EXPECT_EQ(steps.back().loss, log.last_loss);
    }
    if (!is_missing(log.last_val_loss)) {
      EXPECT_EQ(steps.back().val_loss, log.last_val_loss);
    }
  }
}

}  // namespace
}  // namespace stepladder
