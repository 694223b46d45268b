// Axes, ticks, reduction to columns and colours of figures; SVG and TeX share them, so both place a value alike. Values
// that an axis can't show (NaN, infinite, not positive on a log axis) are counted instead of drawn.
#include "app/figures/figure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/curves/decimate.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr double longest_whisker = 1.4;  // of the longest bar

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void take(double value, bool is_log) {
    if (!std::isfinite(value) || (is_log && value <= 0)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

FigureRange with_air(Extent extent, const FigureAxis& axis, double air) {
  if (extent.low > extent.high) return axis.is_log ? FigureRange{1, 10} : FigureRange{0, 1};
  if (axis.is_log) {
    const double factor = std::max(std::pow(extent.high / extent.low, air), 1 + air);
    using Limits = std::numeric_limits<double>;
    return {std::max(extent.low / factor, Limits::denorm_min()), std::min(extent.high * factor, Limits::max())};
  }
  if (axis.from_zero) extent.low = std::min(extent.low, 0.0);
  double width = extent.high - extent.low;
  if (width <= std::abs(extent.high) * 1e-12) width = extent.high == 0 ? 1 : std::abs(extent.high) * 0.1;
  const bool at_zero = extent.low == 0 && (axis.from_zero || air == 0);
  return {at_zero ? 0 : extent.low - air * width, std::max(extent.high, extent.low + width * 0.5) + air * width};
}

std::string tick_label(double value, double step, double scale, const char* unit) {
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step / scale) - 1e-9)), 0, 12);
  if (std::abs(value) < step * 1e-9) return "0";
  return fmt::format("{:.{}f}{}", value / scale, decimals, unit);
}

// The value with all its digits.
std::string power_label(double value) {
  if (value >= 1e9 || value < 1e-4) return fmt::format("{:.0e}", value);
  if (value >= 1e6) return fmt::format("{:g} M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:g} k", value / 1e3);
  return fmt::format("{:g}", value);
}

std::vector<Tick> linear_ticks(const FigureRange& range, int most) {
  const double rough = (range.high - range.low) / std::max(most, 1);
  if (!(rough > 0) || !std::isfinite(rough)) return {};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) {
      step = factor * power;
      break;
    }
  }
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  const double scale = largest >= 1e10 ? 1e9 : largest >= 1e7 ? 1e6 : largest >= 1e4 ? 1e3 : 1;
  const char* unit = scale == 1e9 ? " G" : scale == 1e6 ? " M" : scale == 1e3 ? " k" : "";
  std::vector<Tick> list;
  if (!(step > 0)) return list;
  // Multiplied rather than summed, so that the hundredth tick is exact; compared in steps, since a sum may be infinite.
  const double last = range.high / step + 1e-9;
  for (double i = std::ceil(range.low / step - 1e-9); i <= last && std::ssize(list) <= most + 1; ++i)
    list.push_back({i * step, tick_label(i * step, step, scale, unit)});
  return list;
}

std::vector<Tick> log_ticks(const FigureRange& range, int most) {
  const double decades = std::log10(range.high) - std::log10(range.low);
  std::vector<Tick> list;
  const auto every = static_cast<int>(std::max(1.0, std::ceil(decades / std::max(most, 1))));
  const bool between = decades * 3 <= most;
  for (int power = static_cast<int>(std::floor(std::log10(range.low))); power <= std::log10(range.high); ++power) {
    if (power % every != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, power);
      if ((factor == 1 || between) && value >= range.low * (1 - 1e-9) && value <= range.high * (1 + 1e-9))
        list.push_back({value, power_label(value)});
    }
  }
  return list;
}

}  // namespace

FigureRange x_range(const Figure& figure) {
  Extent extent;
  const bool bars = !figure.bars.empty();
  for (const FigureCurve& curve : figure.curves)
    for (const double x : curve.x) extent.take(x, figure.x.is_log);
  for (const FigureBar& bar : figure.bars)
    for (const double value : {bar.value, bar.limit}) extent.take(value, figure.x.is_log);
  // A whisker may be very long (two repeats that differ much); it must not squeeze all bars.
  const double most = extent.high * longest_whisker;
  const double least = extent.low / longest_whisker;
  for (const FigureBar& bar : figure.bars) {
    if (!bar.whisker.known()) continue;
    extent.take(std::min(bar.whisker.high, most), figure.x.is_log);
    if (figure.x.is_log) extent.take(std::max(bar.whisker.low, least), true);
  }
  FigureRange range = with_air(extent, figure.x, bars ? 0.04 : figure.x.is_log ? 0.03 : 0);
  if (bars && figure.x.is_log) range.low /= 1.5;  // so that the shortest bar has a length
  return range;
}

