// Draws figures with bars as SVG: labels, bars with whiskers and limits, and a table beside them. Column widths are
// measured without a font (`text_width`), so they have some slack.
#include <algorithm>

#include "app/figures/svg_canvas.h"
#include "app/figures/svg_text.h"
#include "storage/by_enum.h"
#include "storage/wording.h"

namespace stepladder::svg {
namespace {

std::string tone_colour(const Palette& palette, CellTone tone) {
  return palette.*
         by_enum<CellTone>(&Palette::text, &Palette::quiet, &Palette::good, &Palette::bad, &Palette::warning)[tone];
}

// The places where a bar chart's columns begin or, for numbers, end.
struct BarColumns {
  double label_width = 0;
  double bar = 0;
  double bar_width = 0;
  std::vector<double> left;
  std::vector<double> width;
};

bool is_number_column(const Figure& figure, std::size_t column) {
  return std::ranges::all_of(figure.bars, [&](const FigureBar& bar) {
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
      return is_outside ? fmt::format("M{} {}L{} {}L{} {}", decimal(tip), decimal(middle - cap), decimal(x),
                                      decimal(middle), decimal(tip), decimal(middle + cap))
                        : "M" + decimal(x) + " " + decimal(middle - cap) + "V" + decimal(middle + cap);
    };
    // A halo in the background's colour, since half of it would vanish over the bar.
    const std::string halo = colours.background == "none" ? "var(--card)" : colours.background;
    const std::string shape = end(low, bar.whisker.low < plot.x.low, -1) + "M" + decimal(low) + " " + decimal(middle) +
                              "H" + decimal(high) + end(high, bar.whisker.high > plot.x.high, 1);
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
  for (std::size_t i = 0; i < figure.heads.size(); ++i)
    if (!bar.cells[i].text.empty()) text += (i == 0 ? ": " : "; ") + figure.heads[i] + " " + bar.cells[i].text;
  return text;
}

}  // namespace

std::string bars(const Figure& figure, const SvgOptions& options) {
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

}  // namespace stepladder::svg
