// Parses and applies filters of runs (`runs --filter`, wherever runs are named, History): words and conditions. "nano
// status=finished,stopped tokens_per_s>20000 not (stage=bf16 or min(val/loss) < 3.3)".
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
  // Terms beside each other must all hold; `or`, `not` and brackets combine them otherwise (`and` may be written).
  // A term is a word, which must be in name, stage, status or tags, or a comparison: `field=value`, `!=`, `<`, `<=`,
  // `>`,
  // `>=` compare a field of the JSON, a value of the recipe by its name (`batch`), a metric's last value (`val/acc`) or
  // another figure of it (storage/metric_figure.h); blanks around them don't count. `null` matches unknown values; `~`
  // matches text that contains the value. Behind `=`, `!=` and `~` a list (`a,b`) stands for any of its values, `11-13`
  // for a range of numbers. A time is compared as far as it is written: `created_at=2026-11` holds for the month, in
  // UTC. Of a list (`tags`, `flags`) one value must match. "Quotation marks" hold a name, a value or a term with
  // blanks, commas or brackets together. Ignores case. Throws FilterError for an unknown field, for a value that a
  // field such as `status` never has, and for an order (`<`) with a value that has none.
  explicit RunFilter(const std::string& expression, const ProjectNames& names = {});

  // The figures that it compares.
  std::vector<MetricFigure> figures() const;

  // `metrics` has at least these figures.
  bool accepts(const Run& run, const Summary& summary, const RunContext& context = {},
               const FigureTable& metrics = {}) const;

 private:
  friend class FilterParser;
  struct Term {
    std::optional<RunField> field;  // nullopt: a word
    std::string comparison;
    std::vector<std::string> values;  // in lower case; any of them
    bool is_quoted = false;           // then a value is never a range
  };
  struct Node {
    enum class Kind { all, any, none, term };
    Kind kind = Kind::all;
    std::vector<Node> parts = {};
    Term term = {};
  };
  static bool holds(const Term& term, RunValues& values, const std::string& words);
  static bool holds(const Node& node, RunValues& values, const std::string& words);
  Node root_;
};

}  // namespace stepladder
