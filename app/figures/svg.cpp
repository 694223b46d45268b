// Draws figures with curves as SVG: first the heights of head, legend and caption, which fix the place of the plot,
// then bands, axes, curves and marks. Values that cannot be drawn are crosses. Bars are in svg_bars.cpp.
#include "app/figures/svg.h"

#include <algorithm>
#include <array>

#include "app/figures/svg_canvas.h"
#include "app/figures/svg_text.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

using namespace svg;

constexpr double legend_line = 18;  // length of a legend's sample

constexpr std::array dashes{"", "7 3", "1.5 3", "8 3 1.5 3"};

std::string dash_of(int style) {
  return dashes[static_cast<std::size_t>(stroke_of(style).dash)];
}

struct LegendEntry {
  const FigureCurve* curve = nullptr;
  const FigureBand* band = nullptr;
  std::string label;
  double x = 0;
  double row = 0;
};

// Entries one after the other, in rows.
std::vector<LegendEntry> legend_of(const Figure& figure, double width) {
  std::vector<LegendEntry> entries;
  for (const FigureCurve& curve : figure.curves)
    if (curve.in_legend) entries.push_back({.curve = &curve, .label = curve.label});
  for (const FigureBand& band : figure.bands)
    if (!band.label.empty()) entries.push_back({.band = &band, .label = band.label});
  double x = 0;
  double row = 0;
  for (LegendEntry& entry : entries) {
    entry.label = shortened(entry.label, std::min(320.0, width - legend_line - 8), text_size);
    const double room = legend_line + 6 + text_width(entry.label, text_size) + 20;
    if (x > 0 && x + room - 20 > width) {
      x = 0;
      ++row;
    }
    entry.x = x;
    entry.row = row;
    x += room;
  }
  return entries;
}

void draw_legend(Canvas& canvas, const std::vector<LegendEntry>& entries, double left, double top) {
  for (const LegendEntry& entry : entries) {
    const double x = left + entry.x;
    const double y = top + entry.row * 20 + 8;
    if (entry.band) {
      canvas.box(x, y - 5, legend_line, 10, canvas.colours.band, 2,
                 " stroke=\"" + canvas.colours.line + "\" stroke-width=\"0.5\"");
    } else if (entry.curve->is_dotted) {
      canvas.dot(x + legend_line / 2, y, 3.2, colour_of(canvas.colours, entry.curve->style));
    } else {
      canvas.line(x, y, x + legend_line, y, colour_of(canvas.colours, entry.curve->style), 2.2,
                  dash_of(entry.curve->style));
    }
    canvas.text(x + legend_line + 6, y + 4.5, entry.label, text_size, canvas.colours.text);
  }
}

void draw_axes(Canvas& canvas, const Plot& plot, const Figure& figure, const std::vector<Tick>& y_ticks) {
  const Palette& colours = canvas.colours;
  const double bottom = plot.top + plot.height;
  for (const Tick& tick : y_ticks) {
    const double y = plot.at_y(tick.value);
    canvas.line(plot.left, y, plot.left + plot.width, y, colours.grid, 1);
    canvas.text(plot.left - 8, y + 4, tick.label, 12, colours.quiet, Anchor::end);
  }
  for (const Tick& tick : ticks(plot.x, plot.log_x, std::max(2, static_cast<int>(plot.width / 75)))) {
    const double x = plot.at_x(tick.value);
    canvas.line(x, bottom, x, bottom + 5, colours.line, 1);
    canvas.text(x, bottom + 19, tick.label, 12, colours.quiet, Anchor::middle);
  }
  canvas.line(plot.left, bottom, plot.left + plot.width, bottom, colours.line, 1);
  canvas.text(plot.left + plot.width / 2, bottom + 38, figure.x.label, text_size, colours.text, Anchor::middle);
  canvas.text(margin + 10, plot.top + plot.height / 2, figure.y.label, text_size, colours.text, Anchor::middle, false,
              -90);
}

std::string path_of(const DrawnCurve& line, const Plot& plot, bool stairs) {
  std::string steps;
  steps.reserve(line.x.size() * 14);
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    const std::string x = decimal(plot.at_x(line.x[i]));
    const std::string y = decimal(plot.at_y(line.y[i]));
    if (i == 0)
      steps += "M" + x + " " + y;
    else if (stairs)
      steps += "H" + x + "V" + y;
    else
      steps += "L" + x + " " + y;
  }
  return steps;
}

// Along the upper edge and back along the lower one.
std::string band_of(const DrawnCurve& line, const Plot& plot) {
  std::string steps;
  const auto add = [&](double x, double y) {
    steps += (steps.empty() ? "M" : "L") + decimal(plot.at_x(x)) + " " + decimal(plot.at_y(y));
  };
  for (std::size_t i = 0; i < line.band_x.size(); ++i) add(line.band_x[i], line.high[i]);
  for (std::size_t i = line.band_x.size(); i-- > 0;) add(line.band_x[i], line.low[i]);
  return steps + "Z";
}

