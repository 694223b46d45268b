#include "app/figures/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "app/format.h"

namespace stepladder {
namespace {

// The looks of the desktop (its light and dark themes), with Okabe and Ito's colours for what is measured.
struct Palette {
  std::string background, text, quiet, line, grid, bad, good, warning, hatch, band;
  std::array<std::string, 6> series;
};

Palette palette_of(Theme theme) {
  std::array<std::string, 6> series;
  std::copy(std::begin(okabe_ito), std::end(okabe_ito), series.begin());
  if (theme == Theme::light)
    return {"#ffffff", "#1b2330", "#667085", "#98a2b3", "#e4e7ec", "#d1323a",
            "#12875a", "#9a6700", "#98a2b3", "#eef1f5", series};
  if (theme == Theme::dark) {
    series[0] = "#2f9be0";  // Okabe and Ito's blue is too dark on a dark ground
    return {"#1b1f26", "#e6e9ee", "#8b94a3", "#5b6472", "#2b313b", "#ff6b6b",
            "#35c48d", "#f2b84b", "#6b7482", "#262c35", series};
  }
  for (std::size_t i = 0; i < series.size(); ++i) series[i] = "var(--series" + std::to_string(i) + ")";
  return {"none",        "var(--text)",    "var(--quiet)", "var(--line)", "var(--grid)", "var(--bad)",
          "var(--good)", "var(--warning)", "var(--hatch)", "var(--band)", series};
}

constexpr double title_size = 18;
constexpr double text_size = 13;
constexpr double small_size = 11.5;
constexpr double line_height = 1.4;
constexpr double margin = 20;
constexpr double legend_line = 18;  // length of a legend's sample

constexpr std::array dashes{"", "7 3", "1.5 3", "8 3 1.5 3"};

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", std::abs(value) < 0.005 ? 0.0 : value);
  std::string digits = text.data();
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

// Words to lines that fit.
std::vector<std::string> wrapped(const std::string& text, double width, double size) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, to - from);
    const std::string longer = line.empty() ? word : line + " " + word;
    if (!line.empty() && text_width(longer, size) > width) {
      lines.push_back(line);
      line = word;
    } else {
      line = longer;
    }
    from = to + 1;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

enum class Anchor { start, middle, end };

class Canvas {
 public:
  Canvas(Palette palette, std::string id) : colours(std::move(palette)), id_(std::move(id)) {}

  const Palette colours;

  void text(double x, double y, const std::string& what, double size, const std::string& colour,
            Anchor anchor = Anchor::start, bool strong = false, double turned = 0) {
    body_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" font-size=\"" + number(size) + "\" fill=\"" +
             colour + "\"";
    if (anchor != Anchor::start) body_ += anchor == Anchor::end ? " text-anchor=\"end\"" : " text-anchor=\"middle\"";
    if (strong) body_ += " font-weight=\"600\"";
    if (turned != 0) body_ += " transform=\"rotate(" + number(turned) + " " + number(x) + " " + number(y) + ")\"";
    body_ += ">" + xml_escaped(what) + "</text>\n";
  }

  void line(double x1, double y1, double x2, double y2, const std::string& colour, double width,
            const std::string& dash = {}) {
    body_ += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) +
             "\" stroke=\"" + colour + "\" stroke-width=\"" + number(width) + "\"" + dashed(dash) + "/>\n";
  }

  void box(double x, double y, double width, double height, const std::string& fill, double radius = 0,
           const std::string& extra = {}) {
    body_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(std::max(width, 0.0)) +
             "\" height=\"" + number(std::max(height, 0.0)) + "\" fill=\"" + fill + "\"";
    if (radius > 0) body_ += " rx=\"" + number(radius) + "\"";
    body_ += extra + "/>\n";
  }

  void path(const std::string& steps, const std::string& colour, double width, double opacity,
            const std::string& dash) {
    body_ += "<path d=\"" + steps + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"" + number(width) +
             "\" stroke-linejoin=\"round\"";
    if (opacity < 1) body_ += " stroke-opacity=\"" + number(opacity) + "\"";
    body_ += dashed(dash) + "/>\n";
  }

  void dot(double x, double y, double radius, const std::string& colour) {
    body_ += "<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(radius) + "\" fill=\"" + colour +
             "\" stroke=\"" + (colours.background == "none" ? "var(--card)" : colours.background) +
             "\" stroke-width=\"0.8\"/>\n";
  }

