#include "engine/recipe_error.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

TEST(RecipeError, EachFrontEndNamesTheFields) {
  const RecipeError error(FieldName{"sample_every"}, "needs " + FieldName{"tokenizer"} + " (a--b {x})");
  EXPECT_STREQ(error.what(), "--sample-every: needs --tokenizer (a--b {x})");
  EXPECT_EQ(error.field(), "sample_every");
  const auto shout = [](std::string_view field) { return "<" + std::string(field) + ">"; };
  EXPECT_EQ(error.sentence().worded(shout), "<sample_every>: needs <tokenizer> (a--b {x})");
  EXPECT_EQ(error.why.worded(shout), "needs <tokenizer> (a--b {x})");
}

TEST(RecipeError, MayBeAboutSomethingElse) {
  const RecipeError error("run 3", "is queued");
  EXPECT_STREQ(error.what(), "run 3: is queued");
  EXPECT_EQ(error.field(), "");
}

TEST(FieldText, IsEmptyWithoutWords) {
  EXPECT_TRUE(FieldText("").empty());
  EXPECT_FALSE(FieldText(FieldName{"lr"}).empty());
  FieldText twice = "a" + FieldName{"lr"};
  twice += twice;
  EXPECT_EQ(twice.for_command_line(), "a--lra--lr");
}

}  // namespace
}  // namespace stepladder
