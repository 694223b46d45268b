// Parses and applies `runs --filter`: words and conditions that must all hold. "nano status=finished
// tokens_per_s>20000".
#pragma once

#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/run_json.h"
#include "storage/database/curation.h"

namespace stepladder {

// The filter is malformed; what() names the term.
struct FilterError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Adds the names of a recipe's values, in lower case.
void add_recipe_names(const Run& run, std::set<std::string>& names);

class RunFilter {
 public:
  // Terms are separated by blanks. `field=value`, `!=`, `<`, `<=`, `>`, `>=` compare a field of the JSON, a value of
  // the recipe by its name (`batch`), or an annotation (`tags`, `note`, `pinned`, `archived`); `null` matches unknown
  // values; `~` matches text that contains the value; any other term must be in name, stage, status or tags. Ignores
  // case. Throws FilterError for an unknown field, and for an order (`<`) with a value that isn't a number.
  // `other_names` are of values in recipes besides those of trainings here (imports have their own), in lower case; it
  // is called only for a field that isn't known without it.
  explicit RunFilter(const std::string& expression, const std::function<std::set<std::string>()>& other_names = {});

  bool accepts(const Run& run, const Summary& summary, const PlausibilityContext& judge = {},
               const Curation& curation = {}) const;

 private:
  struct Term {
    std::string field;  // empty: a word
    bool of_recipe = false;
    std::string comparison;
    std::string value;
  };
  std::vector<Term> terms_;
};

}  // namespace stepladder
