// Stores in tests/importers/stores, made by the trackers' own writers, that grow byte by byte while followers come and
// go.
#include "app/import/source_follower.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/import/follower.h"
#include "storage/importers/importer.h"
#include "storage/importers/trackers/store_file.h"
#include "storage/importers/trackers/store_folder.h"
#include "tests/importers/collecting_sink.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

const fs::path stores = fs::path(STEPLADDER_SOURCE_DIR) / "tests/importers/stores";

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  EXPECT_TRUE(stream) << file;
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string shown(std::int64_t step, double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%lld:%.17g ", static_cast<long long>(step), value);
  return text;
}

using Losses = std::map<std::string, std::string>;  // "loss" and "val_loss" of each step that has one, the newest

Losses losses_of(const std::vector<StepRecord>& steps) {
  std::map<std::int64_t, StepRecord> newest;
  for (const StepRecord& step : steps) newest[step.step] = step;
  Losses losses;
  for (const auto& [number, step] : newest) {
    if (!is_missing(step.loss)) losses["loss"] += shown(number, step.loss);
    if (!is_missing(step.val_loss)) losses["val_loss"] += shown(number, step.val_loss);
  }
  return losses;
}

class StoreFollowing : public ::testing::Test {
 protected:
  void write(const fs::path& name, const std::string& bytes) {
    fs::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name, std::ios::binary | std::ios::trunc) << bytes;
  }
  void append(const fs::path& name, const std::string& bytes) {
    fs::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name, std::ios::binary | std::ios::app) << bytes;
  }

  std::unique_ptr<Follower> follower() {
    auto made = std::make_unique<Follower>(store_, FollowRequest{.paths = {folder_.path()}},
                                           [this](const std::string& text) { told_ += text + "\n"; });
    made->scan();
    return made;
  }
  static void drain(Follower& follower) {
    while (follower.poll()) {
    }
  }
  void follow() { drain(*follower()); }

  // Appends the bytes one by one. Another follower takes over every 97 bytes.
  void grow(const fs::path& name, const std::string& bytes) {
    std::unique_ptr<Follower> reader;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      append(name, bytes.substr(i, 1));
      if (i % 97 == 0 || !reader)
        reader = follower();
      else if (reader->runs().empty())
        reader->scan();
      drain(*reader);
    }
  }

  Losses losses(RunId run) {
    const Series series = store_.series(run);
    Losses losses;
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (!is_missing(series.loss[i])) losses["loss"] += shown(series.step[i], series.loss[i]);
      if (!is_missing(series.val_loss[i])) losses["val_loss"] += shown(series.step[i], series.val_loss[i]);
    }
    return losses;
  }

  // The run holds what an import of the store holds, to the bit.
  void expect_imported(RunId run, const CollectingSink::Told& told) {
    EXPECT_EQ(losses(run), losses_of(told.steps));
    for (const auto& [name, points] : told.metrics) {
      std::map<std::int64_t, double> newest;
      for (const MetricPoint& point : points) newest[point.step] = point.value;
      std::string expected, ours;
      for (const auto& [step, value] : newest) expected += shown(step, value);
      for (const MetricPoint& point : store_.metrics().points(run, name)) ours += shown(point.step, point.value);
      if (!points.empty()) {
        EXPECT_EQ(ours, expected) << name;
      }
    }
  }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::in_memory();
  std::string told_;
};

TEST_F(StoreFollowing, EventFilesThatGrowByteByByte) {
  const auto files = [&] {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(stores / "tb_simple")) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }();
  ASSERT_EQ(files.size(), 2u);
  for (const fs::path& file : files) grow("run" / file.filename(), bytes_of(file));
  ASSERT_EQ(store_.runs().size(), 1u);
  CollectingSink imported;
  read_store_folder(stores / "tb_simple", {}, imported);
  expect_imported(1, imported.runs.at(0));
  EXPECT_EQ(store_.recorded_steps(1).records, 45) << "steps 25 to 29 of the first attempt are kept";
  EXPECT_EQ(store_.existing_run(1).recipe, imported.runs[0].run.recipe);
  follow();
  EXPECT_EQ(store_.recorded_steps(1).records, 45);
  EXPECT_EQ(store_.runs().size(), 1u);
}

TEST_F(StoreFollowing, WandbFilesThatGrowByteByByte) {
  const fs::path file = stores / "wandb/offline-run-20261121_172753-golden0/run-golden0.wandb";
  grow("wandb/offline-run-1/run-golden0.wandb", bytes_of(file));
  ASSERT_EQ(store_.runs().size(), 1u);
  CollectingSink imported;
  StoreFile input(file);
  importers::wandb().read(input, {}, imported);
  expect_imported(1, imported.runs.at(0));
  EXPECT_EQ(store_.existing_run(1).status, imported.runs[0].run.status);
  EXPECT_EQ(store_.existing_run(1).recipe, imported.runs[0].run.recipe);
  EXPECT_EQ(store_.recorded_steps(1).records, std::ssize(imported.runs[0].steps));
}

