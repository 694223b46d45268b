// Imports into a database: what the project has already, and what the user says about single files.
#include "app/import/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "app/record/try_series.h"
#include "storage/analysis/plausibility.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

std::string log_of(double dt_ms) {
  std::string text;
  for (int step = 1; step <= 12; ++step)
    text += "step " + std::to_string(step) + " | loss " + std::to_string(5 - 0.01 * step) + " | dt " +
            std::to_string(dt_ms) + "ms\n";
  return text;
}

class Imports : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name.c_str();
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  ImportOutcome import(ImportRequest request) {
    request.in_project = imported_contents(store_);
    return import_into([this]() -> RunStore& { return store_; }, request);
  }
  ImportOutcome import(const std::vector<std::string>& paths) { return import(ImportRequest{.paths = paths}); }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::in_memory();
};

TEST(ContentHash, DoesNotDependOnThePieces) {
  const std::string text = log_of(100);
  ContentHash whole, bytes, pieces;
  whole.take(text);
  for (const char c : text) bytes.take({&c, 1});
  for (std::size_t i = 0; i < text.size(); i += 13) pieces.take(std::string_view(text).substr(i, 13));
  EXPECT_EQ(whole.text(), bytes.text());
  EXPECT_EQ(whole.text(), pieces.text());
  EXPECT_TRUE(whole.text().starts_with(std::to_string(text.size()) + "-")) << whole.text();
  for (const char* more : {"x", "", "\0"}) {
    ContentHash other;
    other.take(text.substr(1));
    other.take(more);
    EXPECT_NE(other.text(), whole.text());
  }
}

TEST_F(Imports, TheSameContentIsSkippedUnderAnyName) {
  const std::string log = file("a.log", log_of(100));
  const ImportOutcome first = import({log});
  ASSERT_EQ(first.runs.size(), 1u);
  EXPECT_TRUE(first.skipped.empty());
  const std::string copy = file("other/b.log", log_of(100));
  const ImportOutcome again = import({log, copy, file("c.log", log_of(90))});
  ASSERT_EQ(again.runs.size(), 1u);
  EXPECT_EQ(again.runs.front().name, "c");
  ASSERT_EQ(again.skipped.size(), 2u);
  EXPECT_EQ(again.skipped.back().file, copy);
  EXPECT_EQ(again.skipped.back().runs, std::vector<RunId>{first.runs.front().id});
  EXPECT_TRUE(again.failures.empty());
  EXPECT_EQ(skipped_text(again.skipped.front()), log + " is in the project already (run 1)");
  EXPECT_EQ(store_.runs().size(), 2u);
}

TEST_F(Imports, PastedTextIsRecognisedToo) {
  EXPECT_EQ(import(ImportRequest{.text = log_of(100)}).runs.size(), 1u);
  const ImportOutcome again = import(ImportRequest{.text = log_of(100)});
  EXPECT_TRUE(again.runs.empty());
  EXPECT_EQ(again.skipped.size(), 1u);
  EXPECT_EQ(import({file("a.log", log_of(100))}).skipped.size(), 1u);
  EXPECT_EQ(store_.runs().size(), 1u);
}

TEST_F(Imports, RunsInTheBinDoNotCount) {
  const std::string log = file("a.log", log_of(100));
  const ImportOutcome first = import({log});
  store_.curation().set(first.runs.front().id, {.deleted_at = 1});
  EXPECT_EQ(import({log}).runs.size(), 1u);
}

TEST_F(Imports, AFolderLeavesOutWhatIsKnownAndIsNoFailure) {
  file("runs/a.log", log_of(100));
  const std::string folder = (folder_ / "runs").string();
  EXPECT_EQ(import({folder}).runs.size(), 1u);
  EXPECT_EQ(import({folder}).skipped.size(), 1u);
  EXPECT_TRUE(import({folder}).failures.empty());
  EXPECT_EQ(store_.ladders().size(), 1u);
  file("runs/b.log", log_of(50));
  const ImportOutcome grown = import({folder});
  ASSERT_EQ(grown.runs.size(), 1u);
  EXPECT_EQ(grown.runs.front().name, "b");
}

TEST_F(Imports, AFileThatIsNamedTwiceIsReadOnce) {
  const std::string log = file("a.log", log_of(100));
  const ImportOutcome outcome = import({log, (folder_ / "." / "a.log").string()});
  EXPECT_EQ(outcome.runs.size(), 1u);
  ASSERT_FALSE(outcome.notes.empty());
}

