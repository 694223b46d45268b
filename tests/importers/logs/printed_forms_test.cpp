// Forms in which well-known programs print steps, evaluations and configurations: each is read right, or not at all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/importers/told.h"

namespace stepladder {
namespace {

// A log of ten records, made from an index.
template <class Print>
Told import_ten(const Print& print, const std::string& header = {}, std::string name = "run.log") {
  std::string text = header;
  for (int i = 1; i <= 10; ++i) text += print(i);
  return import_text(text, {}, std::move(name));
}

std::string loss_of(int i) {
  return std::to_string(12 - i) + ".25";
}

void expect_steps(const Told& told, std::int64_t apart, const std::string& why) {
  ASSERT_EQ(told.runs.size(), 1u) << why;
  ASSERT_EQ(told.runs[0].steps.size(), 10u) << why;
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(told.runs[0].steps[i].step, static_cast<std::int64_t>(i + 1) * apart) << why;
    EXPECT_EQ(told.runs[0].steps[i].loss, 11.25 - static_cast<double>(i)) << why;
  }
}

TEST(PrintedForms, OfSeveralEvaluationSetsEachIsAMetricAndTheFirstIsTheValidationLoss) {
  const Told told = import_ten([](int i) {
    const std::string step = "{\"step\": " + std::to_string(i) + ", ";
    return step + "\"loss\": " + loss_of(i) + "}\n" + step + "\"eval_wiki_loss\": 4." + std::to_string(i) + "}\n" +
           step + "\"eval_code_loss\": 5." + std::to_string(i) + "}\n";
  });
  expect_steps(told, 1, "sets");
  EXPECT_EQ(told.runs[0].steps[4].val_loss, 4.5);
  ASSERT_TRUE(told.runs[0].metrics.contains("eval_wiki_loss"));
  ASSERT_TRUE(told.runs[0].metrics.contains("eval_code_loss"));
  EXPECT_EQ(told.runs[0].metrics.at("eval_code_loss")[4].value, 5.5);
  EXPECT_EQ(told.runs[0].metrics.at("eval_code_loss")[4].step, 5);
  EXPECT_TRUE(told.noted("val_loss is \"eval_wiki_loss\""));
  // One without a name is the run's.
  const Told plain = import_ten([](int i) {
    return "step " + std::to_string(i) + " loss " + loss_of(i) + "\nval_loss 3.5\nval_code_loss 4.5\n";
  });
  EXPECT_EQ(plain.runs[0].steps[4].val_loss, 3.5);
  EXPECT_EQ(plain.runs[0].metrics.at("val_code_loss").size(), 10u);
}

TEST(PrintedForms, TheLossOfATestSetReplacesNoValidationLoss) {
  std::string text;
  for (int i = 1; i <= 10; ++i) text += " iteration " + std::to_string(i) + "/ 10 | lm loss: " + loss_of(i) + " |\n";
  const auto evaluated = [](const char* set, const char* loss) {
    return std::string(" validation loss at iteration 10 on ") + set + " set | lm loss value: " + loss + " |\n";
  };
  const Told told = import_text(text + evaluated("validation", "3.25E+00") + evaluated("test", "4.25E+00"));
  expect_steps(told, 1, "Megatron");
  EXPECT_EQ(told.runs[0].steps.back().val_loss, 3.25);
}

TEST(PrintedForms, WhatATrackerSumsUpAtTheEndIsNoEvaluation) {
  const auto print = [](int i) { return "step " + std::to_string(i) + " | loss " + loss_of(i) + "\n"; };
  for (const std::string end : {"wandb: Run summary:\nwandb:   step 10\nwandb: val/loss 7.1\nwandb:\n",
                                "Run summary:\neval/loss\t7.1\ntrain/loss\t6.1\n"}) {
    std::string text;
    for (int i = 1; i <= 10; ++i) text += print(i) + (i == 5 ? "step 5 | val loss 4.5\n" : "");
    const Told told = import_text(text + end);
    expect_steps(told, 1, end);
    EXPECT_EQ(told.runs[0].steps[4].val_loss, 4.5);
    EXPECT_TRUE(is_missing(told.runs[0].steps[9].val_loss)) << end;
  }
}

TEST(PrintedForms, ThePerplexityOfAnEvaluationIsNoTrainingLoss) {
  const Told told = import_text(
      "epoch 0: perplexity: 33.115 eval_loss: 3.5\nepoch 1: perplexity: 29.964 eval_loss: 3.4\nepoch 2: perplexity: "
      "27.113 eval_loss: 3.3\n");
  ASSERT_EQ(told.runs.size(), 1u);
  ASSERT_EQ(told.runs[0].steps.size(), 3u);
  for (const StepRecord& step : told.runs[0].steps) EXPECT_TRUE(is_missing(step.loss));
  EXPECT_EQ(told.runs[0].steps[1].val_loss, 3.4);
  // One that isn't that of the evaluation's loss is the training's.
  const Told other = import_text("step 1: ppl: 20.085 val_loss: 3.5\nstep 2: ppl: 20.085 val_loss: 3.4\n");
  EXPECT_NEAR(other.runs[0].steps[1].loss, 3, 1e-4);
}

TEST(PrintedForms, ALineOfGlogIsNoWarning) {
  const std::string front = "I0304 10:00:00.000001 140203 train.py:20] ";
  const Told told =
      import_ten([&](int i) { return front + "step " + std::to_string(i) + " | loss " + loss_of(i) + " | 340 ms\n"; },
                 front + "Using device: cuda\n" + front + "batch_size: 8, seq_len: 1024, world_size: 8, lr: 0.001\n");
  expect_steps(told, 1, "glog");
  const stepladder::Run& run = told.runs[0].run;
  EXPECT_EQ(run.device, "cuda");
  EXPECT_EQ(run.tokens_per_step, 8 * 1024 * 8);
  EXPECT_EQ(nlohmann::json::parse(run.recipe).value("lr", 0.0), 0.001) << run.recipe;
  EXPECT_FALSE(told.noted("a warning"));
}

TEST(PrintedForms, ParametersMayBeCountedInWords) {
  for (const std::string header : {"number parameters: 1.5 billion", "--> model has 1500.0 Million params"}) {
    const Told told =
        import_ten([](int i) { return "step " + std::to_string(i) + " loss " + loss_of(i) + "\n"; }, header + "\n");
    EXPECT_EQ(told.runs.at(0).run.params, 1'500'000'000) << header;
  }
}

TEST(PrintedForms, TrainableParametersAreAPartOfAll) {
  for (const std::string all : {" of 8,072,204,288", "/8,072,204,288 (0.52% trained)"}) {
    const Told told = import_ten([](int i) { return "step " + std::to_string(i) + " loss " + loss_of(i) + "\n"; },
                                 "Trainable parameters = 41,943,040" + all + "\n");
    EXPECT_EQ(told.runs.at(0).run.params, 8'072'204'288) << all;
  }
}

TEST(PrintedForms, AHistoryOfListsIsARecordOfEpochs) {
  const Told told =
      import_text("{\"accuracy\": [0.1, 0.2, 0.3], \"loss\": [9.5, 8.5, 7.5], \"val_loss\": [9.25, 8.25, 7.25]}", {},
                  "history.json");
  ASSERT_EQ(told.runs.size(), 1u);
  ASSERT_EQ(told.runs[0].steps.size(), 3u);
  EXPECT_EQ(told.runs[0].steps[0].step, 1);
  EXPECT_EQ(told.runs[0].steps[2].step, 3);
  EXPECT_EQ(told.runs[0].steps[2].loss, 7.5);
  EXPECT_EQ(told.runs[0].steps[2].val_loss, 7.25);
  EXPECT_EQ(told.runs[0].metrics.at("accuracy").size(), 3u);
  EXPECT_TRUE(told.noted("each is an epoch"));
  // Behind the epochs themselves it repeats them.
  const Told behind = import_text("step 1 | loss 9.5\nstep 2 | loss 8.5\n{'loss': [9.5, 8.5]}\n");
  EXPECT_EQ(behind.runs[0].steps.size(), 2u);
  EXPECT_TRUE(behind.noted("again"));
  const Told weights = import_text("{\"betas\": [0.9, 0.95], \"loss_weights\": [1, 2]}\nstep 1 | loss 9.5\n");
  EXPECT_EQ(weights.runs[0].steps.size(), 1u);
}

TEST(PrintedForms, AStepMayHaveItsValuesBelowIt) {
  const auto hundred = [](int i) { return std::to_string(i) + "00"; };
  expect_steps(import_ten([&](int i) { return "step: " + hundred(i) + "\nloss: " + loss_of(i) + "\n"; }), 100, "two");
  expect_steps(import_ten([&](int i) { return "Step: " + hundred(i) + "/1,000\nTrain loss: " + loss_of(i) + "\n"; }),
               100, "of all");
  const Told told = import_ten([&](int i) {
    return "step: " + hundred(i) + "\nloss: " + loss_of(i) +
           "\nLR: 0.0003\ngradient norm: 1.5\ncurrent step time: 0.5\noverall step time: 0.6\n";
  });
  expect_steps(told, 100, "several");
  EXPECT_EQ(told.runs[0].steps[3].dt_ms, 500);
  EXPECT_EQ(told.runs[0].steps[3].lr, 0.0003);
  expect_steps(import_ten([](int i) {
                 return "{'accuracy': 0.1,\n 'learning_rate': 0.0003,\n 'loss': " + loss_of(i) +
                        ",\n 'step': " + std::to_string(i) + "}\n";
               }),
               1, "pprint");
  const Told below = import_ten([](int i) {
    return "train | step: " + std::to_string(i) + " | steps/sec: 5.0 | output:\n    {'learning_rate': 0.0003,\n     " +
           "'training_loss': " + loss_of(i) + "}\n";
  });
  expect_steps(below, 1, "below the line that counts");
  EXPECT_FALSE(below.noted("no step numbers"));
}

TEST(PrintedForms, AnIndexOfAStepIsItsNumber) {
  expect_steps(import_ten([](int i) {
                 return "[PAX STATUS] step_i: " + std::to_string(i) + "0, training loss: " + loss_of(i) + "\n";
               }),
               10, "step_i");
}

TEST(PrintedForms, ABarMayStandBetweenNameAndNumber) {
  const Told told = import_ten([](int i) {
    const std::string step = "Step    " + std::to_string(i) + "00: ";
    return "\n" + step + "Ran 100 train steps in 20.00 secs\n" + step + "train CrossEntropyLoss |  " + loss_of(i) +
           "\n" + step + "eval  CrossEntropyLoss |  4.5\n" + step + "eval          Accuracy |  0.125\n";
  });
  expect_steps(told, 100, "trax");
  EXPECT_EQ(told.runs[0].steps[5].val_loss, 4.5);
  EXPECT_EQ(told.runs[0].steps[5].dt_ms, 200);
}

TEST(PrintedForms, ABarMayBeLoggedRatherThanDrawn) {
  expect_steps(import_ten([](int i) {
                 return "INFO - Progress on:train " + std::to_string(i) +
                        ".00kit/10.0kit rate:2.0it/s remaining:05:00 elapsed:00:30 postfix:loss=" + loss_of(i) + "\n";
               }),
               1000, "with units");
  const Told told = import_ten([](int i) {
    return "Progress on:train " + std::to_string(i) + "00.000000/1000.000000 rate:2.0 it/s postfix:loss=" + loss_of(i) +
           "\n";
  });
  expect_steps(told, 100, "without");
  EXPECT_EQ(told.runs[0].run.planned_steps, 1000);
}

TEST(PrintedForms, ABarMayStandInFrontOfItsCount) {
  std::string text;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const char* part : {"4", "8"})
      text += "train: [===>   |] data=0000" + std::string(part) + "/00008 loss=" + loss_of(epoch + part[0] - '0') +
              "±0.03000 acc=40.10±0.24% t=00:00:00 ETA=00:00:46 \r";
    text += "\nval:   [======>|] data=00002/00002 loss=4.5±0.05 acc=45.1±0.5% t=00:00:02 ETA=00:00:00 \r\n";
  }
  const Told told = import_text(text);
  ASSERT_EQ(told.runs.size(), 1u);
  ASSERT_EQ(told.runs[0].steps.size(), 2u);
  EXPECT_EQ(told.runs[0].steps[0].step, 8);
  EXPECT_EQ(told.runs[0].steps[0].loss, 4.25);
  EXPECT_EQ(told.runs[0].steps[1].step, 16);
  EXPECT_EQ(told.runs[0].steps[1].loss, 3.25);
  EXPECT_EQ(told.runs[0].steps[1].val_loss, 4.5);
}

TEST(PrintedForms, AConfigurationIsNoStep) {
  const Told told = import_ten([](int i) { return "iter " + std::to_string(i) + " | loss " + loss_of(i) + "\n"; },
                               "steps: 1000\nlr: 0.125\nlog_interval: 10\nbatch_size: 8\n\n");
  expect_steps(told, 1, "configuration");
  EXPECT_EQ(nlohmann::json::parse(told.runs[0].run.recipe).value("lr", 0.0), 0.125) << told.runs[0].run.recipe;
}

TEST(PrintedForms, ALineMayNameTheBatchesThatItIsAbout) {
  const Told told = import_ten([](int i) {
    return "[host] 2025-03-04 10:00:0" + std::to_string(i - 1) +
           ",315 (trainer:453) INFO: 1epoch:train:" + std::to_string(10 * i - 9) + "-" + std::to_string(10 * i) +
           "batch: iter_time=0.006, forward_time=0.076, loss=" + loss_of(i) +
           ", loss_att=35.8, backward_time=0.072, optim_step_time=0.006, train_time=0.203\n";
  });
  expect_steps(told, 10, "batches");
  EXPECT_EQ(told.runs[0].steps[5].dt_ms, 203);
}

TEST(PrintedForms, OfProcessesThatNameThemselvesTheFirstCounts) {
  for (const auto& [before, behind] :
       {std::pair{"local_rank=", " "}, {"worker=", " "}, {"[worker-", "] "}, {"[rank", "] "}}) {
    const Told told = import_ten([&](int i) {
      const auto line = [&](int rank, const std::string& loss) {
        return before + std::to_string(rank) + behind + "step=" + std::to_string(i) + " loss=" + loss + "\n";
      };
      const std::string first = line(0, loss_of(i)), second = line(1, "20.5");
      return i % 2 == 0 ? second + first : first + second;
    });
    expect_steps(told, 1, before);
  }
}

TEST(PrintedForms, ABarOfHeavyLinesCountsBatchesOfAnEpoch) {
  const Told told = import_ten([](int i) {
    return "Epoch " + std::to_string((i - 1) / 5) + "/9 \u2501\u2501\u2501\u2578\u2501 " +
           std::to_string((i - 1) % 5 + 1) + "/5 0:00:0" + std::to_string((i - 1) % 5 + 1) +
           " \u2022 0:00:30 1.25it/s v_num: 0.000 train_loss: " + loss_of(i) + "\n";
  });
  expect_steps(told, 1, "rich");
  EXPECT_NEAR(told.runs[0].steps[7].dt_ms, 800, 1e-6);
  EXPECT_FALSE(told.noted("counts epochs only"));
}

TEST(PrintedForms, ATrainingLossBehindAnEvaluationIsRead) {
  const Told told = import_ten([](int i) {
    return "step " + std::to_string(i) + " eval: loss=3" + std::to_string(i) + ".5 acc=0.29 train: loss=" + loss_of(i) +
           " acc=0.31\n";
  });
  expect_steps(told, 1, "eval: train:");
  EXPECT_EQ(told.runs[0].steps[4].val_loss, 35.5);
}

TEST(PrintedForms, AFirstLineWithoutItsBeginningIsNoStep) {
  const auto log = [](const char* first) {
    return import_ten([](int i) { return "step 13" + std::to_string(10 + i) + ": loss 3.25, 120.1 ms\n"; }, first);
  };
  const Told told = log("312: loss 3.25, 120.1 ms\n");
  ASSERT_EQ(told.runs.size(), 1u);
  EXPECT_EQ(told.runs[0].steps.front().step, 1311);
  EXPECT_TRUE(told.noted("no beginning"));
  EXPECT_EQ(log("step 312: loss 3.25, 120.1 ms\n").runs[0].steps.front().step, 312);
}

TEST(PrintedForms, CometsExportNamesEachValue) {
  std::string text = "[";
  for (int i = 1; i <= 10; ++i) {
    const std::string step = ", \"timestamp\": 1712345678000, \"step\": " + std::to_string(i) + ", \"epoch\": null}";
    text += (i > 1 ? ", " : "") + std::string("{\"metricName\": \"loss\", \"metricValue\": \"") + loss_of(i) + "\"" +
            step + ", {\"metricName\": \"learning_rate\", \"metricValue\": \"0.5\"" + step;
  }
  const Told told = import_text(text + "]\n", {}, "comet.json");
  expect_steps(told, 1, "Comet");
  EXPECT_FALSE(told.runs[0].metrics.contains("metricValue"));
}

TEST(PrintedForms, ATimeOfMarianIsThatOfItsUpdates) {
  const Told told = import_ten([](int i) {
    return "[2023-01-01 10:00:" + std::to_string(10 + i) + "] Ep. 1 : Up. " + std::to_string(100 * i) +
           " : Sen. 12,300 : Cost " + loss_of(i) + " : Time 48.00s : 25600.00 words/s : gNorm 1.2345\n";
  });
  expect_steps(told, 100, "Marian");
  EXPECT_DOUBLE_EQ(told.runs[0].steps[4].dt_ms, 480);
}

TEST(PrintedForms, TheBatchesOfBurnsEvaluationAreNoSteps) {
  std::string text;
  for (int i = 1; i <= 10; ++i)
    text += "[Train - Epoch 1 - Iteration " + std::to_string(i) + "] Loss " + loss_of(i) + "\n";
  for (int i = 0; i < 4; ++i) text += "[Valid - Epoch 1 - Iteration " + std::to_string(i) + "] Loss 9.5\n";
  const Told told = import_text(text);
  expect_steps(told, 1, "burn");
  for (const StepRecord& step : told.runs[0].steps) EXPECT_TRUE(is_missing(step.val_loss));
}

TEST(PrintedForms, TheLossOfAnotherSetBesideAValidationLossReplacesNoTrainingLoss) {
  const Told told = import_ten([](int i) {
    const std::string step = std::to_string(i);
    return "step " + step + " loss " + loss_of(i) + " dt 121.0ms\nstep " + step + " c4 loss 20.5 val loss 3.5\n";
  });
  expect_steps(told, 1, "c4");
  EXPECT_EQ(told.runs[0].steps[4].val_loss, 3.5);
  EXPECT_FALSE(told.noted("go back"));
}

TEST(PrintedForms, ALossCalledTlossIsTheTrainings) {
  expect_steps(import_ten([](int i) { return "step " + std::to_string(i) + " tloss=" + loss_of(i) + "\n"; }), 1, "t");
}

TEST(PrintedForms, DigitsInGroupsOfTwoAreNoNumber) {
  const Told told =
      import_ten([](int i) { return "step " + std::to_string(i) + " loss " + loss_of(i) + " tok/s 42,62,504\n"; });
  expect_steps(told, 1, "groups");
  EXPECT_TRUE(is_missing(told.runs[0].run.printed.tokens_per_s));
}

TEST(PrintedForms, AHoleOfNulBytesTakesNoStepAlong) {
  std::string text(5000, '\0');
  for (int i = 0; i < 70'000; ++i) text += i % 70 == 69 ? '\n' : '-';
  for (int i = 1; i <= 10; ++i)
    text += (i == 6 ? std::string(2 << 20, '\0') : "") + "step " + std::to_string(i) + " loss " + loss_of(i) + "\n";
  const Told told = import_text(text);
  expect_steps(told, 1, "holes");
  EXPECT_TRUE(told.noted("NUL bytes"));
}

TEST(PrintedForms, ARateOfOneDeviceIsLoggedAsSuch) {
  const Told told = import_ten([](int i) {
    return "[rank0]:2025-11-03 10:00:" + std::to_string(10 + i) + ",123 - root - INFO - step: " + std::to_string(i) +
           "  loss: " + loss_of(i) + "  memory: 42.10GiB(53.20%)  tps: 8,325  tflops: 312.10  mfu: 31.56%\n";
  });
  expect_steps(told, 1, "torchtitan");
  EXPECT_TRUE(told.runs[0].metrics.contains("tps_per_device"));
  EXPECT_FALSE(told.runs[0].metrics.contains("tps")) << "a metric of that name would be the run's throughput";
}

TEST(PrintedForms, TokensPerMinuteAreARate) {
  const Told told = import_ten([](int i) {
    return "step=" + std::to_string(i) + " loss=" + loss_of(i) +
           " tokens_per_min=240000 min_tokens_per_s=7 dt_ms=1000\n";
  });
  expect_steps(told, 1, "per minute");
  EXPECT_EQ(told.runs[0].run.tokens_per_step, 4000);
}

// A limit of steps makes any fraction of an epoch the last.
TEST(PrintedForms, RecordsBehindTheirBarsKeepItsSteps) {
  std::string text;
  for (int i = 1; i <= 10; ++i)
    text += fmt::format("\r {}%|###   | {}/120 [00:{:02}<00:10,  8.13it/s]\n{{'loss': {}, 'epoch': {:.2f}}}\n", i * 8,
                        10 * i, i, loss_of(i), 0.1 * i);
  expect_steps(import_text(text), 10, "bars");
}

}  // namespace
}  // namespace stepladder