  // What a reader sees on hovering, and what a screen reader says, for all that comes until end_group.
  void begin_group(const std::string& says, const std::string& extra = {}) {
    body_ += "<g" + extra + ">" + (says.empty() ? "" : "<title>" + xml_escaped(says) + "</title>") + "\n";
  }
  void end_group() { body_ += "</g>\n"; }

  void clip(double x, double y, double width, double height) {
    definitions_ += "<clipPath id=\"" + id_ + "-plot\"><rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" +
                    number(width) + "\" height=\"" + number(height) + "\"/></clipPath>\n";
  }
  std::string clipped() const { return " clip-path=\"url(#" + id_ + "-plot)\""; }

  // Diagonal lines in `colour`; returns what fills with them.
  std::string hatch(const std::string& colour) {
    const std::string name = id_ + "-hatch";
    if (!has_hatch_)
      definitions_ += "<pattern id=\"" + name +
                      "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
                      "<path d=\"M-1.5 1.5 L1.5 -1.5 M0 6 L6 0 M4.5 7.5 L7.5 4.5\" stroke=\"" +
                      colour + "\" stroke-width=\"1.3\"/></pattern>\n";
    has_hatch_ = true;
    return "url(#" + name + ")";
  }

  // A figure on a page has no margin of its own: the page's card does.
  std::string finish(double width, double height, const std::string& says) const {
    const double cut = colours.background == "none" ? margin - 2 : 0;
    const std::string size = number(width - 2 * cut) + "\" height=\"" + number(height);
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"" + number(cut) +
                      " 0 " + number(width - 2 * cut) + " " + number(height) +
                      "\" font-family=\"Inter, 'Helvetica Neue', Arial, sans-serif\" role=\"img\">\n<title>" +
                      xml_escaped(says) + "</title>\n";
    if (!definitions_.empty()) svg += "<defs>\n" + definitions_ + "</defs>\n";
    if (colours.background != "none") svg += "<rect width=\"" + size + "\" fill=\"" + colours.background + "\"/>\n";
    return svg + body_ + "</svg>\n";
  }

 private:
  static std::string dashed(const std::string& dash) {
    return dash.empty() ? "" : " stroke-dasharray=\"" + dash + "\"";
  }

  std::string id_;
  std::string definitions_;
  std::string body_;
  bool has_hatch_ = false;
};

std::string colour_of(const Palette& palette, int style) {
  const Stroke stroke = stroke_of(style);
  return stroke.colour < 0 ? palette.text : palette.series[static_cast<std::size_t>(stroke.colour)];
}

std::string dash_of(int style) {
  return dashes[static_cast<std::size_t>(stroke_of(style).dash)];
}

std::string tone_colour(const Palette& palette, CellTone tone) {
  switch (tone) {
    case CellTone::quiet:
      return palette.quiet;
    case CellTone::good:
      return palette.good;
    case CellTone::bad:
      return palette.bad;
    case CellTone::warning:
      return palette.warning;
    case CellTone::neutral:
      break;
  }
  return palette.text;
}

// Title and subtitle; returns where what follows begins.
double draw_head(Canvas& canvas, const Figure& figure, double width, const SvgOptions& options) {
  if (!options.with_title) return 8;
  double y = margin + 14;
  for (const std::string& line : wrapped(figure.title, width - 2 * margin, title_size)) {
    canvas.text(margin, y, line, title_size, canvas.colours.text, Anchor::start, true);
    y += title_size * line_height;
  }
  for (const std::string& line : wrapped(figure.subtitle, width - 2 * margin, text_size)) {
    canvas.text(margin, y - 3, line, text_size, canvas.colours.quiet);
    y += text_size * line_height;
  }
  return y - 4;
}

std::vector<std::string> caption_lines(const Figure& figure, double width, const SvgOptions& options) {
  std::vector<std::string> lines;
  if (!options.with_caption) return lines;
  for (const std::string& sentence : figure.caption) {
    for (std::string& line : wrapped(sentence, width - 2 * margin, small_size)) lines.push_back(std::move(line));
  }
  return lines;
}

double caption_height(const std::vector<std::string>& lines) {
  return lines.empty() ? 0 : static_cast<double>(lines.size()) * small_size * line_height + 14;
}

