// A rung of a launched ladder, or of one imported file, stands on the nearest one before it whose changes it has kept.
#include "storage/analysis/rung_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "storage/analysis/file_grouping.h"
#include "storage/analysis/recipe_facts.h"

namespace stepladder {
namespace {

using RecipeValues = std::map<std::string, std::string>;

// The values that a rung is named after if it sets nothing else: lr and batch of "lr=3e-4:batch=8".
std::set<std::string> values_named_by(const std::string& stage) {
  std::set<std::string> names;
  for (std::size_t at = 0; at <= stage.size();) {
    const std::size_t end = std::min(stage.find(':', at), stage.size());
    const std::string part = stage.substr(at, end - at);
    if (part.find('=') == std::string::npos) return {};
    if (const std::string name = part.substr(0, part.find('=')); name != "seed") names.insert(name);
    at = end + 1;
  }
  return names;
}

RecipeValues changes_of(const RecipeValues& recipe, const RecipeValues& first) {
  RecipeValues changes;
  for (const auto& [name, value] : recipe) {
    const auto before = first.find(name);
    if (!differs_between_repeats(name) && (before == first.end() || before->second != value)) changes[name] = value;
  }
  return changes;
}

// Whether a rung with these changes stands on one below with those: it changes all of that one's values, and has kept
// one of them. A single value that both change is a further step (compile, then compile-max), though each may have been
// trained alone: the reading that claims less.
bool keeps(const RecipeValues& changes, const RecipeValues& below) {
  if (below.empty()) return true;
  bool any_is_kept = false;
  for (const auto& [name, value] : below) {
    const auto own = changes.find(name);
    if (own == changes.end()) return false;
    any_is_kept = any_is_kept || own->second == value;
  }
  return any_is_kept || changes.size() == 1;
}

}  // namespace

const Run& run_of(const Subject& subject) {
  return *subject.runs.front().run;
}

bool is_sweep(std::span<const Subject> subjects) {
  std::vector<const Run*> runs;
  for (const Subject& subject : subjects) runs.push_back(&run_of(subject));
  if (runs.size() > 1 && !swept_settings(runs).empty()) return true;
  const std::set<std::string> names = values_named_by(run_of(subjects.back()).stage);
  return !names.empty() && std::all_of(subjects.begin() + 1, subjects.end(), [&](const Subject& subject) {
    return values_named_by(run_of(subject).stage) == names;
  });
}

std::vector<std::size_t> inferred_places_below(std::span<const Subject> subjects, std::size_t baseline) {
  std::vector<std::size_t> places(subjects.size(), baseline);
  if (subjects.size() < 2 || is_sweep(subjects)) return places;
  const bool is_ours = run_of(subjects.front()).source == "launched";
  const bool is_one_file = std::ranges::all_of(subjects, [&](const Subject& subject) {
    return run_of(subject).source_path == run_of(subjects.front()).source_path;
  });
  if (!is_ours && !is_one_file) return places;
  const RecipeValues first = recipe_values(run_of(subjects.front()));
  std::vector<RecipeValues> changes;
  for (const Subject& subject : subjects) changes.push_back(changes_of(recipe_values(run_of(subject)), first));
  for (std::size_t i = 1; i < subjects.size(); ++i) {
    places[i] = i - 1;
    while (places[i] > 0 && !keeps(changes[i], changes[places[i]])) --places[i];
    if (places[i] == 0) places[i] = baseline;
  }
  places.front() = baseline;
  return places;
}

}  // namespace stepladder
