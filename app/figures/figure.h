// A figure as a value: curves or bars with their units, and the caption. It knows nothing of pixels, ImGui or files;
// svg.h and tex.h place it, export.h writes it.
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

// `style` is the rung's place: colour and dashes follow from it, 0 being the baseline's (stroke_of).
struct FigureCurve {
  std::string label;
  std::vector<double> x;  // ascending
  std::vector<double> y;  // may hold NaN and infinities, which are counted and not joined up
  int style = 0;
  bool is_thin = false;    // one of several alike: a repeat
  bool is_dotted = false;  // each value a dot: few values, such as validation losses
  bool is_stairs = false;  // an ECDF
  bool in_legend = true;
  std::int64_t not_finite = 0;  // NaN and infinities among the values behind y, where y is coarser than these; else 0
};

// Between two heights, over the whole width.
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

// Curves over axes, or bars with a table beside them.
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
// The ranges of the axes: every finite value (on a log axis: every positive one), band and mark, and some air.
// Whiskers count up to some length; a longer one leaves the picture, which its drawing shows.
FigureRange x_range(const Figure& figure);
FigureRange y_range(const Figure& figure);

struct Tick {
  double value = 0;
  std::string label;
};
// At most `most` of them inside the range, at 1, 2 or 5 times a power of ten; on a log axis at powers of ten where
// there are two of these, else as on a linear one. One unit for all: "0", "50 k", "100 k".
std::vector<Tick> ticks(const FigureRange& range, bool is_log, int most);

// A value's position in the range: 0 to 1 inside it.
double place_of(double value, const FigureRange& range, bool is_log);

// A curve as it is drawn in so many columns: finite points, and of each column the first, lowest, highest and last.
struct DrawnCurve {
  std::vector<double> x;
  std::vector<double> y;
  std::size_t points = 0;           // finite ones that there were; on a log axis: positive ones
  std::vector<double> not_drawn_x;  // where a value was NaN or infinite, or not positive on a log axis
};
DrawnCurve drawn(const FigureCurve& curve, const Figure& figure, int columns);

// Okabe and Ito's colours (https://jfly.uni-koeln.de/color/), which the colour-blind can tell apart, without the yellow
// that vanishes on white. `colour` -1 is the text's own: the baseline. Neighbours differ in dashes too.
struct Stroke {
  int colour = -1;
  int dash = 0;  // 0 solid, 1 dashed, 2 dotted, 3 dash-dotted
};
inline constexpr const char* okabe_ito[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
Stroke stroke_of(int style);

}  // namespace stepladder