TEST_F(StoreFollowing, AFolderOfMlflowThatGrowsByteByByte) {
  const fs::path experiment = stores / "mlruns/795210646883181958";
  const fs::path run = experiment / "1e6191fe41d6484fa4857486f452a7db";
  std::vector<fs::path> metrics;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (!entry.is_regular_file()) continue;
    const fs::path name = entry.path().lexically_relative(experiment);
    if (name.generic_string().find("/metrics/") != std::string::npos)
      metrics.push_back(name);
    else
      write("mlruns/7" / name, bytes_of(entry.path()));
  }
  write("mlruns/7/meta.yaml", bytes_of(experiment / "meta.yaml"));
  for (const fs::path& name : metrics) grow("mlruns/7" / name, bytes_of(experiment / name));
  ASSERT_EQ(store_.runs().size(), 1u);
  CollectingSink imported;
  read_store_folder(folder_.path() / "mlruns", {}, imported);
  expect_imported(1, imported.runs.at(0));
  EXPECT_EQ(store_.existing_run(1).status, imported.runs[0].run.status);
  EXPECT_EQ(store_.existing_run(1).title, imported.runs[0].run.title);
}

TEST_F(StoreFollowing, TablesAndJsonLinesThatGrowByteByByte) {
  std::string table = "step,train_loss,lr,acc\n", lines;
  for (int i = 1; i <= 40; ++i) {
    char text[200];
    std::snprintf(text, sizeof text, "%d,%.17g,%g,%g\n", i, 4 / std::sqrt(i), 0.001 * i, i / 64.0);
    table += text;
    std::snprintf(text, sizeof text, "{\"step\": %d, \"loss\": %.17g, \"lr\": %g, \"acc\": %g}\n", i, 4 / std::sqrt(i),
                  0.001 * i, i / 64.0);
    lines += text;
  }
  grow("table.csv", table);
  grow("lines.jsonl", lines);
  follower()->finish_idle_runs();  // knows nothing of the last ones, and reads again
  const auto last = follower();
  drain(*last);
  last->finish_idle_runs();
  ASSERT_EQ(store_.runs().size(), 2u) << told_;
  for (const RunId run : {1, 2}) {
    EXPECT_EQ(store_.recorded_steps(run).records, 40);
    const Series series = store_.series(run);
    ASSERT_EQ(series.size(), 40u);
    for (int i = 1; i <= 40; ++i) {
      EXPECT_EQ(series.step[static_cast<std::size_t>(i - 1)], i);
      EXPECT_EQ(series.loss[static_cast<std::size_t>(i - 1)], 4 / std::sqrt(i));
    }
    const auto points = store_.metrics().points(run, "acc");
    ASSERT_EQ(points.size(), 40u);
    EXPECT_EQ(points[9].value, 10 / 64.0);
    EXPECT_EQ(store_.existing_run(run).status, RunStatus::finished);
  }
  // Settled too early: it goes on, and nothing is there twice.
  append("table.csv", "41,0.5,0.1,0.25\n42,0.25,0.1,0.5\n");
  follow();
  const auto end = follower();
  drain(*end);
  end->finish_idle_runs();
  EXPECT_EQ(store_.runs().size(), 2u) << told_;
  EXPECT_EQ(store_.recorded_steps(1).records, 42);
  EXPECT_EQ(store_.metrics().points(1, "acc").size(), 42u);
}

TEST_F(StoreFollowing, AStateThatAStrangerWroteIsNone) {
  write("table.csv", "step,train_loss\n1,4\n2,3\n");
  const auto first = follower();
  drain(*first);
  first->finish_idle_runs();
  ASSERT_EQ(store_.following().sources_of(1).size(), 1u);
  const std::string source = store_.following().sources_of(1).front();
  FollowedSource position = store_.following().position(source).value();
  const std::string deep = R"({"events":)" + std::string(200, '[') + std::string(200, ']') + "}";
  for (const std::string& state : {std::string(R"({"events":"x","hash":[1]})"), deep}) {
    position.state = state;
    store_.following().set_position(source, position);
    follow();
    EXPECT_EQ(store_.series(1).step, (std::vector<std::int64_t>{1, 2})) << state;
  }
}

