// The meaning of printed times and rates: of a step, of its parts, of all steps between two lines; of one device or
// all.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "tests/importers/told.h"

namespace stepladder {
namespace {

// 40 lines, `between` steps apart. "{}" is the step's number, "{k}" the time of so many steps of `ms` in seconds.
std::string log_of(std::string_view line, std::int64_t between = 1, double ms = 0) {
  std::string log;
  for (std::int64_t i = 1; i <= 40; ++i) {
    std::string text(line);
    const auto put = [&](std::string_view mark, const std::string& value) {
      for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark))
        text.replace(at, mark.size(), value);
    };
    put("{}", std::to_string(i * between));
    put("{k}", std::to_string(static_cast<double>(between) * ms * (i % 2 == 0 ? 1.002 : 0.998) / 1000).substr(0, 6));
    const std::int64_t seconds = std::llround(static_cast<double>(i * between) * ms / 1000);
    const auto digits = [](std::int64_t value) { return std::string(value < 10 ? "0" : "") + std::to_string(value); };
    put("{stamp}",
        "2024-05-01 " + digits(10 + seconds / 3600) + ":" + digits(seconds / 60 % 60) + ":" + digits(seconds % 60));
    log += text + "\n";
  }
  return log;
}

double step_ms(const Told& told) {
  return told.runs.at(0).steps.at(20).dt_ms;
}

std::string notes_of(const Told& told) {
  std::string all;
  for (const std::string& note : told.notes) all += note + "\n";
  return all;
}

TEST(PrintedTimes, APartOfAStepIsNotItsTime) {
  for (const char* line :
       {"step {}, loss 4.9, forward 100ms, backward 200ms, optimizer 50ms, total 350ms",
        "step {} | loss 4.9 | fwd 100 ms | bwd 200 ms | opt 50 ms | total 350 ms",
        "step {} | loss: 4.9 | fwd: 100ms | bwd: 200ms | total: 350ms",
        "iter {}: loss 4.9, data 10ms, forward 100ms, backward 200ms, step 350ms",
        "step {} loss=4.9 forward_ms=100 backward_ms=200 step_ms=350",
        "step {}, loss 4.9, fwd_time 100ms, step_time 350ms, data_time 10 ms",
        "step {} | loss 4.9 | forward time 100 ms | backward time 200 ms | total time 350 ms",
        "step {}, loss 4.9, total 350ms (fwd 100ms, bwd 200ms, opt 50ms)",
        "step {}, loss 4.9, 350ms (fwd 100ms, bwd 200ms, opt 50ms)",
        "step {}, loss 4.9, data 0.01 s, batch 0.350 s (0.351)", "step {}, loss 4.9, data: 0.01s, iter: 0.35s",
        "step {} | loss 4.9 | comm 30ms | attn 40ms | iteration 350ms",
        "step {} | loss 4.9 | t_fwd=0.1s t_bwd=0.2s t_step=0.35s"}) {
    const Told told = import_text(log_of(line));
    EXPECT_NEAR(step_ms(told), 350, 1e-6) << line;
    EXPECT_FALSE(told.noted("no step time")) << line;
  }
}

TEST(PrintedTimes, PartsAloneGiveNoStepTimeAndAreNamed) {
  for (const char* line :
       {"step {}, loss 4.9, forward 100ms, backward 200ms", "step {} | loss 4.9 | fwd 100 ms",
        "step {} | loss: 4.9 | data: 10ms | opt: 20 ms", "step {} | loss 4.9 | attn 10ms, mlp 20ms",
        "step {} | loss 4.9 | whatever 10ms", "step {} | loss 4.9 | fwd/bwd/opt/total: 100/200/50/350 ms",
        "step {} | loss 4.9 | time since last checkpoint: 50.0s", "step {}: loss 4.9, avg time over 100 steps 50.1s"}) {
    const Told told = import_text(log_of(line, 100));
    EXPECT_TRUE(is_missing(step_ms(told))) << line;
    EXPECT_TRUE(told.noted("no step time was read")) << line << "\n" << notes_of(told);
  }
  EXPECT_TRUE(import_text(log_of("step {}, loss 4.9, forward 100ms, backward 200ms"))
                  .noted("\"forward 100ms, backward 200ms\""));
  EXPECT_TRUE(
      import_text(log_of("step {} | loss 3.9 | time for the last 10 steps: 5.0s", 10)).noted("no step time was read"));
  EXPECT_FALSE(import_text(log_of("step {}, loss 4.9, eta 5m")).noted("no step time was read"));
}

