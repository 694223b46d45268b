#include "storage/analysis/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "engine/stage.h"
#include "tests/storage/analysis/hardware_table.h"

namespace stepladder {
namespace {

constexpr const char* gpt2_recipe =
    R"({"model":"gpt2","heads":12,"vocab":50257,"vocab_multiple":1,"batch":4,"seq":1024,"grad_accum":1,"nproc":1,)"
    R"("clip":1.0,"lr_warmup":10,"attention":"scaled-dot-product","matmul":"fp32","autocast":"off",)"
    R"("optimizer":"fused-adamw","compile":"on"})";

// Runs with steady step times, kept where AdviceRun may point at them.
class Project {
 public:
  AdviceRun& add(Run run, double dt_ms, StepParts parts = {}, double first_loss = 10.9) {
    run.id = static_cast<RunId>(kept_.size()) + 1;
    run.created_at = static_cast<double>(run.id);
    if (run.status == RunStatus::queued) run.status = RunStatus::finished;
    Series series;
    for (int i = 0; i < 50; ++i)
      series.append({.step = i + 1, .loss = first_loss - 0.05 * i, .dt_ms = dt_ms * (1 + 0.001 * (i % 3))});
    const Summary summary = summarise(series, -1, run.tokens_per_step);
    const Kept& kept = kept_.emplace_back(Kept{run, summary, std::move(series)});
    runs_.push_back({.run = &kept.run, .summary = &kept.summary, .parts = parts, .series = &kept.series});
    return runs_.back();
  }
  Summary& summary(RunId id) { return kept_[static_cast<std::size_t>(id) - 1].summary; }
  void forget_steps(RunId id) { runs_[static_cast<std::size_t>(id) - 1].series = nullptr; }
  std::vector<Advice> advice(RunId about = 1, std::span<const KnownStage> stages = known_stages(),
                             bool also_open = false) const {
    return advise(runs_, about, table(), stages, also_open);
  }

 private:
  struct Kept {
    Run run;
    Summary summary;
    Series series;
  };
  std::deque<Kept> kept_;
  std::vector<AdviceRun> runs_;
};

Run a100(std::string recipe = gpt2_recipe) {
  return {.tokens_per_step = 4096,
          .params = 124'439'808,
          .device = "cuda",
          .hardware = "NVIDIA A100-SXM4-40GB",
          .precision = "fp32",
          .sync = Sync::event,
          .recipe = std::move(recipe)};
}

std::string with(std::string recipe, const std::string& what, const std::string& by) {
  const auto at = recipe.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? recipe : recipe.replace(at, what.size(), by);
}

const Advice* find(const std::vector<Advice>& list, const std::string& stage) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Advice& advice) { return advice.stage == stage; });
  return found == list.end() ? nullptr : &*found;
}

const Advice* titled(const std::vector<Advice>& list, const std::string& title) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Advice& advice) { return advice.title == title; });
  return found == list.end() ? nullptr : &*found;
}

TEST(Advice, tensor_cores_that_a_float32_run_leaves_idle) {
  Project project;
  project.add(a100(), 301.1);  // the seeds' A100 log before TF32
  const auto list = project.advice();
  const Advice* tf32 = find(list, "tf32");
  ASSERT_TRUE(tf32);
  EXPECT_NE(tf32->why.find("156 TFLOP/s in tf32 and 19.5 in fp32"), std::string::npos) << tf32->why;
  EXPECT_EQ(tf32->gain.source, GainSource::measured_elsewhere);
  EXPECT_NEAR(tf32->gain.high, 2.39, 0.01);
  EXPECT_EQ(tf32->evidence, std::vector<RunId>{1});
  const Advice* bf16 = find(list, "bf16");
  ASSERT_TRUE(bf16);
  EXPECT_EQ(bf16->gain.source, GainSource::unknown);
  EXPECT_TRUE(bf16->gain.needs_trace);

  stepladder::Run as_is = a100();
  as_is.precision = "tf32";
  as_is.recipe = with(gpt2_recipe, R"("matmul":"fp32")", R"("matmul":"tf32")");
  Project later;
  later.add(as_is, 125.8);
  EXPECT_FALSE(find(later.advice(), "tf32"));
  EXPECT_TRUE(find(later.advice(), "bf16"));
}