void draw_curve(Canvas& canvas, const FigureCurve& curve, const Figure& figure, const Plot& plot) {
  const DrawnCurve line = drawn(curve, figure, static_cast<int>(plot.width));
  const std::string colour = colour_of(canvas.colours, curve.style);
  canvas.begin_group(curve.label + ": " +
                     (curve.behind > 0 ? "means and range of " + grouped(curve.behind) + " values"
                                       : grouped(line.points) + " points"));
  if (!line.band_x.empty()) canvas.area(band_of(line, plot), colour, curve.is_thin ? 0.1 : 0.22);
  if (curve.is_dotted || line.points == 1) {
    for (std::size_t i = 0; i < line.x.size(); ++i) canvas.dot(plot.at_x(line.x[i]), plot.at_y(line.y[i]), 3.2, colour);
  } else if (!line.x.empty()) {
    std::string steps = path_of(line, plot, curve.is_stairs);
    if (curve.is_stairs) steps += "H" + decimal(plot.left + plot.width);
    const double many = line.points > 400 ? 1.3 : 1.8;
    canvas.path(steps, colour,
                curve.is_thin      ? 0.9
                : curve.style == 0 ? many + 0.4
                                   : many,
                curve.is_thin ? 0.5 : 1, dash_of(curve.style));
  }
  // At most one cross per column, as with points.
  double last = -10;
  for (const double value : line.not_drawn_x) {
    const double x = plot.at_x(value);
    if (x - last < 3) continue;
    last = x;
    canvas.path("M" + decimal(x - 3) + " " + decimal(plot.top + 1) + "l6 6m0 -6l-6 6", colour, 1.4, 1, "");
  }
  canvas.end_group();
}

std::string curves(const Figure& figure, const SvgOptions& options) {
  const double width = options.width > 0 ? options.width : 960;
  double height = options.height > 0 ? options.height : 540;
  Canvas canvas(palette_of(options.theme), options.id);
  const double top = draw_head(canvas, figure, width, options);
  const std::vector<std::string> caption = caption_lines(figure, width, options);
  const std::vector<LegendEntry> legend = legend_of(figure, width - 2 * margin);
  const double legend_height = legend.empty() ? 0 : (legend.back().row + 1) * 20 + 6;
  if (!legend.empty()) draw_legend(canvas, legend, margin, top);

  constexpr double under_plot = 50;  // ticks and the axis's label
  constexpr double least_plot = 120;
  height = std::max(height, top + legend_height + 10 + least_plot + under_plot + caption_height(caption));

  Plot plot{.top = top + legend_height + 10,
            .x = x_range(figure),
            .y = y_range(figure),
            .log_x = figure.x.is_log,
            .log_y = figure.y.is_log};
  plot.height = height - plot.top - under_plot - caption_height(caption) - (caption.empty() ? 0 : 4);
  const std::vector<Tick> y_ticks = ticks(plot.y, plot.log_y, std::max(2, static_cast<int>(plot.height / 36)));
  double label_width = 20;
  for (const Tick& tick : y_ticks) label_width = std::max(label_width, text_width(tick.label, 12));
  plot.left = margin + 24 + label_width + 8;
  plot.width = width - plot.left - margin - 14;  // half of the last tick's label

  canvas.clip(plot.left - 4, plot.top - 4, plot.width + 8, plot.height + 8);
  for (const FigureBand& band : figure.bands) {
    canvas.begin_group(band.label, canvas.clipped());
    canvas.box(plot.left, plot.at_y(band.high), plot.width, plot.at_y(band.low) - plot.at_y(band.high),
               canvas.colours.band);
    canvas.end_group();
  }
  draw_axes(canvas, plot, figure, y_ticks);
  if (figure.curves.empty())
    canvas.text(plot.left + plot.width / 2, plot.top + plot.height / 2, "There is nothing to draw.", text_size,
                canvas.colours.quiet, Anchor::middle);
  canvas.begin_group("", canvas.clipped());
  // The baseline is first, so that it shows between the dashes of curves on top of it.
  for (const FigureCurve& curve : figure.curves) draw_curve(canvas, curve, figure, plot);
  canvas.end_group();
  for (const FigureMark& mark : figure.marks) {
    const double y = plot.at_y(mark.at);
    canvas.line(plot.left, y, plot.left + plot.width, y, canvas.colours.text, 1, "3 3");
    if (!mark.label.empty())
      canvas.text(plot.left + plot.width - 4, y - 5, mark.label, 12, canvas.colours.quiet, Anchor::end);
  }
  draw_caption(canvas, caption, height - caption_height(caption), width);
  return canvas.finish(width, height, figure.title);
}

}  // namespace

std::string to_svg(const Figure& figure, const SvgOptions& options) {
  return figure.bars.empty() ? curves(figure, options) : bars(figure, options);
}

}  // namespace stepladder
