#include <gtest/gtest.h>

#include "app/session/launched_runs.h"

namespace stepladder {
namespace {

Run run(RunId id, int rung, RunStatus status, double created_at, double ended_at) {
  return {.id = id,
          .rung = rung,
          .status = status,
          .source = "launched",
          .created_at = created_at,
          .started_at = created_at + 1,
          .ended_at = ended_at};
}

using Runs = std::vector<Run>;

std::vector<RunId> left_of(const Runs& runs) {
  std::vector<RunId> ids;
  for (const Run& left : runs_to_continue(runs)) ids.push_back(left.id);
  return ids;
}

TEST(ContinuedLadder, InterruptedAndStoppedRunsAreLeftInTheOrderOfLaunching) {
  Runs runs = {run(4, 0, RunStatus::finished, 10, 20), run(2, 1, RunStatus::interrupted, 10, 30),
               run(1, 2, RunStatus::stopped, 10, 30), run(3, 3, RunStatus::failed, 10, 30)};
  EXPECT_EQ(left_of(runs), (std::vector<RunId>{1, 2}));
  runs[0].status = RunStatus::running;
  EXPECT_TRUE(left_of(runs).empty()) << "somebody trains it";
  runs[0].status = RunStatus::finished;
  for (auto& each : runs) each.source = "import";
  EXPECT_TRUE(left_of(runs).empty());
}

TEST(ContinuedLadder, ALaterRunOfTheRungStandsInForOne) {
  Runs runs = {run(1, 0, RunStatus::interrupted, 10, 20), run(2, 0, RunStatus::interrupted, 10, 15),
               run(3, 1, RunStatus::interrupted, 10, 10), run(4, 0, RunStatus::finished, 50, 60)};
  EXPECT_EQ(left_of(runs), (std::vector<RunId>{2, 3}));
  runs.push_back(run(5, 0, RunStatus::interrupted, 70, 80));
  EXPECT_EQ(left_of(runs), (std::vector<RunId>{3, 5}));
  for (auto& each : runs) each.started_at = missing;
  EXPECT_EQ(left_of(runs), (std::vector<RunId>{1, 2, 3, 5})) << "one that never began needs no other";
}

}  // namespace
}  // namespace stepladder
