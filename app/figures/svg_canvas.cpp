// Writes SVG elements and the head and caption that all figures share. Every text is escaped here; ids have the
// figure's prefix, so several figures fit on one HTML page.
#include "app/figures/svg_canvas.h"

#include <algorithm>
#include <cmath>

#include "app/figures/svg_text.h"
#include "app/text/format.h"
#include "storage/wording.h"

namespace stepladder::svg {

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
  for (std::size_t i = 0; i < series.size(); ++i) series[i] = fmt::format("var(--series{})", i);
  return {"none",        "var(--text)",    "var(--quiet)", "var(--line)", "var(--grid)", "var(--bad)",
          "var(--good)", "var(--warning)", "var(--hatch)", "var(--band)", series};
}

std::string decimal(double value) {
  std::string digits = fmt::format("{:.2f}", std::abs(value) < 0.005 ? 0.0 : value);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

void Canvas::text(double x, double y, const std::string& what, double size, const std::string& colour, Anchor anchor,
                  bool strong, double turned) {
  body_ += "<text x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" font-size=\"" + decimal(size) + "\" fill=\"" +
           colour + "\"";
  if (anchor != Anchor::start) body_ += anchor == Anchor::end ? " text-anchor=\"end\"" : " text-anchor=\"middle\"";
  if (strong) body_ += " font-weight=\"600\"";
  if (turned != 0) body_ += " transform=\"rotate(" + decimal(turned) + " " + decimal(x) + " " + decimal(y) + ")\"";
  body_ += ">" + xml_escaped(in_print(what)) + "</text>\n";
}

void Canvas::line(double x1, double y1, double x2, double y2, const std::string& colour, double width,
                  const std::string& dash) {
  body_ += "<line x1=\"" + decimal(x1) + "\" y1=\"" + decimal(y1) + "\" x2=\"" + decimal(x2) + "\" y2=\"" +
           decimal(y2) + "\" stroke=\"" + colour + "\" stroke-width=\"" + decimal(width) + "\"" + dashed(dash) + "/>\n";
}

void Canvas::box(double x, double y, double width, double height, const std::string& fill, double radius,
                 const std::string& extra) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"", decimal(x), decimal(y),
                       decimal(std::max(width, 0.0)), decimal(std::max(height, 0.0)), fill);
  if (radius > 0) body_ += " rx=\"" + decimal(radius) + "\"";
  body_ += extra + "/>\n";
}

void Canvas::path(const std::string& steps, const std::string& colour, double width, double opacity,
                  const std::string& dash) {
  body_ += "<path d=\"" + steps + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"" + decimal(width) +
           "\" stroke-linejoin=\"round\"";
  if (opacity < 1) body_ += " stroke-opacity=\"" + decimal(opacity) + "\"";
  body_ += dashed(dash) + "/>\n";
}

void Canvas::area(const std::string& steps, const std::string& colour, double opacity) {
  body_ += "<path d=\"" + steps + "\" fill=\"" + colour + "\" fill-opacity=\"" + decimal(opacity) + "\"/>\n";
}

void Canvas::dot(double x, double y, double radius, const std::string& colour) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"0.8\"/>\n",
                       decimal(x), decimal(y), decimal(radius), colour,
                       colours.background == "none" ? "var(--card)" : colours.background);
}

void Canvas::begin_group(const std::string& says, const std::string& extra) {
  body_ += "<g" + extra + ">" + (says.empty() ? "" : "<title>" + xml_escaped(in_print(says)) + "</title>") + "\n";
}

void Canvas::clip(double x, double y, double width, double height) {
  definitions_ +=
      fmt::format("<clipPath id=\"{}-plot\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n", id_,
                  decimal(x), decimal(y), decimal(width), decimal(height));
}

std::string Canvas::hatch(const std::string& colour) {
  const std::string name = id_ + "-hatch";
  if (!has_hatch_)
    definitions_ += "<pattern id=\"" + name +
                    "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
                    "<path d=\"M-1.5 1.5 L1.5 -1.5 M0 6 L6 0 M4.5 7.5 L7.5 4.5\" stroke=\"" +
                    colour + "\" stroke-width=\"1.3\"/></pattern>\n";
  has_hatch_ = true;
  return "url(#" + name + ")";
}

std::string Canvas::finish(double width, double height, const std::string& says) const {
  const double cut = colours.background == "none" ? margin - 2 : 0;
  const std::string size = decimal(width - 2 * cut) + "\" height=\"" + decimal(height);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"" + decimal(cut) +
                    " 0 " + decimal(width - 2 * cut) + " " + decimal(height) +
                    "\" font-family=\"Inter, 'Helvetica Neue', Arial, sans-serif\" role=\"img\">\n<title>" +
                    xml_escaped(says) + "</title>\n";
  if (!definitions_.empty()) svg += "<defs>\n" + definitions_ + "</defs>\n";
  if (colours.background != "none") svg += "<rect width=\"" + size + "\" fill=\"" + colours.background + "\"/>\n";
  return svg + body_ + "</svg>\n";
}

std::string Canvas::dashed(const std::string& dash) {
  return dash.empty() ? "" : " stroke-dasharray=\"" + dash + "\"";
}

std::string colour_of(const Palette& palette, int style) {
  const Stroke stroke = stroke_of(style);
  return stroke.colour < 0 ? palette.text : palette.series[static_cast<std::size_t>(stroke.colour)];
}

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
  for (const std::string& sentence : figure.caption)
    for (std::string& line : wrapped(sentence, width - 2 * margin, small_size)) lines.push_back(std::move(line));
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

}  // namespace stepladder::svg
