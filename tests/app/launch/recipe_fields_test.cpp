#include "app/launch/recipe_fields.h"

#include <gtest/gtest.h>

#include <set>

namespace stepladder {
namespace {

TEST(RecipeFields, EveryValueOfTheRecipeHasOne) {
  std::set<std::string> fields = {"model", "data"};
  for (const RecipeField& field : recipe_fields()) EXPECT_TRUE(fields.insert(field.name).second) << field.name;
  for (const auto& [name, value] : describe(Recipe{})) EXPECT_EQ(fields.erase(name), 1u) << name;
  EXPECT_TRUE(fields.empty()) << *fields.begin();
}

TEST(RecipeFields, TheWindowNamesWhatAnErrorNames) {
  EXPECT_EQ(label_of("weight_decay"), "Weight decay");
  EXPECT_EQ(label_of("resume"), "Resume");
  EXPECT_EQ(label_of("colour"), "colour");
  Recipe recipe;
  recipe.heads = 3;
  try {
    validate(recipe);
    FAIL();
  } catch (const RecipeError& error) {
    EXPECT_EQ(error.sentence().worded(label_of), "Heads: 3 heads do not divide a width of 128");
    EXPECT_STREQ(error.what(), "--heads: 3 heads do not divide a width of 128");
  }
}

TEST(RecipeFields, AllChoicesAreThere) {
  for (const RecipeField& field : recipe_fields()) {
    Recipe recipe;
    for (const std::string& choice : choices_of(field)) EXPECT_NO_THROW(set_value(recipe, field.name, choice));
    try {
      set_value(recipe, field.name, "nonsense");
      EXPECT_EQ(field.name == std::string("device"), *field.choices != 0) << field.name;  // the only free text
    } catch (const RecipeError& error) {
      const std::string why = error.what();
      const bool is_list = why.find("there are ") != std::string::npos || why.find("on or off") != std::string::npos;
      EXPECT_EQ(is_list, *field.choices != 0) << field.name << ": " << why;
    }
  }
}

}  // namespace
}  // namespace stepladder