TEST(Advice, takes_its_expectation_from_a_trace_of_the_run) {
  Project project;
  AdviceRun& run = project.add(a100(), 300, {.forward_ms = 80, .backward_ms = 160, .optimizer_ms = 55});
  run.has_trace = true;
  const auto step = [](Bound bound, double low, double high) {
    return PredictedStep{.bound = bound, .factor = high, .factor_ci95 = {low, high}};
  };
  run.predicted = {{"bf16", step(Bound::at_most, 1, 3.5)}, {"flash-attention", step(Bound::estimate, 0.99, 1.001)}};
  const auto list = project.advice();
  const Advice* bf16 = find(list, "bf16");
  ASSERT_TRUE(bf16);
  EXPECT_NE(bf16->why.find("forward and backward take 80 % of a step"), std::string::npos) << bf16->why;
  EXPECT_EQ(source_text(bf16->gain), "predicted from a trace: at most, by its law");
  EXPECT_EQ(bf16->gain.low, 1);
  EXPECT_EQ(bf16->gain.high, 3.5);
  EXPECT_FALSE(find(list, "flash-attention")) << "its law says that it buys nothing";
}

TEST(Advice, what_waiting_costs_comes_from_a_trace_if_there_is_one) {
  Project project;
  AdviceRun& run = project.add(a100(), 300, {.data_ms = 60, .forward_ms = 80, .backward_ms = 160});
  const auto gain = [&] {
    const auto list = project.advice();
    const auto found =
        std::find_if(list.begin(), list.end(), [](const Advice& each) { return each.change == Change::load_ahead; });
    return found == list.end() ? ExpectedGain{} : found->gain;
  };
  EXPECT_NEAR(gain().high, 1 / 0.8, 1e-3);
  EXPECT_EQ(gain().source, GainSource::arithmetic);
  run.has_trace = true;  // in which most of that time is beside other work
  run.kinds = {{OperatorKind::data, 0, {.bound = Bound::at_most, .factor = 1.05, .factor_ci95 = {1, 1.05}}}};
  EXPECT_EQ(gain().high, 1.05);
  EXPECT_EQ(source_text(gain()), "predicted from a trace: at most, if no step waited for data");
}

TEST(Advice, needs_hardware_that_is_known_to_do_better) {
  stepladder::Run cpu = a100();
  cpu.device = "cpu";
  cpu.hardware = "Intel Xeon";
  stepladder::Run unknown = a100();
  unknown.hardware = "";
  for (const stepladder::Run& run : {cpu, unknown}) {
    Project project;
    project.add(run, 1600);
    EXPECT_FALSE(find(project.advice(), "tf32"));
    EXPECT_FALSE(find(project.advice(), "bf16"));
  }
}

TEST(Advice, a_slow_optimiser_is_worth_a_trace) {
  Project project;
  stepladder::Run run = a100(with(gpt2_recipe, "fused-adamw", "adamw"));
  project.add(run, 200, {.forward_ms = 50, .backward_ms = 100, .optimizer_ms = 46});
  const auto list = project.advice();
  const Advice* fused = find(list, "fused-adamw");
  ASSERT_TRUE(fused);
  EXPECT_NE(fused->why.find("46 ms, 23 % of the median step of 200.2 ms"), std::string::npos) << fused->why;
  EXPECT_FALSE(fused->gain.known());
  EXPECT_TRUE(fused->gain.needs_trace);

  Project fast;
  fast.add(run, 200, {.forward_ms = 60, .backward_ms = 135, .optimizer_ms = 4});
  EXPECT_FALSE(find(fast.advice(), "fused-adamw")) << "2 % of a step";
  Project untold;
  untold.add(run, 200);
  EXPECT_FALSE(find(untold.advice(), "fused-adamw")) << "no parts, no evidence";
}

TEST(Advice, waiting_for_data_and_for_others) {
  Project project;
  project.add(a100(with(gpt2_recipe, R"("nproc":1)", R"("nproc":2)")), 400, {.data_ms = 80, .communication_ms = 160});
  const auto list = project.advice();
  const Advice* data = titled(list, "Load data sooner");
  ASSERT_TRUE(data);
  EXPECT_NEAR(data->gain.high, 1.25, 0.01);
  const Advice* communication = find(list, "grad-accumulation");
  ASSERT_TRUE(communication);
  EXPECT_NEAR(communication->gain.high, 1 / (1 - 0.4 + 0.1), 0.01);
  EXPECT_LT(communication - list.data(), data - list.data()) << "the larger gain comes first";
  EXPECT_EQ(communication->why, "Waiting for other processes takes 160 ms, 40 % of the median step of 400.4 ms.");
}

