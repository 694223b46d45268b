#include "app/run_filter.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "engine/nearest.h"
#include "engine/recipe.h"

namespace stepladder {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string plain_text(const Json& value) {
  return lower(value.is_string() ? value.get<std::string>() : value.dump());
}

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool holds(const Json& actual, const std::string& comparison, const std::string& wanted) {
  if (comparison == "~") return !actual.is_null() && plain_text(actual).find(wanted) != std::string::npos;
  const auto number = as_number(wanted);
  if (comparison == "=" || comparison == "!=") {
    const bool equal = number && actual.is_number() ? actual.get<double>() == *number : plain_text(actual) == wanted;
    return equal == (comparison == "=");
  }
  if (!number || !actual.is_number()) return false;
  const double value = actual.get<double>();
  if (comparison == "<") return value < *number;
  if (comparison == "<=") return value <= *number;
  if (comparison == ">") return value > *number;
  return value >= *number;
}

Json curation_json(const Curation& curation) {
  return {{"tags", tags_text(curation.tags)},
          {"note", curation.note},
          {"pinned", curation.pinned},
          {"archived", curation.archived}};
}

}  // namespace

void add_recipe_names(const Run& run, std::set<std::string>& names) {
  const Json recipe = Json::parse(run.recipe, nullptr, false);
  if (!recipe.is_object()) return;
  for (const auto& [name, value] : recipe.items()) names.insert(lower(name));
}

RunFilter::RunFilter(const std::string& expression, const std::function<std::set<std::string>()>& other_names) {
  Json fields = run_json({}, {});
  fields.update(curation_json({}));
  const auto recipe_values = describe(Recipe{});
  std::optional<std::set<std::string>> others;
  const auto is_of_recipe = [&](const std::string& field) {
    if (fields.contains(field)) return false;
    if (std::any_of(recipe_values.begin(), recipe_values.end(),
                    [&](const auto& value) { return value.first == field; }))
      return true;
    if (!others) others = other_names ? other_names() : std::set<std::string>();
    return others->contains(field);
  };
  std::istringstream words(lower(expression));
  for (std::string word; words >> word;) {
    const std::size_t at = word.find_first_of("=!<>~");
    if (at == 0) throw FilterError("--filter: '" + word + "' names no field");
    if (at == std::string::npos) {
      terms_.push_back({.field = "", .comparison = "", .value = word});
      continue;
    }
    const std::string field = word.substr(0, at);
    if (!fields.contains(field) && !is_of_recipe(field)) {
      std::vector<std::string> known;
      for (const auto& [name, value] : fields.items()) known.push_back(name);
      for (const auto& value : recipe_values) known.push_back(value.first);
      if (others) known.insert(known.end(), others->begin(), others->end());
      throw FilterError("--filter: the field " + unknown_name(field, known));
    }
    const std::size_t end = word.find_first_not_of("=!<>~", at);
    const std::string comparison = word.substr(at, end == std::string::npos ? end : end - at);
    static const std::vector<std::string> known = {"=", "!=", "<", "<=", ">", ">=", "~"};
    if (std::find(known.begin(), known.end(), comparison) == known.end() || end == std::string::npos) {
      throw FilterError("--filter: '" + word + "' is not FIELD=VALUE (or !=, <, <=, >, >=, ~)");
    }
    const std::string wanted = word.substr(end);
    if ((comparison.front() == '<' || comparison.front() == '>') && !as_number(wanted))
      throw FilterError("--filter: '" + word + "' compares with '" + wanted + "', which is not a number");
    terms_.push_back({.field = field, .of_recipe = is_of_recipe(field), .comparison = comparison, .value = wanted});
  }
}

bool RunFilter::accepts(const Run& run, const Summary& summary, const PlausibilityContext& judge,
                        const Curation& curation) const {
  if (terms_.empty()) return true;
  Json fields, recipe;  // made when a term asks for them
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    if (term.field.empty()) {
      return lower(run.name + " " + run.stage + " " + std::string(to_string(run.status)) + " " +
                   tags_text(curation.tags))
                 .find(term.value) != std::string::npos;
    }
    if (term.of_recipe) {
      if (recipe.is_null()) recipe = Json::parse(run.recipe, nullptr, false);
      if (!recipe.is_object()) return false;
      auto found = recipe.find(term.field);
      for (auto it = recipe.begin(); found == recipe.end() && it != recipe.end(); ++it) {
        if (lower(it.key()) == term.field) found = it;
      }
      return found != recipe.end() && holds(*found, term.comparison, term.value);
    }
    if (fields.is_null()) {
      fields = run_json(run, summary, judge);
      fields.update(curation_json(curation));
    }
    return holds(fields.at(term.field), term.comparison, term.value);
  });
}

}  // namespace stepladder
