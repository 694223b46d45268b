// Reads and writes ladders as files and as command lines, for Launch, `ladder --plan` and `--on`. Reading a file checks
// it as launching would, so a preset that loads can be launched. A saved preset has absolute paths.
#include "app/launch/ladder_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "app/figures/export.h"
#include "app/launch/recipe_fields.h"
#include "engine/preparation.h"
#include "engine/stage.h"
#include "storage/analysis/hardware.h"
#include "storage/errors.h"
#include "storage/json_values.h"
#include "storage/own_folder.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace {
namespace fs = std::filesystem;

constexpr const char* ending = ".json";

Json parse(const std::string& text, const fs::path& file) {
  if (nests_deep(text)) throw RecipeError(file.string(), "nests too deep");
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw RecipeError(file.string() + ", line " + std::to_string(line_at(text, error.byte)), "isn't JSON");
  }
}

// A member of the file; `otherwise` if it is absent. Throws RecipeError for another type.
template <class Value>
Value member(const Json& json, const char* name, const fs::path& file, Value otherwise) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return otherwise;
  try {
    return found->get<Value>();
  } catch (const Json::exception&) {
    throw RecipeError(file.string(), std::string(name) + " cannot be " + found->dump());
  }
}

DraftRung rung_of(const Json& json, const fs::path& file) {
  if (json.is_string()) return {.text = json.get<std::string>()};
  if (!json.is_object()) throw RecipeError(file.string(), "a rung cannot be " + json.dump());
  return {.text = member<std::string>(json, "rung", file, ""),
          .on = member(json, "on", file, true),
          .seed_tokens_per_s = member(json, "seed_tokens_per_s", file, missing)};
}

std::string quoted(const std::string& word) {
  const bool is_plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./:=,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (is_plain) return word;
  std::string safe = "'";
  for (const char c : word) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return safe + "'";
}

// The words that set this recipe, and in `rest` the values that have no option.
std::string recipe_words(const Recipe& recipe, std::vector<std::pair<std::string, std::string>>& rest) {
  std::string words;
  Recipe usual;
  const auto& presets = model_presets();
  const bool is_preset =
      std::ranges::any_of(presets, [&](const ModelPreset& known) { return known.name == recipe.model; });
  apply_preset(usual, is_preset ? recipe.model : presets.front().name);
  if (is_preset && recipe.model != presets.front().name) words += " --model " + recipe.model;
  if (!recipe.data.empty()) words += " --data " + quoted(recipe.data);
  const auto usual_values = describe(usual);
  const auto values = describe(recipe);
  for (const RecipeField& field : recipe_fields()) {
    const auto named = [&](const auto& value) { return value.first == field.name; };
    const std::string& value = std::ranges::find_if(values, named)->second;
    if (value == std::ranges::find_if(usual_values, named)->second) continue;
    const std::string_view name = field.name;
    if (field.has_option())
      words += " " + option_of(field.name) + " " + quoted(value);
    else if (name == "tied_head")
      words += value == "on" ? " --tied-head" : " --untied-head";
    else if (name == "overfit")
      words += " --overfit";
    else
      rest.emplace_back(field.name, value);
  }
  return words;
}

}  // namespace

LadderDraft draft_of(LadderRequest request) {
  LadderDraft draft;
  for (const PlannedRung& rung : request.rungs)
    draft.rungs.push_back({.text = rung_text(rung), .seed_tokens_per_s = rung.seed_tokens_per_s});
  request.rungs.clear();
  draft.request = std::move(request);
  return draft;
}

LadderRequest request_of(const LadderDraft& draft, const FieldText& about) {
  LadderRequest request = draft.request;
  request.rungs.clear();
  for (std::size_t i = 0; i < draft.rungs.size(); ++i) {
    const DraftRung& rung = draft.rungs[i];
    if (!rung.on) continue;
    try {
      request.rungs.push_back(parse_rung(rung.text, about));
    } catch (const RecipeError& error) {
      throw RecipeError(about, "rung " + std::to_string(i + 1) + " '" + rung.text + "': " + error.why);
    }
    request.rungs.back().seed_tokens_per_s = rung.seed_tokens_per_s;
  }
  return draft.over.empty() ? request : sweep_request(std::move(request), draft.over);
}