TEST_F(Imports, RungsKeepTheNamesOfTheirFiles) {
  for (const char* name : {"runs/lr-1.log", "runs/lr-2.log", "runs/lr-3.log"}) file(name, log_of(100));
  const ImportOutcome outcome =
      import(ImportRequest{.paths = {(folder_ / "runs").string()}, .options = {.files = FilesAre::rungs}});
  ASSERT_EQ(outcome.runs.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(outcome.runs[static_cast<std::size_t>(i)].rung, i);
    EXPECT_EQ(outcome.runs[static_cast<std::size_t>(i)].title, "lr-" + std::to_string(i + 1));
  }
}

TEST_F(Imports, AFolderOfConfigurationsIsASweepInTheOrderOfItsValues) {
  const auto log = [](const char* lr) { return std::string("learning_rate = ") + lr + "\n" + log_of(100); };
  const std::string last = file("runs/a.log", log("0.1"));
  file("runs/b.log", log("0.001"));
  file("runs/c.log", log("0.01"));
  const ImportOutcome outcome = import({(folder_ / "runs").string()});
  ASSERT_EQ(outcome.runs.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(outcome.runs[i].rung, static_cast<int>(i));
  EXPECT_EQ(outcome.runs[0].title, "learning_rate 0.001");
  EXPECT_EQ(outcome.runs[1].title, "learning_rate 0.01");
  EXPECT_EQ(outcome.runs[2].source_path, last);
  std::vector<const stepladder::Run*> runs;
  for (const stepladder::Run& run : outcome.runs) runs.push_back(&run);
  EXPECT_EQ(swept_settings(runs), std::vector<std::string>{"learning_rate"});
}

TEST_F(Imports, RungsWhoseLogsNameOneStageAreToldApartByTheirFiles) {
  for (const char* name : {"runs/lr-1.log", "runs/lr-2.log"}) file(name, "## Baseline\n" + log_of(100));
  const ImportOutcome outcome =
      import(ImportRequest{.paths = {(folder_ / "runs").string()}, .options = {.files = FilesAre::rungs}});
  ASSERT_EQ(outcome.runs.size(), 2u);
  EXPECT_EQ(outcome.runs[0].title, "lr-1");
  EXPECT_EQ(outcome.runs[1].title, "lr-2");
  EXPECT_EQ(outcome.runs[1].stage, "Baseline");
}

TEST_F(Imports, TheUserChoosesRoleNameAndOrderOfSingleFiles) {
  using Role = FileChoice::Role;
  const std::string a = file("runs/a.log", log_of(100)), b = file("runs/b.log", log_of(99.9));
  const std::string c = file("runs/c.log", log_of(50)), d = file("runs/d.log", log_of(70));
  const ImportOutcome outcome = import(ImportRequest{.paths = {(folder_ / "runs").string()},
                                                     .choices = {{a, {Role::rung, 2, "slow", 4096}},
                                                                 {b, {Role::repeat, 3, "", 0}},
                                                                 {c, {Role::rung, 1, "fast", 0}},
                                                                 {d, {Role::apart, 0, "another", 0}}}});
  ASSERT_EQ(outcome.runs.size(), 4u);
  std::map<std::string, stepladder::Run> runs;
  for (const stepladder::Run& run : store_.runs()) runs[std::filesystem::path(run.source_path).stem().string()] = run;
  EXPECT_EQ(runs["c"].rung, 0);
  EXPECT_EQ(runs["c"].stage, "fast");
  EXPECT_EQ(runs["a"].rung, 1);
  EXPECT_EQ(runs["a"].repeat, 0);
  EXPECT_EQ(runs["a"].tokens_per_step, 4096);
  EXPECT_EQ(runs["b"].tokens_per_step, 0);
  EXPECT_EQ(runs["a"].title, "slow");
  EXPECT_EQ(runs["b"].rung, 1);
  EXPECT_EQ(runs["b"].repeat, 1);
  EXPECT_EQ(runs["b"].stage, "slow");
  EXPECT_FALSE(runs["d"].ladder);
  EXPECT_EQ(runs["d"].name, "another");
  EXPECT_EQ(store_.ladders().size(), 1u);
}

TEST_F(Imports, FilesThatAreLaddersLeaveNoEmptyOne) {
  const auto blocks = [](double dt) { return "## Baseline\n" + log_of(dt) + "## TF32\n" + log_of(dt / 2); };
  file("seeds/a.txt", blocks(100));
  file("seeds/b.txt", blocks(80));
  EXPECT_EQ(import({(folder_ / "seeds").string()}).runs.size(), 4u);
  ASSERT_EQ(store_.ladders().size(), 2u);
  for (const Ladder& ladder : store_.ladders()) EXPECT_EQ(store_.runs_of(ladder.id).size(), 2u);
}

// A project with a series of two tries: the first was kept, the second isn't judged yet.
std::string project_with_tries(const TemporaryFolder& folder, std::int64_t parent_of_second = 1) {
  RunStore theirs = RunStore::open(folder / "night.db");
  const LadderId ladder = theirs.create_ladder({.name = "tries of theirs"});
  theirs.tries().save({.ladder = ladder, .checkout = "/home/them/theirs", .plan = "{}", .begun_at = 5});
  theirs.create_run({.name = "of another ladder", .status = RunStatus::finished});
  for (std::int64_t number = 0; number < 3; ++number) {
    theirs.tries().save(ladder, {.number = number,
                                 .message = "change " + std::to_string(number),
                                 .parent = number == 2 ? parent_of_second : 0,
                                 .tree = std::string(40, 'a'),
                                 .patch = number == 1 ? "+faster" : "",
                                 .patch_bytes = 7,
                                 .verdict = number == 2 ? "" : "kept",
                                 .answer = R"({"reason":"better"})"});
    Run run{.name = "run", .status = RunStatus::finished};
    run.ladder = ladder;
    run.rung = static_cast<int>(number);
    const RunId id = theirs.create_run(run);
    theirs.tries().add(ladder, {.place = number + 1,
                                .during = number,
                                .state = number,
                                .run = id,
                                .value = 10.0 - static_cast<double>(number)});
  }
  theirs.tries().add(ladder, {.place = 4, .during = at_the_end, .state = 0, .run = 0, .value = 10});
  return theirs.file().string();
}

TEST_F(Imports, ARunThatOthersDisturbedIsSoInACopyToo) {
  const std::filesystem::path theirs = folder_ / "theirs.db";
  {
    RunStore store = RunStore::open(theirs);
    std::vector<StepRecord> steps;
    std::vector<RunEvent> events;
    for (int i = 1; i <= 5000; ++i)
      steps.push_back({.step = i, .loss = 3, .dt_ms = 500, .tokens = 8, .at = 1e9 + i / 2.0});
    const RunId run = store.insert_finished({.name = "busy", .sync = Sync::none}, steps);
    for (int i = 0; i <= 2500; ++i)
      events.emplace_back(SystemMetrics{
          .run = run, .step = 2 * i, .at = 1e9 + i, .contention = {.other_cores = 1.5, .cores = 2, .needed_cores = 2}});
    EXPECT_TRUE(store.apply(events).empty());
    EXPECT_TRUE(is_disturbed(store.summary(store.existing_run(run))));
  }
  const ImportOutcome outcome = import({theirs.string()});
  ASSERT_EQ(outcome.runs.size(), 1u);
  EXPECT_EQ(store_.recordings().system_metrics(outcome.runs.front().id).size(), 2501u);
  EXPECT_TRUE(is_disturbed(store_.summary(outcome.runs.front())));
  EXPECT_EQ(outcome.runs.front().sync, Sync::none);
}

TEST_F(Imports, ASeriesOfTriesOfAnotherProjectIsHistory) {
  const ImportOutcome outcome = import({project_with_tries(folder_)});
  ASSERT_EQ(outcome.runs.size(), 4u);
  const std::vector<TrySeries> all = store_.tries().all();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].checkout, "night.db:/home/them/theirs") << "the folder may be one of this machine";
  EXPECT_FALSE(all[0].is_open()) << "nobody here continues it";
  const std::vector<Try> tries = store_.tries().tries(all[0].ladder);
  ASSERT_EQ(tries.size(), 3u);
  EXPECT_EQ(tries[1].patch, "+faster");
  EXPECT_EQ(tries[1].verdict, "kept");
  EXPECT_EQ(tries[2].parent, 1);
  const std::vector<TryRun> runs = store_.tries().runs(all[0].ladder);
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[3].run, 0) << "it was deleted there";
  EXPECT_EQ(runs[3].during, at_the_end);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto run = store_.run(runs[i].run);
    ASSERT_TRUE(run) << i;
    EXPECT_EQ(run->rung, static_cast<int>(i));
    EXPECT_EQ(run->ladder, all[0].ladder);
    EXPECT_EQ(runs[i].value, 10.0 - static_cast<double>(i));
  }
}

