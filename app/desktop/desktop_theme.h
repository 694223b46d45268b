// The theme and the text size that the user has chosen. UI thread.
#pragma once

#include <functional>
#include <optional>

#include "app/desktop/settings.h"
#include "app/job.h"

namespace stepladder {

class DesktopTheme {
 public:
  // `settings` must outlive this. If the theme follows the system, the desktop is asked at once.
  DesktopTheme(DesktopSettings& settings, std::function<void()> wake);

  void choose(ThemeChoice theme);
  void scale_by(float change);  // 0: the display's own size
  void set_display_scale(float scale);
  // Has text and marks grow with a window of more than 2,560 x 1,440 at the display's scale, by a quarter at a time up
  // to twice. Call before each frame; in pixels.
  void fit_window(int width, int height);
  void apply();

  bool is_asking() const { return portal_.is_active(); }
  void take_answer();  // of the desktop, in a later frame; never blocks

 private:
  void ask();

  DesktopSettings& settings_;
  std::function<void()> wake_;
  float display_scale_ = 1;
  float window_scale_ = 1;
  Job<std::optional<bool>> portal_;
  std::optional<bool> prefers_dark_;  // the desktop's last answer
};

}  // namespace stepladder