void draw_caption(Canvas& canvas, const std::vector<std::string>& lines, double top, double width) {
  if (lines.empty()) return;
  canvas.line(margin, top, width - margin, top, canvas.colours.grid, 1);
  double y = top + 18;
  for (const std::string& line : lines) {
    canvas.text(margin, y, line, small_size, canvas.colours.quiet);
    y += small_size * line_height;
  }
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
  for (const FigureCurve& curve : figure.curves) {
    if (curve.in_legend) entries.push_back({.curve = &curve, .label = curve.label});
  }
  for (const FigureBand& band : figure.bands) {
    if (!band.label.empty()) entries.push_back({.band = &band, .label = band.label});
  }
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

// The rectangle of the plot and what its edges stand for.
struct Plot {
  double left, top, width, height;
  FigureRange x, y;
  bool log_x, log_y;

  double at_x(double value) const { return left + width * place_of(value, x, log_x); }
  double at_y(double value) const { return top + height * (1 - place_of(value, y, log_y)); }
};

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
    const std::string x = number(plot.at_x(line.x[i]));
    const std::string y = number(plot.at_y(line.y[i]));
    if (i == 0)
      steps += "M" + x + " " + y;
    else if (stairs)
      steps += "H" + x + "V" + y;
    else
      steps += "L" + x + " " + y;
  }
  return steps;
}

void draw_curve(Canvas& canvas, const FigureCurve& curve, const Figure& figure, const Plot& plot) {
  const DrawnCurve line = drawn(curve, figure, static_cast<int>(plot.width));
  const std::string colour = colour_of(canvas.colours, curve.style);
  canvas.begin_group(curve.label + ": " + grouped(static_cast<std::int64_t>(line.points)) + " points");
  if (curve.is_dotted || line.points == 1) {
    for (std::size_t i = 0; i < line.x.size(); ++i) canvas.dot(plot.at_x(line.x[i]), plot.at_y(line.y[i]), 3.2, colour);
  } else if (!line.x.empty()) {
    std::string steps = path_of(line, plot, curve.is_stairs);
    if (curve.is_stairs) steps += "H" + number(plot.left + plot.width);
    const double many = line.points > 400 ? 1.3 : 1.8;
    canvas.path(steps, colour,
                curve.is_thin      ? 0.9
                : curve.style == 0 ? many + 0.4
                                   : many,
                curve.is_thin ? 0.5 : 1, dash_of(curve.style));
  }
  // Not more crosses than there are columns, as with points.
  double last = -10;
  for (const double value : line.not_drawn_x) {
    const double x = plot.at_x(value);
    if (x - last < 3) continue;
    last = x;
    canvas.path("M" + number(x - 3) + " " + number(plot.top + 1) + "l6 6m0 -6l-6 6", colour, 1.4, 1, "");
  }
  canvas.end_group();
}