TEST_F(Imports, AnImportThatIsInterruptedLeavesNoSeriesOfTries) {
  project_with_tries(folder_);
  file("zz.log", log_of(100));
  int files = 0;
  const ImportOutcome outcome = import(ImportRequest{.paths = {folder_.path().string()},
                                                     .interrupted = [&] { return files == 2; },
                                                     .begins = [&](const std::string&) { ++files; }});
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_EQ(files, 2);
  EXPECT_TRUE(store_.runs().empty());
  EXPECT_TRUE(store_.tries().all().empty());
  EXPECT_TRUE(store_.ladders().empty());
}

// The first run of each series is of the other's ladder.
TEST_F(Imports, WhatWasStoredBeforeTheDiskIsFullIsCounted) {
  const std::vector<std::string> logs{file("a.log", log_of(100)), file("b.log", log_of(90)), file("c.log", log_of(80))};
  for (const bool at_its_end : {false, true}) {
    const std::size_t before = store_.runs().size();
    bool is_full = false;
    const ImportOutcome outcome = import_into(
        [&]() -> RunStore& {
          if (is_full || (at_its_end && store_.runs().size() > before)) throw StorageError("the disk is full");
          return store_;
        },
        {.paths = logs, .begins = [&](const std::string& log) { is_full = log == logs[1]; }});
    EXPECT_TRUE(outcome.error);
    EXPECT_EQ(outcome.runs.size(), 1u);
    EXPECT_EQ(outcome.paths_done, at_its_end ? 0u : 1u);
    EXPECT_EQ(store_.runs().size(), before + 1);
  }
}

