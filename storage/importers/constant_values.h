// What all steps of a run have in common describes the run, as its recipe does: one rule for logs and tables. Journals
// and stores have a configuration for that, so of their steps only the learning rate counts.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "storage/json_values.h"
#include "storage/records.h"

namespace stepladder {

// Whether a number that is logged with the steps is always the same.
struct ConstantNumber {
  double value = missing;
  std::int64_t count = 0;
  bool varies = false;

  void add(double next) {
    if (is_missing(next)) return;
    if (count++ == 0)
      value = next;
    else
      varies |= value != next;
  }
  // One value shows nothing to be constant, and few of a long run may be those of an evaluation.
  bool describes(std::int64_t steps) const {
    return count > 1 && !varies && std::isfinite(value) && 2 * count >= steps;
  }
};

// Whether a logged number may be a setting: not one with a unit, or with the name of a measurement or a counter.
bool may_be_setting(std::string_view name, std::string_view unit);

// Adds such values to a recipe (a JSON object) that lacks them. A learning rate is `lr`, whatever the file calls it.
void add_constant(Json& recipe, std::string_view name, const ConstantNumber& number, std::int64_t steps);
void add_constant_text(Json& recipe, std::string_view name, std::string_view text);

// The texts of a run that are logged with its steps.
class ConstantTexts {
 public:
  void add(std::string_view name, std::string_view text);
  // Calls `use(name, text)` for each that never changed.
  template <class Use>
  void for_each(Use use) const {
    for (const auto& [name, text] : texts_)
      if (!text.empty()) use(name, text);
  }

 private:
  std::map<std::string, std::string, std::less<>> texts_;  // empty: it changes
};

}  // namespace stepladder
