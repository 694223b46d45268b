// Parses a filter from left to right into a tree: `or` binds loosest, terms beside each other all hold. Fields are
// resolved while parsing, so an unknown one is an error with its place; values are compared in lower case, and `<` and
// `>` only with numbers and times.
#include "app/runs/run_filter.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/nearest.h"
#include "storage/name_pattern.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

constexpr std::string_view signs = "=!<>~";
constexpr int most_brackets = 50;  // brackets in brackets

std::string plain_text(const Json& value) {
  return lower_case(value.is_string() ? value.get<std::string>()
                                      : value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// "11-13", "1e-4-3e-4".
std::optional<std::pair<double, double>> as_range(const std::string& text) {
  for (std::size_t dash = text.find('-', 1); dash != std::string::npos; dash = text.find('-', dash + 1)) {
    const auto low = parse_number<double>(std::string_view(text).substr(0, dash));
    const auto high = parse_number<double>(std::string_view(text).substr(dash + 1));
    if (low && high) return std::pair(*low, *high);
  }
  return std::nullopt;
}

// A number of the JSON, which has infinities as words; NaN has no order.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string() || !value.get_ref<const std::string&>().ends_with("Infinity")) return std::nullopt;
  return parse_number<double>(value.get<std::string>());
}

// A time as the user wrote it: "2026-11-01t14:00", "2026-11-01 14:00z"; nullopt if no clock ever shows it.
std::optional<std::string> as_time(std::string text) {
  constexpr std::string_view form = "dddd-dd-ddtdd:dd:dd";
  if (text.ends_with('z')) text.pop_back();
  std::ranges::replace(text, ' ', 't');
  if (text.size() < 4 || text.size() > form.size() || text.size() % 3 != 1) return std::nullopt;  // half a part
  for (std::size_t i = 0; i < text.size(); ++i)
    if (form[i] == 'd' ? std::isdigit(static_cast<unsigned char>(text[i])) == 0 : form[i] != text[i])
      return std::nullopt;
  const auto part = [&](std::size_t at, unsigned if_left_out) {
    return at < text.size() ? static_cast<unsigned>(std::stoul(text.substr(at, 2))) : if_left_out;
  };
  const std::chrono::year_month_day day{std::chrono::year(std::stoi(text.substr(0, 4))), std::chrono::month(part(5, 1)),
                                        std::chrono::day(part(8, 1))};
  if (!day.ok() || part(11, 0) > 23 || part(14, 0) > 59 || part(17, 0) > 59) return std::nullopt;
  return text;
}

// Whether `comparison` ("<", ">=") holds for the sign of a difference.
bool holds_for_sign(int sign, const std::string& comparison) {
  if (sign == 0) return comparison.size() == 2;
  return (sign < 0) == (comparison.front() == '<');
}

bool equals(const Json& actual, const std::string& wanted, bool is_quoted) {
  if (plain_text(actual) == wanted) return true;
  if (actual.is_array())
    return std::ranges::any_of(actual, [&](const Json& each) { return plain_text(each) == wanted; });
  const auto number = number_of(actual);
  if (!number) return false;
  if (const auto other = parse_number<double>(wanted)) return *number == *other;
  const auto range = is_quoted ? std::nullopt : as_range(wanted);
  return range && range->first <= *number && *number <= range->second;
}

bool contains(const Json& actual, const std::string& wanted) {
  if (actual.is_array()) return std::ranges::any_of(actual, [&](const Json& each) { return contains(each, wanted); });
  return !actual.is_null() && plain_text(actual).find(wanted) != std::string::npos;
}

// Compares a time with one that may be less exact.
int sign_of_time(const std::string& actual, const std::string& wanted) {
  return actual.compare(0, wanted.size(), wanted);
}

}  // namespace

// Reads an expression from left to right.
class FilterParser {
 public:
  using Node = RunFilter::Node;
  FilterParser(std::string_view text, const ProjectNames& names) : text_(text), names_(names) {}

  Node read() {
    skip_blanks();
    return at_ == text_.size() ? Node() : any_of();
  }

