// Tests the session with a trainer that needs no LibTorch: launched runs are in the database, complete and in order.
#include "app/session/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "app/launch/preset_ladder.h"
#include "engine/files/tokens.h"
#include "engine/trainer_library.h"
#include "tests/engine/files/saved_checkpoint.h"

namespace stepladder {
namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "stepladder-session-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

DeviceReport machine() {
  DeviceReport report;
  report.cpu_name = "fake";
  report.cpu_cores = 2;
  return report;
}

// A falling loss, a millisecond per step; a run with seed 666 fails half-way.
void train(const TrainingJob& job, RunControl& control, const std::function<void(const RunEvent&)>& emit) {
  const RunId run = job.run;
  const Recipe& recipe = job.recipe;
  emit(RunStarted{.run = run, .at = 1000, .tokens_per_step = recipe.tokens_per_step(), .params = 10, .device = "cpu"});
  for (std::int64_t step = 1; step <= recipe.steps; ++step) {
    control.wait_while_paused();
    if (control.stop_token().stop_requested())
      return emit(RunEnded{.run = run, .at = 2000, .status = RunStatus::stopped});
    if (recipe.seed == 666 && step > recipe.steps / 2) {
      return emit(RunEnded{.run = run, .at = 2000, .status = RunStatus::failed, .reason = "on purpose"});
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    emit(StepRecord{.run = run,
                    .step = step,
                    .loss = 4.0 / static_cast<double>(step),
                    .dt_ms = 1,
                    .tokens = recipe.tokens_per_step(),
                    .at = 1000});
  }
  emit(RunEnded{.run = run, .at = 2000, .status = RunStatus::finished});
}

const TrainerLibrary fake = {.probe = machine, .train = train};

LadderRequest request(std::int64_t steps, int repeats = 1) {
  LadderRequest asked;
  asked.base.steps = steps;
  asked.base.device = "cpu";
  asked.rungs = parse_rungs("baseline,flash-attention,fused-adamw");
  asked.repeats = repeats;
  return asked;
}

void wait_for_end(Session& session, std::size_t runs) {
  for (std::size_t ended = 0; ended < runs;) {
    for (const RunEvent& event : session.wait_and_drain(std::chrono::milliseconds(50))) {
      ended += std::holds_alternative<RunEnded>(event) ? 1 : 0;
    }
  }
  session.flush();
}

TEST(Session, ALadderIsKeptWhole) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  const LaunchedLadder launched = session.launch_ladder(request(60, 2), machine());
  ASSERT_EQ(launched.runs.size(), 6u);
  wait_for_end(session, 6);
  const auto runs = session.store().runs_of(launched.ladder);
  ASSERT_EQ(runs.size(), 6u);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].rung, static_cast<int>(i / 2));
    EXPECT_EQ(runs[i].repeat, static_cast<int>(i % 2));
    EXPECT_EQ(runs[i].stands_on, runs[i].rung - 1);
    EXPECT_EQ(runs[i].status, RunStatus::finished);
    EXPECT_EQ(session.store().series(runs[i].id).size(), 60u);
    EXPECT_NE(runs[i].recipe.find("\"steps\""), std::string::npos);
    EXPECT_NE(runs[i].environment.find("\"program\""), std::string::npos);
  }
}

TEST(Session, APlanIsLaunchedAsItWasShown) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  LadderRequest asked = request(20);
  const LadderPlan plan = plan_of(asked, machine());
  asked.base.data = (folder / "nothing.txt").string();  // would be refused if it were prepared again
  const LaunchedLadder launched = session.launch_ladder(asked, plan);
  wait_for_end(session, launched.runs.size());
  const auto runs = session.store().runs_of(launched.ladder);
  ASSERT_EQ(runs.size(), plan.rungs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(runs[i].recipe, to_json(plan.rungs[i].recipe));
}

