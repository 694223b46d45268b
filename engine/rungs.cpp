// Parses and writes the text of rungs, and climbs a ladder: Climber applies one rung after the other and decides what
// each is compared with. A value counts as changing the training unless changes_training lists it as harmless.
#include "engine/rungs.h"

#include <algorithm>
#include <array>
#include <set>

#include "engine/files/data_error.h"
#include "engine/kernel_parts.h"
#include "engine/nearest.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

constexpr char escape = '\\';

// The place of the first `wanted` that no backslash precedes, from `start` on; text.size() if there is none.
std::size_t find_plain(std::string_view text, char wanted, std::size_t start = 0) {
  for (std::size_t i = start; i < text.size(); ++i)
    if (text[i] == escape)
      ++i;
    else if (text[i] == wanted)
      return i;
  return text.size();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0;;) {
    const std::size_t end = find_plain(text, separator, start);
    parts.push_back(text.substr(start, end - start));
    if (end == text.size()) return parts;
    start = end + 1;
  }
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// The text without the spaces around it, unless a backslash keeps them.
std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back()) && (text.size() < 2 || text[text.size() - 2] != escape))
    text.remove_suffix(1);
  return text;
}

std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == escape && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

std::string escaped(std::string_view text, std::string_view special) {
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool at_edge = i == 0 || i + 1 == text.size();
    if (text[i] == escape || special.find(text[i]) != std::string_view::npos || (at_edge && is_space(text[i])))
      safe += escape;
    safe += text[i];
  }
  return safe;
}

std::vector<std::string> stage_ids() {
  std::vector<std::string> ids;
  for (const Stage& stage : all_stages()) ids.push_back(stage.id);
  return ids;
}

void add_value(PlannedRung& rung, std::string_view part, const FieldText& about) {
  const std::size_t equals = find_plain(part, '=');
  std::string name = unescaped(trimmed(part.substr(0, equals)));
  if (name.starts_with("--")) name.erase(0, 2);
  std::ranges::replace(name, '-', '_');
  const std::string value = unescaped(trimmed(part.substr(equals + 1)));
  Recipe tried;
  try {
    set_value(tried, name, value);
    validate_each_value(tried);
  } catch (const RecipeError& error) {
    throw RecipeError(about, name + " " + error.why);
  }
  const bool again = std::ranges::any_of(rung.values, [&](const auto& known) { return known.first == name; });
  if (again) throw RecipeError(about, name + " is set twice");
  rung.values.emplace_back(std::move(name), value);
}

void add_stages(PlannedRung& rung, std::string_view part, const FieldText& about) {
  for (const std::string_view piece : split(part, '+')) {
    if (trimmed(piece).empty()) throw RecipeError(about, "there is no stage beside a +; name one, or leave the + out");
    std::string id = unescaped(trimmed(piece));
    if (!find_stage(id)) throw RecipeError(about, unknown_name(id, stage_ids()));
    if (std::ranges::find(rung.stages, id) != rung.stages.end()) throw RecipeError(about, id + " is named twice");
    rung.stages.push_back(std::move(id));
  }
}

// Whether a part is a custom name: one word that isn't a stage.
bool is_own_name(std::string_view part) {
  return find_plain(part, '=') == part.size() && find_plain(part, '+') == part.size() && !find_stage(unescaped(part));
}

void check_own_name(const PlannedRung& rung, const FieldText& about) {
  if (rung.name.empty()) return;
  const std::vector<std::string> ids = stage_ids();
  if (rung.stages.empty() && rung.values.empty()) {
    const std::string nearest = nearest_name(rung.name, ids);
    throw RecipeError(about, nearest.empty() ? "isn't a stage and changes nothing; add a value, like " + rung.name +
                                                   ":batch=24, or a stage"
                                             : unknown_name(rung.name, ids));
  }
  if (const std::string meant = nearest_name(rung.name, ids); !meant.empty())
    throw RecipeError(about, "\"" + rung.name + "\" isn't a stage; did you mean " + meant +
                                 "? A name of your own must be less like a stage's");
}

// "rung 2 'mine'"
std::string place_text(std::size_t place, std::string_view text) {
  const std::string_view label = trimmed(text.substr(0, find_plain(text, ':')));
  return "rung " + std::to_string(place + 1) + (label.empty() ? "" : " '" + std::string(label) + "'");
}

// Values that change how a run is executed or observed, but not what it learns.
bool changes_training(const std::string& name) {
  constexpr std::array<std::string_view, 17> harmless_names{
      "device",       "threads",       "nproc",         "warmup",     "eval_every",    "eval_batches",
      "sample_every", "sample_tokens", "sample_prompt", "save_every", "keep",          "attention",
      "matmul",       "autocast",      "optimizer",     "compile",    "vocab_multiple"};
  return std::ranges::find(harmless_names, name) == harmless_names.end();
}

