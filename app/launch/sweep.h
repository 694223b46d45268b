// A sweep: every combination of some values of the recipe, as one ladder. Each combination is a rung on the baseline
// alone, the first one is the baseline, and seeds are the repeats of each rung.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/launch/sweep_results.h"
#include "app/session/session.h"

namespace stepladder {

// A value of the recipe (its name in `describe`) and the list of its values.
struct SweptValue {
  std::string name;
  std::vector<std::string> values;
};

inline constexpr std::int64_t most_swept_runs = 1'000;

// Reads "lr=1e-4,3e-4"; a backslash makes a comma part of a value. Throws RecipeError for an unknown name, an empty
// list, a value that the recipe cannot have or that is listed twice.
SweptValue parse_swept_value(std::string_view text, const FieldText& about = FieldName{"over"});
std::string text_of(const SweptValue& swept);  // the text that reads as the same: "lr=1e-4,3e-4"

// The ladder of all combinations; the last value changes fastest. `request` has the recipe and how often its rungs are
// repeated. Seeds alone leave the request's rungs (without any: the baseline) and are their repeats. Throws RecipeError
// if a value is swept twice, if seeds are swept and repeated, or for more than most_swept_runs runs.
LadderRequest sweep_request(LadderRequest request, const std::vector<SweptValue>& swept);

// The best combination again, in turns with the first one (the runner-up, if it is the first), both with five new
// seeds: a ladder of its own, so that the runs that it was picked by don't count. `runs`: of the sweep. Throws
// RecipeError for a sweep without two combinations that have the result.
LadderRequest verification_of_best(const SweepResults& results, SweepResult result, std::span<const Run> runs,
                                   const std::string& ladder);

}  // namespace stepladder
