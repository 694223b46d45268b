// What is on the screen, as files and tables for elsewhere.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/desktop/charts/charts.h"
#include "app/desktop/charts/points_table.h"
#include "app/desktop/workspace.h"
#include "app/figures/figure.h"

namespace stepladder {

// The chart with every point that it has, in sight or not; its caption is the chart's own.
Figure figure_of(const Chart& chart);

// Every point of every curve, with the chart's labels; never smoothed.
PointsTable points_of(const Chart& chart);

// What a reader of the figure needs to know of its runs: hardware and precision, how many runs of how many steps, how
// they were timed.
std::vector<std::string> caption_of(const std::vector<const RunEntry*>& runs);

// "Loss, nano on a.txt" -> EXPORTS/loss-nano-on-a-txt-20261121-132005.svg. EXPORTS is `exports` beside the database;
// for the database in the user's data folder, which nobody looks into, Stepladder in the documents folder. Makes the
// folder; throws std::filesystem::filesystem_error.
std::filesystem::path export_path(const std::filesystem::path& database, const std::string& name,
                                  const std::string& ending);

// Rows as CSV (RFC 4180) and as GitHub's Markdown; the first row is the head.
std::string csv_table(const std::vector<std::vector<std::string>>& rows);
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace stepladder
