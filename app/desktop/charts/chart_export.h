// Charts and tables of the window as figures, texts and file names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/desktop/charts/charts.h"
#include "app/desktop/charts/points_table.h"
#include "app/desktop/workspace.h"
#include "app/figures/figure.h"

namespace stepladder {

// The chart with all its points, on screen or not, and its caption.
Figure figure_of(const Chart& chart);

// Every point of every curve, with the chart's labels; never smoothed.
PointsTable points_of(const Chart& chart);

// The facts about the figure's runs that a reader needs: hardware, precision, number of runs and steps, and timing.
std::vector<std::string> caption_of(const std::vector<const RunEntry*>& runs);

// "Loss, nano on a.txt" -> EXPORTS/loss-nano-on-a-txt-20261121-132005.svg. EXPORTS is the folder `exports`
// `chosen` or, if that is empty, the default. Creates the folder. Throws std::filesystem::filesystem_error.
std::filesystem::path export_path(const std::filesystem::path& database, const std::filesystem::path& chosen,
                                  const std::string& name, const std::string& ending);

// The default folder of exports: `exports` beside the database; for the default database, Stepladder in the documents
// folder.
std::filesystem::path default_exports_folder(const std::filesystem::path& database);

// Rows as CSV (RFC 4180) and as GitHub's Markdown; the first row is the head.
std::string csv_table(const std::vector<std::vector<std::string>>& rows);
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace stepladder
