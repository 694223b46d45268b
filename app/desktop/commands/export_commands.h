// Commands that copy and save what a view shows. Files go into the folder of exports (chart_export.h), on another
// thread; a notice names the file once it is there.
#pragma once

#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>

#include "app/desktop/charts/points_table.h"
#include "app/desktop/command.h"
#include "app/figures/figure.h"

namespace stepladder {

struct CopyText {
  std::string text;
  std::string what;  // "the table"
};
struct CopyPoints {  // of a chart, as CSV
  PointsTable points;
  std::string what;
};
struct SaveText {
  std::string name;
  std::string ending;  // ".csv"
  std::string text;
};
struct SavePoints {  // as CSV
  std::string name;
  PointsTable points;
};
struct SaveFigure {
  Figure figure;
  std::string ending;  // ".png", ".svg", ".pdf"
};
struct SaveLadder {  // a report (.html), its table (.md, .tex, .csv), its bars (.svg, .pdf, .png)
  LadderId ladder = 0;
  std::string ending;
};
struct OpenFile {  // in the desktop's program for it, or its folder in the file manager
  enum class In { program, folder };
  std::filesystem::path file;
  In in = In::program;
};
struct SetExportsFolder {  // empty: the default (chart_export.h)
  std::filesystem::path folder;
};

// Handles a finished export, and passes its exception to `fail`. Waits at most `patience`; returns whether there was
// one.
bool take_export(DesktopState& desktop, const std::function<void(const std::exception&)>& fail,
                 std::chrono::milliseconds patience = {});

}  // namespace stepladder
