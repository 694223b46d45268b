#include "storage/csv.h"

#include <gtest/gtest.h>

#include <fstream>

#include "storage/errors.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

std::vector<std::string> fields(std::string_view line, char separator = ',') {
  CsvFields splitter;
  const auto& views = splitter.split(line, separator);
  return {views.begin(), views.end()};
}

std::string refused(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
  try {
    CsvFile table(file, "a,b");
    while (table.next()) table.number<int>(1);
  } catch (const StorageError& error) {
    return error.what();
  }
  return "read";
}

TEST(Csv, a_line_is_split_at_its_separators) {
  EXPECT_EQ(fields("a,b,,c"), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(fields(""), (std::vector<std::string>{""}));
  EXPECT_EQ(fields(","), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(fields(" a ;b", ';'), (std::vector<std::string>{" a ", "b"}));
  EXPECT_EQ(fields("5\" disk,b"), (std::vector<std::string>{"5\" disk", "b"}));
}

TEST(Csv, a_quoted_field_may_hold_the_separator_and_quotes) {
  EXPECT_EQ(fields(R"("a,b",c)"), (std::vector<std::string>{"a,b", "c"}));
  EXPECT_EQ(fields(R"("say ""x""", "y",z)"), (std::vector<std::string>{"say \"x\"", "y", "z"}));
  EXPECT_EQ(fields(R"("",)"), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(fields(R"(a,"never closed,b)"), (std::vector<std::string>{"a", "never closed,b"}));
}

TEST(Csv, no_text_is_a_formula_and_every_text_comes_back) {
  EXPECT_EQ(guard_formula("=1+1"), "'=1+1");
  EXPECT_EQ(guard_formula("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(guard_formula("+cmd|' /C calc'!A0"), "'+cmd|' /C calc'!A0");
  EXPECT_EQ(guard_formula("\t=1"), "'\t=1");
  for (const char* const plain : {"", "-", "a=b", "-5", "+1e3", "-0.25", "-inf", "-Infinity", "'quoted'", "1-2"})
    EXPECT_EQ(guard_formula(plain), plain) << "a number stays a number, and a text as it is";
  for (const char* const text :
       {"=1+1", "'=1+1", "''=1+1", "-", "'-", "-5", "'-5", "-a", "'", "''", "it's", "'a'", "\r=x"})
    EXPECT_EQ(unguard_formula(guard_formula(text)), text);
}

TEST(Csv, a_file_skips_comments_and_reads_any_line_end) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "t.csv";
  std::ofstream(file, std::ios::binary) << "# about it\r\na,b\r\n\r\n\"x, y\",2\r\n# more\nz,3";
  CsvFile table(file, "a,b");
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.text(0), "x, y");
  EXPECT_EQ(table.number<int>(1), 2);
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.number<double>(1), 3);
  EXPECT_FALSE(table.next());
}

TEST(Csv, an_error_names_file_and_line) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "t.csv";
  EXPECT_EQ(refused(file, "a,c\n"), file.string() + ", line 1, does not name the columns a,b");
  EXPECT_EQ(refused(file, "a,b\n\n1,2,3\n"), file.string() + ", line 3, has 3 fields instead of 2");
  EXPECT_EQ(refused(file, "a,b\n1,2\n1,x\n"), file.string() + ", line 3, has 'x' instead of a number");
  EXPECT_EQ(refused(file, "a,b\n1,2\n"), "read");
  EXPECT_THROW(CsvFile(folder.path() / "none.csv", "a,b"), StorageError);
}

}  // namespace
}  // namespace stepladder