FigureRange y_range(const Figure& figure) {
  Extent extent;
  for (const FigureCurve& curve : figure.curves) {
    for (const std::vector<double>* values : {&curve.y, &curve.low, &curve.high})
      for (const double y : *values) extent.take(y, figure.y.is_log);
  }
  for (const FigureBand& band : figure.bands) {
    extent.take(band.low, figure.y.is_log);
    extent.take(band.high, figure.y.is_log);
  }
  for (const FigureMark& mark : figure.marks) extent.take(mark.at, figure.y.is_log);
  return with_air(extent, figure.y, 0.05);
}

std::vector<Tick> ticks(const FigureRange& range, bool is_log, int most) {
  if (!is_log) return linear_ticks(range, most);
  std::vector<Tick> list = log_ticks(range, most);
  return list.size() >= 2 ? list : linear_ticks(range, most);
}

double place_of(double value, const FigureRange& range, bool is_log) {
  if (is_log) return (std::log(value) - std::log(range.low)) / (std::log(range.high) - std::log(range.low));
  return (value - range.low) / (range.high - range.low);
}

namespace {

// The band's edges, one value for each column that has any. Skips values that the axes can't show.
void draw_band(const FigureCurve& curve, const Figure& figure, int columns, DrawnCurve& result) {
  const auto can_be_drawn = [&](std::size_t i) {
    const double x = curve.x[i];
    return std::isfinite(x) && std::isfinite(curve.low[i]) && std::isfinite(curve.high[i]) &&
           (!figure.x.is_log || x > 0) && (!figure.y.is_log || curve.low[i] > 0);
  };
  const auto each = curve.low.size() / static_cast<std::size_t>(std::max(columns, 1)) + 1;
  for (std::size_t i = 0; i < curve.low.size(); i += each) {
    double low = missing;
    double high = missing;
    double first = missing;
    double last = missing;
    for (std::size_t k = i; k < std::min(i + each, curve.low.size()); ++k) {
      if (!can_be_drawn(k)) continue;
      if (is_missing(first)) first = curve.x[k];
      last = curve.x[k];
      low = is_missing(low) ? curve.low[k] : std::min(low, curve.low[k]);
      high = is_missing(high) ? curve.high[k] : std::max(high, curve.high[k]);
    }
    if (is_missing(first)) continue;
    for (const double x : {first, last}) {
      if (!result.band_x.empty() && result.band_x.back() == x) continue;
      result.band_x.push_back(x);
      result.low.push_back(low);
      result.high.push_back(high);
    }
  }
}

}  // namespace

DrawnCurve drawn(const FigureCurve& curve, const Figure& figure, int columns) {
  DrawnCurve result;
  draw_band(curve, figure, columns, result);
  std::vector<double> place;
  std::vector<double> height;
  for (std::size_t i = 0; i < curve.y.size(); ++i) {
    if (is_missing(curve.y[i]) || !std::isfinite(curve.x[i]) || (figure.x.is_log && curve.x[i] <= 0)) continue;
    if (!std::isfinite(curve.y[i]) || (figure.y.is_log && curve.y[i] <= 0)) {
      result.not_drawn_x.push_back(curve.x[i]);
      continue;
    }
    place.push_back(figure.x.is_log ? std::log(curve.x[i]) : curve.x[i]);
    height.push_back(curve.y[i]);
  }
  result.points = place.size();
  if (place.empty()) return result;
  Polyline line = decimate(place, height, place.front(), place.back(), columns);
  if (figure.x.is_log)
    std::transform(line.x.begin(), line.x.end(), line.x.begin(), [](double x) { return std::exp(x); });
  result.x = std::move(line.x);
  result.y = std::move(line.y);
  return result;
}

Stroke stroke_of(int style) {
  if (style <= 0) return {};
  constexpr int colours = std::size(okabe_ito);
  // Twelve distinct pairs; then the dashes are shifted.
  return {.colour = (style - 1) % colours, .dash = (style + (style - 1) / (2 * colours)) % 4};
}

}  // namespace stepladder