TEST(Advice, names_both_measurements_of_a_wait) {
  Project project;
  AdviceRun& run = project.add(a100(with(gpt2_recipe, R"("nproc":1)", R"("nproc":2)")), 400, {.communication_ms = 120});
  run.timed = {.steps = 3,
               .operators = {{.part = "backward", .name = "aten::mm", .calls = 1, .self_ms = 86},
                             {.part = "backward", .name = "c10d::allreduce_", .calls = 1, .self_ms = 14}}};
  const auto list = project.advice();
  const Advice* communication = titled(list, "Communicate less often");
  ASSERT_TRUE(communication);
  EXPECT_NE(communication->why.find("; in the 3 steps timed operator by operator it was 14 % of a step."),
            std::string::npos)
      << communication->why;
}

TEST(Advice, gains_of_a_doubtful_run_are_doubtful) {
  Project project;
  stepladder::Run lossy = a100(with(gpt2_recipe, R"("nproc":1)", R"("nproc":2)"));
  lossy.source = "launched";
  lossy.planned_steps = 60;  // 50 are stored
  project.add(lossy, 400, {.communication_ms = 160});
  const auto list = project.advice();
  ASSERT_FALSE(list.empty());
  EXPECT_EQ(list.front().title, "This run is doubtful");
  EXPECT_EQ(list.front().kind, AdviceKind::trust);
  EXPECT_NE(list.front().why.find("50 of 60 steps are stored"), std::string::npos) << list.front().why;
  const Advice* communication = titled(list, "Communicate less often");
  ASSERT_TRUE(communication);
  EXPECT_NE(source_text(communication->gain).find("of a doubtful run"), std::string::npos);
}

TEST(Advice, a_gpu_that_waits) {
  Project project;
  AdviceRun& run = project.add(a100(), 300);
  EXPECT_FALSE(titled(project.advice(), "Keep the GPU busy")) << "not looked at";
  run.gpu_load = 0.97;
  EXPECT_FALSE(titled(project.advice(), "Keep the GPU busy"));
  run.gpu_load = 0.5;
  const auto list = project.advice();
  ASSERT_TRUE(titled(list, "Keep the GPU busy"));
  EXPECT_NE(titled(list, "Keep the GPU busy")->why.find("No kernel ran on the GPU for 50 %"), std::string::npos);
  EXPECT_EQ(titled(list, "Keep the GPU busy")->gain.high, 2);
}

TEST(Advice, shapes_that_cost) {
  Project project;
  project.add(a100(with(gpt2_recipe, "scaled-dot-product", "explicit")), 300);
  const auto list = project.advice();
  ASSERT_TRUE(find(list, "flash-attention"));
  EXPECT_NE(find(list, "flash-attention")->why.find("4 x 12 x 1,024 x 1,024, 201 MB"), std::string::npos)
      << find(list, "flash-attention")->why;
  EXPECT_FALSE(find(list, "flash-attention")->gain.known());
  ASSERT_TRUE(find(list, "padded-vocab"));
  EXPECT_NE(find(list, "padded-vocab")->why.find("128 x 392 + 81"), std::string::npos);

  Project small;
  std::string recipe = with(gpt2_recipe, "scaled-dot-product", "explicit");
  recipe = with(recipe, R"("seq":1024)", R"("seq":64)");
  small.add(a100(with(recipe, "50257", "50304")), 300);
  EXPECT_FALSE(find(small.advice(), "flash-attention"));
  EXPECT_FALSE(find(small.advice(), "padded-vocab"));
}

TEST(Advice, a_batch_that_leaves_memory_and_arithmetic_units_idle) {
  stepladder::Run run = a100();
  run.precision = "bf16";
  run.peak_memory_bytes = 6'000'000'000;
  Project project;
  project.add(run, 125.8);  // 32.6 k tokens/s: 24 of 312 TFLOP/s
  const auto list = project.advice();
  const Advice* batch = titled(list, "Larger micro-batch");
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->change, Change::set_values);
  using Values = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(batch->values, (Values{{"batch", "16"}})) << "four times 6 GB fit into 0.8 x 40 GB";
  EXPECT_NE(batch->why.find("MFU is 8 %"), std::string::npos) << batch->why;
  EXPECT_EQ(batch->gain.high, 4);
  EXPECT_NE(batch->risk, "");

  run.recipe = with(gpt2_recipe, R"("grad_accum":1)", R"("grad_accum":8)");
  Project accumulating;
  accumulating.add(run, 125.8);
  const auto other = accumulating.advice();
  EXPECT_EQ(titled(other, "Larger micro-batch")->values, (Values{{"batch", "16"}, {"grad_accum", "2"}}));
  EXPECT_EQ(titled(other, "Larger micro-batch")->risk, "");

  run.peak_memory_bytes = 30'000'000'000;
  Project full;
  full.add(run, 125.8);
  EXPECT_FALSE(titled(full.advice(), "Larger micro-batch"));
}

