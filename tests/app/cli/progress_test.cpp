// What `follow` waits for.
#include "app/cli/progress.h"

#include <gtest/gtest.h>

#include <chrono>

#include "engine/trainer_library.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

DeviceReport machine() {
  DeviceReport report;
  report.cpu_name = "fake";
  report.cpu_cores = 2;
  return report;
}

const TrainerLibrary at_once = {
    .probe = machine,
    .train = [](const TrainingJob& job, RunControl&, const std::function<void(const RunEvent&)>& emit) {
      emit(RunStarted{.run = job.run, .at = 1, .device = "cpu"});
      emit(RunEnded{.run = job.run, .at = 2, .status = RunStatus::finished});
    }};

// As when a round of `confirm` begins, and its first run ends, while the round before is followed.
TEST(Follow, ARunWhoseEndWasDrainedBeforeIsNotAwaited) {
  const TemporaryFolder folder;
  Session session(folder / "runs.db", {}, &at_once);
  Recipe recipe;
  recipe.steps = 3;
  recipe.device = "cpu";
  const RunId first = session.launch_run({.base = recipe}, machine());
  for (int i = 0; i < 500 && !session.has_ended(first); ++i) session.wait_and_drain(std::chrono::milliseconds(20));
  ASSERT_TRUE(session.has_ended(first));
  const RunId second = session.launch_run({.base = recipe}, machine());
  EXPECT_TRUE(follow(session, {first, second}));
  EXPECT_TRUE(is_over(session.store().run(second)->status));
}

}  // namespace
}  // namespace stepladder
