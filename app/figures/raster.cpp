#include "app/figures/raster.h"

#include <dlfcn.h>

#include <filesystem>

#include "app/figures/raster_library.h"
#include "engine/files/data_error.h"

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

std::string bytes_or_error(const RasterAnswer& answer) {
  if (!answer.problem.empty()) throw DataError(answer.problem);
  return answer.bytes;
}

}  // namespace

const std::string& why_no_raster() {
  return raster().problem;
}

std::string png_of_svg(std::string_view svg) {
  if (!raster().library) throw DataError(why_no_raster());
  return bytes_or_error(raster().library->png_of_svg(svg));
}

std::string pdf_of_svg(std::string_view svg, const std::string& title) {
  if (!raster().library) throw DataError(why_no_raster());
  return bytes_or_error(raster().library->pdf_of_svg(svg, title));
}

}  // namespace stepladder
