// A sweep: every combination of some values of the recipe, as one ladder. Each combination is a rung on the baseline
// alone, the first one is the baseline, and seeds are the repeats of each rung.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/loaded_runs.h"
#include "app/session.h"

namespace stepladder {

// A value of the recipe (its name in `describe`) and what it is set to in turn.
struct SweptValue {
  std::string name;
  std::vector<std::string> values;
};

inline constexpr std::int64_t most_swept_runs = 1'000;

// Reads "lr=1e-4,3e-4"; a backslash makes a comma part of a value. Throws RecipeError for an unknown name, an empty
// list, a value that the recipe cannot have or that is listed twice.
SweptValue parse_swept_value(std::string_view text, const std::string& option = "--over");

// The ladder of all combinations; the last value changes fastest. `request` has the recipe and how often its rungs are
// repeated. Throws RecipeError if a value is swept twice, if seeds are swept and repeated, or for more than
// most_swept_runs runs.
LadderRequest sweep_request(LadderRequest request, const std::vector<SweptValue>& swept);

// The mean over a combination's finished runs, and the range that they span; missing without any.
struct SweptFigure {
  double mean = missing;
  double low = missing;
  double high = missing;
};
SweptFigure figure_of(const std::vector<double>& values);  // missing and infinite ones don't count

// One combination's results, in the order of its ladder's rungs.
struct SweptRung {
  int rung = 0;
  std::vector<nlohmann::ordered_json> values;  // of the swept names, seeds excepted; as the recipe has them
  std::size_t finished = 0;                    // runs
  SweptFigure loss;                            // the last step's
  SweptFigure val_loss;
  SweptFigure tokens_per_s;
};
struct SweepResults {
  std::vector<std::string> names;  // of the columns in SweptRung::values
  std::vector<SweptRung> rungs;
};
SweepResults sweep_results(const std::vector<LoadedRun>& runs, const std::vector<SweptValue>& swept);

// A run's value by its name in the recipe; null if it has none.
nlohmann::ordered_json recipe_value(const Run& run, const std::string& name);

}  // namespace stepladder
