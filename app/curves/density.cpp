// Curves become a range for each column first, which any y axis can then be counted in. A range costs two additions,
// whatever its height: where the count of its column rises and where it falls again.
#include "app/curves/density.h"

#include <algorithm>
#include <cmath>

namespace stepladder {

double PictureAxis::place(double value) const {
  const double share =
      is_log ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low)) : (value - low) / (high - low);
  return share * parts;
}

void add_to_columns(std::span<const double> x, std::span<const double> low, std::span<const double> high, bool is_path,
                    const PictureAxis& axis, std::span<ColumnRange> ranges) {
  if (!(axis.high > axis.low) || (axis.is_log && !(axis.low > 0))) return;
  const auto is_known = [&](std::size_t i) { return std::isfinite(low[i]) && std::isfinite(high[i]); };
  auto first = static_cast<std::size_t>(std::ranges::lower_bound(x, axis.low) - x.begin());
  auto end = static_cast<std::size_t>(std::ranges::upper_bound(x, axis.high) - x.begin());
  // The nearest neighbours outside, for lines that cross the edge.
  while (first > 0 && !is_known(--first)) {
  }
  while (end < x.size() && !is_known(end++)) {
  }
  const double origin = axis.is_log ? std::log(axis.low) : axis.low;
  const double scale = axis.parts / ((axis.is_log ? std::log(axis.high) : axis.high) - origin);
  const auto last_column = static_cast<double>(axis.parts - 1);
  double place_before = 0;
  double column_before = 0;
  std::size_t before = end;  // none yet
  for (std::size_t i = first; i < end; ++i) {
    if (!is_known(i) || (axis.is_log && !(x[i] > 0))) continue;
    const double place = ((axis.is_log ? std::log(x[i]) : x[i]) - origin) * scale;
    const double column = x[i] == axis.high ? last_column : std::floor(place);
    if (is_path && before != end && column != column_before) {
      // Where the line crosses from column to column, both have its height there.
      const double to = std::min(column, last_column + 1);
      for (double edge = std::max(column_before + 1, 0.0); edge <= to; ++edge) {
        const double share = std::clamp((edge - place_before) / (place - place_before), 0.0, 1.0);
        const double from_low = low[before] + share * (low[i] - low[before]);
        const double from_high = high[before] + share * (high[i] - high[before]);
        const auto right = static_cast<std::size_t>(edge);
        if (right > 0) ranges[right - 1].include(from_low, from_high);
        if (right < ranges.size()) ranges[right].include(from_low, from_high);
      }
    }
    if (column >= 0 && column <= last_column) ranges[static_cast<std::size_t>(column)].include(low[i], high[i]);
    before = i;
    place_before = place;
    column_before = column;
  }
}

void DensityPicture::start(int columns, const PictureAxis& y) {
  columns_ = columns;
  y_ = y;
  // A row more, where a range that reaches the lowest row ends.
  cells_.assign(static_cast<std::size_t>(columns) * static_cast<std::size_t>(y.parts + 1), 0);
}

void DensityPicture::add(std::span<const ColumnRange> ranges) {
  const double origin = y_.is_log ? std::log(y_.high) : y_.high;
  const double scale = y_.parts / (origin - (y_.is_log ? std::log(y_.low) : y_.low));
  const auto row = [&](double value) { return (origin - (y_.is_log ? std::log(value) : value)) * scale; };
  const double last = y_.parts - 1;
  std::int32_t* column = cells_.data();
  for (const ColumnRange& range : ranges) {
    if (range.known() && range.high >= y_.low && range.low <= y_.high) {
      const double low = range.low <= y_.low ? last : std::min(row(range.low), last);
      const double high = range.high >= y_.high ? 0 : std::min(row(range.high), last);
      ++column[static_cast<std::ptrdiff_t>(high)];
      --column[static_cast<std::ptrdiff_t>(low) + 1];
    }
    column += y_.parts + 1;
  }
}

std::span<const std::int32_t> DensityPicture::counts() {
  const std::int32_t* from = cells_.data();
  std::int32_t* to = cells_.data();
  for (int column = 0; column < columns_; ++column, ++from) {
    std::int32_t count = 0;
    for (int row = 0; row < y_.parts; ++row) *to++ = count += *from++;
  }
  return {cells_.data(), static_cast<std::size_t>(columns_) * static_cast<std::size_t>(y_.parts)};
}

}  // namespace stepladder