TEST(Session, RunsAreRepeatedByTheirOwnRecipes) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  const LaunchedLadder launched = session.launch_ladder(request(30), machine());
  wait_for_end(session, 3);
  const std::vector<RunId> repeated = session.repeat({launched.runs[0], launched.runs[2]}, 2);
  for (const RunId id : repeated) EXPECT_EQ(session.store().existing_run(id).looks_up_to, added_after_a_look);
  ASSERT_EQ(repeated.size(), 4u);
  wait_for_end(session, 4);
  const auto runs = session.store().runs_of(launched.ladder);
  ASSERT_EQ(runs.size(), 7u);
  for (const stepladder::Run& run : runs) {
    const auto first = std::find_if(runs.begin(), runs.end(), [&](const stepladder::Run& other) {
      return other.rung == run.rung && other.repeat == 0;
    });
    EXPECT_EQ(run.recipe, first->recipe);
    EXPECT_EQ(run.stage, first->stage);
    EXPECT_EQ(run.stands_on, first->stands_on);
    EXPECT_EQ(run.status, RunStatus::finished);
    if (run.repeat > 0) {
      EXPECT_TRUE(run.name.ends_with(" #" + std::to_string(run.repeat + 1))) << run.name;
    }
  }
  const auto repeats =
      std::count_if(runs.begin(), runs.end(), [](const stepladder::Run& run) { return run.rung == 0; });
  EXPECT_EQ(repeats, 3);
  const RunId imported = session.store().insert_finished({.name = "log", .source = "import"}, {});
  EXPECT_THROW(session.repeat({imported}, 1), RecipeError);
}

TEST(Session, ARepeatOfTheFirstRepeatHasOneNumber) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  LadderRequest asked = request(30);
  asked.repeats = 2;
  const LaunchedLadder launched = session.launch_ladder(asked, machine());
  wait_for_end(session, launched.runs.size());
  const auto repeats = session.repeat({launched.runs[0], launched.runs[1]}, 1);
  wait_for_end(session, repeats.size());
  for (const stepladder::Run& run : session.store().runs_of(launched.ladder)) {
    EXPECT_TRUE(run.name.ends_with(" #" + std::to_string(run.repeat + 1))) << run.name;
    EXPECT_EQ(run.name.find(" #"), run.name.rfind(" #")) << run.name;
  }
}

TEST(PresetLadder, TheSameRungsAreAskedForAgain) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  LadderRequest asked = request(30);
  asked.rungs[1].values = {{"batch", "24"}};
  const LaunchedLadder launched = session.launch_ladder(asked, machine());
  wait_for_end(session, 3);
  const LadderRequest again =
      measure_here(session.store().ladders().front(), session.store().runs_of(launched.ladder), machine());
  const LadderPlan plan = plan_ladder(again.base, again.rungs, machine());
  ASSERT_EQ(plan.rungs.size(), launched.plan.rungs.size());
  for (std::size_t i = 0; i < plan.rungs.size(); ++i) {
    EXPECT_EQ(plan.rungs[i].stage, launched.plan.rungs[i].stage);
    EXPECT_EQ(difference(plan.rungs[i].recipe, launched.plan.rungs[i].recipe), "");
  }
}

TEST(PresetLadder, AnImportedOneIsKnownByItsLog) {
  const Ladder seed{.name = "any", .source = "import", .source_path = "/logs/rtx3080-4090-ladder.txt"};
  const LadderRequest here = measure_here(seed, {}, machine());
  EXPECT_GT(here.rungs.size(), 5u);
  EXPECT_LE(here.base.seq, 64) << "a CPU";
  EXPECT_LE(here.base.steps, 20);
  EXPECT_THROW(measure_here({.name = "mine", .source = "import", .source_path = "/logs/mine.txt"}, {}, machine()),
               RecipeError);
}

TEST(PresetLadder, OnACpuIsSmallUnlessTheUserSaysOtherwise) {
  const LadderPreset& plan = ladder_preset("rtx3080");
  ASSERT_GT(plan.base.seq, 64);
  EXPECT_EQ(preset_ladder(plan, machine()).base.seq, 64);
  const LadderRequest own = preset_ladder(plan, machine(), [](Recipe recipe) {
    recipe.seq = 128;
    return recipe;
  });
  EXPECT_EQ(own.base.seq, 128);
  EXPECT_EQ(own.base.steps, 20);
}

TEST(Session, InterleavedRunsAreTheSameRunsInAnotherOrder) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  LadderRequest asked = request(1, 4);
  asked.interleave = true;
  const LaunchedLadder launched = session.launch_ladder(asked, machine());
  wait_for_end(session, 12);
  std::vector<int> order;
  for (const RunId id : launched.runs) order.push_back(session.store().run(id)->rung);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
}