 private:
  static bool is_blank(char letter) { return std::isspace(static_cast<unsigned char>(letter)) != 0; }
  bool is_sign() const { return at_ < text_.size() && signs.find(text_[at_]) != std::string_view::npos; }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  // Up to a blank, a comma of a list, or the bracket that closes the group.
  std::string word(std::string_view ends = "") {
    const std::size_t begin = at_;
    for (int open = 0; at_ < text_.size() && !is_blank(text_[at_]); ++at_) {
      if (ends.find(text_[at_]) != std::string_view::npos) break;
      if (text_[at_] == '(') ++open;
      if (text_[at_] == ')' && --open < 0) break;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string written_from(std::size_t begin) const {
    return "'" + std::string(text_.substr(begin, at_ - begin)) + "'";
  }
  bool at_end_of_group() const { return at_ == text_.size() || (depth_ > 0 && text_[at_] == ')'); }

  // Takes one of the words `or`, `and` and `not`, unless it is a field that is compared.
  bool take(std::string_view keyword) {
    const std::size_t begin = at_;
    if (lower_case(word(std::string(signs) + "(")) == keyword) {
      skip_blanks();
      if (!is_sign()) return true;
    }
    at_ = begin;
    return false;
  }

  Node any_of() {
    Node node{.kind = Node::Kind::any};
    do {
      const std::size_t begin = at_;
      node.parts.push_back(all_of());
      if (node.parts.back().parts.empty()) throw FigureError("a condition is missing", begin);
    } while (take("or"));
    return node.parts.size() == 1 ? std::move(node.parts.front()) : node;
  }

  Node all_of() {
    Node node;
    for (skip_blanks(); !at_end_of_group(); skip_blanks()) {
      const std::size_t begin = at_;
      if (take("or")) {
        at_ = begin;
        break;
      }
      if (take("and")) {
        if (node.parts.empty() || at_end_of_group()) throw FigureError("a condition is missing", at_);
        continue;
      }
      node.parts.push_back(one());
    }
    return node;
  }

  Node one() {
    const std::size_t begin = at_;
    if (++depth_of_nodes_ > most_brackets) throw FigureError("brackets are nested too deep", begin);
    if (text_[at_] == ')') throw FigureError("a bracket closes nothing", begin);
    Node node;
    if (take("not")) {
      if (at_end_of_group()) throw FigureError("a condition is missing", at_);
      node.kind = Node::Kind::none;
      node.parts.push_back(one());
    } else if (text_[at_] == '(') {
      ++at_;
      ++depth_;
      node = any_of();
      if (at_ == text_.size()) throw FigureError("a closing bracket is missing", begin);
      ++at_;
      --depth_;
    } else {
      node = {.kind = Node::Kind::term, .parts = {}, .term = term()};
    }
    --depth_of_nodes_;
    return node;
  }

  RunFilter::Term term() {
    const std::size_t begin = at_;
    std::optional<MetricFigure> figure = read_figure(text_, at_);
    std::string name;
    if (!figure) name = text_[at_] == '"' ? read_quoted(text_, at_) : word(signs);
    const std::size_t end = at_;
    skip_blanks();
    if (!is_sign()) {
      at_ = end;
      if (!figure && end > begin && text_[begin] != '"' && name.find_first_not_of("&|") == name.npos)
        throw FigureError(written_from(begin) + " is not `and`, `or` or `not`", begin);
      if (figure) throw FigureError(written_from(begin) + " needs a comparison, such as < 3", begin);
      return {.field = {}, .comparison = {}, .values = {lower_case(name)}};
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

  RunFilter::Term comparison_with(RunField field, std::size_t begin) {
    static constexpr std::array<std::string_view, 7> known{"=", "!=", "<", "<=", ">", ">=", "~"};
    const std::size_t sign = at_;
    while (is_sign()) ++at_;
    RunFilter::Term term{.field = std::move(field), .comparison = std::string(text_.substr(sign, at_ - sign))};
    const bool is_known = std::ranges::find(known, term.comparison) != known.end();
    const bool orders = is_known && (term.comparison.front() == '<' || term.comparison.front() == '>');
    skip_blanks();
    const std::size_t place = at_;
    do {
      if (!term.values.empty()) ++at_;  // the comma
      const bool is_quoted = at_ < text_.size() && text_[at_] == '"';
      term.values.push_back(lower_case(is_quoted ? read_quoted(text_, at_) : word(orders ? "" : ",")));
      term.is_quoted = term.is_quoted || is_quoted;
      if (!is_known || (term.values.back().empty() && !is_quoted)) {
        word();
        throw FigureError(written_from(begin) + " is not FIELD=VALUE (or !=, <, <=, >, >=, ~)", begin);
      }
      if (term.comparison == "~")
        check_part(*term.field, term.values.back(), begin, place);
      else
        check_value(*term.field, term.values.back(), orders, is_quoted, begin, place);
      if (!orders && !is_quoted && term.field->name != "name" && kind_of(*term.field) != ValueKind::time)
        check_range(term.values.back(), place);
    } while (!orders && at_ < text_.size() && text_[at_] == ',');
    if (term.values.size() > 1 && !term.is_quoted && kind_of(*term.field) == ValueKind::text)  // a name may have commas
      term.values.push_back(lower_case(std::string(text_.substr(place, at_ - place))));
    return term;
  }

  // A value that can never match is a mistake.
  void check_value(const RunField& field, std::string& value, bool orders, bool is_quoted, std::size_t begin,
                   std::size_t place) const {
    const ValueKind kind = kind_of(field);
    if (kind == ValueKind::time) {
      const auto time = as_time(value);
      if (!time && (orders || value != "null"))
        throw FigureError(written_from(begin) + " compares with '" + value +
                              "', which is not a time such as 2026-11-01 or 2026-11-01T14:00 (UTC)",
                          place);
      if (time) value = *time;
    } else if (orders && kind == ValueKind::text && field.of == RunField::Of::run) {
      throw FigureError("the field " + field.name + " has no order; =, != and ~ compare it", begin);
    } else if (orders && !parse_number<double>(value)) {
      throw FigureError(written_from(begin) + " compares with '" + value + "', which is not a number", place);
    } else if (!orders && kind != ValueKind::text && value != "null") {
      const auto number = parse_number<double>(value);
      const bool is_whole = number && *number == std::floor(*number) && std::isfinite(*number);
      if (number ? kind == ValueKind::whole_number && !is_whole : is_quoted || !as_range(value))
        throw FigureError(written_from(begin) + " compares with '" + value + "', which is neither a " +
                              (kind == ValueKind::whole_number ? "whole " : "") + "number nor a range such as 11-13",
                          place);
    }
    const std::vector<std::string> all = closed_values(field);
    if (all.empty() || value == "null" || value == "[]" || std::ranges::find(all, value) != all.end()) return;
    // History's column of the status shows whom one shouldn't trust.
    const bool is_trust = field.name == "status" && (value == "doubtful" || value == "impossible");
    throw FigureError("the " + field.name + " " + unknown_name(value, all) + (is_trust ? "; write trust=" + value : ""),
                      place);
  }

  static void check_range(const std::string& value, std::size_t place) {
    if (const auto range = as_range(value); range && range->second < range->first)
      throw FigureError(value + " ends before it begins; \"" + value + "\" in quotes is a text", place);
  }

  // The same of `~`: a part that none of a field's values has.
  void check_part(const RunField& field, const std::string& value, std::size_t begin, std::size_t place) const {
    if (value == "null") return;
    const std::vector<std::string> all = closed_values(field);
    const auto has_it = [&](const std::string& each) { return each.find(value) != std::string::npos; };
    if (!all.empty() && std::ranges::none_of(all, has_it))
      throw FigureError("the " + field.name + " " + unknown_name(value, all), place);
    const ValueKind kind = kind_of(field);
    const std::string_view letters = kind == ValueKind::time ? "0123456789-:tz" : "0123456789+-.einfaty";
    if (kind != ValueKind::text && value.find_first_not_of(letters) != std::string::npos)
      throw FigureError(written_from(begin) + " looks for '" + value + "', which no " +
                            (kind == ValueKind::time ? "time" : "number") + " contains",
                        place);
  }

  std::string_view text_;
  RunFieldNames names_;
  std::size_t at_ = 0;
  int depth_ = 0;  // of open brackets
  int depth_of_nodes_ = 0;
};

RunFilter::RunFilter(const std::string& expression, const ProjectNames& names) {
  try {
    root_ = FilterParser(expression, names).read();
  } catch (const FigureError& error) {
    throw FilterError(std::string(error.what()) + " (" + position_text(expression, error.at) + ")");
  }
}

std::vector<MetricFigure> RunFilter::figures() const {
  std::vector<RunField> fields;
  const auto add = [&fields](const auto& self, const Node& node) -> void {
    if (node.term.field) fields.push_back(*node.term.field);
    for (const Node& part : node.parts) self(self, part);
  };
  add(add, root_);
  return figures_of(fields);
}

bool RunFilter::holds(const Term& term, RunValues& values, const std::string& words) {
  const auto any = [&](const auto& test) { return std::ranges::any_of(term.values, test); };
  if (!term.field) return words.find(term.values.front()) != std::string::npos;
  const Json actual = values[*term.field];
  if (term.comparison == "~") return any([&](const std::string& value) { return contains(actual, value); });
  const bool is_equality = term.comparison == "=" || term.comparison == "!=";
  if (kind_of(*term.field) == ValueKind::time && actual.is_string()) {
    const std::string time = plain_text(actual);
    if (!is_equality) return holds_for_sign(sign_of_time(time, term.values.front()), term.comparison);
    return any([&](const std::string& value) { return sign_of_time(time, value) == 0; }) == (term.comparison == "=");
  }
  if (is_equality)
    return any([&](const std::string& value) { return equals(actual, value, term.is_quoted); }) ==
           (term.comparison == "=");
  const auto number = number_of(actual), wanted = parse_number<double>(term.values.front());
  if (!number || !wanted || std::isnan(*number) || std::isnan(*wanted)) return false;
  return holds_for_sign((*number > *wanted) - (*number < *wanted), term.comparison);
}

bool RunFilter::holds(const Node& node, RunValues& values, const std::string& words) {
  const auto part_holds = [&](const Node& part) { return holds(part, values, words); };
  switch (node.kind) {
    case Node::Kind::term:
      return holds(node.term, values, words);
    case Node::Kind::any:
      return std::ranges::any_of(node.parts, part_holds);
    case Node::Kind::none:
      return std::ranges::none_of(node.parts, part_holds);
    case Node::Kind::all:
      break;
  }
  return std::ranges::all_of(node.parts, part_holds);
}

bool RunFilter::accepts(const Run& run, const Summary& summary, const RunContext& context,
                        const FigureTable& metrics) const {
  RunValues values(run, summary, context, metrics);
  const std::string words = lower_case(run.name + " " + run.stage + " " + std::string(to_string(run.status)) + " " +
                                       tags_text(context.curation(run.id).tags));
  return holds(root_, values, words);
}

}  // namespace stepladder
