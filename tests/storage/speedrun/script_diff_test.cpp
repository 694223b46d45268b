#include "storage/speedrun/script_diff.h"

#include <gtest/gtest.h>

#include <random>

namespace stepladder {
namespace {

std::string shown(const std::vector<DiffLine>& diff) {
  std::string text;
  for (const DiffLine& line : diff)
    text += (line.kind == DiffLine::Kind::added ? "+" : "-") + std::to_string(line.line) + line.text + " ";
  return text;
}

TEST(ScriptDiff, finds_the_shortest_change) {
  EXPECT_EQ(shown(script_diff("a\nb\nc\n", "a\nb\nc\n")), "");
  EXPECT_EQ(shown(script_diff("a\nb\nc\n", "a\nx\nc\n")), "-2b +2x ");
  EXPECT_EQ(shown(script_diff("a\nb\nc\nd\n", "b\nc\ne\nd\n")), "-1a +3e ");
  EXPECT_EQ(shown(script_diff("", "a\n")), "+1a ");
  EXPECT_EQ(shown(script_diff("a\n", "")), "-1a ");
  EXPECT_EQ(shown(script_diff("a\r\nb\n", "a\nb\n")), "");
}

TEST(ScriptDiff, a_patch_of_it_gives_the_other_script) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const auto text = [&] {
      std::string it;
      for (int i = static_cast<int>(random() % 30); i > 0; --i)
        it += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
      return it;
    };
    const std::string before = text(), after = text();
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < before.size(); i += 2) lines.push_back(before.substr(i, 1));
    const auto diff = script_diff(before, after);
    for (auto it = diff.rbegin(); it != diff.rend(); ++it)
      if (it->kind == DiffLine::Kind::removed) {
        ASSERT_EQ(lines.at(it->line - 1), it->text);
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(it->line) - 1);
      }
    for (const DiffLine& line : diff)
      if (line.kind == DiffLine::Kind::added)
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(line.line) - 1, line.text);
    std::string patched;
    for (const std::string& line : lines) patched += line + "\n";
    ASSERT_EQ(patched, after) << before << "|" << after;
  }
}

TEST(ScriptDiff, large_scripts_are_bounded) {
  std::string before, after;
  for (int i = 0; i < 20'000; ++i) before += "a" + std::to_string(i) + "\n", after += "b" + std::to_string(i) + "\n";
  EXPECT_EQ(script_diff(before, after).size(), 40'000u);
}

TEST(WithoutComments, keeps_code_and_texts) {
  EXPECT_EQ(without_comments("a = 1  # one\n\n# all\nb = '#'\n"), "a = 1\nb = '#'\n");
  EXPECT_EQ(without_comments("s = \"\"\"x # y\n# z\n\"\"\"  # end\n"), "s = \"\"\"x # y\n# z\n\"\"\"\n");
  EXPECT_EQ(without_comments("s = 'it\\'s # in'  # out\n"), "s = 'it\\'s # in'\n");
  EXPECT_TRUE(
      difference_in_short("a = 1\n", "a = 1  # same\n").starts_with("only comments and spaces differ, 1 lines"));
}

}  // namespace
}  // namespace stepladder
