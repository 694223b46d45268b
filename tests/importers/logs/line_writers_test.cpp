// Two trainings whose lines are in one file are never read as one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/importers/told.h"

namespace stepladder {
namespace {

std::string line_of(std::string_view writer, int step, double loss) {
  return fmt::format("{}step {} loss {:.4f} 101 ms\n", writer, step, loss - 0.01 * step);
}

std::string in_turn(std::string_view one, std::string_view other) {
  std::string text;
  for (int i = 1; i <= 8; ++i) text += line_of(one, i, 10.9) + line_of(other, i, 11.4);
  return text;
}

TEST(LineWriters, TwoTrainingsThatWriteInTurnAreRefused) {
  const std::pair<const char*, const char*> names[] = {{"[baseline] ", "[muon] "},
                                                       {"[run 1] ", "[run 2] "},
                                                       {"seed 1 | ", "seed 2 | "},
                                                       {"baseline: ", "compile: "},
                                                       {"(train_fn pid=100) ", "(train_fn pid=200) "},
                                                       {"pod-a-7d9f train ", "pod-b-6c8e train "},
                                                       {"trainer-a-1  | ", "trainer-b-1  | "}};
  for (const auto& [one, other] : names) {
    try {
      import_text(in_turn(one, other));
      FAIL() << one;
    } catch (const ImportError& error) {
      EXPECT_NE(std::string(error.what()).find("of several trainings"), std::string::npos) << error.what();
    }
  }
}

TEST(LineWriters, TheLinesOfTwoFilesThatASearchListsAreRefused) {
  std::string text;
  for (const char* file : {"logs/run1.txt:", "logs/run2.txt:"})
    for (int i = 1; i <= 8; ++i) text += line_of(file, i, file[8] == '1' ? 10.9 : 12.9);
  EXPECT_THROW(import_text(text), ImportError);
  EXPECT_EQ(import_text(text.substr(0, text.size() / 2)).runs.at(0).steps.size(), 8u);
}

TEST(LineWriters, RecordsThatNameTheirRunsAreOfOneRunOrRefused) {
  const auto record = [](int step, double loss, char run) {
    return fmt::format("{{\"step\": {}, \"loss\": {:.2f}, \"run\": \"{}\"}}\n", step, loss - 0.1 * step, run);
  };
  std::string one, in_turn, other;
  for (int i = 1; i <= 8; ++i) {
    one += record(i, 10.9, 'a');
    other += record(i, 11.9, 'b');
    in_turn += record(i, 10.9, 'a') + record(i, 11.9, 'b');
  }
  EXPECT_EQ(import_text(one + one).runs.size(), 1u);
  EXPECT_THROW(import_text(one + other), ImportError);
  EXPECT_THROW(import_text(in_turn), ImportError);
}

TEST(LineWriters, LinesBesideThoseOfTheStepsAreNone) {
  for (const std::string_view beside : {"saved checkpoint ", "| hellaswag | "}) {
    std::string text;
    for (int i = 1; i <= 12; ++i)
      text += line_of("", i, 10.9) + (i % 3 == 0 ? line_of(beside, i, 2.3) + line_of("| arc | ", i, 3.3) : "");
    const Told told = import_text(text);
    ASSERT_EQ(told.runs.size(), 1u) << beside;
    ASSERT_EQ(told.runs[0].steps.size(), 12u) << beside;
    for (const StepRecord& step : told.runs[0].steps) EXPECT_GT(step.loss, 10) << beside;
    EXPECT_TRUE(told.noted("another loss")) << beside;
  }
}

TEST(LineWriters, RanksAndAResumedTrainingAreOneRun) {
  for (const auto& [one, other] : {std::pair("[rank0]: ", "[rank1]: "), std::pair("[cuda:0] ", "[cuda:1] ")}) {
    const Told told = import_text(in_turn(one, other));
    ASSERT_EQ(told.runs.at(0).steps.size(), 8u) << one;
    EXPECT_DOUBLE_EQ(told.runs[0].steps[0].loss, 10.89) << one;
  }
  std::string text;
  for (int attempt = 0; attempt < 5; ++attempt)
    for (int i = 1; i <= 8; ++i)
      text += line_of(fmt::format("2026-05-0{} 10:00:0{} node{} ", attempt + 1, i, attempt), i, 11 + 0.1 * attempt);
  EXPECT_EQ(import_text(text).runs.size(), 1u);
}

}  // namespace
}  // namespace stepladder
