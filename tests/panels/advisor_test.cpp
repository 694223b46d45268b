// Advice becomes a ladder in Launch.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/desktop/models/advice_reader.h"
#include "app/desktop/workspace/advice_view.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

TEST(Advisor, ValuesAreTriedAsARungOfTheirOwn) {
  RunStore store = RunStore::in_memory();
  Recipe recipe;
  apply_preset(recipe, "gpt2");
  recipe.vocab_multiple = 128;
  recipe.clip = 1;
  recipe.attention = Attention::scaled_dot_product;
  recipe.autocast = Autocast::bf16;
  recipe.optimizer = Optimizer::fused_adamw;
  recipe.compile = Compile::on;
  std::vector<StepRecord> steps;
  for (std::int64_t step = 1; step <= 50; ++step)
    steps.push_back({.step = step, .loss = 10, .dt_ms = 125.8, .tokens = 4096});
  store.insert_finished({.name = "small batch",
                         .source = "launched",
                         .planned_steps = 50,
                         .tokens_per_step = 4096,
                         .params = 124'439'808,
                         .device = "cuda",
                         .hardware = "NVIDIA A100-SXM4-40GB",
                         .precision = "bf16",
                         .peak_memory_bytes = 6'000'000'000,
                         .sync = Sync::event,
                         .recipe = to_json(recipe)},
                        steps);
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"advisor"}});
  app.workspace().hardware = HardwareTable::read(std::string(STEPLADDER_SOURCE_DIR) + "/assets/hardware.csv");
  EXPECT_TRUE(imgui.frames_until(app, [] { return ui_test_anchors::find("advisor.answer").has_value(); }));
  imgui.frame(app);
  EXPECT_FALSE(ui_test_anchors::find("advisor.past")) << "nothing here is predicted";
  app.workspace().device = describe_cpu();
  ASSERT_TRUE(imgui.click(app, "advisor.edit"));
  const std::vector<Advice>& list = app.workspace().advice->list;
  ASSERT_FALSE(list.empty());
  EXPECT_EQ(list.front().title, "Larger micro-batch");
  EXPECT_EQ(list.front().change, Change::set_values);
  ASSERT_TRUE(imgui.click(app, "launch.copy_command"));
  const std::string command = ImGui::GetClipboardText();
  EXPECT_NE(command.find("small batch + Batch 16"), std::string::npos) << command;
  EXPECT_NE(command.find("baseline:batch=16"), std::string::npos) << command;
}

// A CPU run whose operators were timed shows where its step's time goes; one without says why not.
TEST(Advisor, SaysWhyAStepTakesItsTime) {
  RunStore store = RunStore::in_memory();
  std::vector<RunId> runs;
  for (const char* name : {"not timed", "timed"}) {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= 20; ++step)
      steps.push_back({.step = step, .loss = 3, .dt_ms = 50, .tokens = 100});
    runs.push_back(store.insert_finished({.name = name,
                                          .status = RunStatus::finished,
                                          .source = "launched",
                                          .tokens_per_step = 100,
                                          .device = "cpu",
                                          .recipe = to_json(Recipe{})},
                                         steps));
  }
  store.apply(std::vector<RunEvent>{
      StepProfile{.run = runs[1],
                  .at = 2,
                  .steps = 2,
                  .operators = {{.part = "forward", .name = "aten::addmm", .calls = 1, .self_ms = 30},
                                {.part = "backward", .name = "aten::gelu_backward", .calls = 1, .self_ms = 20}}}});
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"advisor"}});
  for (const RunId run : runs) {
    app.workspace().selection.shown_run = run;
    ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().advice->about == run; }));
    const FittedProfile& times = app.workspace().advice->times;
    ASSERT_EQ(times.profile.steps > 0, run == runs[1]);
    if (run == runs[0]) continue;
    EXPECT_DOUBLE_EQ(step_ms(times.profile), 50);
    EXPECT_DOUBLE_EQ(KindTimes(times.profile).of(OperatorKind::products), 30);
  }
}

// A stage can buy no more than the work that it makes faster takes; and the most expensive work names its stages.
TEST(Advisor, BoundsAGainByTheTimedOperators) {
  TemporaryFolder folder;
  RunStore store = RunStore::open(folder.path() / "project.db");
  std::vector<StepRecord> steps;
  for (std::int64_t step = 1; step <= 20; ++step)
    steps.push_back({.step = step, .loss = 3, .dt_ms = 100, .tokens = 100});
  const RunId run = store.insert_finished({.name = "timed",
                                           .status = RunStatus::finished,
                                           .source = "launched",
                                           .planned_steps = 20,
                                           .tokens_per_step = 100,
                                           .device = "cpu",
                                           .recipe = to_json(Recipe{.vocab = 256})},
                                          steps);
  store.apply(std::vector<RunEvent>{
      StepProfile{.run = run,
                  .at = 2,
                  .steps = 2,
                  .operators = {{.part = "forward", .name = "aten::addmm", .calls = 1, .self_ms = 70},
                                {.part = "forward", .name = "aten::gelu", .calls = 1, .self_ms = 25},
                                {.part = "optimizer", .name = "aten::add_", .calls = 1, .self_ms = 5}}}});
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"advisor"}});
  app.workspace().device = describe_cpu();
  app.workspace().selection.shown_run = run;
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().advice->about == run; })) << "on another thread";
  const AdviceView& advice = *app.workspace().advice;
  EXPECT_EQ(advice.problem, "");
  const auto of = [&](const char* stage) { return std::ranges::find(advice.list, stage, &Advice::stage); };
  ASSERT_NE(of("fused-adamw"), advice.list.end());
  EXPECT_EQ(of("fused-adamw")->gain.source, GainSource::arithmetic);
  EXPECT_NEAR(of("fused-adamw")->gain.high, 1 / 0.95, 1e-9);
  EXPECT_EQ(range_words(of("fused-adamw")->gain), "at most 1.05 x");
  ASSERT_NE(of("compile-max"), advice.list.end());
  EXPECT_FALSE(of("compile-max")->gain.known()) << "a bound beyond half of the step says nothing";
  EXPECT_TRUE(advice.levers.starts_with("Most time goes to matrix products, which these stages shorten: "))
      << advice.levers;
  EXPECT_NE(advice.levers.find("Planned step (not tried)"), std::string::npos) << advice.levers;
  EXPECT_EQ(advice.levers.find("Fused AdamW"), std::string::npos) << advice.levers;
}