TEST_F(Imports, ARunOfAnotherLadderIsNoRunOfASeries) {
  const std::string file = project_with_tries(folder_);
  {
    RunStore theirs = RunStore::open(file);
    const LadderId series = theirs.tries().all().front().ladder;
    theirs.tries().add(series, {.place = 5, .during = 0, .state = 0, .run = 1, .value = 3});
    ASSERT_FALSE(theirs.run(1)->ladder);
  }
  import({file});
  const std::vector<TryRun> runs = store_.tries().runs(store_.tries().all().at(0).ladder);
  ASSERT_EQ(runs.size(), 5u);
  EXPECT_EQ(runs[4].run, 0);
}

bool has_note(const ImportOutcome& outcome, const std::string& text) {
  return std::ranges::any_of(outcome.notes, [&](const ImportNote& note) { return note.text.find(text) != text.npos; });
}

TEST_F(Imports, ASeriesWhoseRunsAreInTheBinIsReported) {
  const std::string file = project_with_tries(folder_);
  {
    RunStore theirs = RunStore::open(file);
    for (const stepladder::Run& run : theirs.runs())
      if (run.ladder) theirs.curation().set(run.id, {.deleted_at = 1});
  }
  const ImportOutcome outcome = import({file});
  EXPECT_EQ(outcome.runs.size(), 1u);
  EXPECT_TRUE(store_.tries().all().empty());
  EXPECT_TRUE(has_note(outcome, "1 series of tries is left out: none of the runs is imported"));
}

TEST_F(Imports, SeriesThatWouldFillTheMemoryAreLeftOut) {
  const std::string file = project_with_tries(folder_);
  {
    RunStore theirs = RunStore::open(file);
    const LadderId series = theirs.tries().all().front().ladder;
    const std::string patch(2 << 20, '+');
    for (std::int64_t number = 3; number < 135; ++number)
      theirs.tries().save(series, {.number = number, .parent = 1, .patch = patch, .verdict = "worse"});
  }
  const ImportOutcome outcome = import({file});
  EXPECT_EQ(outcome.runs.size(), 4u);
  EXPECT_TRUE(store_.tries().all().empty());
  EXPECT_TRUE(has_note(outcome, "256 MiB"));
}

TEST_F(Imports, ASeriesWhoseTriesContradictEachOtherIsLeftOut) {
  const ImportOutcome outcome = import({project_with_tries(folder_, 7)});
  EXPECT_EQ(outcome.runs.size(), 4u) << "its runs are runs";
  EXPECT_TRUE(store_.tries().all().empty());
  EXPECT_TRUE(has_note(outcome, "series of tries is left out"));
}

}  // namespace
}  // namespace stepladder