std::string values_text(const PlannedRung& rung) {
  std::string text;
  for (const auto& [name, value] : rung.values) text += (text.empty() ? "" : ", ") + name + " " + value;
  return text;
}

bool is_baseline(const PlannedRung& rung) {
  return rung.name.empty() && rung.stages.size() == 1 && rung.stages.front() == all_stages().front().id;
}

// Climbs from rung to rung, and keeps the recipe that the next one starts from.
class Climber {
 public:
  Climber(const Recipe& lowest, const DeviceReport& report, Climb climb, const PrepareRung& prepare)
      : report_(report), climb_(climb), prepare_(prepare), reached_(lowest) {}

  void add(const PlannedRung& planned, int asked) {
    std::vector<const Stage*> stages;
    for (const std::string& id : planned.stages) stages.push_back(&stage_by_id(id));
    const auto any = [&](StageKind kind) {
      return std::ranges::any_of(stages, [&](const Stage* stage) { return stage->kind == kind; });
    };
    const bool alone = climb_ == Climb::alone || any(StageKind::check);
    const Recipe before = alone && !plan_.rungs.empty() ? plan_.rungs.front().recipe : reached_;
    Recipe recipe = before;
    if (const FieldText reason = apply(planned, stages, recipe); !reason.empty()) {
      plan_.skipped.push_back({stage_text(planned), reason, asked});
      return;
    }
    const bool first = plan_.rungs.empty();
    plan_.rungs.push_back({.stage = stage_text(planned),
                           .title = title_of(planned, stages),
                           .recipe = recipe,
                           .changed = first ? "" : difference(before, recipe),
                           .seed_tokens_per_s = planned.seed_tokens_per_s,
                           .loss_against = alone ? 0 : loss_against_,
                           .stands_on = first   ? -1
                                        : alone ? 0
                                                : stands_on_,
                           .asked = asked});
    for (const Stage* stage : stages) seen_.insert(stage->id);
    if (alone) return;
    reached_ = recipe;
    stands_on_ = static_cast<int>(plan_.rungs.size()) - 1;
    const bool other_values =
        std::ranges::any_of(planned.values, [](const auto& value) { return changes_training(value.first); });
    if (any(StageKind::changes_the_maths) || other_values) loss_against_ = stands_on_;
  }

  LadderPlan take() { return std::move(plan_); }

 private:
  // Applies the rung to `recipe`. Returns why the rung is impossible, or an empty text. Throws RecipeError or DataError
  // if it is the baseline.
  FieldText apply(const PlannedRung& planned, const std::vector<const Stage*>& stages, Recipe& recipe) const {
    for (const Stage* stage : stages) {
      const FieldText reason = stage->unavailable(recipe, report_, report_.resolve(recipe.device));
      if (!reason.empty()) return stages.size() > 1 ? stage->id + ": " + reason : reason;
      if (planned.is_usual) {
        const std::string slow = stage->slow(report_, report_.resolve(recipe.device));
        if (!slow.empty()) return slow + "; it is trained if it's named";
      }
      stage->apply(recipe);
    }
    for (const auto& [name, value] : planned.values) set_value(recipe, name, value);
    try {
      validate(recipe);
      require_device(recipe, report_);
      if (prepare_) recipe = prepare_(recipe);
    } catch (const RecipeError& error) {  // it doesn't fit the rest of the recipe
      if (plan_.rungs.empty()) throw;
      return error.sentence();
    } catch (const DataError& error) {
      if (plan_.rungs.empty()) throw;
      return error.what();
    }
    return "";
  }

  std::string title_of(const PlannedRung& planned, const std::vector<const Stage*>& stages) const {
    if (!planned.name.empty()) return planned.name;
    const std::string values = values_text(planned);
    if (is_baseline(planned)) {
      if (plan_.rungs.empty()) return stages.front()->title + (values.empty() ? "" : ", " + values);
      return values.empty() ? "Measured again" : values;
    }
    std::string title;
    for (const Stage* stage : stages) title += (title.empty() ? "" : " + ") + stage->title;
    const bool again = std::ranges::any_of(stages, [&](const Stage* stage) { return seen_.contains(stage->id); });
    if (title.empty() || (again && !values.empty())) title += (title.empty() ? "" : ", ") + values;
    return title;
  }

  const DeviceReport& report_;
  Climb climb_;
  const PrepareRung& prepare_;
  Recipe reached_;
  std::set<std::string> seen_;  // stages of the rungs so far
  int stands_on_ = 0;
  int loss_against_ = 0;
  LadderPlan plan_;
};

