// Turns lists of values into a ladder whose rungs are all combinations, and plans the verification of the best one.
// Seeds are special: they become repeats instead of rungs.
#include "app/launch/sweep.h"

#include <algorithm>
#include <cmath>

#include "app/text/format.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

constexpr const char* seed_name = "seed";

std::uint64_t seed_of(const std::string& value) {
  Recipe recipe;
  set_value(recipe, seed_name, value);
  return recipe.seed;
}

// Throws if the product of all lists, and of the repeats, is too large.
void check_count(const std::vector<SweptValue>& swept, int repeats) {
  std::int64_t runs = repeats;
  std::string product;
  for (const SweptValue& each : swept) {
    product += (product.empty() ? "" : " x ") + std::to_string(each.values.size());
    runs = std::min<std::int64_t>(runs, most_swept_runs + 1) * std::ssize(each.values);
  }
  if (repeats > 1) product += " x " + std::to_string(repeats) + " repeats";
  if (runs > most_swept_runs)
    throw RecipeError(FieldName{"over"},
                      product + " are too many: a sweep has at most " + grouped(most_swept_runs) + " runs");
}

}  // namespace

SweptValue parse_swept_value(std::string_view text, const FieldText& about) {
  const std::string_view name_text = text.substr(0, text.find('='));
  const std::string example = "; write it like lr=1e-4,3e-4";
  if (name_text.size() == text.size()) throw RecipeError(about, "'" + std::string(text) + "' has no values" + example);
  if (text.find_first_not_of(' ', name_text.size() + 1) == std::string_view::npos)
    throw RecipeError(about, std::string(name_text) + " has an empty list of values" + example);
  SweptValue swept;
  // Each part is a rung of one value, so it is read as in --stages.
  for (const std::string_view part : split_list(text.substr(name_text.size() + 1))) {
    const PlannedRung rung = parse_rung(std::string(name_text) + "=" + std::string(part), about);
    const auto& [name, value] = rung.values.front();
    if (rung.values.size() > 1 || !rung.stages.empty())
      throw RecipeError(about, "'" + std::string(part) + "' isn't one value of " + name);
    if (std::ranges::find(swept.values, value) != swept.values.end())
      throw RecipeError(about,
                        name + " lists " + value + " twice; " + FieldName{"repeats"} + " measures a combination again");
    swept.name = name;
    swept.values.push_back(value);
  }
  return swept;
}

std::string text_of(const SweptValue& swept) {
  std::string text = swept.name + "=";
  for (const std::string& value : swept.values) {
    const std::string one = rung_text({.values = {{swept.name, value}}});
    text += (&value == &swept.values.front() ? "" : ",") + one.substr(swept.name.size() + 1);
  }
  return text;
}

LadderRequest sweep_request(LadderRequest request, const std::vector<SweptValue>& swept) {
  check_count(swept, request.repeats);
  std::vector<PlannedRung> combinations(1);
  const bool combines = std::ranges::any_of(
      swept, [](const SweptValue& each) { return each.name != seed_name && each.values.size() > 1; });
  for (const SweptValue& each : swept) {
    if (std::ranges::count(swept, each.name, &SweptValue::name) > 1)
      throw RecipeError(FieldName{"over"}, each.name + " is swept twice; list all its values once");
    if (each.name == seed_name) {
      if (request.repeats > 1)
        throw RecipeError(FieldName{"repeats"},
                          "the seeds of " + FieldName{"over"} + " are the repeats already; give one or the other");
      for (const std::string& value : each.values) request.seeds.push_back(seed_of(value));
      request.repeats = static_cast<int>(request.seeds.size());
      continue;
    }
    if (each.values.size() == 1 && combines) {  // of the recipe of all, so that no rung is named after it
      set_value(request.base, each.name, each.values.front());
      continue;
    }
    std::vector<PlannedRung> more;
    for (const PlannedRung& rung : combinations) {
      for (const std::string& value : each.values) {
        more.push_back(rung);
        more.back().values.emplace_back(each.name, value);
      }
    }
    combinations = std::move(more);
  }
  const bool seeds_alone = combinations.size() == 1 && combinations.front().values.empty();
  if (seeds_alone && !request.rungs.empty()) return request;
  combinations.front().stages = {all_stages().front().id};
  request.rungs = std::move(combinations);
  request.climb = Climb::alone;
  return request;
}

LadderRequest verification_of_best(const SweepResults& results, SweepResult result, std::span<const Run> runs,
                                   const std::string& ladder) {
  constexpr int fresh_runs = 5;
  const int best = std::max(results.best(result), 0);
  const SweptRung* other = nullptr;
  double nearest = missing;
  for (const SweptRung& rung : results.rungs) {
    const double off = std::abs(rung.of(result).mean - results.rungs[static_cast<std::size_t>(best)].of(result).mean);
    if (&rung == &results.rungs[static_cast<std::size_t>(best)] || !std::isfinite(off)) continue;
    if (!other || off < nearest) other = &rung, nearest = off;
    if (best != 0 && &rung == &results.rungs.front()) break;
  }
  if (!other) throw RecipeError("the sweep", "has no two combinations with this result");
  const SweptRung& picked = results.rungs[static_cast<std::size_t>(best)];
  LadderRequest request{.name = ladder + ": the best again",
                        .notes = values_text(results, picked) + " was the best of " +
                                 std::to_string(results.rungs.size()) + "; both with new seeds.",
                        .repeats = fresh_runs,
                        .interleave = true};
  std::uint64_t highest_seed = 0;
  for (const Run& run : runs) {
    const Recipe recipe = recipe_from_json(run.recipe);
    highest_seed = std::max(highest_seed, recipe.seed);
    if (run.rung == other->rung) request.base = recipe;
  }
  PlannedRung rung;
  for (std::size_t i = 0; i < results.names.size(); ++i)
    rung.values.emplace_back(results.names[i], value_text(picked.values[i]));
  request.rungs = {std::move(rung)};
  for (std::uint64_t i = 1; i <= fresh_runs; ++i) request.seeds.push_back(highest_seed + i);
  return request;
}

}  // namespace stepladder