TEST(Session, StoppingKeepsEveryStepAndEmptiesTheQueue) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  const LaunchedLadder launched = session.launch_ladder(request(1'000'000), machine());
  std::size_t steps = 0;
  while (steps < 20) {
    for (const RunEvent& event : session.wait_and_drain(std::chrono::milliseconds(50))) {
      steps += std::holds_alternative<StepRecord>(event) ? 1 : 0;
    }
  }
  session.stop_all();
  std::size_t ended = 0;
  while (ended < 3) {
    for (const RunEvent& event : session.wait_and_drain(std::chrono::milliseconds(50))) {
      steps += std::holds_alternative<StepRecord>(event) ? 1 : 0;
      ended += std::holds_alternative<RunEnded>(event) ? 1 : 0;
    }
  }
  session.flush();
  for (const RunId id : launched.runs) EXPECT_EQ(session.store().run(id)->status, RunStatus::stopped);
  EXPECT_EQ(session.store().series(launched.runs[0]).size(), steps);
  EXPECT_TRUE(session.store().series(launched.runs[1]).empty());
}

TEST(Session, AFailedRunKeepsItsStepsAndTheNextOneRuns) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  Recipe recipe;
  recipe.steps = 10;
  recipe.device = "cpu";
  Recipe failing = recipe;
  failing.seed = 666;
  const RunId bad = session.launch_run({.name = "bad", .base = failing}, machine());
  const RunId good = session.launch_run({.name = "good", .base = recipe, .stages = {"flash-attention"}}, machine());
  wait_for_end(session, 2);
  EXPECT_EQ(session.store().run(bad)->status, RunStatus::failed);
  EXPECT_EQ(session.store().run(bad)->reason, "on purpose");
  EXPECT_EQ(session.store().series(bad).size(), 5u);
  EXPECT_EQ(session.store().run(good)->status, RunStatus::finished);
  EXPECT_EQ(session.store().run(good)->stage, "flash-attention");
}

TEST(Session, WhatCannotBeTrainedMakesNoRun) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  LadderRequest asked = request(10);
  asked.base.data = (folder / "nothing.txt").string();
  EXPECT_THROW(session.launch_ladder(asked, machine()), DataError);
  asked = request(0);
  EXPECT_THROW(session.launch_ladder(asked, machine()), RecipeError);
  asked = request(10);
  asked.rungs = {{.stages = {"flash"}}};
  EXPECT_THROW(session.launch_ladder(asked, machine()), RecipeError);
  asked = request(10);
  asked.base.vocab = 100;
  EXPECT_THROW(session.launch_ladder(asked, machine()), RecipeError);
  EXPECT_TRUE(session.store().runs().empty());
  EXPECT_TRUE(session.store().ladders().empty());
}

// Does what another process would: moves the run into the bin, and empties the bin.
void delete_for_good(const std::filesystem::path& database, RunId run) {
  RunStore other = RunStore::open(database);
  other.curation().set(run, {.deleted_at = 1});
  ASSERT_EQ(other.bin().empty(2), std::vector<RunId>{run});
}

TEST(Session, ARunThatAnotherProcessHasDeletedIsAClearError) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  Recipe recipe;
  recipe.steps = 3;
  recipe.device = "cpu";
  const RunId id = session.launch_run({.base = recipe}, machine());
  const RunId last = session.launch_run({.base = recipe}, machine());
  wait_for_end(session, 2);
  delete_for_good(folder / "runs.db", id);
  const auto expect_error = [&](auto&& work) {
    try {
      work();
      ADD_FAILURE() << "no error";
    } catch (const StorageError& error) {
      EXPECT_EQ(std::string(error.what()).find("Run " + std::to_string(id) + " is no longer in the database"), 0u)
          << error.what();
    }
  };
  expect_error([&] { session.repeat({last, id}, 1); });
  expect_error([&] { session.resume(id, recipe); });
  expect_error([&] { session.launch_run({.base = recipe, .fork_of = id}, machine()); });
  EXPECT_EQ(session.store().runs().size(), 1u) << "nothing was launched";
}

TEST(Session, AResumedRunKeepsItsStepsAndItsNewPlan) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  Recipe recipe;
  recipe.steps = 6;
  recipe.device = "cpu";
  const RunId id = session.launch_run({.base = recipe}, machine());
  wait_for_end(session, 1);
  ASSERT_TRUE(session.flush());
  save_test_checkpoint(checkpoint_owner(session.store().file(), *session.store().run(id)), 3);
  recipe = recipe_from_json(session.store().run(id)->recipe);
  recipe.steps = 5;
  try {
    session.resume(id, recipe);
    ADD_FAILURE() << "step 6 would be beyond its plan";
  } catch (const RecipeError& error) {
    EXPECT_NE(std::string(error.what()).find("has recorded 6 steps, more than 5"), std::string::npos) << error.what();
  }
  EXPECT_EQ(session.store().run(id)->status, RunStatus::finished);
  recipe.steps = 8;
  session.resume(id, recipe);
  EXPECT_EQ(recipe_from_json(session.store().run(id)->recipe).steps, 8) << "also if it's killed before it starts";
  wait_for_end(session, 1);
}

