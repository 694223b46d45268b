// "Continue" in Ladder trains what an interrupted ladder left.
#include <gtest/gtest.h>

#include "engine/trainer_library.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

void train_at_once(const TrainingJob& job, RunControl&, const std::function<void(const RunEvent&)>& emit) {
  emit(RunStarted{.run = job.run, .at = unix_now(), .tokens_per_step = 768, .params = 10, .device = "cpu"});
  for (std::int64_t step = 1; step <= job.recipe.steps; ++step)
    emit(StepRecord{.run = job.run, .step = step, .loss = 4, .dt_ms = 10, .tokens = 768, .at = unix_now()});
  emit(RunEnded{.run = job.run, .at = unix_now(), .status = RunStatus::finished});
}

DeviceReport machine_without_gpu() {
  return {};
}

const TrainerLibrary quick_trainer = {.probe = machine_without_gpu, .train = train_at_once};

// The rows are a stranger's: this user has launched nothing here.
TEST(ContinueTest, TheButtonTrainsWhatIsLeftOnceItIsAdopted) {
  const TemporaryFolder folder;
  ::setenv("XDG_STATE_HOME", (folder / "state").c_str(), 1);
  Session session(folder / "runs.db", {}, &quick_trainer);
  RunStore& store = session.store();
  const LadderId ladder = store.create_ladder({.name = "cut", .source = "launched"});
  Recipe recipe;
  recipe.steps = 20;
  recipe.device = "cpu";
  for (int rung = 0; rung < 3; ++rung) {
    store.insert_finished({.name = "rung",
                           .ladder = ladder,
                           .rung = rung,
                           .status = rung == 0 ? RunStatus::finished : RunStatus::interrupted,
                           .source = "launched",
                           .planned_steps = 20,
                           .recipe = to_json(recipe)},
                          {});
  }
  Headless imgui;
  DesktopApp app(store, &session, DesktopSettings{.panels = {"ladder"}});
  app.workspace().patience = std::chrono::hours(1);  // so that results are complete even on a slow machine
  imgui.frame(app);
  ASSERT_TRUE(imgui.click(app, "ladder.continue"));
  EXPECT_TRUE(session.idle());
  EXPECT_EQ(store.processes().runs_under_way().size(), 0u);
  ASSERT_TRUE(imgui.click(app, "adoption.cancel"));
  ASSERT_TRUE(imgui.click(app, "ladder.continue"));
  ASSERT_TRUE(imgui.click(app, "adoption.agree"));
  const auto finished = [&] {
    const auto runs = store.runs_of(ladder);
    return std::count_if(runs.begin(), runs.end(),
                         [](const stepladder::Run& run) { return run.status == RunStatus::finished; });
  };
  EXPECT_TRUE(imgui.frames_until(app, [&] { return finished() == 3; }));
  EXPECT_EQ(store.runs_of(ladder).size(), 3u);
  EXPECT_EQ(store.series(store.runs_of(ladder)[2].id).size(), 20u);
}

// A button that appears under the mouse has started a training that nobody wanted.
TEST(ContinueTest, TheButtonMovesNoOtherOne) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "cut", .source = "launched"});
  std::vector<RunId> runs;
  for (int rung = 0; rung < 2; ++rung)
    runs.push_back(store.insert_finished(
        {.name = "rung", .ladder = ladder, .rung = rung, .source = "launched", .planned_steps = 20}, {}));
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  app.workspace().patience = std::chrono::hours(1);
  const auto places = [&] {
    ui_test_anchors::keep();
    for (int i = 0; i < 6; ++i) imgui.frame(app);
    std::vector<std::pair<float, float>> all;
    for (const char* name : {"ladder.again", "ladder.compare", "ladder.export", "ladder.more"}) {
      const auto box = ui_test_anchors::find(name);
      all.emplace_back(box ? box->x0 : -1, box ? box->y0 : -1);
    }
    return all;
  };
  const auto before = places();
  EXPECT_FALSE(ui_test_anchors::find("ladder.continue"));
  EXPECT_GT(before.front().first, 0);
  stepladder::Run stopped = *store.run(runs[1]);
  stopped.status = RunStatus::interrupted;
  Recipe recipe;
  recipe.steps = 20;
  stopped.recipe = to_json(recipe);
  store.update_run(stopped);
  app.workspace().load(store);
  EXPECT_EQ(places(), before);
  EXPECT_TRUE(ui_test_anchors::find("ladder.continue"));
}

}  // namespace
}  // namespace stepladder
