#include "engine/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepladder {
namespace {

TEST(Nearest, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("gtp2", "gpt2"), 1u);
  EXPECT_EQ(edit_distance("cdua", "cpu"), 2u);
}

TEST(Nearest, Name) {
  const std::vector<std::string> known = {"baseline", "tf32", "bf16", "flash-attention"};
  EXPECT_EQ(nearest_name("flash-atention", known), "flash-attention");
  EXPECT_EQ(nearest_name("bf61", known), "bf16");
  EXPECT_EQ(nearest_name("flash", known), "flash-attention");
  EXPECT_EQ(nearest_name("something else", known), "");
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(nearest_name("BF16", known), "bf16");
  EXPECT_EQ(nearest_name("tokens_per_sec", std::vector<std::string>{"tokens_per_step", "tokens_per_s"}),
            "tokens_per_s");
}

TEST(Nearest, UnknownNameListsAllWhereNothingIsNear) {
  const std::vector<std::string> known = {"tf32", "bf16"};
  EXPECT_EQ(unknown_name("quantise", known), "\"quantise\" is unknown; there are tf32, bf16");
  EXPECT_EQ(unknown_name("tf23", known), "\"tf23\" is unknown; did you mean tf32?");
}

}  // namespace
}  // namespace stepladder
