// Parser and writer of figures such as min(val/loss). to_string and read_figure must round-trip any metric name, so
// names that could be misread are quoted. The command line's columns and filters, and saved views, use this syntax.
#include "storage/metric_figure.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "storage/by_enum.h"

namespace stepladder {
namespace {

constexpr auto kinds = by_enum<MetricFigure::Kind, std::string_view>("last", "min", "max", "median", "at");

bool is_blank(char letter) {
  return std::isspace(static_cast<unsigned char>(letter)) != 0;
}

void skip_blanks(std::string_view text, std::size_t& at) {
  while (at < text.size() && is_blank(text[at])) ++at;
}

bool begins_with(std::string_view text, std::string_view word) {  // in any case
  return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

std::string read_name(std::string_view text, std::size_t& at) {
  if (at < text.size() && text[at] == '"') return read_quoted(text, at);
  const std::size_t begin = at;
  at = std::min(text.find_first_of("(),\"", at), text.size());
  if (at < text.size() && (text[at] == '(' || text[at] == '"'))
    throw FigureError("a name with '" + std::string(1, text[at]) + "' needs quotation marks around it", at);
  std::size_t end = at;
  while (end > begin && is_blank(text[end - 1])) --end;
  if (end == begin) throw FigureError("the name of a metric is missing", begin);
  return std::string(text.substr(begin, end - begin));
}

std::int64_t read_step(std::string_view text, std::size_t& at) {
  if (at == text.size() || text[at] != ',') throw FigureError("a step is missing, as in at(val/loss, 1000)", at);
  ++at;
  skip_blanks(text, at);
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), step);
  if (error != std::errc() || step < 0) throw FigureError("a step is a whole number from 0 on", at);
  at = static_cast<std::size_t>(end - text.data());
  return step;
}

}  // namespace

std::string_view to_string(MetricFigure::Kind kind) {
  return kinds[kind];
}

std::string in_quotes(std::string_view text) {
  std::string marked = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') marked += '\\';
    marked += letter;
  }
  return marked + "\"";
}

std::string to_string(const MetricFigure& figure) {
  const std::string& name = figure.metric;
  const bool is_plain = !name.empty() && name.find_first_of("(),\"") == std::string::npos && !is_blank(name.front()) &&
                        !is_blank(name.back());
  std::string text = std::string(to_string(figure.kind)) + "(" + (is_plain ? name : in_quotes(name));
  if (figure.kind == MetricFigure::Kind::at) text += ", " + std::to_string(figure.step);
  return text + ")";
}

std::string read_quoted(std::string_view text, std::size_t& at) {
  const std::size_t begin = at++;
  std::string read;
  for (; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\')) ++at;
    read += text[at];
  }
  if (at == text.size()) throw FigureError("the closing quotation mark is missing", begin);
  ++at;
  return read;
}

std::optional<MetricFigure> read_figure(std::string_view text, std::size_t& at) {
  const auto all = enumerators<MetricFigure::Kind>();
  const auto kind = std::ranges::find_if(all, [&](MetricFigure::Kind known) {
    return begins_with(text.substr(at), kinds[known]) && text.substr(at + kinds[known].size()).starts_with('(');
  });
  if (kind == all.end()) return std::nullopt;
  MetricFigure figure{.metric = {}, .kind = *kind};
  std::size_t place = at + kinds[*kind].size() + 1;
  skip_blanks(text, place);
  figure.metric = read_name(text, place);
  skip_blanks(text, place);
  if (figure.kind == MetricFigure::Kind::at) figure.step = read_step(text, place);
  skip_blanks(text, place);
  if (place == text.size()) throw FigureError("the closing bracket is missing", place);
  if (text[place] != ')') throw FigureError("expected ')' instead of '" + std::string(1, text[place]) + "'", place);
  at = place + 1;
  return figure;
}

std::string name_of(const MetricFigure& figure) {
  return figure.kind == MetricFigure::Kind::last ? figure.metric : to_string(figure);
}

MetricFigure metric_named(const std::string& text) {
  return metric_figure_from(text).value_or(MetricFigure{.metric = text});
}

std::optional<MetricFigure> metric_figure_from(std::string_view text) {
  std::size_t at = 0;
  try {
    std::optional<MetricFigure> figure = read_figure(text, at);
    return at == text.size() ? std::move(figure) : std::nullopt;
  } catch (const FigureError&) {
    return std::nullopt;
  }
}

}  // namespace stepladder