TEST(Advice, an_impossible_number_is_all_there_is_to_say) {
  // The 3080 ladder's first speed-up: 2,048 tokens in 14.39 ms.
  stepladder::Run run{.tokens_per_step = 2048,
                      .device = "cuda",
                      .hardware = "NVIDIA GeForce RTX 3080",
                      .precision = "fp32",
                      .recipe = with(gpt2_recipe, "fused-adamw", "adamw")};
  Project project;
  project.add(run, 14.39, {.optimizer_ms = 10});
  const auto list = project.advice();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].kind, AdviceKind::trust);
  EXPECT_EQ(list[0].title, "Synchronise first");
  EXPECT_NE(list[0].why.find("over the peak"), std::string::npos);

  run.sync = Sync::event;  // the clock did wait
  Project synchronised;
  synchronised.add(run, 14.39);
  ASSERT_EQ(synchronised.advice().size(), 1u);
  EXPECT_EQ(synchronised.advice()[0].title, "Check the peak first");
}

TEST(Advice, a_loss_that_breaks_comes_before_speed) {
  Project project;
  const AdviceRun& run = project.add(a100(with(gpt2_recipe, R"("clip":1.0)", R"("clip":0.0)")), 300);
  project.summary(run.run->id).nonfinite_steps = 3;
  project.summary(run.run->id).first_nonfinite_step = 41;
  const auto list = project.advice();
  ASSERT_FALSE(list.empty());
  EXPECT_EQ(list[0].stage, "gpt3-adamw");
  EXPECT_EQ(list[0].why,
            "The loss is NaN or infinite at 3 of 50 steps, first at step 41, and gradients are not clipped.");
}

TEST(Advice, a_spike_in_the_loss_is_seen_and_a_falling_loss_is_none) {
  Overview spiked;
  for (int i = 0; i < 400; ++i)
    spiked.buckets.push_back(bucket_of(i + 1, 3 + 8.0 / (1 + i) + 0.02 * (i % 5) + (i == 300 ? 2 : 0)));
  Overview calm = spiked;
  calm.buckets[300] = bucket_of(301, 3);
  Project project;
  AdviceRun& run = project.add(a100(with(gpt2_recipe, R"("lr_warmup":10)", R"("lr_warmup":0)")), 300);
  run.loss = &calm;
  EXPECT_FALSE(find(project.advice(), "cosine-lr"));
  run.loss = &spiked;
  const auto list = project.advice();
  const Advice* warm_up = find(list, "cosine-lr");
  ASSERT_TRUE(warm_up);
  EXPECT_EQ(warm_up->why, "The loss jumps to 5.027 at step 301, and the learning rate starts at its maximum.");
}

TEST(Advice, repeats_are_asked_for_last_and_once) {
  stepladder::Run rung = a100();
  rung.ladder = 1;
  Project once;
  once.add(rung, 300);
  EXPECT_EQ(once.advice().back().title, "Repeat to measure the noise");
  Project twice;
  twice.add(rung, 300);
  rung.repeat = 1;
  twice.add(rung, 301);
  EXPECT_FALSE(titled(twice.advice(), "Repeat to measure the noise"));
}