std::string ladder_file_text(const LadderDraft& draft) {
  const LadderRequest& request = draft.request;
  Json rungs = Json::array();
  for (const DraftRung& rung : draft.rungs) {
    Json json{{"rung", rung.text}};
    if (!rung.on) json["on"] = false;
    if (!is_missing(rung.seed_tokens_per_s)) json["seed_tokens_per_s"] = rung.seed_tokens_per_s;
    rungs.push_back(json.size() == 1 ? Json(rung.text) : json);
  }
  Json over = Json::object();
  for (const SweptValue& swept : draft.over) over[swept.name] = swept.values;
  Json json{{"stepladder", "ladder"},
            {"name", request.name},
            {"notes", request.notes},
            {"climb", request.climb == Climb::alone ? "alone" : "together"},
            {"repeats", request.repeats},
            {"interleave", request.interleave},
            {"when_quiet", request.quiet_patience.has_value()},
            {"rungs", rungs},
            {"recipe", Json::parse(to_json(request.base))}};
  if (!over.empty()) json["over"] = over;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

LadderDraft read_ladder_file(const fs::path& file) {
  errno = 0;
  RegularFile in(file);
  std::stringstream text;
  if (!in || !(text << in.rdbuf()))
    throw RecipeError(file.string(), std::string("cannot be read: ") + std::strerror(errno ? errno : EIO));
  const Json json = parse(text.str(), file);
  if (!json.is_object() || json.value("stepladder", Json()) != "ladder")
    throw RecipeError(file.string(), "isn't a ladder that Stepladder saved: its JSON lacks \"stepladder\": \"ladder\"");
  LadderDraft draft;
  draft.request.name = member<std::string>(json, "name", file, "");
  draft.request.notes = member<std::string>(json, "notes", file, "");
  const auto climb = member<std::string>(json, "climb", file, "together");
  if (climb != "together" && climb != "alone")
    throw RecipeError(file.string(), "climb must be together or alone, not '" + climb + "'");
  draft.request.climb = climb == "alone" ? Climb::alone : Climb::together;
  draft.request.repeats = member(json, "repeats", file, 1);
  if (draft.request.repeats < 1 || draft.request.repeats > 1000)
    throw RecipeError(file.string(), "repeats must be 1 to 1,000, not " + std::to_string(draft.request.repeats));
  draft.request.interleave = member(json, "interleave", file, false);
  if (member(json, "when_quiet", file, false)) draft.request.quiet_patience = until_quiet;
  try {
    draft.request.base = recipe_from_json(json.value("recipe", Json::object()).dump());
    validate(draft.request.base);
  } catch (const RecipeError& error) {
    throw RecipeError(file.string(), error.sentence());
  }
  const Json rungs = member(json, "rungs", file, Json::array());
  if (!rungs.is_array()) throw RecipeError(file.string(), "rungs must be a list, not " + rungs.dump());
  for (const Json& rung : rungs) draft.rungs.push_back(rung_of(rung, file));
  const Json over = json.value("over", Json::object());
  if (!over.is_object()) throw RecipeError(file.string(), "over must be an object, not " + over.dump());
  for (const auto& [name, list] : over.items()) {
    const SweptValue swept{name, member(over, name.c_str(), file, std::vector<std::string>{})};
    draft.over.push_back(parse_swept_value(text_of(swept), file.string()));
  }
  request_of(draft, file.string());
  return draft;
}

fs::path saved_ladders_folder() {
  return HardwareTable::user_file().parent_path() / "ladders";
}

std::vector<std::string> saved_ladders() {
  std::vector<std::string> names;
  std::error_code missing_folder;
  for (const fs::directory_entry& entry : fs::directory_iterator(saved_ladders_folder(), missing_folder))
    if (entry.path().extension() == ending) names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

fs::path saved_ladder(const std::string& name) {
  return saved_ladders_folder() / (name + ending);
}

namespace {

// The same draft with absolute paths, so that it means the same files from any folder.
LadderDraft draft_for_any_folder(LadderDraft draft) {
  draft.request.base = with_absolute_paths(draft.request.base);
  const auto is_path = [](const std::string& name) {
    return name == "data" || name == "weights" || name == "tokenizer";
  };
  const auto make_absolute = [](std::string& path) {
    if (!path.empty()) path = fs::absolute(path).lexically_normal().string();
  };
  for (DraftRung& rung : draft.rungs) {
    PlannedRung planned = parse_rung(rung.text);
    if (std::ranges::none_of(planned.values, [&](const auto& value) { return is_path(value.first); }))
      continue;  // the text stays as it was typed
    for (auto& [value_name, value] : planned.values)
      if (is_path(value_name)) make_absolute(value);
    rung.text = rung_text(planned);
  }
  for (SweptValue& swept : draft.over)
    if (is_path(swept.name)) std::ranges::for_each(swept.values, make_absolute);
  return draft;
}

}  // namespace

void save_ladder_preset(const std::string& name, const LadderDraft& draft) {
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos || name.size() > 200)
    throw RecipeError("preset", "'" + name + "' cannot be a preset's name; leave out slashes and a leading dot");
  const fs::path file = saved_ladder(name);
  make_private_folders(file.parent_path());
  write_private_file(file, ladder_file_text(draft_for_any_folder(draft)));
}

namespace {

std::string measuring_words(const LadderRequest& request) {
  std::string words;
  if (request.repeats > 1 && request.seeds.empty()) words += " --repeats " + std::to_string(request.repeats);
  if (request.interleave) words += " --interleave";
  if (request.quiet_patience) words += " --when-quiet";
  if (!request.name.empty()) words += " --name " + quoted(request.name);
  return words;
}

}  // namespace

std::string command_line_of(LadderRequest base, const std::vector<SweptValue>& swept) {
  Recipe usual;
  apply_preset(usual, base.base.model);
  const auto usual_values = describe(usual);
  std::string over;
  for (const SweptValue& each : swept) {  // they need no option of their own
    over += " --over " + quoted(text_of(each));
    for (const auto& [name, value] : usual_values)
      if (name == each.name) set_value(base.base, name, value);
  }
  std::vector<std::pair<std::string, std::string>> rest;
  const std::string words = "stepladder sweep" + recipe_words(base.base, rest);
  for (const auto& [name, value] : rest) over += " --over " + quoted(text_of(SweptValue{name, {value}}));
  return words + over + measuring_words(base);
}

std::string command_line_of(const LadderRequest& request) {
  std::vector<std::pair<std::string, std::string>> rest;
  Recipe base = request.base;
  if (!request.seeds.empty()) base.seed = Recipe{}.seed;
  std::string words = "stepladder ladder" + recipe_words(base, rest);
  std::vector<PlannedRung> rungs = request.rungs;
  if (!rest.empty()) {
    if (rungs.empty() || rungs.front().stages != std::vector<std::string>{all_stages().front().id})
      rungs.insert(rungs.begin(), {.stages = {all_stages().front().id}});
    rungs.front().values.insert(rungs.front().values.begin(), rest.begin(), rest.end());
  }
  if (!rungs.empty()) words += (request.climb == Climb::alone ? " --only " : " --stages ") + quoted(rungs_text(rungs));
  for (const std::uint64_t& seed : request.seeds)
    words += std::string(&seed == &request.seeds.front() ? " --seeds " : ",") + std::to_string(seed);
  return words + measuring_words(request);
}

}  // namespace stepladder
