// What an empty project shows: what the program is for, three ways in, and an example that makes the point.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "app/desktop/models/import_preview.h"
#include "app/desktop/ui_test_anchors.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

TEST(FirstScreen, HasThreeWaysInAndAnExampleOfTheImpossible) {
  for (const char* view : {"live", "history", "run", "ladder"}) {
    RunStore store = RunStore::in_memory();
    Headless imgui;
    DesktopApp app(store, nullptr, DesktopSettings{.panels = {view}});
    ui_test_anchors::keep();
    for (int i = 0; i < 3; ++i) imgui.frame(app);
    for (const char* name :
         {"start.launch", "start.import", "start.follow", "start.impossible", "start.night", "start.example"})
      EXPECT_TRUE(ui_test_anchors::find(name)) << view << " " << name;
    if (view != std::string("ladder")) continue;
    ASSERT_TRUE(imgui.click(app, "start.impossible"));
    for (int i = 0; i < 1000 && app.workspace().import->state != ImportPreview::State::understood; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      imgui.frame(app);
    }
    const auto& runs = app.workspace().import->runs;
    ASSERT_EQ(runs.size(), 11u);
    EXPECT_EQ(runs[1].run.title, "Weight tying");
    EXPECT_NEAR(runs[1].summary.tokens_per_s, 149'000, 1000) << "beyond what the card can do";
  }
}

}  // namespace
}  // namespace stepladder
