// One figure of a metric, as people write it: "last(val/acc)", "min(val/loss)", "at(val/loss, 1000)". Columns, filters
// and tables name it so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stepladder {

struct MetricFigure {
  enum class Kind { last, min, max, median, at };  // as MetricFigures has them; at: the value of one step

  std::string metric;  // or a field of the steps
  Kind kind = Kind::last;
  std::int64_t step = 0;  // of `at`

  friend bool operator==(const MetricFigure&, const MetricFigure&) = default;
};

// Whether more values alone make it better, by luck.
inline bool is_extreme(const MetricFigure& figure) {
  return figure.kind == MetricFigure::Kind::min || figure.kind == MetricFigure::Kind::max;
}

// Puts a name in quotation marks if it could be read as something else.
std::string to_string(const MetricFigure& figure);
std::string_view to_string(MetricFigure::Kind kind);
std::string name_of(const MetricFigure& figure);  // the same, but "val/acc" for its last value

// The text is malformed; what() is a sentence's end that begins in lower case, `at` the byte at which it fails.
struct FigureError : std::runtime_error {
  FigureError(const std::string& what, std::size_t place) : std::runtime_error(what), at(place) {}
  std::size_t at;
};

// Reads a figure that begins at `at`, and moves `at` behind it. Nullopt, without moving, if none begins there. Throws
// FigureError.
std::optional<MetricFigure> read_figure(std::string_view text, std::size_t& at);

// Reads the text in quotation marks that begins at `at`, in which \" and \\ are a quotation mark and a backslash, and
// moves `at` behind it. Throws FigureError if it has no end.
std::string read_quoted(std::string_view text, std::size_t& at);
std::string in_quotes(std::string_view text);  // the reverse

// The text as a figure; else the last value of the metric of that name.
MetricFigure metric_named(const std::string& text);

// The whole text as a figure; nullopt if it isn't one.
std::optional<MetricFigure> metric_figure_from(std::string_view text);

}  // namespace stepladder
