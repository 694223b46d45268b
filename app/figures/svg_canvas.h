// The canvas of SVG figures, and the parts that curves and bars share: the head, the caption, the place of the
// plot.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "app/figures/svg.h"

namespace stepladder::svg {

// The desktop's colours (its light and dark themes), with Okabe and Ito's colours for measurements.
struct Palette {
  std::string background, text, quiet, line, grid, bad, good, warning, hatch, band;
  std::array<std::string, 6> series;
};

Palette palette_of(Theme theme);

constexpr double title_size = 18;
constexpr double text_size = 13;
constexpr double small_size = 11.5;
constexpr double line_height = 1.4;
constexpr double margin = 20;

std::string decimal(double value);  // at most two decimals

enum class Anchor { start, middle, end };

class Canvas {
 public:
  Canvas(Palette palette, std::string id) : colours(std::move(palette)), id_(std::move(id)) {}

  const Palette colours;

  void text(double x, double y, const std::string& what, double size, const std::string& colour,
            Anchor anchor = Anchor::start, bool strong = false, double turned = 0);

  void line(double x1, double y1, double x2, double y2, const std::string& colour, double width,
            const std::string& dash = {});

  void box(double x, double y, double width, double height, const std::string& fill, double radius = 0,
           const std::string& extra = {});

  void path(const std::string& steps, const std::string& colour, double width, double opacity, const std::string& dash);

  // A filled shape without an edge.
  void area(const std::string& steps, const std::string& colour, double opacity);

  void dot(double x, double y, double radius, const std::string& colour);

  // `says` is the tooltip and the screen reader's text of everything until end_group.
  void begin_group(const std::string& says, const std::string& extra = {});
  void end_group() { body_ += "</g>\n"; }

  void clip(double x, double y, double width, double height);
  std::string clipped() const { return " clip-path=\"url(#" + id_ + "-plot)\""; }

  // Diagonal lines in `colour`; returns the fill that refers to them.
  std::string hatch(const std::string& colour);

  // A figure on a page has no margin of its own: the page's card does.
  std::string finish(double width, double height, const std::string& says) const;

 private:
  static std::string dashed(const std::string& dash);

  std::string id_;
  std::string definitions_;
  std::string body_;
  bool has_hatch_ = false;
};

std::string colour_of(const Palette& palette, int style);

// Draws title and subtitle; returns the y below them.
double draw_head(Canvas& canvas, const Figure& figure, double width, const SvgOptions& options);

std::vector<std::string> caption_lines(const Figure& figure, double width, const SvgOptions& options);
double caption_height(const std::vector<std::string>& lines);
void draw_caption(Canvas& canvas, const std::vector<std::string>& lines, double top, double width);

// The rectangle of the plot and the values at its edges.
struct Plot {
  double left, top, width, height;
  FigureRange x, y;
  bool log_x, log_y;

  double at_x(double value) const { return left + width * place_of(value, x, log_x); }
  double at_y(double value) const { return top + height * (1 - place_of(value, y, log_y)); }
};

std::string bars(const Figure& figure, const SvgOptions& options);

}  // namespace stepladder::svg