TEST(PrintedTimes, ATotalWithoutPartsCountsFromTheStart) {
  std::string log;
  for (int i = 1; i <= 5; ++i)
    log += "step " + std::to_string(i) + " | loss 3 | total " + std::to_string(i * 2 + i % 2) + ".0s\n";
  EXPECT_EQ(import_text(log).runs[0].steps[2].dt_ms, 3000);
}

TEST(PrintedTimes, WordsSayHowManyStepsATimeCovers) {
  for (const char* line :
       {"step {} | loss 3.9 | elapsed since last log: {k}s", "step {} | loss 3.9 | time since last print: {k}s",
        "step {} | loss 3.9 | time_since_last_log={k}s", "step {} | loss 3.9 | time since last logged step: {k}s",
        "step {} | loss 3.9 | 10 steps in {k}s", "step {} | loss 3.9 | last 10 steps took {k}s",
        "step {} | loss 3.9 | time for last 10 steps: {k}s", "step {} | loss 3.9 | 10 iterations took {k} s",
        "step {} | loss 3.9 | time (10 steps): {k}s", "step {} | loss 3.9 | time: {k}s (10 steps)",
        "step {} | loss 3.9 | {k}s for 10 steps", "step {} | loss 3.9 | {k}s/10 steps",
        "step {} | loss=3.9 | last_10_steps_time={k}s", "step {} | loss 3.9 | time_per_10_steps: {k}s",
        "step {} | loss 3.9 | interval time {k}s"}) {
    EXPECT_NEAR(step_ms(import_text(log_of(line, 10, 500))), 500, 2) << line;
  }
  // The time since the last step is that of a step; a mean is one too.
  EXPECT_NEAR(step_ms(import_text(log_of("step {} | loss 3.9 | time since last step: 0.5s", 10))), 500, 1e-6);
}

TEST(PrintedTimes, RatesInWordsAndOtherTimesAreRates) {
  for (const char* rate : {"65536 tokens per second", "65536 tokens per sec", "65,536 tokens/s", "65536 tokens / s",
                           "65.536k tokens per second", "65.536 k tok/s", "65536 tok per s", "65536 tps",
                           "3.93216M tokens/min", "3.93216M tokens per minute", "5.6623104B tok/day",
                           "235.9296M tokens per hour", "tokens per minute: 3932160", "tokens/sec: 65536"})
    for (const char* time : {"500 ms", "500 ms per step", "speed: 2.00 it/s", "2.00 it/s", "0.5 s/it"}) {
      const std::string line = "step {} | loss: 3.9 | " + std::string(time) + " | " + rate;
      const Told told = import_text(log_of(line));
      EXPECT_EQ(told.runs[0].run.tokens_per_step, 32768) << line << "\n" << notes_of(told);
      EXPECT_NEAR(step_ms(told), 500, 1e-6) << line;
    }
  const Told scaled = import_text(log_of("step {} loss 3.9 tokens/sec 65.536K, steps/sec 2.0"));
  EXPECT_EQ(scaled.runs[0].steps[3].loss, 3.9);
  EXPECT_EQ(scaled.runs[0].run.tokens_per_step, 32768) << notes_of(scaled);
  EXPECT_EQ(import_text(log_of("step {} | loss: 3.9 | speed: 2.00 it/s, throughput: 65536 tok/s"))
                .runs[0]
                .run.tokens_per_step,
            32768);
}