// Of an imported run nothing can be launched, but its log measured what the next rungs bought.
TEST(Advisor, OfAnImportedRunItsOwnLogAnswers) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "log"});
  for (const auto& [rung, dt_ms] : {std::pair(0, 200.0), {1, 100.0}}) {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= 50; ++step)
      steps.push_back({.step = step, .loss = 4 - 0.01 * static_cast<double>(step), .dt_ms = dt_ms, .tokens = 4096});
    store.insert_finished({.name = rung == 0 ? "base" : "larger kernels",
                           .ladder = ladder,
                           .rung = rung,
                           .source = "import",
                           .tokens_per_step = 4096},
                          steps);
  }
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"advisor"}});
  app.workspace().selection.shown_run = 1;
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().advice->about == 1; }));
  const std::vector<Advice>& list = app.workspace().advice->list;
  const auto next = std::ranges::find(list, "larger kernels", &Advice::title);
  ASSERT_NE(next, list.end());
  EXPECT_LE(next->gain.low, 2);
  EXPECT_GE(next->gain.high, 2);
  EXPECT_EQ(next->gain.answer, RungAnswer::faster_once) << "as in Ladder";
  EXPECT_TRUE(imgui.click(app, "advisor.action")) << "reproduces the ladder here";
}

// A log may name another card for its later rungs; they are still its rungs.
TEST(Advisor, ReadsAllRungsOfItsOwnLog) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "log"});
  for (const auto& [rung, card] : {std::pair(0, "RTX 3080"), {1, "RTX 3080"}, {2, "RTX 4090"}}) {
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= 50; ++step)
      steps.push_back({.step = step, .loss = 4, .dt_ms = 200.0 / (1 + rung), .tokens = 4096});
    store.insert_finished({.name = "rung " + std::to_string(rung),
                           .ladder = ladder,
                           .rung = rung,
                           .source = "import",
                           .tokens_per_step = 4096,
                           .hardware = card},
                          steps);
  }
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"advisor"}});
  app.workspace().selection.shown_run = 1;
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().advice->about == 1; }));
  EXPECT_TRUE(std::ranges::count(app.workspace().advice->list, "rung 1", &Advice::title));
}

TEST(Advisor, ADoubtIsNoProposal) {
  RunStore store = RunStore::in_memory();
  const RunId id = store.create_run({.name = "disturbed",
                                     .status = RunStatus::running,
                                     .source = "launched",
                                     .planned_steps = 40,
                                     .device = "cpu",
                                     .sync = Sync::device,
                                     .recipe = to_json(Recipe{})});
  std::vector<RunEvent> events;
  for (std::int64_t step = 1; step <= 40; ++step) {
    const double at = 1000 + static_cast<double>(step);
    events.emplace_back(StepRecord{.run = id, .step = step, .loss = 3, .dt_ms = 900, .tokens = 100, .at = at});
    events.emplace_back(SystemMetrics{
        .run = id, .step = step, .at = at, .contention = {.other_cores = 1.5, .cores = 2, .needed_cores = 2}});
  }
  events.emplace_back(RunEnded{.run = id, .at = 5000});
  store.apply(events);
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"advisor"}});
  ASSERT_TRUE(imgui.frames_until(app, [&] { return app.workspace().advice->about == id; }));
  for (int i = 0; i < 3; ++i) imgui.frame(app);
  const std::vector<Advice>& list = app.workspace().advice->list;
  ASSERT_EQ(list.front().title, "This run is doubtful");
  EXPECT_TRUE(ui_test_anchors::find("advisor.doubt"));
  EXPECT_TRUE(ui_test_anchors::find("advisor.change." + std::to_string(list.size() - 2)));
  EXPECT_FALSE(ui_test_anchors::find("advisor.change." + std::to_string(list.size() - 1)));
}

TEST(Advisor, ATraceAloneLeadsToProfile) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"advisor"}});
  app.workspace().traces.emplace_back();
  EXPECT_TRUE(imgui.click(app, "advisor.profile"));
  EXPECT_EQ(app.settings().panels, std::vector<std::string>{"profile"});
}

}  // namespace
}  // namespace stepladder
