// A figure as a value: curves or bars with their units, and the caption. Independent of pixels, ImGui and files; svg.h
// and tex.h lay it out, export.h writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/analysis/statistics.h"
#include "storage/records.h"

namespace stepladder {

struct FigureAxis {
  std::string label;  // with its unit: "step time, ms"
  bool is_log = false;
  bool from_zero = false;
};

// `style` is the rung's number, which gives colour and dashes; 0 is the baseline's (stroke_of).
struct FigureCurve {
  std::string label;
  std::vector<double> x;    // ascending
  std::vector<double> y;    // may hold NaN and infinities, which are counted and not drawn
  std::vector<double> low;  // a band around y, from the lowest to the highest value at each x; empty: none
  std::vector<double> high;
  int style = 0;
  bool is_thin = false;    // one of several repeats
  bool is_dotted = false;  // each value a dot: few values, such as validation losses
  bool is_stairs = false;  // an ECDF
  bool in_legend = true;
  std::int64_t behind = 0;      // values that are drawn as means in a band; 0: y holds every value
  std::int64_t not_finite = 0;  // NaN and infinities among the original values if y is coarser than these; else 0
};

// A band between two heights, over the whole width.
struct FigureBand {
  double low = 0;
  double high = 0;
  std::string label;
};

// A height to compare with.
struct FigureMark {
  double at = 0;
  std::string label;
};

enum class CellTone { neutral, quiet, good, bad, warning };
struct Cell {
  std::string text;
  CellTone tone = CellTone::neutral;
};

// A row of a bar chart, from zero (or, on a log axis, from its left edge) to `value`.
struct FigureBar {
  std::string label;
  std::string note;  // beneath it, in grey
  double value = missing;
  Interval whisker;
  double limit = missing;  // the hardware's peak: a red tick on the same axis
  bool is_trusted = true;  // else hatched
  int style = 0;
  std::vector<Cell> cells;  // to its right, as Figure::heads
};

// Curves with axes, or bars with a table beside them.
struct Figure {
  std::string title;
  std::string subtitle;
  std::vector<std::string> caption;  // hardware, n, method, versions: everything needed to reproduce it
  FigureAxis x;
  FigureAxis y;
  std::vector<FigureCurve> curves;
  std::vector<FigureBand> bands;
  std::vector<FigureMark> marks;
  std::vector<FigureBar> bars;
  std::vector<std::string> heads;  // of the bars' cells
};

struct FigureRange {
  double low = 0;
  double high = 1;
};
// The ranges of the axes: every finite value (on a log axis: every positive one), band and mark, plus a margin.
// Whiskers count up to some length; a longer one is drawn as cut off at the edge.
FigureRange x_range(const Figure& figure);
FigureRange y_range(const Figure& figure);

struct Tick {
  double value = 0;
  std::string label;
};
// At most `most` ticks inside the range, at 1, 2 or 5 times a power of ten; on a log axis at powers of ten if two of
// these fit, else as on a linear one. All have one unit: "0", "50 k", "100 k".
std::vector<Tick> ticks(const FigureRange& range, bool is_log, int most);

// A value's position in the range: 0 to 1 inside it.
double place_of(double value, const FigureRange& range, bool is_log);

// A curve reduced to a number of columns: finite points, of each column the first, lowest, highest and last. Of a band
// the lowest and highest value of each column.
struct DrawnCurve {
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> band_x;  // empty: no band
  std::vector<double> low;
  std::vector<double> high;
  std::size_t points = 0;           // the original number of finite ones; on a log axis: positive ones
  std::vector<double> not_drawn_x;  // of values that are NaN or infinite, or not positive on a log axis
};
DrawnCurve drawn(const FigureCurve& curve, const Figure& figure, int columns);

// Okabe and Ito's colours (https://jfly.uni-koeln.de/color/), which colour-blind people can tell apart, without the
// yellow that vanishes on white. `colour` -1 is the text's own, for the baseline. Neighbours also differ in dashes.
struct Stroke {
  int colour = -1;
  int dash = 0;  // 0 solid, 1 dashed, 2 dotted, 3 dash-dotted
};
inline constexpr const char* okabe_ito[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
Stroke stroke_of(int style);

}  // namespace stepladder
