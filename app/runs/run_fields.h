// The values of a run that have a name: fields of its JSON, values of its recipe, and metrics. Filters
// compare them, `runs --columns` lists them.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/runs/run_json.h"
#include "storage/database/metrics/metric_store.h"

namespace stepladder {

struct RunField {
  enum class Of { run, recipe, metric };
  Of of = Of::run;
  std::string name;     // of a value of the recipe in lower case
  MetricFigure figure;  // of a metric

  friend bool operator==(const RunField&, const RunField&) = default;
};

// Adds the names of a recipe's values, in lower case.
void add_recipe_names(const Run& run, std::set<std::string>& names);

// Names besides those that every project has. Each function is called at most once, and only for a name that isn't
// known without it.
struct ProjectNames {
  std::function<std::set<std::string>()> recipe = {};   // in lower case: imports have their own
  std::function<std::set<std::string>()> metrics = {};  // as logged; without it, any metric is taken for granted
};

// Finds fields by their names, in any case. A metric's name alone is its last value.
class RunFieldNames {
 public:
  explicit RunFieldNames(ProjectNames names);

  std::optional<RunField> find(const std::string& name);
  // The same figure with the metric's name as it was logged; nullopt if no run has logged it.
  std::optional<RunField> find(const MetricFigure& figure);

  std::string unknown(const std::string& name) const;  // "`los` is unknown; did you mean loss?"
  std::string unknown_metric(const std::string& name) const;

 private:
  const std::set<std::string>& recipe_names();
  const std::set<std::string>& metric_names();
  std::optional<std::string> metric_named(const std::string& name);

  ProjectNames names_;
  Json fields_;
  std::set<std::string> known_recipe_;
  std::optional<std::set<std::string>> recipe_;
  std::optional<std::set<std::string>> metrics_;
};

// One run's values. References outlive it.
class RunValues {
 public:
  RunValues(const Run& run, const Summary& summary, const RunContext& context, const FigureTable& metrics)
      : run_(run), summary_(summary), context_(context), metrics_(metrics) {}

  Json operator[](const RunField& field);  // null if unknown

 private:
  const Run& run_;
  const Summary& summary_;
  const RunContext& context_;
  const FigureTable& metrics_;
  Json fields_, recipe_;  // computed at first use
};

// "id,name,min(val/loss)": fields separated by commas. Throws RunFieldError, whose what() says what is wrong where.
struct RunFieldError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
std::vector<RunField> run_fields_from(std::string_view text, RunFieldNames& names);

// All values that a field can have, for status, trust and the like; empty: any.
std::vector<std::string> closed_values(const RunField& field);
// What a field's values are, unless unknown. `text` is also anything of an imported recipe.
enum class ValueKind { text, number, whole_number, time };
ValueKind kind_of(const RunField& field);

std::string title_of(const RunField& field);                                // as it is written
std::vector<MetricFigure> figures_of(const std::vector<RunField>& fields);  // each once
std::string position_text(std::string_view text, std::size_t byte);         // "at character 5"

}  // namespace stepladder