// The rungs with the baseline first, each with its place among those asked for.
std::vector<std::pair<PlannedRung, int>> with_baseline_first(std::span<const PlannedRung> rungs) {
  std::vector<std::pair<PlannedRung, int>> asked;
  for (const PlannedRung& rung : rungs) asked.emplace_back(rung, static_cast<int>(asked.size()));
  const auto named = std::ranges::find_if(asked, [](const auto& rung) { return is_baseline(rung.first); });
  if (named != asked.end())
    std::rotate(asked.begin(), named, named + 1);
  else
    asked.insert(asked.begin(), {PlannedRung{.stages = {all_stages().front().id}}, -1});
  return asked;
}

// A stage of an earlier rung may be named again only to change other values with it.
void refuse_repeated_stages(std::span<const PlannedRung> rungs, Climb climb) {
  std::set<std::string> seen;
  for (const PlannedRung& rung : rungs) {
    if (is_baseline(rung)) continue;
    const std::string key = climb == Climb::alone ? rung_text(rung) : "";
    if (climb == Climb::alone && !seen.insert(key).second)
      throw RecipeError(FieldName{"stages"}, key + " is named twice");
    if (climb == Climb::alone) continue;
    for (const std::string& id : rung.stages)
      if (!seen.insert(stage_by_id(id).id).second && rung.values.empty())
        throw RecipeError(FieldName{"stages"}, id + " is named twice");
  }
}

}  // namespace

PlannedRung parse_rung(std::string_view text, const FieldText& about) {
  PlannedRung rung;
  if (trimmed(text).empty()) throw RecipeError(about, "the rung is empty; name a stage, or a value like batch=24");
  bool first = true;
  for (const std::string_view raw : split(text, ':')) {
    const std::string_view part = trimmed(raw);
    if (part.empty()) throw RecipeError(about, "there is nothing between two colons, or after the last");
    if (find_plain(part, '=') < part.size())
      add_value(rung, part, about);
    else if (first && is_own_name(part))
      rung.name = unescaped(part);
    else if (first || find_stage(unescaped(part)) || find_plain(part, '+') < part.size())
      add_stages(rung, part, about);
    else
      throw RecipeError(about, "'" + std::string(part) + "' is neither a stage nor a value like batch=24");
    first = false;
  }
  check_own_name(rung, about);
  return rung;
}

std::vector<std::string_view> split_list(std::string_view text) {
  return split(text, ',');
}

std::vector<PlannedRung> parse_rungs(std::string_view text, const FieldText& about) {
  std::vector<PlannedRung> rungs;
  for (const std::string_view part : split_list(text)) {
    try {
      rungs.push_back(parse_rung(part, about));
    } catch (const RecipeError& error) {
      throw RecipeError(about, place_text(rungs.size(), part) + ": " + error.why);
    }
  }
  return rungs;
}

std::string rung_text(const PlannedRung& rung) {
  std::string text = escaped(rung.name, ",:=+");
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ":") + part; };
  std::string stages;
  for (const std::string& id : rung.stages) stages += (stages.empty() ? "" : "+") + id;
  if (!stages.empty()) add(stages);
  for (const auto& [name, value] : rung.values) add(name + "=" + escaped(value, ",:"));
  return text;
}

std::string rungs_text(std::span<const PlannedRung> rungs) {
  std::string text;
  for (const PlannedRung& rung : rungs) text += (text.empty() ? "" : ",") + rung_text(rung);
  return text;
}

std::string stage_text(const PlannedRung& rung) {
  if (!rung.name.empty()) return rung.name;
  return rung_text(
      {.name = {}, .stages = rung.stages, .values = rung.stages.empty() ? rung.values : decltype(rung.values){}});
}

std::vector<PlannedRung> usual_rungs() {
  std::vector<PlannedRung> rungs;
  for (const Stage& stage : all_stages())
    if (stage.kind == StageKind::systems_only) rungs.push_back({.stages = {stage.id}, .is_usual = true});
  return rungs;
}

LadderPlan plan_ladder(const Recipe& base, std::span<const PlannedRung> rungs, const DeviceReport& report, Climb climb,
                       const PrepareRung& prepare) {
  for (const PlannedRung& rung : rungs) {
    for (const std::string& id : rung.stages)
      if (!find_stage(id)) throw RecipeError(FieldName{"stages"}, unknown_name(id, stage_ids()));
  }
  refuse_repeated_stages(rungs, climb);
  Recipe lowest = base;
  for (const PlannedRung& rung : rungs)
    for (const std::string& id : rung.stages) stage_by_id(id).undo(lowest);
  Climber climber(lowest, report, climb, prepare);
  for (const auto& [rung, asked] : with_baseline_first(rungs)) climber.add(rung, asked);
  LadderPlan plan = climber.take();
  const bool planned =
      std::ranges::any_of(plan.rungs, [](const Rung& rung) { return rung.recipe.compile == Compile::max; });
  if (!planned && !plan.rungs.empty()) require_kernels_to_leave_out(plan.rungs.back().recipe);
  return plan;
}

}  // namespace stepladder
