// Renders figures, as PNG and PDF by libstepladder_raster, which needs librsvg and cairo; and writes what is exported.
#include "app/figures/export.h"

#include <dlfcn.h>

#include <span>
#include <utility>

#include "app/figures/raster_library.h"
#include "engine/files/data_error.h"
#include "engine/files/files.h"
#include "storage/importers/trackers/foreign_database.h"
#include "storage/name_pattern.h"
#include "storage/regular_file.h"

namespace stepladder {

namespace {

struct OpenedRaster {
  const RasterLibrary* library = nullptr;
  std::string problem;
};

// Beside the running program. Never closes it, since glib's types stay registered.
OpenedRaster open_raster() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto file = program.parent_path() / "libstepladder_raster.so";
  if (!std::filesystem::exists(file, error)) return {.problem = "librsvg was not found when this build was made"};
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const entry = handle ? ::dlsym(handle, raster_library_symbol) : nullptr;
  if (entry) return {.library = reinterpret_cast<RasterLibraryEntry>(entry)()};
  const char* why = ::dlerror();
  return {.problem = "librsvg could not be loaded: " + std::string(why ? why : file.c_str())};
}

const OpenedRaster& raster() {
  static const OpenedRaster opened = open_raster();
  return opened;
}

std::string bytes_or_error(RasterAnswer answer) {
  if (!answer.problem.empty()) throw DataError(answer.problem);
  return std::move(answer.bytes);
}

bool is_database(const std::filesystem::path& path) {
  std::string head(16, '\0');
  RegularFile file(path);
  return file.read(head.data(), static_cast<std::streamsize>(head.size())) && is_sqlite(head);
}

}  // namespace

std::optional<FigureFormat> figure_format(std::string_view name) {
  if (name == "svg") return FigureFormat::svg;
  if (name == "png") return FigureFormat::png;
  if (name == "pdf") return FigureFormat::pdf;
  return std::nullopt;
}

std::optional<std::string> why_not(FigureFormat format) {
  if (format == FigureFormat::svg || raster().problem.empty()) return std::nullopt;
  return "no PNG or PDF can be written: " + raster().problem +
         " (Debian: librsvg2-2, and librsvg2-dev to build); svg works";
}

std::string render(const Figure& figure, FigureFormat format, const SvgOptions& options) {
  if (const auto reason = why_not(format)) throw DataError(*reason);
  std::string svg = to_svg(figure, options);
  if (format == FigureFormat::png) return bytes_or_error(raster().library->png_of_svg(svg));
  if (format == FigureFormat::pdf) return bytes_or_error(raster().library->pdf_of_svg(svg, figure.title));
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
  if (type == fs::file_type::regular && is_database(path))
    throw DataError(path.string() + " is a database, which an export doesn't overwrite");
  // A link keeps its target.
  const fs::path target = fs::is_symlink(path, error) && type == fs::file_type::regular ? fs::canonical(path) : path;
  OutputFile file(target, mode, OutputFile::Devices::allowed);
  write([&](std::string_view piece) { file.write(std::as_bytes(std::span(piece))); });
  file.commit();
}

}  // namespace stepladder
