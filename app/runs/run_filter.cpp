// Parses a filter from left to right into terms, all of which must hold. Fields are resolved while parsing, so an
// unknown one is an error with its place; values are compared in lower case, and `<` and `>` only with numbers.
#include "app/runs/run_filter.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "storage/name_pattern.h"

namespace stepladder {
namespace {

constexpr std::string_view signs = "=!<>~";

std::string plain_text(const Json& value) {
  return lower_case(value.is_string() ? value.get<std::string>()
                                      : value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool holds_between(double value, const std::string& comparison, double wanted) {
  if (comparison == "<") return value < wanted;
  if (comparison == "<=") return value <= wanted;
  if (comparison == ">") return value > wanted;
  return value >= wanted;
}

bool holds_for(const Json& actual, const std::string& comparison, const std::string& wanted) {
  if (comparison == "~") return !actual.is_null() && plain_text(actual).find(wanted) != std::string::npos;
  const auto number = as_number(wanted);
  if (comparison == "=" || comparison == "!=") {
    const bool equal = number && actual.is_number() ? actual.get<double>() == *number : plain_text(actual) == wanted;
    return equal == (comparison == "=");
  }
  return number && actual.is_number() && holds_between(actual.get<double>(), comparison, *number);
}

}  // namespace

// Reads an expression from left to right.
class FilterParser {
 public:
  FilterParser(std::string_view text, const ProjectNames& names) : text_(text), names_(names) {}

  std::vector<RunFilter::Term> terms() {
    std::vector<RunFilter::Term> terms;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) terms.push_back(term());
    return terms;
  }

 private:
  static bool is_blank(char letter) { return std::isspace(static_cast<unsigned char>(letter)) != 0; }
  bool is_sign() const { return at_ < text_.size() && signs.find(text_[at_]) != std::string_view::npos; }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  std::string word() {  // up to a blank
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_blank(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string written_from(std::size_t begin) const {
    return "'" + std::string(text_.substr(begin, at_ - begin)) + "'";
  }

  RunFilter::Term term() {
    const std::size_t begin = at_;
    std::optional<MetricFigure> figure = read_figure(text_, at_);
    std::string name;
    if (!figure) name = operand();
    const std::size_t end = at_;
    skip_blanks();
    if (!is_sign()) {
      at_ = end;
      if (figure) throw FigureError(written_from(begin) + " needs a comparison, such as < 3", begin);
      return {.field = {}, .comparison = {}, .value = lower_case(name)};
    }
    if (end == begin) {
      word();
      throw FigureError(written_from(begin) + " names no field", begin);
    }
    std::optional<RunField> field = figure ? names_.find(*figure) : names_.find(name);
    if (!field)
      throw FigureError(figure ? "the metric " + names_.unknown_metric(figure->metric)
                               : "the field " + names_.unknown(lower_case(name)),
                        begin);
    return comparison_with(std::move(*field), begin);
  }

  std::string operand() {
    if (text_[at_] == '"') return read_quoted(text_, at_);
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_blank(text_[at_]) && !is_sign()) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  RunFilter::Term comparison_with(RunField field, std::size_t begin) {
    static constexpr std::array<std::string_view, 7> known{"=", "!=", "<", "<=", ">", ">=", "~"};
    const std::size_t sign = at_;
    while (is_sign()) ++at_;
    const std::string comparison(text_.substr(sign, at_ - sign));
    skip_blanks();
    const std::size_t place = at_;
    const bool is_quoted = at_ < text_.size() && text_[at_] == '"';
    const std::string wanted = lower_case(is_quoted ? read_quoted(text_, at_) : word());
    if (std::find(known.begin(), known.end(), comparison) == known.end() || (wanted.empty() && !is_quoted))
      throw FigureError(written_from(begin) + " is not FIELD=VALUE (or !=, <, <=, >, >=, ~)", begin);
    if ((comparison.front() == '<' || comparison.front() == '>') && !as_number(wanted))
      throw FigureError(written_from(begin) + " compares with '" + wanted + "', which is not a number", place);
    return {.field = std::move(field), .comparison = comparison, .value = wanted};
  }

  std::string_view text_;
  RunFieldNames names_;
  std::size_t at_ = 0;
};

RunFilter::RunFilter(const std::string& expression, const ProjectNames& names) {
  try {
    terms_ = FilterParser(expression, names).terms();
  } catch (const FigureError& error) {
    throw FilterError(std::string(error.what()) + " (" + position_text(expression, error.at) + ")");
  }
}

std::vector<MetricFigure> RunFilter::figures() const {
  std::vector<RunField> fields;
  for (const Term& term : terms_)
    if (term.field) fields.push_back(*term.field);
  return figures_of(fields);
}

bool RunFilter::accepts(const Run& run, const Summary& summary, const PlausibilityContext& judge,
                        const Curation& curation, const FigureTable& metrics) const {
  RunValues values(run, summary, judge, curation, metrics);
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    if (!term.field) {
      return lower_case(run.name + " " + run.stage + " " + std::string(to_string(run.status)) + " " +
                        tags_text(curation.tags))
                 .find(term.value) != std::string::npos;
    }
    const bool orders = term.comparison.front() == '<' || term.comparison.front() == '>';
    if (term.field->of == RunField::Of::metric && orders)  // infinities have an order, which JSON has no numbers for
      return holds_between(metrics.value(run.id, term.field->figure), term.comparison, *as_number(term.value));
    return holds_for(values[*term.field], term.comparison, term.value);
  });
}

}  // namespace stepladder