TEST_F(StoreFollowing, ATableThatIsWrittenAgainWithOneMoreColumnGoesOn) {
  std::string rows;
  for (int i = 1; i <= 10; ++i) rows += std::to_string(i) + "," + std::to_string(5 - 0.25 * i) + "\n";
  write("metrics.csv", "step,loss\n" + rows);
  const auto reader = follower();
  drain(*reader);
  std::string wider = "step,loss,val_loss\n";
  for (int i = 1; i <= 12; ++i)
    wider += std::to_string(i) + "," + std::to_string(5 - 0.25 * i) + "," + (i == 12 ? "3.5" : "") + "\n";
  write("metrics.csv", wider);
  drain(*reader);
  reader->finish_idle_runs();
  EXPECT_EQ(store_.runs().size(), 1u) << told_;
  EXPECT_EQ(store_.recorded_steps(1).records, 12);
  EXPECT_EQ(store_.series(1).val_loss.back(), 3.5);
}

// Rows of "step,loss".
std::string rows(int first, int last, double more = 0) {
  std::string text;
  for (int i = first; i <= last; ++i) text += std::to_string(i) + "," + std::to_string(5 - 0.25 * i + more) + "\n";
  return text;
}

TEST_F(StoreFollowing, AnotherAttemptInATableIsNoOtherFileAfterARestart) {
  write("metrics.csv", "step,loss\n" + rows(1, 6) + rows(1, 6, 0.5));
  follow();
  for (int restart = 0; restart < 3; ++restart) {
    append("metrics.csv", rows(7 + restart, 7 + restart));
    follow();
  }
  const auto last = follower();
  drain(*last);
  last->finish_idle_runs();
  EXPECT_EQ(store_.runs().size(), 1u) << told_;
  EXPECT_EQ(store_.recorded_steps(1).last_step, 9);
  EXPECT_EQ(store_.series(1).size(), 9u);
}

TEST_F(StoreFollowing, SeveralRunsInOneTableAreSeveralRunsHoweverOftenItIsRead) {
  std::string table = "run,step,loss\n";
  for (const char* const run : {"a", "b", "c"})
    for (int i = 1; i <= 3; ++i) table += std::string(run) + "," + std::to_string(i) + ",2.5\n";
  write("sweep.csv", table);
  for (int restart = 0; restart < 2; ++restart) {
    const auto reader = follower();
    drain(*reader);
    reader->finish_idle_runs();
  }
  ASSERT_EQ(store_.runs().size(), 3u) << told_;
  for (const RunId run : {1, 2, 3}) {
    EXPECT_EQ(store_.recorded_steps(run).records, 3) << told_;
    EXPECT_EQ(store_.existing_run(run).status, RunStatus::finished);
    EXPECT_NE(told_.find("run " + std::to_string(run) + " has finished"), std::string::npos) << told_;
  }
}

TEST_F(StoreFollowing, ALastLineThatIsCompletedLaterIsTheSameStep) {
  write("metrics.csv", "step,loss\n" + rows(1, 5) + "6,3.1");
  const auto reader = follower();
  drain(*reader);
  reader->finish_idle_runs();
  append("metrics.csv", "415\n" + rows(7, 8));
  const auto last = follower();
  drain(*last);
  last->finish_idle_runs();
  ASSERT_EQ(store_.runs().size(), 1u) << told_;
  EXPECT_EQ(store_.series(1).size(), 8u);
  EXPECT_EQ(store_.series(1).loss.at(5), 3.1415);
}

TEST_F(StoreFollowing, AStepThatGetsItsLossLaterIsTheSameStep) {
  write("metrics.csv", "step,loss,val_loss\n49,,2.3\n");
  const auto reader = follower();
  drain(*reader);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));  // then it is stored as it is
  drain(*reader);
  append("metrics.csv", "49,2.1,\n50,2.0,\n");
  drain(*reader);
  reader->finish_idle_runs();
  ASSERT_EQ(store_.runs().size(), 1u) << told_;
  EXPECT_EQ(store_.series(1).step, (std::vector<std::int64_t>{49, 50}));
  EXPECT_EQ(store_.series(1).loss.front(), 2.1);
  EXPECT_EQ(store_.series(1).val_loss.front(), 2.3);
}

