// Turns a chart of the window into a figure, a table of points, CSV or Markdown, and chooses the name of its file.
// Exports have all points whatever the zoom: a figure as it is drawn, smoothed if the chart is, a table of points never
// smoothed. Hidden curves are excluded.
#include "app/desktop/charts/chart_export.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <set>

#include "app/text/format.h"
#include "app/text/text_table.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

std::string without_id(const std::string& label) {
  return label.substr(0, label.find("##"));
}

std::string joined(const std::set<std::string>& words, std::size_t most) {
  std::string text;
  std::size_t count = 0;
  for (const std::string& word : words) {
    if (count++ == most) return text + " and " + std::to_string(words.size() - most) + " more";
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

}  // namespace

Figure figure_of(const Chart& chart) {
  Figure figure{.title = chart.title, .subtitle = chart.note, .caption = chart.caption};
  figure.x = {.label = chart.x_label, .is_log = chart.log_x};
  figure.y = {.label = chart.unit.empty() ? chart.title : chart.title + ", " + chart.unit,
              .is_log = chart.log_y,
              .from_zero = chart.from_zero};
  std::vector<const Curve*> curves;
  for (const Curve& curve : chart.curves) {
    if (!curve.hidden) curves.push_back(&curve);
  }
  std::ranges::stable_sort(curves, [](const Curve* a, const Curve* b) { return a->order < b->order; });
  constexpr std::size_t most_in_legend = 20;
  for (const Curve* curve : curves) {
    const std::span<const double> y = curve->smoothed.empty() ? curve->y : curve->smoothed;
    FigureCurve drawn{.label = without_id(curve->label),
                      .style = curve->order,
                      .is_dotted = curve->points,
                      .is_stairs = chart.steps_up,
                      .in_legend = curves.size() <= most_in_legend};
    for (std::size_t i = 0; i < curve->x.size(); ++i) {
      if (is_missing(y[i])) continue;
      drawn.x.push_back(curve->x[i]);
      drawn.y.push_back(y[i]);
      if (i >= curve->low.size() || i >= curve->high.size()) continue;
      drawn.low.push_back(curve->low[i]);
      drawn.high.push_back(curve->high[i]);
    }
    if (!drawn.x.empty()) figure.curves.push_back(std::move(drawn));
  }
  if (!is_missing(chart.floor)) figure.marks.push_back({chart.floor, chart.floor_label});
  if (chart.target && !is_missing(chart.target->value))
    figure.marks.push_back({chart.target->value, "target " + loss_text(chart.target->value)});
  if (!is_missing(chart.zero_line)) figure.marks.push_back({chart.zero_line, ""});
  if (!is_missing(chart.band_low)) figure.bands.push_back({chart.band_low, chart.band_high, "the same"});
  if (!chart.smoothing.empty()) figure.caption.push_back("Curves are " + chart.smoothing + ".");
  return figure;
}

PointsTable points_of(const Chart& chart) {
  PointsTable table{.x_head = chart.x_label,
                    .y_head = chart.unit.empty() ? chart.title : chart.title + " (" + chart.unit + ")"};
  for (const Curve& curve : chart.curves) {
    if (curve.hidden) continue;
    PointsTable::Curve& copy = table.curves.emplace_back();
    copy.label = without_id(curve.label);
    copy.x.assign(curve.x.begin(), curve.x.end());
    copy.y.assign(curve.y.begin(), curve.y.end());
  }
  return table;
}

std::string points_csv(const PointsTable& table) {
  std::string text = "curve," + csv_field(table.x_head) + "," + csv_field(table.y_head) + "\n";
  std::array<char, 64> number{};
  for (const PointsTable::Curve& curve : table.curves) {
    const std::string label = csv_field(curve.label);
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (is_missing(curve.y[i])) continue;
      std::snprintf(number.data(), number.size(), ",%.17g,%.17g\n", curve.x[i], curve.y[i]);
      text += label + number.data();
    }
  }
  return text;
}

std::vector<std::string> caption_of(const std::vector<const RunEntry*>& runs) {
  std::set<std::string> hardware, timed;
  std::int64_t least = 0;
  std::int64_t most = 0;
  for (const RunEntry* entry : runs) {
    const Run& run = entry->run;
    const std::int64_t steps = entry->loaded ? static_cast<std::int64_t>(entry->series().size()) : entry->summary.steps;
    least = entry == runs.front() ? steps : std::min(least, steps);
    most = std::max(most, steps);
    hardware.insert((run.hardware.empty() ? "unknown hardware" : run.hardware) +
                    (run.precision.empty() ? "" : ", " + run.precision));
    timed.insert(run.sync == Sync::unknown ? "unknown" : std::string(to_string(run.sync)));
  }
  if (runs.empty()) return {};
  const std::string steps = least == most ? grouped(most) : grouped(least) + " to " + grouped(most);
  return {joined(hardware, 3), "n = " + plural(std::ssize(runs), "run") + " of " + steps +
                                   " steps; clock synchronisation: " + joined(timed, 3) + "."};
}

fs::path default_exports_folder(const fs::path& database) {
  const bool in_data_folder =
      database.filename() == "stepladder.db" && database.parent_path().filename() == "stepladder";
  if (!in_data_folder) return database.parent_path() / "exports";
  const char* home = std::getenv("HOME");
  const fs::path documents = fs::path(home ? home : ".") / "Documents";
  std::error_code error;
  return (fs::is_directory(documents, error) ? documents : documents.parent_path()) / "Stepladder";
}

fs::path export_path(const fs::path& database, const fs::path& chosen, const std::string& name,
                     const std::string& ending) {
  std::string slug;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      slug += static_cast<char>(std::tolower(byte));
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  if (slug.size() > 80) slug.resize(80);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "-%Y%m%d-%H%M%S", &local);
  const fs::path folder = chosen.empty() ? default_exports_folder(database) : chosen;
  fs::create_directories(folder);
  return folder / ((slug.empty() ? "export" : slug) + stamp + ending);
}

std::string csv_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i ? "," : "") + csv_field(row[i]);
    text += '\n';
  }
  return text;
}

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    text += '|';
    for (const std::string& cell : rows[r]) text += ' ' + markdown_cell(cell) + " |";
    text += '\n';
    if (r > 0) continue;
    text += '|';
    for (std::size_t i = 0; i < rows[r].size(); ++i) text += " --- |";
    text += '\n';
  }
  return text;
}

}  // namespace stepladder
