#include "storage/bounded_text.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

TEST(BoundedText, KeepsWhatFitsAndCutsNoCharacterInTwo) {
  EXPECT_EQ(bounded("Läufe", 6), "Läufe");
  EXPECT_EQ(bounded("abcdefgh", 6), "abc\xE2\x80\xA6");
  EXPECT_EQ(bounded("abä-xyz", 6), "ab\xE2\x80\xA6") << "the two bytes of ä would not both fit";
  EXPECT_EQ(bounded(std::string(1000, '\x80'), 6), "\xE2\x80\xA6") << "bytes that are no UTF-8";
  for (std::size_t most = 3; most < 40; ++most) {
    const std::string cut = bounded("日本語のとても長い名前です、本当に長い", most);
    EXPECT_LE(cut.size(), most);
    for (std::string_view rest = cut; !rest.empty(); rest.remove_prefix(utf8_length(rest)))
      ASSERT_GT(utf8_length(rest), 0U) << cut;
  }
}

TEST(BoundedText, KnowsCharacters) {
  EXPECT_EQ(utf8_length(""), 0U);
  EXPECT_EQ(utf8_length("a"), 1U);
  EXPECT_EQ(utf8_length("\xC3\xA4x"), 2U);
  EXPECT_EQ(utf8_length("\xE2\x82\xAC"), 3U);
  EXPECT_EQ(utf8_length("\xF0\x9F\x98\x80"), 4U);
  for (const char* const wrong :
       {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xFF"})
    EXPECT_EQ(utf8_length(wrong), 0U);
}

TEST(BoundedText, KnowsWhatSteersATerminal) {
  for (const char* const control : {"\x1b", "\n", "\x7f", "\xC2\x80", "\xC2\x9B", "\xC2\x9F", "\xD8\x9C",
                                    "\xE2\x80\x8E", "\xE2\x80\xAA", "\xE2\x80\xAE", "\xE2\x81\xA6", "\xE2\x81\xA9"})
    EXPECT_TRUE(is_control(control));
  for (const char* const text :
       {"a", " ", "\xC2\xA0", "\xC3\xA4", "\xE2\x80\xA6", "\xE2\x80\x94", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"})
    EXPECT_FALSE(is_control(text));
}

}  // namespace
}  // namespace stepladder
