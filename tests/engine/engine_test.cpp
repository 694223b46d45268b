#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

#include "engine/trainer_library.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

using namespace std::chrono_literals;

// The recipe's model selects what the fake trainer does: "nano" trains at once, "endless" until stopped, "silent"
// forgets its RunEnded, "talkative" sends two, "throwing" throws.
const TrainerLibrary fake_library = {
    .probe =
        [] {
          DeviceReport report;
          report.cpu_name = "Fake CPU";
          return report;
        },
    .train =
        [](const TrainingJob& job, RunControl& control, const std::function<void(const RunEvent&)>& emit) {
          const RunId run = job.run;
          const Recipe& recipe = job.recipe;
          emit(RunStarted{.run = run});
          for (std::int64_t step = 1; recipe.model == "endless" || step <= recipe.steps; ++step) {
            control.wait_while_paused();
            if (control.stop_token().stop_requested()) {
              emit(RunEnded{.run = run, .status = RunStatus::stopped});
              return;
            }
            emit(StepRecord{.run = run, .step = step});
            if (recipe.model == "endless") std::this_thread::sleep_for(1ms);
          }
          if (recipe.model == "throwing") throw std::runtime_error("thrown");
          if (recipe.model == "silent") return;
          emit(RunEnded{.run = run});
          if (recipe.model == "talkative") emit(RunEnded{.run = run, .status = RunStatus::failed});
        },
    .measure_peak =
        [](const std::function<bool()>& stop_requested) {
          if (stop_requested()) throw std::runtime_error("stopped");
          return PeakProbe{.device = "cpu", .hardware = "2 x Fake CPU"};
        },
};

// Collects events; asked from the test's thread.
class Listener {
 public:
  std::function<void(const RunEvent&)> function() {
    return [this](const RunEvent& event) {
      std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
  }
  std::vector<RunEnded> endings() const {
    std::lock_guard lock(mutex_);
    std::vector<RunEnded> found;
    for (const RunEvent& event : events_) {
      if (const auto* ended = std::get_if<RunEnded>(&event)) found.push_back(*ended);
    }
    return found;
  }
  std::vector<RunId> started() const {
    std::lock_guard lock(mutex_);
    std::vector<RunId> found;
    for (const RunEvent& event : events_) {
      if (const auto* run_started = std::get_if<RunStarted>(&event)) found.push_back(run_started->run);
    }
    return found;
  }
  std::vector<SystemMetrics> metrics() const {
    std::lock_guard lock(mutex_);
    std::vector<SystemMetrics> found;
    for (const RunEvent& event : events_) {
      if (const auto* sample = std::get_if<SystemMetrics>(&event)) found.push_back(*sample);
    }
    return found;
  }
  std::size_t steps() const {
    std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [](const RunEvent& event) {
      return std::holds_alternative<StepRecord>(event);
    }));
  }
  void wait_for_start(RunId run) const {
    while (true) {
      const auto runs = started();
      if (std::find(runs.begin(), runs.end(), run) != runs.end()) return;
      std::this_thread::sleep_for(1ms);
    }
  }

 private:
  mutable std::mutex mutex_;
  std::vector<RunEvent> events_;
};

Recipe recipe_like(const std::string& model) {
  Recipe recipe;
  recipe.model = model;
  recipe.steps = 3;
  return recipe;
}

TEST(Engine, RunsOneAfterTheOther) {
  Listener listener;
  Engine engine(listener.function(), &fake_library);
  for (RunId run = 1; run <= 5; ++run) engine.submit({.run = run, .recipe = recipe_like("nano")});
  engine.wait_idle();
  EXPECT_EQ(listener.started(), (std::vector<RunId>{1, 2, 3, 4, 5}));
  const auto endings = listener.endings();
  ASSERT_EQ(endings.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(endings[i].run, static_cast<RunId>(i + 1));
    EXPECT_EQ(endings[i].status, RunStatus::finished);
  }
}

TEST(Engine, StopTakesAQueuedRunOffTheQueueAtOnce) {
  Listener listener;
  Engine engine(listener.function(), &fake_library);
  engine.submit({.run = 1, .recipe = recipe_like("endless")});
  engine.submit({.run = 2, .recipe = recipe_like("nano")});
  engine.submit({.run = 3, .recipe = recipe_like("nano")});
  listener.wait_for_start(1);
  engine.stop(2);
  auto endings = listener.endings();
  ASSERT_EQ(endings.size(), 1u);
  EXPECT_EQ(endings[0].run, 2);
  EXPECT_EQ(endings[0].status, RunStatus::stopped);
  EXPECT_EQ(endings[0].reason, "stopped before it started");
  engine.stop(1);
  engine.wait_idle();
  endings = listener.endings();
  ASSERT_EQ(endings.size(), 3u);
  EXPECT_EQ(endings[1].run, 1);
  EXPECT_EQ(endings[1].status, RunStatus::stopped);
  EXPECT_EQ(endings[2].run, 3);
  EXPECT_EQ(endings[2].status, RunStatus::finished);
  EXPECT_EQ(listener.started(), (std::vector<RunId>{1, 3}));
}

