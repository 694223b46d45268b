// The window's exports and copies are made on another thread.
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <sstream>

#include "app/job.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

using namespace std::chrono_literals;

TEST(JobQueue, NeverBlocksAndKeepsTheOrder) {
  std::promise<void> may_go_on;
  JobQueue<int> queue([] {});
  queue.add([go_on = may_go_on.get_future().share()](JobControl&) {
    go_on.wait();
    return 1;
  });
  queue.add([](JobControl&) -> int { throw std::runtime_error("the disk is full"); });
  queue.add([](JobControl&) { return 3; });
  EXPECT_FALSE(queue.take());
  EXPECT_TRUE(queue.is_busy());
  EXPECT_EQ(queue.waiting(), 2u);
  may_go_on.set_value();
  EXPECT_EQ(queue.take(5min), 1);
  EXPECT_THROW(queue.take(5min), std::runtime_error);
  EXPECT_EQ(queue.take(5min), 3);
  EXPECT_FALSE(queue.is_busy());
}

TEST(Job, ReportsItsProgressAndEndsWhenItIsInterrupted) {
  Job<bool> job;
  job.start(
      [](JobControl& control) {
        control.begin_item("b");
        control.report(0.5);
        while (!control.is_interrupted()) std::this_thread::yield();
        return true;
      },
      {}, "a");
  while (job.progress().share == 0) std::this_thread::yield();
  EXPECT_EQ(job.progress().item, "b");
  EXPECT_EQ(job.progress().items, 2);
  EXPECT_FALSE(job.take());
  job.interrupt();
  EXPECT_EQ(job.take(5min), true);
  EXPECT_FALSE(job.is_active());
}

// A ladder of two runs that take a while to read.
class Exports : public testing::Test {
 protected:
  Exports() {
    const LadderId ladder = store_.create_ladder({.name = "Two rungs"});
    for (int rung = 0; rung < 2; ++rung) {
      std::vector<StepRecord> steps;
      for (std::int64_t i = 1; i <= 100'000; ++i)
        steps.push_back({.step = i, .loss = 3, .dt_ms = 20.0 - rung, .tokens = 768});
      store_.insert_finished(
          {.name = "run", .ladder = ladder, .rung = rung, .created_at = 1, .tokens_per_step = 768, .params = 1000},
          steps);
    }
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {"ladder"}});
  }
  // Complete files with this ending.
  std::vector<std::filesystem::path> exported(const std::string& ending) {
    std::vector<std::filesystem::path> found;
    if (!std::filesystem::exists(folder_ / "exports")) return found;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "exports")) {
      if (file.path().extension() == ending) found.push_back(file.path());
    }
    return found;
  }
  const Message* message(const std::string& beginning) {
    for (const Message& message : app_->messages()) {
      if (message.text.starts_with(beginning)) return &message;
    }
    return nullptr;
  }
  // Draws frames until Ctrl+R was carried out; the last frame waits for its files.
  void save_report() {
    for (int i = 0; i < 5; ++i) imgui_.frame(*app_);
    ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return !imgui_.asked(); }));
    ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, true);
    ImGui::GetIO().AddKeyEvent(ImGuiKey_R, true);
    for (int i = 0; i < 5 && !message("Saving"); ++i) imgui_.frame(*app_);
    ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, false);
    ImGui::GetIO().AddKeyEvent(ImGuiKey_R, false);
  }

  TemporaryFolder folder_;
  RunStore store_ = RunStore::open(folder_ / "x.db");
  Headless imgui_;
  std::optional<DesktopApp> app_;
};

TEST_F(Exports, AFrameEndsBeforeTheReportIsThere) {
  save_report();
  ASSERT_NE(message("Saving two-rungs-"), nullptr);
  EXPECT_TRUE(exported(".html").empty());
  EXPECT_LE(app_->seconds_to_next_frame(0), 0.1);
  EXPECT_TRUE(imgui_.frames_until(*app_, [&] { return message("Saved") != nullptr; }));
  ASSERT_EQ(exported(".html").size(), 1u);
  EXPECT_EQ(message("Saving"), nullptr);
  std::ostringstream report;
  report << std::ifstream(exported(".html").front()).rdbuf();
  EXPECT_NE(report.str().find("Two rungs"), std::string::npos);
}

TEST_F(Exports, ClosingTheWindowWaitsForTheReport) {
  save_report();
  EXPECT_TRUE(exported(".html").empty());
  app_->close();
  EXPECT_EQ(exported(".html").size(), 1u);
}

TEST_F(Exports, AnExportThatFailsSaysWhyUntilItIsDismissed) {
  save_report();
  std::filesystem::remove_all(folder_ / "exports");
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return message("Saving") == nullptr; }));
  const auto& messages = app_->messages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(messages.front().is_error);
  EXPECT_NE(messages.front().text.find("two-rungs-"), std::string::npos) << messages.front().text;
}

// Another process may delete a ladder's runs while the window shows them.
TEST_F(Exports, ALadderWhoseRunsAreGoneIsAMessage) {
  for (const stepladder::Run& run : store_.runs()) store_.curation().set(run.id, {.deleted_at = 1});
  store_.bin().empty(2);
  save_report();
  ASSERT_TRUE(imgui_.frames_until(*app_, [&] { return message("Saving") == nullptr; }));
  EXPECT_NE(message("Two rungs has no runs to export."), nullptr);
  EXPECT_TRUE(exported(".html").empty());
}

}  // namespace
}  // namespace stepladder
