#include "app/figures/export.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>

#include "app/figures/raster.h"
#include "engine/files/files.h"
#include "storage/importers/trackers/foreign_database.h"
#include "storage/name_pattern.h"
#include "storage/regular_file.h"

namespace stepladder {

std::optional<FigureFormat> figure_format(std::string_view name) {
  if (name == "svg") return FigureFormat::svg;
  if (name == "png") return FigureFormat::png;
  if (name == "pdf") return FigureFormat::pdf;
  return std::nullopt;
}

std::optional<std::string> why_not(FigureFormat format) {
  if (format == FigureFormat::svg || why_no_raster().empty()) return std::nullopt;
  return "no PNG or PDF can be written: " + why_no_raster() +
         " (Debian: librsvg2-2, and librsvg2-dev to build); svg works";
}

std::string render(const Figure& figure, FigureFormat format, const SvgOptions& options) {
  if (const auto reason = why_not(format)) throw DataError(*reason);
  std::string svg = to_svg(figure, options);
  switch (format) {
    case FigureFormat::png:
      return png_of_svg(svg);
    case FigureFormat::pdf:
      return pdf_of_svg(svg, figure.title);
    case FigureFormat::svg:
      break;
  }
  return svg;
}

void export_figure(const Figure& figure, const std::filesystem::path& path, const SvgOptions& options) {
  const std::string ending = lower_case(path.extension().string());
  const auto format = figure_format(ending.empty() ? "" : ending.substr(1));
  if (!format) throw DataError(path.string() + " ends in none of .svg, .png and .pdf");
  write_file(path, render(figure, *format, options));
}

void write_report(const Study& study, const std::filesystem::path& path, std::optional<Theme> theme) {
  write_file(path, report_html(study, theme));
}

namespace {

bool is_database(const std::filesystem::path& path) {
  std::string head(16, '\0');
  RegularFile file(path);
  return file.read(head.data(), static_cast<std::streamsize>(head.size())) && is_sqlite(head);
}

}  // namespace

void write_file(const std::filesystem::path& path, std::string_view content) {
  write_file(path, [&](const Sink& sink) { sink(content); });
}

void write_private_file(const std::filesystem::path& path, std::string_view content) {
  write_file(
      path, [&](const Sink& sink) { sink(content); }, private_file);
}

void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& write, unsigned mode) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::fifo || type == fs::file_type::character || type == fs::file_type::block) {
    std::ofstream device(path, std::ios::binary);
    write([&](std::string_view piece) {
      if (!device.write(piece.data(), static_cast<std::streamsize>(piece.size())).flush())
        throw DataError(path.string() + " cannot be written: " + std::strerror(errno));
    });
    return;
  }
  if (is_database(path)) throw DataError(path.string() + " is a database, which an export doesn't overwrite");
  // A link keeps its target.
  const fs::path target = fs::is_symlink(path, error) && type == fs::file_type::regular ? fs::canonical(path) : path;
  OutputFile file(target, mode);
  write([&](std::string_view piece) { file.write(std::as_bytes(std::span(piece))); });
  file.commit();
}

}  // namespace stepladder