TEST(PrintedTimes, TimeStampsShowHowManyStepsATimeCovers) {
  for (const char* line : {"{stamp} step {} | loss 3.9 | time: {k}s", "[{stamp}] step {} | loss 3.9 | {k} s",
                           "{stamp} step {} | loss 3.9 | dt {k}s", "{stamp} step {} | loss 3.9 | elapsed: {k}s"}) {
    const Told told = import_text(log_of(line, 10, 500));
    EXPECT_NEAR(step_ms(told), 500, 2) << line;
    EXPECT_TRUE(told.noted("covers the 10 steps")) << line << "\n" << notes_of(told);
  }
  std::string clocked;
  for (int i = 1; i <= 40; ++i)
    clocked += "step " + std::to_string(10 * i) + " | loss 3.9 | time " + (i % 2 == 0 ? "5.01" : "4.99") +
               "s | elapsed " + std::to_string(5 * i) + ".0s\n";
  EXPECT_NEAR(step_ms(import_text(clocked)), 500, 2);
  // A step's own time beside such stamps stays what it is, without a doubt.
  const Told own = import_text(log_of("{stamp} step {} | loss 3.9 | time: 0.5s", 10, 500));
  EXPECT_NEAR(step_ms(own), 500, 1e-6);
  EXPECT_FALSE(own.noted("nothing shows")) << notes_of(own);
}

// 340 ms a step, in lines that far apart that the steps between them are near the thousand of a wrong unit.
TEST(PrintedTimes, AnIntervalsTimeIsNoWrongUnit) {
  for (const std::int64_t between : {50, 200, 400, 500, 1000, 2000})
    for (const char* line : {"{stamp} step {} | loss 3.9 | time {k}s", "{stamp} step {} | loss 3.9 | time: {k} sec",
                             "{stamp} step {} | loss 3.9 | {k} seconds | 192753 tokens/sec",
                             "{stamp} Updates {} : loss 3.9 : Time {k}s : 192753 words/s"}) {
      const Told told = import_text(log_of(line, between, 34));
      EXPECT_NEAR(step_ms(told), 34, 0.2) << between << line << "\n" << notes_of(told);
      EXPECT_FALSE(told.noted("whatever its label says")) << between << line;
      EXPECT_FALSE(told.noted("doesn't say which")) << between << line << "\n" << notes_of(told);
    }
  // Nothing tells a wrong unit from an interval whose time leaves out much of it.
  const Told open = import_text(log_of("{stamp} step {} | loss 3.9 | time 24.3s", 1000, 34));
  EXPECT_TRUE(is_missing(step_ms(open))) << notes_of(open);
  EXPECT_TRUE(open.noted("or it covers the 1000 steps")) << notes_of(open);
}

TEST(PrintedTimes, ATimeThatCoversStepsGivesTheTokensOfOne) {
  const Told told = import_text(log_of("[{stamp}] step {} | loss 3.9 | time {k}s | 262144 tokens/s", 100, 500));
  EXPECT_EQ(told.runs[0].run.tokens_per_step, 131072) << notes_of(told);
  // Marian's updates have no round number of words.
  const Told odd = import_text(log_of(
      "[{stamp}] Ep. 1 : Up. {} : Sen. 51,200 : Cost 9.8 * 5,000 @ 5,123 : Time 20.10s : 25617.30 words/s", 100, 201));
  EXPECT_NEAR(step_ms(odd), 201, 0.01);
  EXPECT_LT(odd.runs[0].run.tokens_per_step, 5200) << notes_of(odd);
}

// torchtitan's tps is one device's; 65,536 tokens at 8 x 4,096 tokens/s take 2 s.
TEST(PrintedTimes, TheTpsOfTorchtitanIsOneDevices) {
  const std::string start =
      "Training starts at step 1, with local batch size 1, global batch size 8, sequence length 8192, total steps 40\n";
  const std::string line = "step: {}  loss: 9.8  memory: 47.02GiB(59.40%)  tps: 4,096  tflops: 237.71  mfu: 24.04%";
  for (const std::string& log :
       {start + log_of("[titan] {stamp} - root - INFO - " + line, 1, 2000), "world size: 8\n" + start + log_of(line),
        "Building 1-D device mesh with ['dp_shard'], [8]\n" + start + log_of(line),
        "Building 1-D device mesh with ['dp_shard'], [8]\n" + start + log_of("{stamp} - " + line, 1, 2000)}) {
    const Told told = import_text(log);
    EXPECT_NEAR(step_ms(told), 2000, 1e-6) << log << notes_of(told);
    EXPECT_EQ(told.runs[0].run.tokens_per_step, 65536);
  }
  const Told open = import_text(start + log_of(line));
  EXPECT_TRUE(is_missing(step_ms(open)));
  EXPECT_TRUE(open.noted("doesn't say how many")) << notes_of(open);
  // Whole seconds are too coarse for the steps, but not for all of them.
  const std::string known = "tokens per step: 65536\n", other = "{stamp} step {} | loss 9.8 | 4096 tok/s";
  EXPECT_NEAR(step_ms(import_text(known + log_of(other, 1, 2000))), 2000, 1e-6);
  const Told odd = import_text(known + log_of(other, 1, 3000));
  EXPECT_TRUE(is_missing(step_ms(odd))) << notes_of(odd);
  EXPECT_TRUE(odd.noted("isn't that of all tokens"));
}