TEST_F(StoreFollowing, AnEndThatAnEarlierVersionStoredIsNotStoredAgain) {
  write("metrics.csv", "step,loss\n" + rows(1, 6));
  const auto first = follower();
  drain(*first);
  first->finish_idle_runs();
  const std::string source = store_.following().sources_of(1).front();
  FollowedSource position = store_.following().position(source).value();
  auto state = nlohmann::ordered_json::parse(position.state)["store"];
  state.erase("held");
  state.erase("first");
  state.erase("last");
  state["ended"] = true;
  position.state = state.dump();  // as earlier versions wrote it
  store_.following().set_position(source, position);
  append("metrics.csv", rows(7, 8));
  const auto last = follower();
  drain(*last);
  last->finish_idle_runs();
  EXPECT_EQ(store_.runs().size(), 1u) << told_;
  EXPECT_EQ(store_.recorded_steps(1).records, 8);
}

TEST_F(StoreFollowing, ALogThatGoesOnInAnotherFileIsAnotherRunSoon) {
  write("metrics.csv", "step,loss\n" + rows(1, 10));
  const auto reader = follower();
  drain(*reader);
  reader->finish_idle_runs();
  write("metrics.csv", "step,loss\n" + rows(11, 13));
  drain(*reader);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  drain(*reader);
  reader->finish_idle_runs();
  ASSERT_EQ(store_.runs().size(), 2u) << told_;
  EXPECT_EQ(store_.recorded_steps(2).records, 3);
}

TEST_F(StoreFollowing, AStoreThatIsReplacedBecomesAnotherRun) {
  const std::string first = bytes_of(stores / "tb_simple/events.out.tfevents.1763000000.vm.11646.0");
  const std::string other = bytes_of(stores / "tb_simple/events.out.tfevents.1763001000.vm.11646.1");
  write("run/events.out.tfevents.1", first);
  const auto reader = follower();
  drain(*reader);
  EXPECT_EQ(store_.recorded_steps(1).records, 30);
  write("run/events.out.tfevents.1", other);
  drain(*reader);
  EXPECT_NE(told_.find("is shorter than it was"), std::string::npos) << told_;
  ASSERT_EQ(store_.runs().size(), 2u);
  EXPECT_EQ(store_.recorded_steps(1).records, 30);
  EXPECT_EQ(store_.recorded_steps(2).records, 15);
  write("run/events.out.tfevents.1", first);
  drain(*reader);
  EXPECT_NE(told_.find("has another content than it had"), std::string::npos) << told_;
  EXPECT_EQ(store_.runs().size(), 3u);
  follow();
  EXPECT_EQ(store_.runs().size(), 3u);
}

TEST_F(StoreFollowing, ZerosAtTheEndAreNotYetThere) {
  const std::string bytes = bytes_of(stores / "tb_simple/events.out.tfevents.1763000000.vm.11646.0");
  write("run/events.out.tfevents.1", bytes.substr(0, 3000) + std::string(500, '\0'));
  const auto reader = follower();
  drain(*reader);
  write("run/events.out.tfevents.1", bytes);
  drain(*reader);
  EXPECT_EQ(store_.runs().size(), 1u) << told_;
  EXPECT_EQ(store_.recorded_steps(1).records, 30);
}

TEST_F(StoreFollowing, TwoFollowersOfOneStoreTakeEachValueOnce) {
  const std::string bytes = bytes_of(stores / "tb_simple/events.out.tfevents.1763000000.vm.11646.0");
  write("run/events.out.tfevents.1", "");
  const auto one = follower(), other = follower();
  for (std::size_t i = 0; i < bytes.size(); i += 50) {
    append("run/events.out.tfevents.1", bytes.substr(i, 50));
    drain(*one);
    drain(*other);
  }
  EXPECT_EQ(store_.runs().size(), 1u) << told_;
  EXPECT_EQ(store_.recorded_steps(1).records, 30);
}

TEST_F(StoreFollowing, NumbersOfAJoinedStoreWinOverThoseThatWerePrinted) {
  const RunId run = store_.create_run({.name = "watched", .status = RunStatus::running, .source = "import"});
  store_.append_steps(run, std::vector<StepRecord>{{.step = 0, .loss = 11.0, .dt_ms = 3}, {.step = 50, .loss = 1}});
  SourceFollower reader(store_, {}, [](const std::string&) {});
  reader.add(growing_event_folder(stores / "tb_simple"), run);
  while (reader.poll()) {
  }
  reader.finish_idle_runs(true);
  CollectingSink imported;
  read_store_folder(stores / "tb_simple", {}, imported);
  Losses expected = losses_of(imported.runs.at(0).steps);
  expected["loss"] += shown(50, 1);
  EXPECT_EQ(losses(run), expected);
  EXPECT_EQ(store_.recorded_steps(run).records, 41) << "no value of both is there twice";
  EXPECT_EQ(store_.existing_run(run).status, RunStatus::running);
  EXPECT_EQ(store_.existing_run(run).name, "watched");
}

}  // namespace
}  // namespace stepladder
