// Writes a figure for pgfplots and the table for booktabs into one LaTeX file. All text is escaped by `tex_escaped`;
// bars are drawn by hand, since pgfplots' xbar has no hatching or limits. A paper's file must compile unchanged.
#include "app/figures/tex.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "app/figures/svg_text.h"
#include "app/figures/tables.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr int columns = 400;  // points per curve: first, lowest, highest, last at the resolution of 12 cm at 800 dpi
constexpr std::array dash_names{"solid", "dashed", "densely dotted", "dash dot"};

const char* preamble =
    "% Made by Stepladder. Compiles unchanged (pdflatex; lualatex if names need more than Latin letters).\n"
    "% For a paper, copy these packages into its preamble, and the figure and table environments into its text.\n"
    "\\documentclass[11pt]{article}\n"
    "\\usepackage[a4paper,margin=2cm]{geometry}\n"
    "\\usepackage{iftex}\n"
    "\\IfFileExists{lmodern.sty}{\\ifpdftex\\usepackage[T1]{fontenc}\\fi\\usepackage{lmodern}}{}\n"
    "\\usepackage{graphicx}\n"
    "\\usepackage{booktabs}\n"
    "\\usepackage{pgfplots}\n"
    "\\usetikzlibrary{patterns}\n"
    "\\pgfplotsset{compat=1.16}\n";

constexpr std::pair<char, const char*> tex_words[] = {{'\\', "\\textbackslash{}"},
                                                      {'~', "\\textasciitilde{}"},
                                                      {'^', "\\textasciicircum{}"},
                                                      {'<', "\\textless{}"},
                                                      {'>', "\\textgreater{}"},
                                                      {'|', "\\textbar{}"},
                                                      {'"', "''"}};

constexpr double most_label_em = 30;  // in em: two lines beside a bar

std::string tick_options(const char* axis, const FigureRange& range, bool is_log) {
  std::string places;
  std::string labels;
  for (const Tick& tick : ticks(range, is_log, 7)) {
    places += (places.empty() ? "" : ",") + exact(tick.value);
    labels += (labels.empty() ? "{" : ",{") + tick.label + "}";
  }
  return ",\n  " + std::string(axis) + "tick={" + places + "}, " + axis + "ticklabels={" + labels + "}";
}

// Puts a text in braces, since commas, brackets and equal signs end pgfplots' options.
std::string braced(const std::string& text) {
  return "{" + tex_escaped(text) + "}";
}

std::string colour_name(int style) {
  const Stroke stroke = stroke_of(style);
  return stroke.colour < 0 ? "black" : "oi" + std::string(1, static_cast<char>('a' + stroke.colour));
}