std::string curves_svg(const Figure& figure, const SvgOptions& options) {
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
  // The baseline is the first, so that it shows between the dashes of what lies on it.
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

// Where a bar chart's columns begin or, for numbers, end.
struct BarColumns {
  double label_width = 0;
  double bar = 0;
  double bar_width = 0;
  std::vector<double> left;
  std::vector<double> width;
};

bool is_number_column(const Figure& figure, std::size_t column) {
  return std::all_of(figure.bars.begin(), figure.bars.end(), [&](const FigureBar& bar) {
    const std::string& text = bar.cells[column].text;
    return text.empty() || text == "-" || (text.front() >= '0' && text.front() <= '9');
  });
}

constexpr double least_bar = 140;
constexpr double most_label = 300;
constexpr double column_gap = 20;

BarColumns columns_of(const Figure& figure, double asked_width) {
  BarColumns columns;
  for (const FigureBar& bar : figure.bars) {
    columns.label_width =
        std::max({columns.label_width, text_width(bar.label, text_size) * 1.06, text_width(bar.note, small_size)});
  }
  columns.label_width = std::min(columns.label_width + 1, std::max(120.0, std::min(most_label, asked_width * 0.26)));
  double cells = 0;
  for (std::size_t i = 0; i < figure.heads.size(); ++i) {
    double wide = text_width(figure.heads[i], small_size);
    for (const FigureBar& bar : figure.bars)
      wide = std::max(wide, text_width(bar.cells[i].text, text_size - 0.5) * 1.04);
    columns.width.push_back(wide);
    cells += wide + column_gap;
  }
  columns.bar = margin + columns.label_width + column_gap;
  columns.bar_width = std::max(least_bar, asked_width - columns.bar - cells - margin);
  double x = columns.bar + columns.bar_width;
  for (const double wide : columns.width) {
    columns.left.push_back(x + column_gap);
    x += column_gap + wide;
  }
  return columns;
}

void draw_bar(Canvas& canvas, const FigureBar& bar, const Plot& plot, double middle, double half) {
  const Palette& colours = canvas.colours;
  const std::string colour = bar.style == 0 ? colours.text : colour_of(colours, 1);
  if (is_missing(bar.value) || (plot.log_x && bar.value <= 0)) {
    canvas.text(plot.left + 8, middle + 4, "not measured", small_size, colours.quiet);
  } else {
    const double width = std::max(2.0, plot.at_x(bar.value) - plot.left);
    if (bar.is_trusted) {
      canvas.box(plot.left, middle - half, width, 2 * half, colour, 2.5, " fill-opacity=\"0.85\"");
    } else {
      canvas.box(plot.left, middle - half, width, 2 * half, colours.band, 2.5);
      canvas.box(plot.left, middle - half, width, 2 * half, canvas.hatch(colours.hatch), 2.5,
                 " stroke=\"" + colours.hatch + "\" stroke-width=\"1\"");
    }
  }
  if (bar.whisker.known()) {
    const auto inside = [&](double value) { return std::clamp(plot.at_x(value), plot.left, plot.left + plot.width); };
    const double low = plot.log_x && bar.whisker.low <= 0 ? plot.left : inside(bar.whisker.low);
    const double high = inside(bar.whisker.high);
    const double cap = half * 0.55;
    const auto end = [&](double x, bool is_outside, double outwards) {
      const double tip = x - outwards * cap;
      return is_outside ? "M" + number(tip) + " " + number(middle - cap) + "L" + number(x) + " " + number(middle) +
                              "L" + number(tip) + " " + number(middle + cap)
                        : "M" + number(x) + " " + number(middle - cap) + "V" + number(middle + cap);
    };
    // A halo of the background, or the half over the bar would vanish in it.
    const std::string halo = colours.background == "none" ? "var(--card)" : colours.background;
    const std::string shape = end(low, bar.whisker.low < plot.x.low, -1) + "M" + number(low) + " " + number(middle) +
                              "H" + number(high) + end(high, bar.whisker.high > plot.x.high, 1);
    canvas.path(shape, halo, 3.6, 0.9, "");
    canvas.path(shape, colours.text, 1.5, 1, "");
  }
  if (!is_missing(bar.limit)) {
    const double x = plot.at_x(bar.limit);
    canvas.line(x, middle - half - 4, x, middle + half + 4, colours.bad, 2.4);
  }
}

std::string bar_says(const Figure& figure, const FigureBar& bar) {
  std::string text = bar.label;
  for (std::size_t i = 0; i < figure.heads.size(); ++i) {
    if (!bar.cells[i].text.empty()) text += (i == 0 ? ": " : "; ") + figure.heads[i] + " " + bar.cells[i].text;
  }
  return text;
}

std::string bars_svg(const Figure& figure, const SvgOptions& options) {
  const double asked_width = options.width > 0 ? options.width : 1280;
  const BarColumns columns = columns_of(figure, asked_width);
  const double width = std::max(
      asked_width,
      (columns.left.empty() ? columns.bar + columns.bar_width : columns.left.back() + columns.width.back()) + margin);
  Canvas canvas(palette_of(options.theme), options.id);
  const Palette& colours = canvas.colours;
  const double top = draw_head(canvas, figure, width, options) + 22;  // a line of heads
  const std::vector<std::string> caption = caption_lines(figure, width, options);
  const auto rows = static_cast<double>(figure.bars.size());
  constexpr double under_plot = 52;
  constexpr double least_row = 38;
  double row = 46;
  if (options.height > 0) {
    const double room = options.height - top - under_plot - caption_height(caption) - 4;
    row = std::clamp(room / std::max(rows, 1.0), least_row, 80.0);
  }
  const double height = std::max<double>(options.height, top + rows * row + under_plot + caption_height(caption) + 4);
  const Plot plot{.left = columns.bar,
                  .top = top,
                  .width = columns.bar_width,
                  .height = rows * row,
                  .x = x_range(figure),
                  .y = {},
                  .log_x = figure.x.is_log,
                  .log_y = false};
  const double bottom = plot.top + plot.height;

  std::vector<bool> right;
  for (std::size_t i = 0; i < figure.heads.size(); ++i) {
    right.push_back(is_number_column(figure, i));
    canvas.text(columns.left[i] + (right[i] ? columns.width[i] : 0), top - 8, figure.heads[i], small_size,
                colours.quiet, right[i] ? Anchor::end : Anchor::start);
  }
  for (const Tick& tick : ticks(plot.x, plot.log_x, std::max(2, static_cast<int>(plot.width / 55)))) {
    const double x = plot.at_x(tick.value);
    canvas.line(x, plot.top, x, bottom + 5, colours.grid, 1);
    canvas.text(x, bottom + 19, tick.label, 12, colours.quiet, Anchor::middle);
  }
  for (std::size_t i = 0; i < figure.bars.size(); ++i) {
    const FigureBar& bar = figure.bars[i];
    const double y = plot.top + static_cast<double>(i) * row;
    const double middle = y + row / 2;
    canvas.begin_group(bar_says(figure, bar));
    canvas.line(margin, y, width - margin, y, colours.grid, 1);
    const bool noted = !bar.note.empty();
    canvas.text(margin, middle + (noted ? -3 : 4.5), shortened(bar.label, columns.label_width, text_size * 1.06),
                text_size, colours.text, Anchor::start, true);
    if (noted)
      canvas.text(margin, middle + 13, shortened(bar.note, columns.label_width, small_size), small_size, colours.quiet);
    draw_bar(canvas, bar, plot, middle, std::min(9.0, row * 0.22));
    for (std::size_t k = 0; k < bar.cells.size(); ++k) {
      const Cell& cell = bar.cells[k];
      if (cell.text.empty()) continue;
      canvas.text(columns.left[k] + (right[k] ? columns.width[k] : 0), middle + 4.5, cell.text, text_size - 0.5,
                  tone_colour(colours, cell.tone), right[k] ? Anchor::end : Anchor::start, k == 0);
    }
    canvas.end_group();
  }
  canvas.line(margin, bottom, width - margin, bottom, colours.grid, 1);
  canvas.line(plot.left, plot.top, plot.left, bottom, colours.line, 1);
  canvas.text(plot.left + plot.width / 2, bottom + 38, figure.x.label, text_size, colours.text, Anchor::middle);
  draw_caption(canvas, caption, height - caption_height(caption), width);
  return canvas.finish(width, height, figure.title);
}

// Bytes of the UTF-8 character that begins here; 0 where none does, or one that XML forbids.
std::size_t character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const std::size_t length = first >= 0xF0 && first < 0xF5 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first >= 0xF5 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(at + 1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool beyond = first == 0xF4 && second >= 0x90;
  const bool not_a_character = first == 0xEF && second == 0xBF && byte(at + 2) >= 0xBE;
  return overlong || surrogate || beyond || not_a_character ? 0 : length;
}

}  // namespace