TEST(Engine, StoppingWhatIsNotThereDoesNothing) {
  Listener listener;
  Engine engine(listener.function(), &fake_library);
  engine.stop(7);
  engine.stop_all();
  engine.submit({.run = 1, .recipe = recipe_like("nano")});
  engine.wait_idle();
  engine.stop(1);
  EXPECT_EQ(listener.endings().size(), 1u);
}

TEST(Engine, StopAllEndsEveryRunOnce) {
  Listener listener;
  Engine engine(listener.function(), &fake_library);
  for (RunId run = 1; run <= 4; ++run) engine.submit({.run = run, .recipe = recipe_like("endless")});
  listener.wait_for_start(1);
  engine.stop_all();
  engine.wait_idle();
  EXPECT_EQ(listener.endings().size(), 4u);
  for (const RunEnded& ended : listener.endings()) EXPECT_EQ(ended.status, RunStatus::stopped);
}

TEST(Engine, DestructorEndsEveryRunOnce) {
  Listener listener;
  {
    Engine engine(listener.function(), &fake_library);
    for (RunId run = 1; run <= 4; ++run) engine.submit({.run = run, .recipe = recipe_like("endless")});
  }
  EXPECT_EQ(listener.endings().size(), 4u);
}

TEST(Engine, ExactlyOneEndWhateverTheLibraryDoes) {
  Listener listener;
  Engine engine(listener.function(), &fake_library);
  engine.submit({.run = 1, .recipe = recipe_like("silent")});
  engine.submit({.run = 2, .recipe = recipe_like("talkative")});
  engine.submit({.run = 3, .recipe = recipe_like("throwing")});
  engine.wait_idle();
  const auto endings = listener.endings();
  ASSERT_EQ(endings.size(), 3u);
  EXPECT_EQ(endings[0].status, RunStatus::failed);
  EXPECT_EQ(endings[1].status, RunStatus::finished);
  EXPECT_EQ(endings[2].status, RunStatus::failed);
  EXPECT_EQ(endings[2].reason, "thrown");
}

TEST(Engine, Probe) {
  Engine engine([](const RunEvent&) {}, &fake_library);
  const auto first = engine.probe();
  EXPECT_EQ(first.get().cpu_name, "Fake CPU");
  EXPECT_EQ(engine.probe().get().cpu_name, "Fake CPU");
}

TEST(Engine, ACeilingIsMeasuredOrSaysWhyNot) {
  Engine engine([](const RunEvent&) {}, &fake_library);
  EXPECT_EQ(engine.measure_peak([] { return false; }).get().hardware, "2 x Fake CPU");
  EXPECT_THROW(engine.measure_peak([] { return true; }).get(), std::runtime_error);
  EXPECT_EQ(engine.probe().get().cpu_name, "Fake CPU");
}

TEST(Engine, AProbeIsAnsweredWhenTheEngineCloses) {
  std::shared_future<DeviceReport> report;
  {
    Listener listener;
    Engine engine(listener.function(), &fake_library);
    engine.submit({.run = 1, .recipe = recipe_like("endless")});
    listener.wait_for_start(1);
    report = engine.probe();
  }
  // Either it finished between the stopped run and the end, or it says why it didn't.
  ASSERT_EQ(report.wait_for(0s), std::future_status::ready);
  try {
    EXPECT_EQ(report.get().cpu_name, "Fake CPU");
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the program is closing");
  }
}

TEST(Engine, WithoutItsLibraryARunFailsWithAReason) {
  ::setenv("STEPLADDER_TRAINER_LIBRARY", "/nowhere/libstepladder_trainer.so", 1);
  Listener listener;
  Engine engine(listener.function());
  engine.submit({.run = 1, .recipe = recipe_like("nano")});
  const auto report = engine.probe();
  engine.wait_idle();
  ASSERT_EQ(listener.endings().size(), 1u);
  EXPECT_EQ(listener.endings()[0].status, RunStatus::failed);
  EXPECT_NE(listener.endings()[0].reason.find("the training library could not be loaded: "), std::string::npos);
  EXPECT_THROW(report.get(), std::runtime_error);
  ::unsetenv("STEPLADDER_TRAINER_LIBRARY");
}

TEST(Engine, AnotherVersionOfTorchIsNamedBesideTheOneThatWorks) {
  const TemporaryFolder folder;
  std::ofstream(folder / "version.py") << "debug = False\n__version__ = '1.13.1+cu117'\n";
  ::setenv("STEPLADDER_TORCH", folder.path().c_str(), 1);
  Listener listener;
  Engine engine(listener.function());
  engine.submit({.run = 1, .recipe = recipe_like("nano")});
  engine.wait_idle();
  ::unsetenv("STEPLADDER_TORCH");
  ASSERT_EQ(listener.endings().size(), 1u);
  const std::string reason = listener.endings()[0].reason;
  EXPECT_NE(reason.find("but torch 1.13.1 is installed: `stepladder setup-training`"), std::string::npos) << reason;
}

