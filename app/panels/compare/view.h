// The state that the parts of the Compare view share: its options, its zoom and cursors, which lines are hidden, and
// the resulting curves. UI thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/charts/charts.h"
#include "app/desktop/metrics/chart_groups.h"
#include "app/desktop/metrics/metric_list.h"
#include "app/desktop/models/comparison.h"
#include "app/panels/compare/grid.h"

namespace stepladder {

// The lines that the charts hide. A line is named by its first run.
class HiddenLines {
 public:
  bool has(RunId line) const { return hidden_.contains(line); }
  bool any_of(const std::vector<ComparedLine>& lines) const;

  void click(RunId line);  // hides or shows it
  // Shows only this line; if it is the only one already, all. The second click of a double click reverts the first.
  void show_only(RunId line, const std::vector<ComparedLine>& lines);
  void double_click(RunId line, const std::vector<ComparedLine>& lines);
  void show_all() { hidden_.clear(); }

  const std::set<RunId>& lines() const { return hidden_; }
  void hide_only(std::set<RunId> lines) {
    hidden_ = std::move(lines);
    clicked_ = 0;
  }

 private:
  std::set<RunId> hidden_;
  std::set<RunId> before_click_;
  RunId clicked_ = 0;
};

// The metrics that are computed if there are many charts: those that the user has seen last.
class SeenMetrics {
 public:
  void begin_frame();
  void see(Quantity metric);
  const std::vector<Quantity>& on_screen() const { return before_; }  // in the last frame
  // All of `wanted` if they are few, else the last ones that were seen; in the order of `wanted`.
  std::vector<Quantity> of(const std::vector<Quantity>& wanted) const;

 private:
  static constexpr std::size_t most = 48;
  std::vector<Quantity> seen_;    // the newest last
  std::vector<Quantity> before_;  // in the last frame
  std::vector<Quantity> now_;     // in this one
};

// A chart's curves and words, kept until `CompareView::look` changes: of a thousand lines they take longer to put
// together than to draw.
struct KeptChart {
  std::uint64_t look = 0;
  std::vector<Curve> curves;
  std::string note;
  std::string smoothing;
};

struct CompareView {
  ComparisonOptions options;
  ChartGrid grid;
  std::map<std::string, ChartGrid> old_layouts;  // saved by name in earlier versions; they become saved views
  MetricList metrics;
  SeenMetrics seen;
  FoldedGroups folded;
  bool log_x = false;
  bool log_y = false;
  RunId base = 0;                                // the baseline's run, if the user chose one that is compared
  Quantity throughput = Quantity::tokens_per_s;  // that is drawn: of the steps or, where these have none, as logged
  SharedX x;
  TargetLine target;
  HiddenLines hidden;
  RunId highlighted = 0;               // the line under the mouse in the last frame; 0: none
  RunId hovered = 0;                   // in this frame
  bool is_named_in_chart = true;       // whether the first chart has room for its legend, as last drawn
  std::vector<RunId> rows_drawn = {};  // by the table in this frame
  RunId menu_of = 0;                   // the line whose context menu is open
  bool opens_menu = false;

  ComparisonViewModel shown;
  std::uint64_t look = 0;  // changes with the lines and with how they are drawn
  std::map<std::string, KeptChart> kept_charts;
  std::vector<int> colours;          // of the lines
  std::vector<std::string> caption;  // of exported figures

  const std::vector<ComparedLine>& lines() const { return shown.curves.lines; }
  const ComparedLine& base_line() const { return lines()[shown.curves.base]; }
  int colour_of(const ComparedLine& line) const { return colours[static_cast<std::size_t>(&line - lines().data())]; }
  Quantity drawn(Quantity asked) const { return asked == Quantity::tokens_per_s ? throughput : asked; }
  // The metric that the table shows statistics of: the first chart's.
  Quantity first_metric() const;
  void open_menu(RunId line) {
    menu_of = line;
    opens_menu = true;
  }
};

}  // namespace stepladder
