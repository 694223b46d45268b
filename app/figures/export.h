// Writes figures, tables and reports to files: each appears under its name only when it is complete.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "app/figures/figure.h"
#include "app/figures/sink.h"
#include "app/figures/study.h"
#include "app/figures/svg.h"

namespace stepladder {

enum class FigureFormat { svg, png, pdf };
std::optional<FigureFormat> figure_format(std::string_view name);

// A sentence that says why this build cannot write the format; nullopt if it can.
std::optional<std::string> why_not(FigureFormat format);

// The file's bytes. PNG has two pixels for each of the figure's, PDF 0.75 points. Throws DataError.
std::string render(const Figure& figure, FigureFormat format, const SvgOptions& options = {});

// Writes the format of the path's ending: .svg, .png, .pdf. Blocks until it is on disk. Throws DataError, which names
// the file.
void export_figure(const Figure& figure, const std::filesystem::path& path, const SvgOptions& options = {});

// A report of a study as one HTML file: styles and figures inside, no script, no request to anywhere; prints well too.
// `theme`: light or dark for all readers; none: their system's.
std::string report_html(const Study& study, std::optional<Theme> theme = std::nullopt);
void write_report(const Study& study, const std::filesystem::path& path, std::optional<Theme> theme = std::nullopt);

// Devices and pipes are written as they are. Throws DataError.
void write_file(const std::filesystem::path& path, std::string_view content);
void write_private_file(const std::filesystem::path& path, std::string_view content);  // that only its owner may read
// The same for content that `write` passes on piece by piece; if it throws, a file keeps its old content.
void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& write, unsigned mode = 0666);

}  // namespace stepladder