TEST(PrintedTimes, ATimePerStepIsPreferredToThatOfAllSteps) {
  for (const char* line :
       {"Epoch [1/3], Step [{}/9000], Loss: 3.9, Time: 6.8s, 340 ms/batch", "step {} loss 3.9 time 6.8s (340 ms/step)",
        "step {} | loss 3.9 | 340 ms/it | time 6.8s", "step {} | loss 3.9 | took 6.8 s | 0.34 s/iter"}) {
    const Told told = import_text(log_of(line, 20));
    EXPECT_NEAR(step_ms(told), 340, 1e-6) << line << "\n" << notes_of(told);
    EXPECT_FALSE(told.noted("nothing shows")) << line;
  }
  EXPECT_NEAR(step_ms(import_text(log_of("step {} | loss 3.9 | time 0.34s (avg 0.41 s/it)"))), 340, 1e-6);
}

TEST(PrintedTimes, WhereNothingShowsWhatATimeCoversThatIsSaid) {
  const Told open = import_text(log_of("step {} | loss 3.9 | time: {k}s", 10, 500));
  EXPECT_TRUE(open.noted("nothing shows whether a printed time covers one step or all 10")) << notes_of(open);
  const Told elapsed = import_text(log_of("step {} | loss 3.9 | elapsed: {k}s", 10, 500));
  EXPECT_TRUE(is_missing(step_ms(elapsed)));
  EXPECT_TRUE(elapsed.noted("it was not used")) << notes_of(elapsed);
  for (const char* line : {"step {} | loss 3.9 | step_time: {k}s", "step {} | loss 3.9 | {k} s/it",
                           "iter {}: loss 3.9, time 500.00ms, mfu 30.00%"})
    EXPECT_FALSE(import_text(log_of(line, 10, 500)).noted("nothing shows")) << line;
  EXPECT_FALSE(import_text(log_of("step {} | loss 3.9 | time: {k}s", 1, 500)).noted("nothing shows"));
}

TEST(PrintedTimes, TheTokensOfAStepShowHowManyStepsATimeCovers) {
  for (const std::int64_t between : {1, 2, 3, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000})
    for (const char* header : {"tokens per step: 65536\n", "batch_size=64\nseq_len=1024\n"})
      for (const char* line : {"step {} | loss: 3.9 | time: {k}s | 532813 tok/s",
                               "step {} | loss: 3.9 | time: {k}s | 520.3 samples/sec"}) {
        const std::string log = header + log_of(line, between, 123);
        if (log.starts_with("tokens") && log.find("samples") != std::string::npos && between < 6)
          continue;  // too few to tell
        const Told told = import_text(log);
        EXPECT_EQ(told.runs[0].run.tokens_per_step, 65536) << between << header << line << "\n" << notes_of(told);
        EXPECT_NEAR(step_ms(told), 123, 1) << between << header << line << "\n" << notes_of(told);
        EXPECT_FALSE(told.noted("doesn't match")) << between << header << line;
        EXPECT_FALSE(told.noted("nothing shows")) << between << header << line;
        if (log.starts_with("batch")) {
          EXPECT_NEAR(told.runs[0].run.printed.tokens_per_s, 532800, 800) << between << line;
        }
      }
}

