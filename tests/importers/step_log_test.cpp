#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "storage/importers/logs/lines/step_line.h"
#include "storage/importers/logs/units.h"
#include "storage/wording.h"
#include "tests/importers/told.h"

namespace stepladder {
namespace {

TEST(StepLine, FindsTheSameInAnyOrderAndSpelling) {
  for (const char* line : {"step 12 | loss 3.5 | lr 1e-3 | norm 0.5 | dt 250ms | tok/sec 16384",
                           "loss=3.5 step=12 grad_norm=0.5 lr=0.001 dt_ms=250 tps=16,384",
                           "[rank0]: 2024-05-01 12:00:01,123 - INFO - iteration 12/100: train loss = 3.5, learning "
                           "rate: 1.0E-03, grad norm: 0.5, "
                           "elapsed time per iteration (ms): 250.0, throughput (tokens/s): 16.384k",
                           "{\"_step\": 12, \"train/loss\": 3.5, \"lr\": 0.001, \"grad_norm\": 0.5, \"step_time_s\": "
                           "0.25, \"tokens_per_s\": 16384}",
                           "Iter: 12, time/iter: 250 ms, Train Loss: 3.5, LR: 1e-03, gnorm 0.5, 16_384 tok/s"}) {
    const ReadLine read = read_step_line(line);
    EXPECT_TRUE(read.says_step) << line;
    EXPECT_EQ(read.line.step, 12) << line;
    EXPECT_EQ(read.line.loss, 3.5) << line;
    EXPECT_EQ(read.line.lr, 0.001) << line;
    EXPECT_EQ(read.line.grad_norm, 0.5) << line;
    EXPECT_EQ(read.line.time * (read.line.time_unit == TimeUnit::s ? 1000 : 1), 250) << line;
    EXPECT_EQ(read.line.throughput, 16384) << line;
  }
}

TEST(StepLine, AUnitInSquareBracketsIsReadInLogsToo) {
  for (const std::string_view line :
       {"step 5 | loss 4.9 | step time [s]: 0.5", "{\"step\": 5, \"loss\": 4.9, \"Step Time [s]\": 0.5}",
        "step 5 | loss 4.9 | step_time{s} 0.5", "step 5 loss 4.9 dt (s) 0.5"}) {
    const ReadLine read = read_step_line(line);
    EXPECT_DOUBLE_EQ(read.line.time, 0.5) << line;
    EXPECT_EQ(read.line.time_unit, TimeUnit::s) << line;
  }
}

TEST(StepLine, CodeTablesAndProseSayNoStep) {
  for (const char* line :
       {"print(f\"step {step} | loss: {loss.item():.4f} | dt: {dt*1000:.2f}ms\")", "    if step == 10: loss = 0.5",
        "At step 100 the loss was 3.28, which is better than before.", "| step 200 | loss 3.2 |", "| 100 | 3.4 | 20 |",
        "<td>step 1</td><td>loss 4.0</td>", "max_steps: 100", "  File \"train.py\", line 123, in step",
        "loss = loss / 4  # step 3", "|    0  N/A  N/A      6718      C   /usr/bin/python3   5776MiB |",
        "steps per epoch: 100, loss scale: 1024", "warmup steps: 715"})
    EXPECT_FALSE(read_step_line(line).says_step) << line;
}

TEST(StepLine, NumbersThatAreNone) {
  const StepLine line = read_step_line("step 3 loss nan time: 2024-05-01 version 2.4.1 dt 12.5s").line;
  EXPECT_TRUE(std::isnan(line.loss) && !is_missing(line.loss));
  EXPECT_EQ(line.time, 12.5);
  EXPECT_EQ(read_step_line("step 3 loss -inf").line.loss, -std::numeric_limits<double>::infinity());
}

UnitEvidence evidence(double time, double rate, TimeUnit unit, RateLabel label, std::int64_t tokens) {
  UnitEvidence it{.time_unit = unit, .rate = label, .rate_text = "tok/sec", .tokens_per_step = tokens};
  for (int i = 0; i < 10; ++i) it.steps.push_back({time, rate});
  return it;
}

// Each number was searched for up to the line's end: with these, for half an hour.
TEST(StepLine, ALineMayHaveAMillionNumbers) {
  std::string line = "step 7 | loss 3.5 | ids";
  for (int i = 0; i < 1'000'000; ++i) line += " 1";
  const ReadLine read = read_step_line(line);
  EXPECT_EQ(read.line.step, 7);
  EXPECT_EQ(read.line.loss, 3.5);
}

TEST(Units, ComeFromArithmeticNotFromLabels) {
  // Seconds and tokens per second; milliseconds and tokens per millisecond; one of each.
  Units units = infer_units(evidence(0.5, 8192, TimeUnit::unknown, RateLabel::tokens, 4096));
  EXPECT_EQ(units.ms_per_time, 1000);
  EXPECT_EQ(units.unit, "tokens/s");
  units = infer_units(evidence(500, 8.192, TimeUnit::ms, RateLabel::tokens, 4096));
  EXPECT_EQ(units.ms_per_time, 1);
  EXPECT_EQ(units.unit, "tokens/ms printed as tok/sec");
  units = infer_units(evidence(350.2, 46783, TimeUnit::s, RateLabel::tokens, 16384));
  EXPECT_EQ(units.ms_per_time, 1) << "its label says seconds";
  EXPECT_EQ(units.unit, "tokens/s");
  EXPECT_EQ(units.arithmetic, "46783 x 0.3502 s = 16383.4, the 16384 tokens of a step: the rate is in tokens/s");
  units = infer_units(evidence(0.5, 8.192, TimeUnit::s, RateLabel::tokens, 4096));
  EXPECT_EQ(units.ms_per_time, 1000);
  EXPECT_EQ(units.unit, "tokens/ms printed as tok/sec");

  UnitEvidence samples = evidence(0.5, 8, TimeUnit::unknown, RateLabel::tokens, 4096);
  samples.seq = 1024;
  EXPECT_EQ(infer_units(samples).unit, "samples/s printed as tok/sec");
  EXPECT_EQ(infer_units(evidence(0.5, 2, TimeUnit::s, RateLabel::tokens, 4096)).unit, "steps/s printed as tok/sec");

  UnitEvidence one_of_eight = evidence(0.5, 1024, TimeUnit::s, RateLabel::tokens, 4096);
  one_of_eight.tokens_are_certain = true;
  EXPECT_EQ(infer_units(one_of_eight).rate_scale, 8);
  EXPECT_EQ(infer_units(evidence(0.5, 32 * 8192, TimeUnit::s, RateLabel::tokens, 4096)).tokens_per_step, 32 * 4096);
}

TEST(Units, TokensPerStepAreWorkedOutWhereJustOneReadingHolds) {
  EXPECT_EQ(infer_units(evidence(250, 16384, TimeUnit::ms, RateLabel::tokens, 0)).tokens_per_step, 4096);
  EXPECT_EQ(infer_units(evidence(250, 16.384, TimeUnit::ms, RateLabel::tokens, 0)).tokens_per_step, 4096);
  const Units unknown = infer_units(evidence(250, 0.0773, TimeUnit::ms, RateLabel::tokens, 0));
  EXPECT_EQ(unknown.tokens_per_step, 0);
  EXPECT_EQ(unknown.rate, RateMeaning::unknown);
}

TEST(StepLog, ALossWithAnotherKindBehindItsNameIsNotTheSteps) {
  const Told told = import_text("step 1 loss 8.0, val loss (ema) 7.0\nstep 2 loss 7.0, val loss (ema) 6.0\n");
  ASSERT_EQ(told.runs.size(), 1u);
  for (const StepRecord& step : told.runs[0].steps) EXPECT_TRUE(is_missing(step.val_loss));
  const Told plain = import_text("step 1 loss 8.0, val loss (nats) 7.0\nstep 2 loss 7.0, val loss (nats) 6.0\n");
  EXPECT_EQ(plain.runs[0].steps[1].val_loss, 6);
}

TEST(StepLog, ALossBesideTheOneThatCountsIsAMetric) {
  const Told told =
      import_text("step 1 loss 8.0 cross_entropy 7.5 nll 7.7\nstep 2 loss 7.0 cross_entropy 6.5 nll 6.7\n");
  ASSERT_EQ(told.runs.size(), 1u);
  EXPECT_EQ(told.runs[0].steps[1].loss, 7);
  ASSERT_TRUE(told.runs[0].metrics.contains("cross_entropy"));
  EXPECT_EQ(told.runs[0].metrics.at("cross_entropy").size(), 2u);
  EXPECT_TRUE(told.runs[0].metrics.contains("nll"));
}

// As fairseq prints them.
TEST(StepLog, ALossWhosePerplexityIsAPowerOfTwoIsInBits) {
  const Told told =
      import_text("step 100 | loss 6.000 | ppl 64.0\nstep 200 | loss 5.000 | ppl 32.0\nstep 200 | valid_loss 4.000\n");
  ASSERT_EQ(told.runs.size(), 1u);
  EXPECT_DOUBLE_EQ(told.runs[0].steps[1].loss, 5 * std::log(2.0));
  EXPECT_DOUBLE_EQ(told.runs[0].steps[1].val_loss, 4 * std::log(2.0));
  EXPECT_TRUE(told.noted("in bits"));
  const Told nats = import_text("step 100 | loss 6.000 | ppl 403.4\nstep 200 | loss 5.000 | ppl 148.4\n");
  EXPECT_EQ(nats.runs[0].steps[1].loss, 5);
  EXPECT_FALSE(nats.noted("in bits"));
}

TEST(StepLog, TheMeanOfAnEpochIsNotItsLastStep) {
  for (const std::string mean : {"{\"epoch\": 1, \"train_loss\": \"6.1\", \"train_num_updates\": \"300\"}",
                                 "epoch 001 | loss 6.1 | num_updates 300"}) {
    std::string text;
    for (int i = 1; i < 4; ++i)
      text += "2025-03-04 10:00:00 | INFO | train_inner | {\"epoch\": 1, \"loss\": \"5." + std::to_string(i) +
              "\", \"num_updates\": \"" + std::to_string(i) + "00\"}\n";
    text +=
        "2025-03-04 10:00:00 | INFO | valid | {\"epoch\": 1, \"valid_loss\": \"4.9\", \"valid_num_updates\": "
        "\"300\"}\n2025-03-04 10:00:00 | INFO | train | " +
        mean + "\n";
    const Told told = import_text(text);
    ASSERT_EQ(told.runs.size(), 1u);
    ASSERT_EQ(told.runs[0].steps.size(), 3u) << mean;
    EXPECT_EQ(told.runs[0].steps[2].loss, 5.3);
    EXPECT_EQ(told.runs[0].steps[2].val_loss, 4.9);
  }
}

TEST(StepLog, AValidationLossJoinsItsStep) {
  const Told told = import_text(
      "val loss 9.0\nstep 1 loss 8.0\nstep 2 loss 7.0\nval loss 6.5\nstep 3 loss 6.0\nstep 3 val_loss 5.5\n");
  ASSERT_EQ(told.runs.size(), 1u);
  ASSERT_EQ(told.runs[0].steps.size(), 4u);
  EXPECT_EQ(told.runs[0].steps[0].step, 0);  // of the untrained model
  EXPECT_EQ(told.runs[0].steps[0].val_loss, 9.0);
  EXPECT_EQ(told.runs[0].steps[2].val_loss, 6.5);
  EXPECT_EQ(told.runs[0].steps[3].val_loss, 5.5);
  const Told above = import_text("val loss 9.0\nstep 0 loss 8.0\nstep 1 loss 7.0\nval loss 6.5\nstep 2 loss 6.0\n");
  ASSERT_EQ(above.runs[0].steps.size(), 3u);
  EXPECT_EQ(above.runs[0].steps[2].val_loss, 6.5);
  EXPECT_TRUE(above.noted("of the step below"));
}

TEST(StepLog, ProseIsNoTraining) {
  EXPECT_THROW(import_text("My diary.\nStep 3: weight loss 3.5 kg\nI went home.\n"), ImportError);
  EXPECT_THROW(import_text("We tried again.\nIn the end, step 3: loss 3.5\nI went home.\n"), ImportError);
  EXPECT_EQ(import_text("step 3: loss 3.5\n").runs.size(), 1u);
}

TEST(StepLog, SamplesOfAnEpochAreNoSteps) {
  const std::string lines =
      "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.3\nTrain Epoch: 1 [640/60000 (1%)]\tLoss: 2.2\n"
      "Train Epoch: 2 [0/60000 (0%)]\tLoss: 2.1\n";
  const Told sized = import_text("Namespace(batch_size=64, test_batch_size=1000)\n" + lines);
  EXPECT_EQ(sized.runs[0].steps[1].step, 10);
  EXPECT_EQ(sized.runs[0].steps[2].step, 938);
  EXPECT_TRUE(import_text(lines).noted("counts samples"));
}

TEST(StepLog, Utf16WithoutAMarkIsText) {
  std::string little, big;
  for (const char c : std::string("step 1 | loss 4.5\nstep 2 | loss 4.4\n")) {
    little += {c, '\0'};
    big += {'\0', c};
  }
  for (const std::string& text : {little, big}) EXPECT_EQ(import_text(text).runs[0].steps[1].loss, 4.4);
}

TEST(StepLog, AStepPrintedTwiceIsKeptTwiceAndAResumedRunIsOneRun) {
  const Told twice = import_text("step 1 loss 8.0\nstep 1 loss 7.0\n");
  ASSERT_EQ(twice.runs[0].steps.size(), 2u);
  EXPECT_EQ(twice.runs[0].steps[1].loss, 7.0);
  const Told resumed =
      import_text("step 1 loss 8\nstep 2 loss 7\nstep 3 loss 6\nresuming from a checkpoint\nstep 2 loss 7.1\n");
  EXPECT_EQ(resumed.runs.size(), 1u);
  EXPECT_EQ(resumed.runs[0].steps.size(), 4u);
}

TEST(StepLog, OptionsOverrideWhatWasRead) {
  const Told told = import_text("B = 4 ; T = 8\nstep 1 loss 8 dt 10ms\n",
                                {.tokens_per_step = 640, .params = 1000, .hardware = "NVIDIA H100"});
  EXPECT_EQ(told.runs[0].run.tokens_per_step, 640);
  EXPECT_EQ(told.runs[0].run.model_flops_per_token, 6000);
  EXPECT_EQ(told.runs[0].run.hardware, "NVIDIA H100");
  EXPECT_EQ(told.runs[0].steps[0].tokens, 640);
}

TEST(StepLog, KeepsThePrintedThroughputInTokensPerSecond) {
  const auto printed = [](const char* rate) {
    std::string text = "B = 4 ; T = 1024\n";
    for (int i = 1; i < 5; ++i) text += "step " + std::to_string(i) + " loss 8 dt 250ms | tok/sec " + rate + "\n";
    return import_text(text).runs[0].run.printed;
  };
  EXPECT_EQ(printed("16384").tokens_per_s, 16384);
  EXPECT_EQ(printed("16.384").tokens_per_s, 16384) << "tokens per millisecond";
  EXPECT_EQ(printed("16.384").unit, "tokens/ms printed as tok/sec");
  EXPECT_EQ(printed("30000").tokens_per_s, 30000) << "does not fit, so it is taken by its label";
  const auto unrated = import_text("step 1 loss 8 dt 250ms\n").runs[0].run;
  EXPECT_TRUE(is_missing(unrated.printed.tokens_per_s));
  EXPECT_EQ(unrated.printed.unit, "none printed");
  EXPECT_EQ(unrated.environment, "");
}

TEST(StepLog, AThroughputWithoutTokensPerStepIsKeptAsAMetric) {
  std::string text;
  for (int i = 1; i < 5; ++i)
    text += "step " + std::to_string(i) + " loss 8 | tok/sec " + std::to_string(1000 + i) + " | acc 0.5\n";
  const auto told = import_text(text).runs[0];
  ASSERT_TRUE(told.metrics.contains("tok/sec"));
  ASSERT_EQ(told.metrics.at("tok/sec").size(), 4U);
  EXPECT_EQ(told.metrics.at("tok/sec")[2].step, 3);
  EXPECT_EQ(told.metrics.at("tok/sec")[2].value, 1003);
  const auto known = import_text("B = 4 ; T = 1024\n" + text).runs[0];
  EXPECT_EQ(known.steps[0].tokens, 4096);
  EXPECT_FALSE(known.metrics.contains("tok/sec")) << "its steps have it";
}

TEST(StepLog, TimesWithoutTimesComeFromTheClockInFrontOfTheLines) {
  // Eight devices, each at 2,000 tokens/s: 16,384 tokens take 1.024 s.
  std::string text = "global batch size 16, sequence length 1024\n";
  for (int i = 0; i < 5; ++i)
    text += "2024-05-01 12:00:" + std::to_string(10 + 10 * i) + ".240 step: " + std::to_string(10 * (i + 1)) +
            " loss: 5.5 tps: 2,000\n";
  const Told told = import_text(text);
  ASSERT_EQ(told.runs[0].steps.size(), 5u);
  EXPECT_EQ(told.runs[0].steps[1].dt_ms, 1024);
  EXPECT_EQ(told.runs[0].steps[0].at, 1714564810.24);
  EXPECT_TRUE(told.noted("the rate is that of one device"));
  EXPECT_EQ(nlohmann::json::parse(told.runs[0].run.recipe)["devices"], 8);
}

// The peak that a rate may not exceed is that of all devices.
TEST(StepLog, CountsDevicesInAnySpelling) {
  const auto devices_of = [](const std::string& header) {
    std::string text = header + "\n";
    for (int i = 0; i < 5; ++i) text += "step " + std::to_string(i) + " | loss 5.5 | dt 350ms\n";
    return nlohmann::json::parse(import_text(text).runs.at(0).run.recipe).value("devices", 0);
  };
  for (const char* eight :
       {"world_size: 8", "DDP world size 8", "num_processes=8", "Using 8 GPUs", "8x H100", "8 x NVIDIA A100-SXM4-80GB",
        "1 node of 8X A100 40GB", "running on 8 H100 GPUs", "torchrun --nproc_per_node=8 train.py",
        "torchrun --nnodes=2 --nproc_per_node=4 t.py", "data parallel size: 8", "num_gpus: 8", "gpus=8",
        "number of GPUs: 8", "8xA100", "Building 1-D device mesh with ['dp_shard'], [8]",
        "Building 2-D device mesh with ['pp', 'dp'], [2, 4]"})
    EXPECT_EQ(devices_of(eight), 8) << eight;
  for (const char* unknown :
       {"8 GPUs available", "rank 3 NVIDIA H100", "GPU 7: NVIDIA H100 80GB HBM3", "1024x1024 on H100",
        "NVIDIA H100 80GB HBM3", "gpus: 0,1", "8 workers", "8X faster than A100"})
    EXPECT_LE(devices_of(unknown), 1) << unknown;
}

TEST(StepLog, RefusesWhatIsNoLog) {
  using namespace std::string_literals;
  for (const std::string& bytes : {""s, "\n\n"s, std::string(5000, '\0'), "hello\n"s,
                                   "\x7f"
                                   "ELF\1\1\1\0\0\0\0\3\0\4"s,
                                   std::string(3 << 20, 'x'), "step"s, "\xFF\xFE"s, "\xFF\xFEs"s})
    EXPECT_THROW(import_text(bytes), ImportError) << bytes.substr(0, 20);
}

TEST(StepLog, EncodingsEndsAndNoise) {
  std::string utf16 = "\xFF\xFE";
  for (const char c : std::string("step 1 loss 8.0\r\nstep 2 loss 7.0\r\n")) utf16 += {c, '\0'};
  EXPECT_EQ(import_text(utf16).runs[0].steps.size(), 2u);
  EXPECT_EQ(import_text("step 1 loss 8.0\r\nstep 2 loss 7.0\r\n").runs[0].steps.size(), 2u);
  const Told noisy = import_text("step 1 loss 8.0\n" + std::string(2 << 20, 'x') +
                                 "\nstep 2 loss 7.0\nstep 3 lo\0ss 7\nstep 4 loss 6\n");
  EXPECT_EQ(noisy.runs[0].steps.size(), 2u) << "what follows a NUL in a string literal is not there";
  EXPECT_TRUE(noisy.noted("longer than a MiB"));
}

TEST(StepLog, ALastLineWithoutEndCountsOnlyIfItIsWhole) {
  const std::string losses = "step 8 | loss 12.250\nstep 9 | loss 11.125\nstep 10 | loss 10.500\n";
  const std::string rates =
      "step 8 loss 2.5 tok/sec 40960\nstep 9 loss 2.4 tok/sec 40961\nstep 10 loss 2.3 tok/sec 40962\n";
  const std::string mixed =
      "step:9/11 val_loss:3.5 train_time:90ms\nstep:9/11 train_time:90ms\nstep:10/11 train_time:100ms\n";
  const std::string records = "{\"step\": 9, \"loss\": 2.125}\n{\"step\": 10, \"loss\": 2.0625}\n";
  const std::string ranks = "0: step 9 | loss 2.125\n0: step 10 | loss 2.062\n";
  const struct {
    std::string text;
    std::int64_t last_step;
    bool is_noted;
  } cases[] = {{losses + "step 11 | loss 9.250", 11, false},
               {losses + "step 11 | loss 9.2", 10, true},
               {losses + "step 11 | loss 9.", 10, true},
               {losses + "step 11 | loss 1", 10, true},
               {losses + "step 11 | loss 1\n", 11, false},
               {losses + "training ended", 10, false},
               {rates + "step 11 loss 2.2 tok/sec 40963", 11, false},
               {rates + "step 11 loss 2.2 tok/sec 4096", 10, true},
               {rates + "step 11 loss 2.2 tok/s", 10, true},
               {mixed + "step:11/11 val_loss:3.4 train_time:110ms", 11, false},
               {mixed + "step:11/11 val_loss:3.4 train_time:11", 10, true},
               {records + "{\"step\": 11, \"loss\": 2}", 11, false},
               {records + "{\"step\": 11, \"loss\": 2.03", 10, true},
               {ranks + "0: step 11 | loss 2.031", 11, false},
               {ranks + "0: step 11 | loss 2.0", 10, true},
               {"step 11 | loss 2.031", 11, false}};
  for (const auto& each : cases) {
    const Told told = import_text(each.text);
    ASSERT_EQ(told.runs.size(), 1u) << each.text;
    EXPECT_EQ(told.runs[0].steps.back().step, each.last_step) << each.text;
    EXPECT_EQ(told.noted("the last line has no end and was left out: it may be cut"), each.is_noted) << each.text;
    const Told pasted = import_text(each.text, {}, "");
    EXPECT_FALSE(pasted.noted("has no end")) << "a paste often lacks it";
  }
}

TEST(StepLog, ManyStepsAreToldWhileItReads) {
  std::string text;
  for (int i = 1; i <= 200'000; ++i)
    text += "step " + std::to_string(i) + " | loss 3.5 | dt 100.00ms | tok/sec 40960\n";
  const Told told = import_text(text);
  ASSERT_EQ(told.runs[0].steps.size(), 200'000u);
  EXPECT_EQ(told.runs[0].steps.back().step, 200'000);
  EXPECT_EQ(told.runs[0].steps.back().tokens, 4096);
}

// Transformers' bar at these steps, with a record at each 20th.
std::string trained(int from, int to) {
  std::string text;
  for (int i = from; i <= to; ++i) {
    text += fmt::format("  0%|          | {}/300 [00:00<02:29,  2.00it/s]\n", i);
    if (i > 0 && i > from && i % 20 == 0)
      text += fmt::format("{{'loss': {:.4f}, 'learning_rate': 1e-05, 'epoch': {:.2f}}}\n", 9 - 0.01 * i - 0.001 * from,
                          i / 150.0);
  }
  return text;
}

std::vector<std::int64_t> step_numbers(const ToldRun& run) {
  std::vector<std::int64_t> all;
  for (const StepRecord& step : run.steps) all.push_back(step.step);
  return all;
}

TEST(StepLog, ABarThatBeginsAgainBeyondItsFirstStepsResumes) {
  const std::string bar = "  0%|          | 0/300 [00:00<?, ?it/s]\n";
  const std::string cancelled = "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-03-04T12:00:00 ***\n";
  for (const std::string& between :
       {std::string("***** Running training *****\n  Continuing training from global step 100\n"), cancelled,
        std::string("Traceback (most recent call last):\nRuntimeError: x\n"), std::string()}) {
    const Told told = import_text(trained(0, 160) + between + bar + trained(101, 300));
    ASSERT_EQ(told.runs.size(), 1u) << between;
    EXPECT_EQ(step_numbers(told.runs[0]), (std::vector<std::int64_t>{20, 40, 60, 80, 100, 120, 140, 160, 120, 140, 160,
                                                                     180, 200, 220, 240, 260, 280, 300}))
        << between;
    EXPECT_TRUE(told.noted("steps go back to an earlier one 1 time")) << between;
    EXPECT_NE(told.runs[0].run.status, RunStatus::interrupted) << between;
    EXPECT_NE(told.runs[0].run.status, RunStatus::failed) << between;
  }
  // Without an overlap nothing goes back.
  EXPECT_FALSE(import_text(trained(0, 100) + bar + trained(101, 300)).noted("go back"));
  // Another training of the same plan begins with the same steps.
  const Told two = import_text(trained(0, 160) + cancelled + trained(0, 300));
  ASSERT_EQ(two.runs.size(), 2u);
  EXPECT_EQ(two.runs[0].run.status, RunStatus::interrupted);
  EXPECT_TRUE(two.noted("so the run is interrupted"));
  EXPECT_EQ(step_numbers(two.runs[1]).size(), 15u);
}

TEST(StepLog, ABarOfEachEpochDoesNotResume) {
  for (const int shown : {100, 99}) {  // the last of a bar that is cleared
    std::string text;
    for (int epoch = 0; epoch < 3; ++epoch)
      for (int i = 0; i <= shown; ++i) {
        text += fmt::format("  0%|          | {}/100 [00:00<02:29,  2.00it/s]\n", i);
        if (i > 0 && i % 20 == 0)
          text += fmt::format("{{'loss': {:.4f}, 'epoch': {:.2f}}}\n", 9.0 - epoch, epoch + i / 100.0);
      }
    const Told told = import_text(text);
    ASSERT_EQ(told.runs.size(), 1u);
    EXPECT_FALSE(told.noted("go back")) << shown;
  }
}

TEST(StepLog, AnEvaluationBeforeTheTrainingIsOfStep0) {
  for (const char* before : {"{'eval_loss': 11.01, 'eval_runtime': 2.1, 'epoch': 0}\n", "{'eval_loss': 11.01}\n"})
    for (const bool is_behind_bar : {false, true}) {
      const std::string bar = "  0%|          | 0/300 [00:00<?, ?it/s]\n";
      const Told told = import_text((is_behind_bar ? bar + before : before + bar) + trained(1, 300));
      ASSERT_EQ(told.runs.size(), 1u);
      EXPECT_EQ(told.runs[0].steps.at(0).step, 0) << before;
      EXPECT_EQ(told.runs[0].steps[0].val_loss, 11.01) << before;
      EXPECT_TRUE(is_missing(told.runs[0].steps.at(1).val_loss)) << before;
    }
  // Nothing says of which step it is.
  EXPECT_EQ(import_text("val loss 11.01\nstep 20 | loss 9.8\nstep 40 | loss 9.7\n").runs.at(0).steps[0].step, 20);
}

TEST(StepLog, AnIterationsEvaluationIsOfItsStep) {
  std::string text;
  for (int i = 1; i <= 12; ++i) {
    text += fmt::format("Epoch 1 | iter {} step {} | loss train: 9.{:02}, val: n/a | iter time: 211.61 ms (step)\n",
                        8 * i, i, 99 - i);
    if (i % 5 == 0) text += fmt::format("iter {}: val loss 7.1230, val time: 5010.10 ms\n", 8 * i);
  }
  text += "iter 88: val loss 7.5, val time: 5010.10 ms\n";
  const Told told = import_text(text);
  const std::vector<StepRecord>& steps = told.runs.at(0).steps;
  ASSERT_EQ(steps.size(), 12u);
  EXPECT_EQ(steps.back().step, 12);
  EXPECT_EQ(steps[4].val_loss, 7.123);
  EXPECT_EQ(steps[9].val_loss, 7.123);
  EXPECT_EQ(steps[10].val_loss, 7.5);
  EXPECT_FALSE(told.noted("go back"));
}

TEST(StepLog, MicroStepsAreNoAttempts) {
  for (const char* micro : {"step {0} micro {1}/4 | loss 3.{1} | 80.0 ms\n", "step {0} micro_step {1}/4 loss 3.{1}\n",
                            "step {0} | micro-batch {1}/4 | loss 3.{1}\n", "step {0} (accum {1}/4) loss 3.{1}\n"}) {
    std::string alone, both;
    for (int i = 1; i <= 5; ++i) {
      for (int part = 1; part <= 4; ++part) {
        alone += fmt::format(fmt::runtime(micro), i, part);
        both += fmt::format(fmt::runtime(micro), i, part);
      }
      both += fmt::format("step {} done | loss 3.9 | 331.9 ms\n", i);
    }
    const Told told = import_text(both);
    EXPECT_EQ(step_numbers(told.runs.at(0)), (std::vector<std::int64_t>{1, 2, 3, 4, 5})) << both;
    EXPECT_FALSE(told.noted("go back")) << both;
    EXPECT_EQ(told.runs[0].steps[2].loss, 3.9);
    EXPECT_NEAR(told.runs[0].steps[2].dt_ms, 331.9, 1e-6);
    const Told parts = import_text(alone);
    EXPECT_EQ(parts.runs.at(0).steps.size(), 5u) << alone;
    EXPECT_NEAR(parts.runs[0].steps[2].loss, 3.25, 1e-9);
    EXPECT_TRUE(parts.noted("has only lines of micro-steps (4)"));
  }
}

TEST(StepLog, ThePlaceOfSamplesIsThatOfSteps) {
  for (const char* name : {"Train Checkpoint", "Train Epoch"})
    for (const char* header : {"", "global_batch_size: 512\nseq_len: 2048\n"}) {
      std::string text = header;
      for (int i = 0; i < 40; ++i)
        text += fmt::format(
            "2025-03-04,10:00:00 | INFO | {}: 0 [{:>8}/1048576 ({}%)] Data (t): 0.012 Batch (t): 0.501, 1021.96/s, "
            "127.740/s/gpu LR: 0.000300 Loss: 6.157 \n",
            name, (20 * i + 1) * 512, 2 * i);
      const Told told = import_text(text);
      const ToldRun& run = told.runs.at(0);
      EXPECT_EQ(run.steps.front().step, 1) << text;
      EXPECT_EQ(run.steps.back().step, 781) << text;
      EXPECT_NEAR(run.steps[5].dt_ms, 501, 1e-6) << text;
      EXPECT_EQ(run.run.tokens_per_step, *header ? 512 * 2048 : 0);
    }
}

TEST(StepLog, DevicesAreCountedInCapitalsAndByTheirParts) {
  const std::string steps = "step 1/9 | loss 3.5 | dt 100.00ms\nstep 2/9 | loss 3.5 | dt 100.00ms\n";
  const auto devices = [&](const std::string& text) {
    const Told told = import_text(text + steps);
    return nlohmann::json::parse(told.runs.at(0).run.recipe).value("devices", 0);
  };
  EXPECT_EQ(devices("1 node of 8X A100 40GB\n"), 8);
  EXPECT_EQ(devices("Tokens / micro-batch / rank: 32 x 2048 = 65,536\nTokens / micro-batch: 524,288\n"), 8);
  EXPECT_EQ(devices("micro batch size per GPU: 4\nmicro batch size: 32\n"), 8);
  EXPECT_EQ(devices("batch size per GPU: 4\nbatch size: 32\n"), 0) << "it may be accumulated";
}

// Step and loss, then validation losses of the steps that have one.
void expect_table(const std::string& text, std::vector<std::int64_t> validated) {
  const Told told = import_text(text);
  ASSERT_EQ(told.runs.size(), 1u) << text;
  const std::vector<StepRecord>& steps = told.runs[0].steps;
  ASSERT_EQ(step_numbers(told.runs[0]), (std::vector<std::int64_t>{0, 10, 20, 30})) << text;
  std::vector<std::int64_t> with;
  for (const StepRecord& step : steps) {
    EXPECT_NEAR(step.loss, 9 - static_cast<double>(step.step) / 10, 1e-9) << text;
    if (!is_missing(step.val_loss)) with.push_back(step.step);
  }
  EXPECT_EQ(with, validated) << text;
}

TEST(StepLog, TablesHaveEmptyCellsBoxesAndBarsBetween) {
  for (const char* empty : {"", "    ", "-", "\u2014", "n/a"})
    for (const char* row : {"| {} | {} | {} |\n", "\u2502 {} \u2502 {} \u2502 {} \u2502\n", "{} | {} | {} \n",
                            "\u2503 {} \u2503 {} \u2503 {} \u2503\n"}) {
      std::string text = fmt::format(fmt::runtime(row), "Step", "Loss", "Val loss");
      text += std::string(row).starts_with("|") ? "|---:|---|---|\n" : "\u251c\u2500\u2500\u253c\u2500\u2500\u2524\n";
      for (int i = 0; i < 4; ++i)
        text += fmt::format(fmt::runtime(row), 10 * i, fmt::format("{}.0", 9 - i),
                            i % 3 == 0 ? fmt::format("8.{}", 5 - i) : empty);
      expect_table(text, {0, 30});
    }
  expect_table(
      "step   val_loss     loss\n   0       11.0      9.0\n  10                   8.0\n  20                   7.0\n  "
      "30       10.5      6.0\n",
      {0, 30});
  expect_table(
      "step   loss       val_loss\n   0    9.000       11.0\n  10    8.000           \n  20    7.000\n  30    6.000    "
      "10.30\n",
      {0, 30});
}

TEST(StepLog, ATimeInParenthesesIsThatOfAllStepsOnlyBehindTheStep) {
  const auto median = [](std::string_view form) {
    std::string text = "batch_size: 512\nseq_len: 1024\n";
    for (int i = 1; i < 9; ++i) text += fmt::format(fmt::runtime(form), 10 * i, i) + "\n";
    const Told told = import_text(text);
    return told.runs.empty() || told.runs[0].steps.size() < 8 ? -1 : told.runs[0].steps[4].dt_ms;
  };
  for (const char* form :
       {"step {} loss 9.{} (121.0 ms)", "step {}: loss 9.{} (121.0 ms/step)", "Iter {}, loss 9.{} (0.121 sec)",
        "step {} loss 9.{} samples/s 4231.4 (121.0 ms)", "step {} loss 9.{} tok/s 4332958.7 (121.0 ms)"})
    EXPECT_NEAR(median(form), 121, 0.1) << form;
  EXPECT_NEAR(median("step = {0}, loss = 9.{1} (1.21 sec)"), 1210, 0.1);
  EXPECT_NEAR(median("INFO:tensorflow:loss = 9.{1}, step = {0} (1.21 sec)"), 121, 0.1);
}

TEST(StepLog, TheTimeOfAnEvaluationIsNotAStepsTime) {
  std::string text;
  for (int i = 0; i < 10; ++i)
    text +=
        fmt::format("| epoch   1 step {:8} | {:6} batches | lr 1e-05 | ms/batch {}.5 | loss {:5.2f} | ppl 54176.364\n",
                    10 * i, 10 * i, 120 + i, 9 - 0.1 * i);
  text += "-----------\n| Eval   1 at step       90 | time: 12.34s | valid loss  9.02 | valid ppl  8266.123\n";
  const Told told = import_text(text);
  ASSERT_EQ(told.runs.size(), 1u);
  const StepRecord& last = told.runs[0].steps.back();
  EXPECT_DOUBLE_EQ(last.loss, 8.1);
  EXPECT_DOUBLE_EQ(last.val_loss, 9.02);
  EXPECT_DOUBLE_EQ(last.dt_ms, 129.5);
}

// The values of the last step of ten lines and, behind them, another one.
StepRecord last_of(std::string_view form, std::string_view behind = {}) {
  std::string text;
  for (int i = 1; i <= 10; ++i) text += fmt::format(fmt::runtime(form), 10 * i, fmt::format("{}.5", 19 - i)) + "\n";
  const Told told = import_text(text + std::string(behind) + "\n");
  return told.runs.size() == 1 && told.runs[0].steps.size() == 10 ? told.runs[0].steps.back() : StepRecord{};
}

TEST(StepLog, BoundsAreNoMeasuredValues) {
  const StepRecord both =
      last_of("step {} loss {} max_grad_norm 1.0 grad_norm 1.1 base_lr 0.01 max_lr 0.02 lr 0.0001 min_lr 0.003");
  EXPECT_DOUBLE_EQ(both.grad_norm, 1.1);
  EXPECT_DOUBLE_EQ(both.lr, 1e-4);
  EXPECT_TRUE(is_missing(last_of("step {} loss {} min_lr 0.01").lr));
  EXPECT_DOUBLE_EQ(last_of("step {} loss {} max_dt=2.0s dt=0.121s").dt_ms, 121);
  for (const char* rate : {"eval 45100 tok/s", "gen 45100 tok/s", "peak 45100 tok/s", "target 45100 tok/s",
                           "max_tokens_per_second=45100", "gen_tokens_per_sec=45100"}) {
    std::string text;
    for (int i = 1; i <= 10; ++i) text += fmt::format("step {} | loss {}.5 | {} | 123.0 ms\n", i, 19 - i, rate);
    const Told told = import_text(text);
    EXPECT_EQ(told.runs.at(0).run.tokens_per_step, 0) << rate;
    EXPECT_TRUE(is_missing(told.runs[0].run.printed.tokens_per_s)) << rate;
  }
  EXPECT_DOUBLE_EQ(last_of("step={} loss={} grad_norm={{'0_default': 1.234}}").grad_norm, 1.234);
}

TEST(StepLog, TheLossOfAnEvaluationIsTheValidationSets) {
  for (const char* line :
       {"train loss (full eval) 19.5, val loss 9.25", "eval: train loss 9.75, val loss 9.25",
        "train loss (eval) = 9.75 | val loss (eval) = 9.25", "[eval step 100] train_loss=9.75 val_loss=9.25",
        "step 100 eval_train_loss 9.75 val_loss 9.25"}) {
    const StepRecord last = last_of("step {} loss {} dt 120.0ms", line);
    EXPECT_DOUBLE_EQ(last.loss, 9.5) << line;
    EXPECT_DOUBLE_EQ(last.val_loss, 9.25) << line;
  }
  for (const char* form :
       {"step {0} | val 8.{0} | loss {1}", "step {0} valid 8.{0} loss {1}", "step {0} | loss {1} | val 8.{0}"}) {
    EXPECT_DOUBLE_EQ(last_of(form).loss, 9.5) << form;
    EXPECT_DOUBLE_EQ(last_of(form).val_loss, 8.1) << form;
  }
}

TEST(StepLog, AUnitIsTheNextNumbersNameWhereThatIsNamedByOne) {
  EXPECT_DOUBLE_EQ(last_of("step {} loss {} ex/s 4162.6 sec: 0.1230").loss, 9.5);
  for (const char* form : {"step {} loss {} it/s 8.130 ms 123.0", "step {} loss {} it/s 8.130 s/it 0.1230",
                           "step {} loss {} tok/s 4262504 ms/step 123.0"}) {
    EXPECT_DOUBLE_EQ(last_of(form).loss, 9.5) << form;
    EXPECT_NEAR(last_of(form).dt_ms, 123, 0.1) << form;
  }
}

TEST(StepLog, WhatIsNotOfAStepIsNotTold) {
  EXPECT_TRUE(is_missing(last_of("iter {} | loss {} | micro step 30.1 ms").dt_ms));
  EXPECT_TRUE(is_missing(last_of("step {} loss {} bits/token, 102 ms").loss));
  for (const char* rate : {"4'262'504", "4\u202f262\u202f504", "4\u00a0262\u00a0504", "4,262,504"}) {
    std::string rates;
    for (int i = 1; i <= 10; ++i) rates += fmt::format("step {} loss {}.5 tok/s {}\n", i, 19 - i, rate);
    EXPECT_DOUBLE_EQ(import_text(rates).runs.at(0).run.printed.tokens_per_s, 4262504) << rate;
  }
  std::string text;
  for (int i = 0; i < 10; ++i)
    text += fmt::format(
        "2024-02-01,10:00:{:02} | INFO | Train Epoch: 0 [{:>8}/10968539 (3%)] Data (t): 0.012 Batch (t): 0.512, "
        "8000.00/s, 1000.00/s/gpu LR: 0.000101 Loss: {}.7 (8.7546)\n",
        i, i * 409600, 19 - i);
  const Told told = import_text(text);
  EXPECT_TRUE(told.noted("the steps are samples here"));
  EXPECT_FALSE(told.runs.at(0).steps.at(3).dt_ms > 1);
}

}  // namespace
}  // namespace stepladder
