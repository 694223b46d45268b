// Many curves as one picture: how many of them pass through each cell of a grid, however many there are. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace stepladder {

// Equal parts of an axis: columns of x or rows of y. A logarithmic axis has no values below or at 0.
struct PictureAxis {
  double low = 0;
  double high = 1;
  bool is_log = false;
  int parts = 1;

  double place(double value) const;  // 0 at `low`, `parts` at `high`; may lie outside
  friend bool operator==(const PictureAxis&, const PictureAxis&) = default;
};

// The lowest and highest y of one curve in one column.
struct ColumnRange {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool known() const { return low <= high; }
  void include(double from, double to) {
    if (from < low) low = from;
    if (to > high) high = to;
  }
};

// Extends the ranges of the columns by a curve that runs between `low` and `high` (both y for a line) at each x, and
// straight between two neighbours if it is a path. Every finite value within the axis is in its column's range. `x`
// ascends; all three have the same length, and `ranges` has one for each column.
void add_to_columns(std::span<const double> x, std::span<const double> low, std::span<const double> high, bool is_path,
                    const PictureAxis& axis, std::span<ColumnRange> ranges);

class DensityPicture {
 public:
  // Starts an empty picture; keeps the memory of the last one.
  void start(int columns, const PictureAxis& y);

  // Adds one curve to every cell that its range in a column touches. Ranges beyond the y axis are left out.
  void add(std::span<const ColumnRange> ranges);

  int columns() const { return columns_; }
  int rows() const { return y_.parts; }

  // The curves in each cell, column by column, each from the highest y down. Call once, after the last curve.
  std::span<const std::int32_t> counts();

 private:
  int columns_ = 0;
  PictureAxis y_;
  // Of each column: by how much the count changes at each row, then the counts.
  std::vector<std::int32_t> cells_;
};

}  // namespace stepladder
