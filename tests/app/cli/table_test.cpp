#include "app/cli/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace stepladder {
namespace {

using Rows = std::vector<std::vector<std::string>>;

const Rows runs = {{"id", "name", "loss"},
                   {"1", "a name of many words that would not fit on a narrow screen", "5.6001"},
                   {"12", "Läufe", "-"}};
const std::vector<bool> right = {true, false, true};

std::size_t characters(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t widest(const std::string& text) {
  std::istringstream lines(text);
  std::size_t most = 0;
  for (std::string line; std::getline(lines, line);) most = std::max(most, characters(line));
  return most;
}

TEST(Table, PadsEachColumnToItsWidestCell) {
  EXPECT_EQ(table({{"id", "name", "loss"}, {"1", "Läufe", "5.6"}, {"12", "b", "-"}}, right, 0),
            "id  name   loss\n"
            " 1  Läufe   5.6\n"
            "12  b         -\n");
}

TEST(Table, ShortensNamesWhereTheScreenIsNarrow) {
  EXPECT_EQ(widest(table(runs, right, 0)), 2 + 2 + runs[1][1].size() + 2 + 6);
  EXPECT_EQ(table(runs, right, 60),
            "id  name                                                loss\n"
            " 1  a name of many words tha… fit on a narrow screen  5.6001\n"
            "12  Läufe                                                  -\n");
}

TEST(Table, AColumnWithoutValuesIsTheFirstThatANarrowScreenLoses) {
  const std::string name(60, 'n');
  const Rows rows{{"id", "name", "val loss", "device"}, {"1", name, "-", ""}, {"2", name, "-", ""}};
  const std::vector<bool> sides{true, false, true, false};
  EXPECT_EQ(table(rows, sides, 64), "id  name\n 1  " + name + "\n 2  " + name + "\n");
  EXPECT_TRUE(table(rows, sides, 0).starts_with("id  name")) << "a pipe gets all";
  EXPECT_NE(table(rows, sides, 0).find("val loss"), std::string::npos);
}

TEST(Table, OneBelowTheOtherBelow60Columns) {
  EXPECT_TRUE(table(runs, right, 59).starts_with("id    1\nname  a name of"));
  const std::string text = table(runs, right, 16);
  EXPECT_LE(widest(text), 16U) << text;
  EXPECT_TRUE(text.starts_with("id    1\nname  a name of")) << text;
  EXPECT_TRUE(text.ends_with("\n\nid    12\nname  Läufe\nloss  -\n")) << text;
}

TEST(Table, LosesNothingOfALongWord) {
  const std::string path(50, 'x');
  const std::string text = table({{"key", path}}, {false, false}, 25);
  EXPECT_LE(widest(text), 25U);
  EXPECT_EQ(std::count(text.begin(), text.end(), 'x'), 50);
}

TEST(Table, NoCellSteersTheTerminal) {
  EXPECT_EQ(table({{"two\nlines\tand \x1b[31mred"}}, {false}, 0), "two lines and .[31mred\n");
}

}  // namespace
}  // namespace stepladder