std::string colours() {
  std::string text;
  for (std::size_t i = 0; i < std::size(okabe_ito); ++i) {
    std::string hex = okabe_ito[i] + 1;
    std::transform(hex.begin(), hex.end(), hex.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
    text += "\\definecolor{oi" + std::string(1, static_cast<char>('a' + i)) + "}{HTML}{" + hex + "}\n";
  }
  return text;
}

std::string axis_options(const Figure& figure, const FigureRange& x, const FigureRange& y) {
  std::string text =
      fmt::format("  scale only axis, scaled ticks=false, width={}\\linewidth, xlabel={}, xmin={}, xmax={}",
                  figure.bars.empty() ? "0.86" : "0.6", braced(figure.x.label), exact(x.low), exact(x.high));
  if (figure.x.is_log) text += ", xmode=log, log basis x=10";
  text += tick_options("x", x, figure.x.is_log);
  if (!figure.bars.empty()) return text;
  text += ",\n  ylabel=" + braced(figure.y.label) + ", ymin=" + exact(y.low) + ", ymax=" + exact(y.high);
  if (figure.y.is_log) text += ", ymode=log, log basis y=10";
  text += tick_options("y", y, figure.y.is_log);
  return text + ", height=6.5cm, ymajorgrids, major grid style={black!12}";
}

void add_curve(std::string& text, const Figure& figure, const FigureCurve& curve) {
  const DrawnCurve line = drawn(curve, figure, columns);
  if (!line.band_x.empty()) {
    text += "\\addplot[draw=none, fill=" + colour_name(curve.style) + ", fill opacity=0.2, forget plot] coordinates {";
    for (std::size_t i = 0; i < line.band_x.size(); ++i)
      text += (i % 6 == 0 ? "\n  (" : " (") + exact(line.band_x[i]) + "," + exact(line.high[i]) + ")";
    for (std::size_t i = line.band_x.size(); i-- > 0;)
      text += (i % 6 == 0 ? "\n  (" : " (") + exact(line.band_x[i]) + "," + exact(line.low[i]) + ")";
    text += "} -- cycle;\n";
  }
  const std::string dash = dash_names[static_cast<std::size_t>(stroke_of(curve.style).dash)];
  std::string look = colour_name(curve.style) + ", ";
  look += curve.is_dotted || line.points == 1 ? "only marks, mark=*, mark size=1.2pt" : dash + ", no marks";
  look += curve.is_thin ? ", thin, opacity=0.5" : ", semithick";
  if (curve.is_stairs) look += ", const plot";
  if (!curve.in_legend) look += ", forget plot";
  text += "\\addplot[" + look + "] coordinates {";
  for (std::size_t i = 0; i < line.x.size(); ++i)
    text += (i % 6 == 0 ? "\n  (" : " (") + exact(line.x[i]) + "," + exact(line.y[i]) + ")";
  text += "};\n";
  if (curve.in_legend) text += "\\addlegendentry{" + tex_escaped(curve.label) + "}\n";
}

std::string curves_picture(const Figure& figure) {
  const FigureRange x = x_range(figure);
  const FigureRange y = y_range(figure);
  std::string text = "\\begin{tikzpicture}\n\\begin{axis}[\n" + axis_options(figure, x, y) +
                     ",\n  legend style={at={(0.5,-0.2)}, anchor=north, legend columns=3, draw=none, "
                     "/tikz/every even column/.append style={column sep=8pt}, "
                     "font=\\footnotesize, cells={anchor=west}}]\n";
  for (const FigureBand& band : figure.bands)
    text += "\\addplot[draw=none, fill=black!8, forget plot] coordinates {(" + exact(x.low) + "," + exact(band.low) +
            ") (" + exact(x.high) + "," + exact(band.low) + ") (" + exact(x.high) + "," + exact(band.high) + ") (" +
            exact(x.low) + "," + exact(band.high) + ")} \\closedcycle;\n";
  for (const FigureMark& mark : figure.marks)
    text +=
        "\\addplot[densely dashed, black!60, forget plot] coordinates {(" + exact(x.low) + "," + exact(mark.at) +
        ") (" + exact(x.high) + "," + exact(mark.at) + ")}" +
        (mark.label.empty() ? ""
                            : " node[pos=0.98, above left, font=\\footnotesize] {" + tex_escaped(mark.label) + "}") +
        ";\n";
  for (const FigureCurve& curve : figure.curves) add_curve(text, figure, curve);
  return text + "\\end{axis}\n\\end{tikzpicture}\n";
}

// Drawn by hand in the axis's own coordinates: bars with unequal whiskers, hatching and limits are beyond xbar's
// options.
std::string bars_picture(const Figure& figure) {
  const FigureRange x = x_range(figure);
  std::string names;
  for (std::size_t i = 0; i < figure.bars.size(); ++i)
    names += (i == 0 ? "" : ",") + ("{" + tex_escaped(shortened(figure.bars[i].label, most_label_em, 1)) +
                                    "\\enspace\\textbf{" + tex_escaped(figure.bars[i].cells.front().text) + "}}");
  std::string places;
  for (std::size_t i = 0; i < figure.bars.size(); ++i) places += (i == 0 ? "" : ",") + std::to_string(i);
  std::string text =
      "\\begin{tikzpicture}\n\\begin{axis}[\n" + axis_options(figure, x, {}) +
      ",\n  height=" + exact(0.8 * static_cast<double>(figure.bars.size())) +
      "cm, y dir=reverse, ymin=-0.7, ymax=" + exact(static_cast<double>(figure.bars.size()) - 0.3) + ",\n  ytick={" +
      places + "}, yticklabels={" + names +
      "},\n  yticklabel style={font=\\footnotesize, text width=0.34\\linewidth, align=right}, ytick style={draw=none}, "
      "axis lines*=left, xmajorgrids, major grid style={black!12}, clip=false]\n";
  for (std::size_t i = 0; i < figure.bars.size(); ++i) {
    const FigureBar& bar = figure.bars[i];
    const auto y = static_cast<double>(i);
    const auto at = [&](double value, double offset) {
      return "(axis cs:" + exact(value) + "," + exact(y + offset) + ")";
    };
    const auto drawable = [&](double value) { return !is_missing(value) && (!figure.x.is_log || value > 0); };
    if (drawable(bar.value)) {
      const std::string look = bar.is_trusted
                                   ? "fill=" + std::string(bar.style == 0 ? "black!75" : "oia!85") + ", draw=none"
                                   : "pattern=north east lines, pattern color=black!45, draw=black!45";
      text += "\\draw[" + look + "] " + at(x.low, -0.25) + " rectangle " + at(bar.value, 0.25) + ";\n";
    }
    if (bar.whisker.known()) {
      const std::string low = at(std::max(bar.whisker.low, x.low), 0);
      const std::string high = at(std::min(bar.whisker.high, x.high), 0);
      // An arrow if it leaves the picture.
      const std::string ends =
          std::string(bar.whisker.low < x.low ? "<" : "|") + "-" + (bar.whisker.high > x.high ? ">" : "|");
      text += fmt::format("\\draw[white, line width=1.6pt] {} -- {};\n\\draw[{}, semithick] {} -- {};\n", low, high,
                          ends, low, high);
    }
    if (drawable(bar.limit))
      text += "\\draw[red!75!black, very thick] " + at(bar.limit, -0.4) + " -- " + at(bar.limit, 0.4) + ";\n";
  }
  return text + "\\end{axis}\n\\end{tikzpicture}\n";
}

// The table without the change, which is prose, and the verdict, which follows from the interval.
std::string booktabs(const Study& study) {
  const TextTable table = study_table(study);
  constexpr std::array kept{0, 1, 3, 4, 5, 6, 8, 9};
  std::string text = "\\begin{tabular}{";
  for (const int column : kept) text += table.right[static_cast<std::size_t>(column)] ? "r" : "l";
  text += "}\n\\toprule\n";
  const auto add = [&](const std::vector<std::string>& cells) {
    for (const int column : kept)
      text += (column == 0 ? "" : " & ") +
              tex_escaped(shortened(cells[static_cast<std::size_t>(column)], most_label_em, 1));
    text += " \\\\\n";
  };
  add(table.heads);
  text += "\\midrule\n";
  for (const auto& row : table.rows) add(row);
  return text + "\\bottomrule\n\\end{tabular}";
}

}  // namespace

