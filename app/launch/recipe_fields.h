// The recipe's values as a person sets them: options of the command line, fields of the Launch view.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/recipe.h"
#include "storage/by_enum.h"

namespace stepladder {

enum class FieldGroup { everyday, model, optimiser, validation, checkpoints, execution, stages };
inline constexpr int field_groups = enum_count<FieldGroup>();
const char* title_of(FieldGroup group);

struct RecipeField {
  const char* name;  // in `describe`
  FieldGroup group;
  const char* label;         // in the window
  const char* help;          // for --help and tooltips
  const char* choices = "";  // all values that it can have, separated by commas; empty: any text or number

  bool has_option() const;  // `--name VALUE` on the command line; switches and what stages set have none
  bool is_path() const;     // of a file
  bool takes_list() const;  // a comma separates values; in texts and paths it is part of the value
};

// All but model and data, in the order of the window.
std::span<const RecipeField> recipe_fields();

std::vector<std::string> choices_of(const RecipeField& field);

// The window's word for a field that an error names (engine/recipe_error.h): its label, or for anything else that a
// request is given, that button's or option's.
std::string label_of(std::string_view field);

}  // namespace stepladder
