#include "app/cli/recipe_options.h"

#include <algorithm>
#include <map>

#include "app/exit_status.h"
#include "app/launch/recipe_fields.h"

namespace stepladder {

void RecipeOptions::add_to(CLI::App& command) {
  std::string models;
  for (const ModelPreset& preset : model_presets()) models += (models.empty() ? "" : ", ") + std::string(preset.name);
  command.add_option("--model", model_, "Shape of the model: " + models + " (default nano)")
      ->group("Recipe")
      ->take_last();
  const auto value_option = [&](const std::string& option, const char* member, const char* help) {
    const auto keep = [this, member](const std::string& value) { given_.emplace_back(member, value); };
    return command.add_option_function<std::string>(option, keep, help)->group("Recipe")->take_last();
  };
  value_option("--data", "data", "Text file (bytes), nanoGPT .bin or llm.c .bin (default: synthetic tokens)");
  Recipe nano;
  apply_preset(nano, "nano");
  std::map<std::string, std::string> usual;
  for (auto& [name, value] : describe(nano)) usual[name] = value;
  for (const RecipeField& field : recipe_fields()) {
    if (!field.has_option()) continue;
    const bool is_warmup = std::string_view(field.name) == "warmup";
    CLI::Option* option =
        value_option(option_of(field.name) + (is_warmup ? ",--skip-steps" : ""), field.name, field.help);
    const std::string& value = usual[field.name];
    const bool is_number = !value.empty() && value.find_first_not_of("0123456789.e-") == std::string::npos;
    std::string choices = field.choices;
    std::ranges::replace(choices, ',', '|');
    option->type_name(!choices.empty()                          ? choices
                      : !is_number                              ? "TEXT"
                      : value.find_first_of(".e") == value.npos ? "N"
                                                                : "X");
    if (!is_warmup) option->default_str(value);
  }
  const auto flag = [&](const char* option, const char* member, const char* value, const char* help) {
    const auto keep = [this, member, value](std::int64_t) { given_.emplace_back(member, value); };
    return command.add_flag_function(option, keep, help)->group("Recipe");
  };
  CLI::Option* tied = flag("--tied-head", "tied_head", "on", "Share the head's weights with the token embedding");
  flag("--untied-head", "tied_head", "off", "Give the head its own weights")->excludes(tied);
  flag("--overfit", "overfit", "on", "Train on one batch only: its loss must approach zero");
}

Recipe RecipeOptions::recipe() const {
  Recipe recipe;
  apply_preset(recipe, "nano");
  return over(std::move(recipe));
}

Recipe RecipeOptions::over(Recipe recipe) const {
  if (!model_.empty()) apply_preset(recipe, model_);
  for (const auto& [name, value] : given_) {
    try {
      set_value(recipe, name, value);
    } catch (const RecipeError& error) {
      if (value.find(',') == std::string::npos || name == "data") throw;
      throw UsageError(error.what(), {.code = "invalid-value",
                                      .argument = option_of(name),
                                      .value = value,
                                      .hint = "`stepladder sweep --over " + name + "=" + value + "` trains each"});
    }
  }
  validate(recipe);
  return recipe;
}

}  // namespace stepladder