TEST(Session, EndingTheSessionInMidRunStopsItCleanly) {
  const Folder folder;
  RunId id = 0;
  {
    Session session(folder / "runs.db", {}, &fake);
    Recipe recipe;
    recipe.steps = 1'000'000;
    recipe.device = "cpu";
    id = session.launch_run({.base = recipe}, machine());
    while (session.wait_and_drain(std::chrono::milliseconds(50)).size() < 2) {
    }
  }
  RunStore store = RunStore::open(folder / "runs.db", RunStore::Mode::read_only);
  EXPECT_EQ(store.run(id)->status, RunStatus::stopped);
  EXPECT_GT(store.series(id).size(), 0u);
}

// As another window does: the order is that of the owner's queue, since two windows must not disagree.
TEST(Session, AnotherProcessSeesTheQueueAndChangesIt) {
  const Folder folder;
  Session session(folder / "runs.db", {}, &fake);
  const std::vector<RunId> runs = session.launch_ladder(request(1'000'000), machine()).runs;
  RunStore other = RunStore::open(folder / "runs.db");
  const auto wait_for = [&](const std::vector<RunId>& order, bool paused) {
    std::vector<RunId> seen;
    for (int i = 0; i < 6000 && !(seen == order && other.processes().is_paused(order[0]) == paused); ++i) {
      session.wait_and_drain(std::chrono::milliseconds(50));
      seen.clear();
      for (const stepladder::Run& run : other.processes().runs_under_way()) seen.push_back(run.id);
    }
    EXPECT_EQ(seen, order);
    EXPECT_EQ(other.processes().is_paused(order[0]), paused);
  };
  wait_for({runs[0], runs[1], runs[2]}, false);
  other.processes().request(runs[2], QueuePlace{.place = 0});
  wait_for({runs[0], runs[2], runs[1]}, false);
  EXPECT_EQ(session.queue(), (std::vector{runs[2], runs[1]}));
  other.processes().request(runs[0], RunRequest::pause);
  wait_for({runs[0], runs[2], runs[1]}, true);
  other.processes().request(runs[0], RunRequest::resume);
  wait_for({runs[0], runs[2], runs[1]}, false);
  other.processes().request(runs[0], RunRequest::stop);
  wait_for({runs[2], runs[1]}, false);
}

// Continues for a while after a request to stop, like a run that saves its last checkpoint.
std::atomic<std::int64_t> steps_emitted = 0;
void train_with_a_long_end(const TrainingJob& job, RunControl& control,
                           const std::function<void(const RunEvent&)>& emit) {
  const auto step = [&] { emit(StepRecord{.run = job.run, .step = ++steps_emitted, .loss = 1, .dt_ms = 1}); };
  emit(RunStarted{.run = job.run, .at = 1000, .device = "cpu"});
  step();
  while (!control.stop_token().stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    step();
  }
  emit(TextSample{.run = job.run, .step = steps_emitted, .at = 1999, .text = "the end"});
  emit(RunEnded{.run = job.run, .at = 2000, .status = RunStatus::stopped, .reason = "asked to"});
}

TEST(Session, TheLastEventsOfARunThatItsEndStopsAreInTheDatabase) {
  const TrainerLibrary slow = {.probe = machine, .train = train_with_a_long_end};
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Folder folder;
    steps_emitted = 0;
    RunId id = 0, queued = 0;
    {
      Session session(folder / "runs.db", {}, &slow);
      Recipe recipe;
      recipe.device = "cpu";
      id = session.launch_run({.base = recipe}, machine());
      queued = session.launch_run({.base = recipe}, machine());
      while (steps_emitted == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    RunStore store = RunStore::open(folder / "runs.db", RunStore::Mode::read_only);
    EXPECT_EQ(store.run(id)->reason, "asked to");
    EXPECT_EQ(store.series(id).size(), static_cast<std::size_t>(steps_emitted));
    EXPECT_EQ(store.recordings().samples(id).size(), 1u);
    EXPECT_EQ(store.run(queued)->status, RunStatus::stopped);
  }
}

}  // namespace
}  // namespace stepladder
