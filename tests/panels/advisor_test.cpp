// Advice becomes a ladder in Launch.
#include <gtest/gtest.h>

#include "tests/panels/headless.h"

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
  ASSERT_TRUE(imgui.click(app, "advisor.try.0"));
  const std::vector<Advice>& list = app.workspace().advice.list;
  ASSERT_FALSE(list.empty());
  EXPECT_EQ(list.front().title, "Larger micro-batch");
  EXPECT_EQ(list.front().change, Change::set_values);
  const std::optional<LadderRequest>& proposal = app.workspace().proposal;
  ASSERT_TRUE(proposal);
  EXPECT_EQ(proposal->name, "small batch + Batch 16");
  ASSERT_EQ(proposal->rungs.size(), 2u);
  EXPECT_EQ(proposal->rungs[1].stages, std::vector<std::string>{"baseline"});
  EXPECT_EQ(proposal->rungs[1].values, list.front().values);
  const LadderPlan plan = plan_ladder(proposal->base, proposal->rungs, DeviceReport{});
  ASSERT_EQ(plan.rungs.size(), 2u);
  EXPECT_EQ(plan.rungs[1].changed, "batch 4 -> 16");
}

}  // namespace
}  // namespace stepladder