TEST(Engine, ALibraryWithoutTheDoorIsNotTaken) {
  ::setenv("STEPLADDER_TRAINER_LIBRARY", "libm.so.6", 1);
  Listener listener;
  Engine engine(listener.function());
  engine.submit({.run = 1, .recipe = recipe_like("nano")});
  engine.wait_idle();
  ASSERT_EQ(listener.endings().size(), 1u);
  EXPECT_EQ(listener.endings()[0].reason, "libm.so.6 is not Stepladder's training library");
  ::unsetenv("STEPLADDER_TRAINER_LIBRARY");
}

TEST(Engine, ManyThreadsMaySubmitAndStop) {
  Listener listener;
  {
    Engine engine(listener.function(), &fake_library);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&engine, t] {
        for (int i = 0; i < 50; ++i) {
          const RunId run = t * 100 + i;
          engine.submit({.run = run, .recipe = recipe_like(i % 2 == 0 ? "nano" : "endless")});
          if (i % 2 != 0) engine.stop(run);
        }
      });
    }
    threads.clear();
    engine.wait_idle();
    EXPECT_EQ(listener.endings().size(), 200u);
  }
  EXPECT_EQ(listener.endings().size(), 200u);
}

TEST(Engine, APausedRunWaitsBetweenStepsAndAStopEndsTheWaiting) {
  Listener listener;
  Engine engine(listener.function(), &fake_library);
  engine.submit({.run = 1, .recipe = recipe_like("endless")});
  listener.wait_for_start(1);
  engine.pause(1, true);
  EXPECT_TRUE(engine.paused(1));
  std::this_thread::sleep_for(20ms);  // a step that was under way is done by now
  const std::size_t before = listener.steps();
  std::this_thread::sleep_for(50ms);
  EXPECT_LE(listener.steps(), before + 1);
  engine.pause(1, false);
  while (listener.steps() < before + 5) std::this_thread::sleep_for(1ms);
  engine.pause(1, true);
  engine.stop(1);
  engine.wait_idle();
  EXPECT_EQ(listener.endings().at(0).status, RunStatus::stopped);
}

TEST(Engine, WhileARunTrainsTheMachineIsLookedAt) {
  Listener listener;
  Engine engine(listener.function(), &fake_library);
  engine.submit({.run = 7, .recipe = recipe_like("endless")});
  while (listener.metrics().empty()) std::this_thread::sleep_for(5ms);
  engine.stop(7);
  engine.wait_idle();
  const SystemMetrics sample = listener.metrics().front();
  EXPECT_EQ(sample.run, 7);
  EXPECT_GT(sample.step, 0);
  EXPECT_GT(sample.at, 0);
  const std::size_t seen = listener.metrics().size();
  std::this_thread::sleep_for(600ms);
  EXPECT_EQ(listener.metrics().size(), seen) << "nothing may come after a run's end";
}

TEST(Engine, AClosedEngineEmitsNothingMoreAndItsFunctionsDoNothing) {
  Listener listener;
  Engine engine(listener.function(), &fake_library);
  engine.submit({.run = 1, .recipe = recipe_like("endless")});
  engine.submit({.run = 2, .recipe = recipe_like("nano")});
  listener.wait_for_start(1);
  engine.close();
  ASSERT_EQ(listener.endings().size(), 2u);
  const std::size_t steps = listener.steps();
  engine.stop_all();
  engine.stop(1);
  engine.pause(1, true);
  engine.wait_idle();
  engine.close();
  EXPECT_TRUE(engine.queue().empty());
  EXPECT_EQ(listener.steps(), steps);
  EXPECT_EQ(listener.endings().size(), 2u);
}

TEST(Engine, QueuedRunsArePutIntoAnotherOrder) {
  Listener listener;
  Engine engine(listener.function(), &fake_library);
  engine.submit({.run = 1, .recipe = recipe_like("endless")});
  listener.wait_for_start(1);
  for (RunId run = 2; run <= 5; ++run) engine.submit({.run = run, .recipe = recipe_like("nano")});
  engine.move_to(5, 0);
  engine.move_to(2, 2);
  engine.move_to(3, 99);
  engine.move_to(77, 0);
  EXPECT_EQ(engine.queue(), (std::vector<RunId>{5, 2, 4, 3}));
  engine.stop(1);
  engine.wait_idle();
  EXPECT_EQ(listener.started(), (std::vector<RunId>{1, 5, 2, 4, 3}));
}

}  // namespace
}  // namespace stepladder
