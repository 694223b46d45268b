// Everything that needs librsvg and cairo, as a library of its own: only the first PNG or PDF loads them, and a machine
// without them can do everything else.
#include "app/figures/raster_library.h"

#include <cairo-pdf.h>
#include <librsvg/rsvg.h>

#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>

namespace stepladder {
namespace {

struct Unref {
  void operator()(RsvgHandle* handle) const { g_object_unref(handle); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(GError* error) const { g_error_free(error); }
};
template <class Object>
using Owned = std::unique_ptr<Object, Unref>;

cairo_status_t append(void* text, const unsigned char* bytes, unsigned count) {
  static_cast<std::string*>(text)->append(reinterpret_cast<const char*>(bytes), count);
  return CAIRO_STATUS_SUCCESS;
}

void check(cairo_status_t status) {
  if (status != CAIRO_STATUS_SUCCESS)
    throw std::runtime_error(std::string("the figure cannot be drawn: ") + cairo_status_to_string(status));
}

void check(bool worked, GError* error) {
  if (worked) return;
  const Owned<GError> owned(error);
  throw std::runtime_error("the figure cannot be drawn: " +
                           std::string(error ? error->message : "librsvg does not say why"));
}

struct Picture {
  Owned<RsvgHandle> handle;
  double width = 0;
  double height = 0;

  explicit Picture(std::string_view svg) {
    GError* error = nullptr;
    handle.reset(rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error));
    check(handle != nullptr, error);
    check(rsvg_handle_get_intrinsic_size_in_pixels(handle.get(), &width, &height) != 0, nullptr);
  }

  void draw_on(cairo_surface_t* surface, double scale) const {
    const Owned<cairo_t> context(cairo_create(surface));
    const RsvgRectangle page{0, 0, width * scale, height * scale};
    GError* error = nullptr;
    check(rsvg_handle_render_document(handle.get(), context.get(), &page, &error) != 0, error);
    check(cairo_status(context.get()));
  }
};

std::string png_of(std::string_view svg) {
  constexpr double scale = 2;
  const Picture picture(svg);
  const Owned<cairo_surface_t> surface(
      cairo_image_surface_create(CAIRO_FORMAT_ARGB32, static_cast<int>(std::lround(picture.width * scale)),
                                 static_cast<int>(std::lround(picture.height * scale))));
  check(cairo_surface_status(surface.get()));
  picture.draw_on(surface.get(), scale);
  std::string png;
  check(cairo_surface_write_to_png_stream(surface.get(), append, &png));
  return png;
}

std::string pdf_of(std::string_view svg, const std::string& title) {
  constexpr double scale = 0.75;
  const Picture picture(svg);
  std::string pdf;
  {
    const Owned<cairo_surface_t> surface(
        cairo_pdf_surface_create_for_stream(append, &pdf, picture.width * scale, picture.height * scale));
    check(cairo_surface_status(surface.get()));
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, title.c_str());
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATOR, "Stepladder " STEPLADDER_VERSION);
    picture.draw_on(surface.get(), scale);
    cairo_surface_finish(surface.get());
    check(cairo_surface_status(surface.get()));
  }
  return pdf;
}

// Calls `draw`; an error becomes a sentence, since no exception may leave the library.
RasterAnswer answer(const std::function<std::string()>& draw) {
  try {
    return {.bytes = draw()};
  } catch (const std::exception& error) {
    return {.problem = error.what()};
  }
}

}  // namespace

}  // namespace stepladder

extern "C" [[gnu::visibility("default")]] const stepladder::RasterLibrary* stepladder_raster() {
  using namespace stepladder;
  static const RasterLibrary library{
      .png_of_svg = [](std::string_view svg) { return answer([&] { return png_of(svg); }); },
      .pdf_of_svg = [](std::string_view svg,
                       const std::string& title) { return answer([&] { return pdf_of(svg, title); }); }};
  return &library;
}
