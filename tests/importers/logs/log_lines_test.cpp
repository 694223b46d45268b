#include "storage/importers/logs/lines/log_lines.h"

#include <gtest/gtest.h>

#include "tests/importers/told.h"

namespace stepladder {
namespace {

using Kind = LogLine::Kind;

std::vector<std::pair<Kind, std::int64_t>> lines_of(std::string_view text) {
  Told told;
  LogLines lines(told);
  std::vector<std::pair<Kind, std::int64_t>> found;
  const auto take = [&] {
    while (const LogLine* line = lines.next()) found.emplace_back(line->kind, line->number);
  };
  lines.give(text);
  take();
  lines.finish();
  take();
  return found;
}

using Lines = std::vector<std::pair<Kind, std::int64_t>>;

TEST(LogLines, each_says_what_it_is) {
  EXPECT_EQ(lines_of("hello\nstep 1 loss 8\nstep 2 loss 7\nloss: 3.5\nEpoch 3:\n"),
            (Lines{{Kind::words, 1}, {Kind::step, 2}, {Kind::step, 3}, {Kind::bare_loss, 4}, {Kind::epoch, 5}}));
}

TEST(LogLines, bars_on_one_line_are_cut_apart) {
  EXPECT_EQ(lines_of("  1%|# | 1/100 [00:01<01:39, 1.0it/s]  2%|# | 2/100 [00:02<01:38, 1.0it/s]{'loss': 3.5}\n"),
            (Lines{{Kind::bar, 1}, {Kind::bar, 1}, {Kind::step, 1}}));
}

TEST(LogLines, a_step_over_several_lines_has_the_number_of_the_first) {
  EXPECT_EQ(lines_of("step 10\n  loss=3.5\n  lr=0.1\nend\n"),
            (Lines{{Kind::part, 2}, {Kind::part, 3}, {Kind::step, 1}, {Kind::words, 4}}));
}

TEST(LogLines, source_code_in_a_document_says_no_step) {
  EXPECT_EQ(lines_of("```python\nstep 1 loss 8\n```\nstep 1 loss 8\n"),
            (Lines{{Kind::fence, 1}, {Kind::words, 2}, {Kind::fence, 3}, {Kind::step, 4}}));
}

}  // namespace
}  // namespace stepladder
