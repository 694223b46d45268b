// A setting is a well-known key and a value, glued or with a sign between them, and other signs around both: "lr3e-4",
// "lr=3e-4", "lr_3e-4", "lr 3e-4". Letters around it make it part of a word.
#include "storage/importers/name_settings.h"

#include <array>
#include <cmath>
#include <map>
#include <regex>

#include "storage/name_pattern.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

struct Setting {
  const char* name;
  const char* keys;   // in a file's name
  const char* known;  // names in a recipe, after the last dot
};
constexpr std::array settings{
    Setting{"lr", "lr|learning[-_ ]?rate", "(max_|peak_|base_|init_)?(lr|learning_?rate)"},
    Setting{"batch_size", "bs|bsz|batch|batch[-_ ]?size",
            "((global|micro|device|train|per_device_train)_?)?(batch|batch_?size|bs|bsz)"},
    Setting{"seed", "s|seed", "(random_?)?seed"},
    Setting{"weight_decay", "wd|weight[-_ ]?decay", "wd|weight_?decay"},
    Setting{"warmup", "warmup", "(lr_)?warmup(_(steps|iters|ratio|tokens))?"},
    Setting{"width", "width", "width|d_model|n_embd|hidden_size"},
    Setting{"depth", "depth", "depth|n_layers?|num_layers|num_hidden_layers|layers"},
    Setting{"optimizer", "opt|optim|optimizer", "opt|optim|optimizer(_name)?"},
};

constexpr const char* optimizers =
    "(?:fused)?(?:adamw?|sgd|lion|muon|adafactor|adagrad|rmsprop|lamb|sophia|shampoo|soap)";

std::regex pattern(const std::string& text) {
  return std::regex(text, std::regex::optimize);
}

bool says(const Json& recipe, const Setting& setting) {
  static const std::map<std::string_view, std::regex> known = [] {
    std::map<std::string_view, std::regex> all;
    for (const Setting& each : settings) all[each.name] = pattern(each.known);
    return all;
  }();
  for (const auto& [key, value] : recipe.items())
    if (std::regex_match(lower_case(key.substr(key.rfind('.') + 1)), known.at(setting.name))) return true;
  return false;
}

}  // namespace

std::string add_settings_in_name(Json& recipe, std::string_view stem) {
  static const std::map<std::string_view, std::regex> in_names = [] {
    std::map<std::string_view, std::regex> all;
    for (const Setting& each : settings) {
      const bool is_word = std::string_view(each.name) == "optimizer";
      all[each.name] = pattern("(?:^|[^a-z0-9.])(?:" + std::string(each.keys) + ")[-_= ]?(" +
                               (is_word ? optimizers : "\\d+(?:\\.\\d+)?(?:e[-+]?\\d+)?") + ")(?![a-z0-9.])");
    }
    return all;
  }();
  std::string added;
  const std::string name = lower_case(stem.substr(0, 255));
  for (const Setting& setting : settings) {
    std::smatch found;
    if (!std::regex_search(name, found, in_names.at(setting.name)) || says(recipe, setting)) continue;
    Json value = found.str(1);
    // A rate of 1 and more may lack a sign: "3e4".
    if (const auto number = parse_number<double>(found.str(1));
        number && (std::string_view(setting.name) != "lr" || *number < 1)) {
      if (*number == std::floor(*number) && *number < 1e15)
        value = static_cast<std::int64_t>(*number);
      else
        value = *number;
    }
    added += (added.empty() ? "" : ", ") + std::string(setting.name) + " " +
             (value.is_string() ? value.get<std::string>() : json_text(value));
    recipe[setting.name] = std::move(value);
  }
  return added;
}

}  // namespace stepladder
