// Parses and applies filters of runs (`runs --filter`, History): words and conditions that must all hold. "nano
// status=finished tokens_per_s>20000 min(val/loss) < 3.3".
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "app/runs/run_fields.h"

namespace stepladder {

// The filter is malformed; `why` names the term and its place. what() is the command line's sentence.
struct FilterError : std::runtime_error {
  explicit FilterError(const std::string& why_) : std::runtime_error("--filter: " + why_), why(why_) {}
  std::string why;
};

class RunFilter {
 public:
  // `field=value`, `!=`, `<`, `<=`, `>`, `>=` compare a field of the JSON, a value of the recipe by its name (`batch`),
  // an annotation (`tags`, `note`, `pinned`, `archived`), a metric's last value (`val/acc`) or another figure of it
  // (storage/metric_figure.h); blanks around them don't count. `null` matches unknown values; `~` matches text that
  // contains the value; any other term must be in name, stage, status or tags. "Quotation marks" hold a name, a value
  // or a term with blanks together. Ignores case. Throws FilterError for an unknown field, and for an order (`<`) with
  // a value that isn't a number.
  explicit RunFilter(const std::string& expression, const ProjectNames& names = {});

  // The figures that it compares.
  std::vector<MetricFigure> figures() const;

  // `metrics` has at least these figures.
  bool accepts(const Run& run, const Summary& summary, const PlausibilityContext& judge = {},
               const Curation& curation = {}, const FigureTable& metrics = {}) const;

 private:
  friend class FilterParser;
  struct Term {
    std::optional<RunField> field;  // nullopt: a word
    std::string comparison;
    std::string value;  // in lower case
  };
  std::vector<Term> terms_;
};

}  // namespace stepladder
