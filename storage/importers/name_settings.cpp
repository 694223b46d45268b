// A setting is a well-known key and a value, glued or with a sign between them, and other signs around both: "lr3e-4",
// "lr=3e-4", "lr_3e-4", "lr 3e-4". Letters around it make it part of a word.
#include "storage/importers/name_settings.h"

#include <cmath>
#include <regex>
#include <vector>

#include "storage/name_pattern.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

struct Setting {
  const char* name;
  std::regex in_name;  // of a file
  std::regex known;    // a name in a recipe, after the last dot
};

Setting setting(const char* name, const std::string& keys, const std::string& known,
                const std::string& value = "\\d+(?:\\.\\d+)?(?:e[-+]?\\d+)?") {
  const auto flags = std::regex::ECMAScript | std::regex::optimize;
  const std::string in_name = "(?:^|[^a-z0-9.])(?:" + keys + ")[-_= ]?(" + value + ")(?![a-z0-9.])";
  return {name, std::regex(in_name, flags), std::regex(known, flags)};
}

const std::vector<Setting>& all_settings() {
  static const std::vector<Setting> all = {
      setting("lr", "lr|learning[-_ ]?rate", "(max_|peak_|base_|init_)?(lr|learning_?rate)"),
      setting("batch_size", "bs|bsz|batch|batch[-_ ]?size",
              "((global|micro|device|train|per_device_train)_?)?(batch|batch_?size|bs|bsz)"),
      setting("seed", "s|seed", "(random_?)?seed"),
      setting("weight_decay", "wd|weight[-_ ]?decay", "wd|weight_?decay"),
      setting("warmup", "warmup", "(lr_)?warmup(_(steps|iters|ratio|tokens))?"),
      setting("width", "width", "width|d_model|n_embd|hidden_size"),
      setting("depth", "depth", "depth|n_layers?|num_layers|num_hidden_layers|layers"),
      setting("optimizer", "opt|optim|optimizer", "opt|optim|optimizer(_name)?",
              "(?:fused)?(?:adamw?|sgd|lion|muon|adafactor|adagrad|rmsprop|lamb|sophia|shampoo|soap)"),
  };
  return all;
}

bool says(const Json& recipe, const Setting& setting) {
  for (const auto& [key, value] : recipe.items())
    if (std::regex_match(lower_case(key.substr(key.rfind('.') + 1)), setting.known)) return true;
  return false;
}

}  // namespace

std::string add_settings_in_name(Json& recipe, std::string_view stem) {
  std::string added;
  const std::string name = lower_case(stem.substr(0, 255));
  for (const Setting& setting : all_settings()) {
    std::smatch found;
    if (!std::regex_search(name, found, setting.in_name) || says(recipe, setting)) continue;
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
