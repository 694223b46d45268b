// From a step back to the line of the log that prints it.
#include "app/import/source_lines.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/importers/collecting_sink.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

bool never() {
  return false;
}

constexpr const char* two_rungs = R"(# Baseline
step 1 | loss 5.25 | dt 100.5ms
step 2 | loss 5.125 | dt 101ms
val loss 5.0625
# TF32
step 1 | loss 5.25 | dt 50.5ms
step 2 | loss 5.0 | dt 51ms
step 3 | loss 4.75 | dt 51.5ms
)";

TEST(SourceLines, EachStepOfEachRunIsFoundInItsLog) {
  const std::string text = two_rungs;
  MemoryInput input(text);
  CollectingSink read;
  ImportOptions options;
  importer_for(input, options).read(input, options, read);
  ASSERT_EQ(read.runs.size(), 2u);
  const std::vector<std::vector<std::int64_t>> lines{{2, 3}, {6, 7, 8}};
  for (std::size_t run = 0; run < 2; ++run) {
    ASSERT_EQ(read.runs[run].steps.size(), lines[run].size());
    for (std::size_t i = 0; i < lines[run].size(); ++i) {
      const SourceLines found = find_source_lines(
          {.file = {}, .text = text, .options = {}, .stage = read.runs[run].run.stage, .step = read.runs[run].steps[i]},
          never);
      EXPECT_EQ(found.line, lines[run][i]) << found.problem;
      ASSERT_LT(static_cast<std::size_t>(found.line - found.first), found.lines.size());
      const std::string& line = found.lines[static_cast<std::size_t>(found.line - found.first)];
      EXPECT_TRUE(line.starts_with("step " + std::to_string(read.runs[run].steps[i].step) + " |")) << line;
      EXPECT_EQ(numbers_of_step(line, read.runs[run].steps[i]).size(), 2u) << line;
    }
  }
}

TEST(SourceLines, ARowOfATableIsALineToo) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "steps.csv";
  std::string text = "step,loss,dt_ms\n";
  for (int i = 1; i <= 500; ++i)
    text += std::to_string(i) + "," + std::to_string(5 - 0.001 * i) + "," + std::to_string(20 + i % 3) + "\n";
  std::ofstream(file) << text;
  SourceQuestion asked{
      .file = file, .text = {}, .options = {}, .stage = {}, .step = {.step = 123, .loss = 4.877, .dt_ms = 20}};
  const SourceLines found = find_source_lines(asked, never);
  EXPECT_EQ(found.line, 124) << found.problem;
  EXPECT_EQ(found.first, 120);
  ASSERT_EQ(found.lines.size(), 9u);
  EXPECT_EQ(found.lines[4], "123,4.877000,20");
  asked.step.loss = 4.8;
  EXPECT_EQ(find_source_lines(asked, never).problem,
            "steps.csv has no such step any more; it was changed since it was imported.");
  std::filesystem::remove(file);
  EXPECT_NE(find_source_lines(asked, never).problem.find("steps.csv "), std::string::npos);
  EXPECT_EQ(find_source_lines(asked, never).line, 0);
}

TEST(SourceLines, NumbersAreFoundAsPrinted) {
  const StepRecord step{.step = 7, .loss = 5.25, .dt_ms = 139.5, .lr = 6e-4};
  const std::string line = "iter7: loss=5.2500, time 0.1395s lr 6.0e-04 (x5.25)";
  const std::vector<PrintedNumber> numbers = numbers_of_step(line, step);
  ASSERT_EQ(numbers.size(), 3u);
  EXPECT_EQ(line.substr(numbers[0].begin, numbers[0].length), "5.2500");
  EXPECT_EQ(numbers[1].what, "step time");
  EXPECT_EQ(line.substr(numbers[2].begin, numbers[2].length), "6.0e-04");
}

}  // namespace
}  // namespace stepladder