std::string to_tex(const Figure& figure, const Study& study) {
  std::string text = preamble + colours() + "\\begin{document}\n\n\\begin{figure}[ht]\n\\centering\n";
  text += figure.bars.empty() ? curves_picture(figure) : bars_picture(figure);
  std::string caption = figure.title == study.title ? study.title + "." : figure.title + ": " + study.title + ".";
  for (const std::string& line : figure.caption) caption += " " + line;
  text += "\\caption{" + tex_escaped(caption) + "}\n\\end{figure}\n\n";
  text += "\\begin{table}[ht]\n\\centering\n\\caption{" + tex_escaped(study.title + ". " + headline(study)) +
          "}\n\\small\n\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n" + booktabs(study) +
          "}\n\\end{table}\n\n\\end{document}\n";
  return text;
}

std::string tex_escaped(std::string_view foreign) {
  const std::string harmless_text = harmless(std::string(foreign));
  const std::string_view text = harmless_text;
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (const auto next = text.substr(i, 3);
        next == "..." || next == "\xE2\x80\xA6") {  // three full stops continue a series in pgfplots' lists
      escaped += "\\ldots{}";
      i += 2;
      continue;
    } else if (next == "\xEF\xBF\xBD") {  // U+FFFD, which TeX's fonts lack
      escaped += '?';
      i += 2;
      continue;
    }
    const auto known = std::ranges::find(tex_words, c, &std::pair<char, const char*>::first);
    if (known != std::end(tex_words))
      escaped += known->second;
    else if (std::string_view("&%$#_{}").find(c) != std::string_view::npos)
      escaped += {'\\', c};
    else
      escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return escaped;
}

}  // namespace stepladder
