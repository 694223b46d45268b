#include "app/desktop/ui_test_anchors.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

namespace stepladder::ui_test_anchors {
namespace {

const char* const file = std::getenv("STEPLADDER_UI_TEST_ANCHORS");
std::string now;
std::string written;

bool is_kept = false;
std::map<std::string, Box> boxes;  // of the frame that is being drawn
std::map<std::string, Box> shown;

}  // namespace

void note(const std::string& name, float x0, float y0, float x1, float y1) {
  if (is_kept) boxes[name] = {x0, y0, x1, y1};
  if (!file) return;
  char box[160];
  std::snprintf(box, sizeof box, " %.0f %.0f %.0f %.0f\n", static_cast<double>(x0), static_cast<double>(y0),
                static_cast<double>(x1), static_cast<double>(y1));
  now += name + box;
}

void write_frame() {
  shown = std::exchange(boxes, {});
  if (!file) return;
  if (now != written) {
    const std::string part = std::string(file) + ".part";
    std::ofstream(part) << now;
    std::error_code ignored;
    std::filesystem::rename(part, file, ignored);
    written = now;
  }
  now.clear();
}

void keep() {
  is_kept = true;
  boxes.clear();
  shown.clear();
}

std::optional<Box> find(const std::string& name) {
  const auto box = shown.find(name);
  return box == shown.end() ? std::nullopt : std::optional(box->second);
}

}  // namespace stepladder::ui_test_anchors
