// Reading a line by its layout must give the same values as reading it from scratch.
#include "storage/importers/logs/lines/line_layout.h"

#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <random>

namespace stepladder {
namespace {

namespace fs = std::filesystem;

std::string in_words(const StepLine& line) {
  std::string text;
  const auto add = [&](auto value) { text += std::to_string(value) + " "; };
  for (double StepValues::*value : step_values) add(std::bit_cast<std::uint64_t>(line.*value));
  add(std::bit_cast<std::uint64_t>(line.epoch));
  add(std::bit_cast<std::uint64_t>(line.at));
  for (const std::int64_t whole : {line.step, line.total, line.batch, line.batches, line.rank}) add(whole);
  for (const bool flag : {line.bar, line.keras, line.record, line.summary, line.named_loss, line.tested,
                          line.whole_epoch, line.epoch_leads, line.from_perplexity, line.interval, line.rounded_tokens})
    add(static_cast<int>(flag));
  add(static_cast<int>(line.time_unit));
  add(static_cast<int>(line.elapsed_unit));
  add(static_cast<int>(line.rate));
  return text + std::string(line.rate_text);
}

std::vector<std::string> lines_of_samples() {
  std::vector<std::string> lines;
  for (const char* folder : {"importers/samples", "fuzz/corpus"})
    for (const auto& entry : fs::directory_iterator(fs::path(STEPLADDER_SOURCE_DIR) / "tests" / folder)) {
      if (entry.path().extension() == ".json") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      for (std::string line; std::getline(file, line);) lines.push_back(line);
    }
  return lines;
}

class Checker {
 public:
  void check(const std::string& text) {
    ReadTrace trace;
    const ReadLine anew = read_step_line(text, trace);
    if (StepLine known; layouts_.read(text, known)) {
      ++known_;
      ASSERT_TRUE(anew.says_step) << text;
      ASSERT_EQ(in_words(known), in_words(anew.line)) << text << "\nknown from one of:" << learnt_;
    } else if (anew.says_step) {
      layouts_.learn(text, anew, trace);
      learnt_ += "\n" + text;
    }
  }
  int known() const { return known_; }

 private:
  LineLayouts layouts_;
  std::string learnt_;
  int known_ = 0;
};

TEST(LineLayout, SaysOfEverySampleWhatIsReadAnew) {
  Checker checker;
  for (const std::string& line : lines_of_samples()) {
    checker.check(line);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(checker.known(), 50);
}

// Replaces some characters: other digits, more or fewer of them, other signs, points, spaces and letters.
TEST(LineLayout, SaysTheSameOfChangedLines) {
  const std::vector<std::string> lines = lines_of_samples();
  std::mt19937 random(7);
  const auto any = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  int known = 0;
  for (int round = 0; round < 60; ++round)
    for (const std::string& line : lines) {
      if (line.size() > 2000) continue;
      Checker checker;
      checker.check(line);
      std::string changed = line;
      for (int change = 0; change < 12; ++change) {
        for (char& c : changed)
          if (c >= '0' && c <= '9' && any(3) == 0) c = static_cast<char>('0' + any(10));
        if (!changed.empty() && any(2) == 0) {
          const std::size_t at = changed.find_first_of("0123456789", any(changed.size()));
          if (at != std::string::npos) {
            if (any(2) == 0)
              changed.insert(at, 1, "0123456789.,-+:/ e%_"[any(20)]);
            else
              changed.erase(at, 1);
          }
        }
        checker.check(changed);
        if (HasFatalFailure()) return;
        if (any(4) == 0) changed = line;
      }
      known += checker.known();
    }
  EXPECT_GT(known, 30000);
}

TEST(LineLayout, AlignedNumbersAndKindsThatTakeTurnsAreKnown) {
  Checker checker;
  int steps = 0;
  for (int i = 1; i < 2000; i *= 3) {
    char text[120];
    std::snprintf(text, sizeof text, "step %6d/19560 | loss %9.6f (%+.2fz)| lr %.2e | %7.2f ms | %d tok/s", i, 4.0 / i,
                  i % 2 ? 0.5 : -0.5, 6e-4 / i, 100.0 * i, 1000 * i);
    checker.check(text);
    checker.check("val loss " + std::to_string(3.5 + i));
    ++steps;
  }
  EXPECT_GT(checker.known(), steps);
}

// Each number was searched for up to the line's end: with these, for half an hour.
TEST(StepLine, ALineMayHaveAMillionNumbers) {
  std::string line = "step 7 | loss 3.5 | ids";
  for (int i = 0; i < 1'000'000; ++i) line += " 1";
  const ReadLine read = read_step_line(line);
  EXPECT_EQ(read.line.step, 7);
  EXPECT_EQ(read.line.loss, 3.5);
}

}  // namespace
}  // namespace stepladder