TEST(Advice, nothing_to_say_is_an_answer) {
  Project project;
  stepladder::Run run{
      .tokens_per_step = 768, .params = 820'992, .device = "cpu", .hardware = "Intel Xeon", .recipe = "not JSON"};
  project.add(run, 40);
  run.repeat = 1;
  const auto list = project.advice();
  ASSERT_EQ(list.size(), 1u) << "but to repeat it";
  EXPECT_TRUE(project.advice(77).empty());
  stepladder::Run going = run;
  going.status = RunStatus::running;
  EXPECT_TRUE((project.add(going, 40), project.advice(2).empty()));
}

// docs/ladder.md: nano on two cores, where bf16 pays and attention in one kernel does not.
Project two_cores() {
  const std::string base = R"({"model":"nano","seq":64,"batch":12,"heads":4,"vocab":256,"attention":"explicit",)"
                           R"("matmul":"fp32","autocast":"off","optimizer":"adamw","compile":"off"})";
  const std::string bf16 = with(base, R"("autocast":"off")", R"("autocast":"bf16")");
  const std::string flash = with(bf16, "explicit", "scaled-dot-product");
  const std::string fused = with(flash, R"("adamw")", R"("fused-adamw")");
  Project project;
  int rung = 0;
  for (const auto& [stage, recipe, tokens_per_s] :
       std::vector<std::tuple<std::string, std::string, double>>{{"baseline", base, 16'300},
                                                                 {"bf16", bf16, 22'600},
                                                                 {"flash-attention", flash, 14'500},
                                                                 {"fused-adamw", fused, 14'800}}) {
    const double dt_ms = 768'000 / tokens_per_s;
    project.add({.ladder = 1,
                 .rung = rung++,
                 .stage = stage,
                 .tokens_per_step = 768,
                 .params = 820'992,
                 .device = "cpu",
                 .hardware = "Intel Xeon",
                 .recipe = recipe},
                dt_ms, {.optimizer_ms = stage == "fused-adamw" ? 0.5 : 0.05 * dt_ms});
  }
  return project;
}

TEST(Advice, what_paid_on_this_machine_is_known_from_its_own_ladder) {
  Project project = two_cores();
  stepladder::Run fresh{.tokens_per_step = 768,
                        .params = 820'992,
                        .device = "cpu",
                        .hardware = "Intel Xeon",
                        .recipe = R"({"seq":64,"attention":"explicit","autocast":"off","optimizer":"fused-adamw"})"};
  const RunId about = project.add(fresh, 48).run->id;
  const auto list = project.advice(about);
  const Advice* bf16 = find(list, "bf16");
  ASSERT_TRUE(bf16);
  EXPECT_EQ(bf16->gain.source, GainSource::own_measurement);
  EXPECT_LT(bf16->gain.low, 1.387) << "an interval, not a point";
  EXPECT_GT(bf16->gain.high, 1.387);
  EXPECT_EQ(bf16->gain.answer, RungAnswer::faster_once);
  EXPECT_EQ(bf16->gain.from, "run 2 over run 1");
  EXPECT_EQ(bf16->evidence, (std::vector<RunId>{about, 2}));
  EXPECT_FALSE(find(list, "flash-attention")) << "0.64 x on this machine";

  stepladder::Run larger = fresh;
  larger.params = 124'439'808;
  EXPECT_FALSE(find(project.advice(project.add(larger, 1600).run->id), "bf16")) << "another size of model";
  stepladder::Run elsewhere = fresh;
  elsewhere.hardware = "another machine";
  EXPECT_FALSE(find(project.advice(project.add(elsewhere, 48).run->id), "bf16"));
}

// The ladder of what is shown needs all its runs' steps.
TEST(Advice, a_ladder_whose_steps_were_not_read_says_nothing) {
  Project project = two_cores();
  stepladder::Run fresh{.tokens_per_step = 768,
                        .params = 820'992,
                        .device = "cpu",
                        .hardware = "Intel Xeon",
                        .recipe = R"({"seq":64,"attention":"explicit","autocast":"off","optimizer":"fused-adamw"})"};
  const RunId about = project.add(fresh, 48).run->id;
  project.forget_steps(1);
  const auto list = project.advice(about);
  for (const Advice& each : list) EXPECT_NE(each.gain.source, GainSource::own_measurement) << each.title;
}

// A new stage's own file is enough for it to be suggested.
TEST(Advice, a_stage_that_no_list_names) {
  const std::vector<KnownStage> stages{
      {.id = "quantum-cache",
       .title = "Quantum cache",
       .risk = "none that we know",
       .published = {{"cuda", 100, 150, "a dream"}},
       .is_off = [](const stepladder::Run&, const RecipeFacts& recipe) { return recipe.compile == "on"; }}};
  Project project;
  stepladder::Run run = a100();
  run.precision = "bf16";
  run.ladder = 1;
  project.add(run, 200);
  run.rung = 1;
  run.stage = "quantum-cache";
  project.add(run, 100);
  const auto list = project.advice(1, stages);
  const Advice* found = find(list, "quantum-cache");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->title, "Quantum cache");
  EXPECT_EQ(found->risk, "none that we know");
  EXPECT_EQ(found->gain.source, GainSource::own_measurement);
  EXPECT_EQ(project.advice(1, {}).size() + 1, list.size()) << "storage knows no stage of its own";
}

// Ladder says that it can't tell such a gain.
TEST(Advice, a_doubtful_gain_is_no_measurement) {
  const std::vector<KnownStage> stages{{.id = "quantum-cache",
                                        .title = "Quantum cache",
                                        .published = {{"cuda", 100, 150, "a dream"}},
                                        .is_off = [](const stepladder::Run&, const RecipeFacts&) { return true; }}};
  Project project;
  stepladder::Run run = a100();
  run.precision = "bf16";
  run.ladder = 1;
  project.add(run, 200);
  run.rung = 1;
  run.stage = "quantum-cache";
  run.sync = Sync::none;
  project.add(run, 100);
  const auto list = project.advice(1, stages);
  const Advice* found = find(list, "quantum-cache");
  EXPECT_TRUE(!found || found->gain.source != GainSource::own_measurement);
}

// The rungs before and with TF32 at these step times.
void add_tf32(Project& project, LadderId ladder, double before_ms, double after_ms) {
  stepladder::Run run = a100();
  run.ladder = ladder;
  project.add(run, before_ms);
  run.rung = 1;
  run.stage = "tf32";
  run.precision = "tf32";
  run.recipe = with(gpt2_recipe, R"("matmul":"fp32")", R"("matmul":"tf32")");
  project.add(run, after_ms);
}

// A pair of runs whose factor is above 1 and whose ladder can't tell is no gain.
TEST(Advice, WhatItsLadderCantTellIsNoGain) {
  Project project;
  add_tf32(project, 1, 300, 297);
  stepladder::Run repeat = a100();
  repeat.ladder = 1;
  repeat.repeat = 1;
  project.add(repeat, 330);
  repeat.rung = 1;
  repeat.stage = "tf32";
  repeat.precision = "tf32";
  project.add(repeat, 270);
  stepladder::Run fresh = a100();
  const auto list = project.advice(project.add(fresh, 300).run->id);
  const Advice* tf32 = find(list, "tf32");
  ASSERT_TRUE(tf32);
  EXPECT_NE(tf32->gain.source, GainSource::own_measurement) << "the published one is known";
  EXPECT_NE(tf32->why.find("Its ladder can't tell what it brought here (run 2 over run 1: 1.11 x"), std::string::npos)
      << tf32->why;
}

// The rungs of an imported log beyond the hardware's peak are one row, without a factor.
TEST(Advice, ImpossibleRungsOfALogAreNoGains) {
  stepladder::Run run{.ladder = 1,
                      .source = "import",
                      .tokens_per_step = 2048,
                      .params = 124'439'808,
                      .device = "cuda",
                      .hardware = "NVIDIA GeForce RTX 3080",
                      .precision = "fp32",
                      .recipe = gpt2_recipe};
  Project project;
  project.add(run, 178);
  for (const double dt_ms : {14.39, 5.4}) {
    ++run.rung;
    project.add(run, dt_ms);
  }
  const auto list = project.advice(1, known_stages(), true);
  const Advice* rungs = titled(list, "2 later rungs of this log are impossible");
  ASSERT_TRUE(rungs);
  EXPECT_FALSE(rungs->gain.known());
  EXPECT_EQ(rungs->gain.answer, RungAnswer::impossible);
}

TEST(Advice, ACancelledRepeatIsNoMeasurement) {
  Project project;
  add_tf32(project, 1, 310, 128);
  stepladder::Run run = a100();
  run.ladder = 1;
  run.rung = 1;
  run.repeat = 1;
  run.stage = "tf32";
  run.status = RunStatus::stopped;
  project.add(run, 1280);
  stepladder::Run fresh = a100();
  const auto list = project.advice(project.add(fresh, 300).run->id);
  const Advice* tf32 = find(list, "tf32");
  ASSERT_TRUE(tf32);
  EXPECT_EQ(tf32->gain.source, GainSource::own_measurement);
  EXPECT_LT(tf32->gain.low, 2.42);
  EXPECT_GT(tf32->gain.high, 2.42);
  EXPECT_GT(tf32->gain.low, 2) << "the stopped repeat would make it slower";
}

}  // namespace
}  // namespace stepladder