TEST(PrintedTimes, SamplesOfKnownBatchesGiveTheStepTime) {
  for (const std::string line : {"step {} | loss: 3.9 | time: {k}s | 520.3 samples/sec",
                                 "Epoch 1/1, Batch {}/5000, Loss: 3.9, Time: {k}s, 520.3 samples/sec"}) {
    const Told told = import_text("batch_size=64\n" + log_of(line, 100, 123));
    EXPECT_NEAR(step_ms(told), 123, 1) << line << notes_of(told);
    EXPECT_EQ(told.runs[0].run.tokens_per_step, 0) << line;
  }
  const Told whole = import_text(log_of("step {} loss 3.9 samples/s 64 batch_size 32 seq_len 1024"));
  EXPECT_NEAR(step_ms(whole), 500, 1e-6) << notes_of(whole);
  EXPECT_EQ(whole.runs[0].run.tokens_per_step, 32768);
  const Told grows = import_text(log_of("step {} loss 3.9 samples/s 64 batch_size 32 seq_len 1024") +
                                 "step 41 loss 3.9 samples/s 64 batch_size 64 seq_len 1024\n");
  EXPECT_TRUE(is_missing(step_ms(grows)));
  EXPECT_EQ(grows.runs[0].run.tokens_per_step, 0);
  EXPECT_TRUE(grows.noted("changes here"));
  const Told no_length = import_text(log_of("step {} loss 3.9 samples/s 64 batch_size 32"));
  EXPECT_NEAR(step_ms(no_length), 500, 1e-6) << notes_of(no_length);
  EXPECT_EQ(no_length.runs[0].run.tokens_per_step, 0);
}

TEST(PrintedTimes, TheRateOfOneDeviceIsNotThatOfAll) {
  for (const char* header :
       {"world_size: 8\n", "8 GPUs, NVIDIA H100\n", "num_gpus=8\n", "Training on 8 GPUs\n", "GPUs: 8\n",
        "number of devices: 8\n", "Using 8 H100 GPUs\n", "8x H100\n", "8 x NVIDIA H100\n"})
    for (const char* rate : {"93622 tok/s/gpu", "93,622 tokens/s/device", "93622 tokens per second per GPU",
                             "93622 tok/gpu/s", "tokens_per_sec_per_gpu: 93622", "tok/s per GPU: 93622", "tgs: 93622",
                             "93622 tok/s (per GPU)", "per-GPU throughput: 93622 tok/s", "93.622k tok/s/gpu"}) {
      const Told told = import_text(header + log_of("step {} | loss: 4.9 | dt 350ms | " + std::string(rate)));
      EXPECT_EQ(told.runs[0].run.tokens_per_step, 262144) << header << rate << "\n" << notes_of(told);
      EXPECT_TRUE(told.noted("8 devices")) << header << rate << "\n" << notes_of(told);
    }
  for (const char* line :
       {"step {}: loss 4.9 | 350 ms | 93,622 tok/s/gpu | 8 gpus",
        "{\"step\":{},\"loss\":4.9,\"step_time_s\":0.35,\"tokens_per_sec_per_gpu\":93622,\"world_size\":8}"})
    EXPECT_EQ(import_text(log_of(line)).runs[0].run.tokens_per_step, 262144) << line;
}

TEST(PrintedTimes, TheRateOfOneOfUnknownDevicesGivesNoTokens) {
  for (const char* header : {"", "NVIDIA H100\n", "2 nodes\n8 GPUs per node\n", "B = 32, T = 1024\n",
                             "4 GPUs found\nusing 8 GPUs\n", "devices: 0,1,2,3\n"}) {
    const Told told = import_text(header + log_of("step {} | loss: 4.9 | dt 350ms | 93622 tok/s/gpu"));
    EXPECT_EQ(told.runs[0].run.tokens_per_step, 0) << header << notes_of(told);
    EXPECT_TRUE(is_missing(told.runs[0].run.printed.tokens_per_s)) << header;
    EXPECT_EQ(step_ms(told), 350) << header;
    EXPECT_TRUE(told.noted("the rate is that of one device")) << header << notes_of(told);
  }
  const Told known =
      import_text("tokens per step: 262144\n" + log_of("step {} | loss: 4.9 | dt 350ms | 93622 tok/s/gpu"));
  EXPECT_EQ(known.runs[0].run.tokens_per_step, 262144);
  EXPECT_NEAR(known.runs[0].run.printed.tokens_per_s, 8 * 93622, 1) << notes_of(known);
  // A rate of all beside it counts.
  const Told both = import_text(log_of("step {} | loss: 4.9 | dt 350ms | 93622 tok/s/gpu | 748983 tok/s"));
  EXPECT_EQ(both.runs[0].run.tokens_per_step, 262144) << notes_of(both);
}