std::string to_svg(const Figure& figure, const SvgOptions& options) {
  return figure.bars.empty() ? curves_svg(figure, options) : bars_svg(figure, options);
}

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_at(text, i);
    if (length == 0) {
      escaped += "\xEF\xBF\xBD";
      ++i;
      continue;
    }
    switch (text[i]) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += text.substr(i, length);
    }
    i += length;
  }
  return escaped;
}

std::string shortened(std::string_view text, double width, double size_px) {
  constexpr std::string_view ellipsis = "\xE2\x80\xA6";
  std::string cut(text);
  if (text_width(cut, size_px) <= width) return cut;
  while (!cut.empty() && text_width(cut, size_px) + text_width(ellipsis, size_px) > width) {
    while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xC0) == 0x80) cut.pop_back();
    if (!cut.empty()) cut.pop_back();
  }
  return cut.append(ellipsis);
}

double text_width(std::string_view text, double size_px) {
  double em = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) continue;  // the rest of a character
    if (byte >= 0xE3)
      em += 1.0;  // Chinese, Japanese, Korean, pictures
    else if (byte >= 0x80)
      em += 0.62;
    else if (std::string_view("iljI.,:;'|!()[]").find(c) != std::string_view::npos)
      em += 0.29;
    else if (std::string_view(" frt/-").find(c) != std::string_view::npos)
      em += c == ' ' ? 0.28 : 0.39;
    else if (std::string_view("mwMW@%").find(c) != std::string_view::npos)
      em += 0.88;
    else if (c >= 'A' && c <= 'Z')
      em += 0.68;
    else if (c >= '0' && c <= '9')
      em += 0.62;
    else
      em += 0.575;
  }
  return em * size_px;
}

}  // namespace stepladder