TEST(PrintedTimes, ShownFactorsMakeTheShownProduct) {
  std::string log;
  for (int i = 1; i <= 40; ++i)
    log += "step " + std::to_string(i) + " | loss 3 | dt " + std::to_string(i % 2 == 0 ? 80 + i % 7 : 100 - i % 5) +
           "ms | tok/sec " + std::to_string(i % 2 == 0 ? 204800 : 163840) + "\n";
  const Told told = import_text(log);
  int shown = 0;
  for (const std::string& note : told.notes) {
    double rate = 0, time = 0, product = 0;
    if (std::sscanf(note.c_str(), "%lf x %lf s = %lf", &rate, &time, &product) != 3) continue;
    EXPECT_NEAR(rate * time, product, 1e-5 * product) << note;
    ++shown;
  }
  EXPECT_EQ(shown, 1) << notes_of(told);
}

TEST(PrintedTimes, SecondsBehindAStepAreItsTimeAndNoRate) {
  for (const char* line :
       {"step={} loss=4.9 step_seconds=0.35", "step={} loss=4.9 iter_seconds=0.35",
        "step={} loss=4.9 time_per_step_sec=0.35", "step={} loss=4.9 step_sec=0.35s",
        "step={} loss=4.9 step_time_sec=0.35", "[{}] loss=4.9 sec/step=0.35",
        "step={} loss=4.9 train/step_seconds=0.35", "{\"step\": {}, \"loss\": 4.9, \"iteration_seconds\": 0.35}",
        "step:{} - loss:4.9 - timing_s/gen:0.1 - timing_s/step:0.35 - perf/throughput:812.3 - perf/time_per_step:0.35"})
    EXPECT_NEAR(step_ms(import_text(log_of(line))), 350, 1e-6) << line;
  EXPECT_TRUE(is_missing(step_ms(import_text(log_of("step={} loss=4.9 step_sec=0.35"))))) << "or steps a second";
  for (const char* line :
       {"step={} loss=4.9 step/sec=4", "step={} loss=4.9 steps_per_second=4", "step={} loss=4.9 it/s=4"})
    EXPECT_NEAR(step_ms(import_text(log_of(line))), 250, 1e-6) << line;
}

TEST(PrintedTimes, ATimeOfVerlIsInSeconds) {
  const Told told =
      import_text(log_of("step:{} - loss:4.9 - timing_s/step:61.5 - perf/throughput:812.3 - perf/time_per_step:61.5"));
  EXPECT_NEAR(step_ms(told), 61500, 1e-6) << notes_of(told);
  EXPECT_FALSE(told.noted("tokens/ms")) << notes_of(told);
  const Told bare = import_text(log_of("step:{} - loss:4.9 - perf/throughput:812.3 - perf/time_per_step:61.5"));
  EXPECT_TRUE(is_missing(step_ms(bare))) << notes_of(bare);
  EXPECT_EQ(bare.runs[0].run.tokens_per_step, 0);
  EXPECT_TRUE(bare.noted("neither was used")) << notes_of(bare);
  EXPECT_FALSE(bare.noted("was read as")) << notes_of(bare);
}

TEST(PrintedTimes, ANoteOnAClockSaysWhetherItGivesStepTimes) {
  std::string log;
  for (int i = 1; i <= 20; ++i)
    log += "Step " + std::to_string(50 * i) + "/100000; xent: 9.71; 50123/51234 tok/s; " + std::to_string(24 * i) +
           " sec;\n";
  const Told told = import_text(log);
  ASSERT_EQ(told.runs.size(), 1u);
  EXPECT_TRUE(told.noted("counts from the start")) << notes_of(told);
  EXPECT_EQ(told.noted("step times are its differences"), !is_missing(told.runs[0].steps.at(10).dt_ms))
      << notes_of(told);
}

}  // namespace
}  // namespace stepladder
