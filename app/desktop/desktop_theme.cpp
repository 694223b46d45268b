#include "app/desktop/desktop_theme.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/desktop/system/portal.h"
#include "app/desktop/theme.h"

namespace stepladder {

DesktopTheme::DesktopTheme(DesktopSettings& settings, std::function<void()> wake)
    : settings_(settings), wake_(std::move(wake)) {
  ask();
}

void DesktopTheme::choose(ThemeChoice theme) {
  settings_.theme = theme;
  ask();
  apply();
}

void DesktopTheme::scale_by(float change) {
  settings_.scale = change == 0 ? 1 : std::clamp(settings_.scale + change, 0.6f, 3.0f);
  apply();
}

void DesktopTheme::set_display_scale(float scale) {
  display_scale_ = scale;
  apply();
}

void DesktopTheme::fit_window(int width, int height) {
  const float room = std::min(static_cast<float>(width) / 2560, static_cast<float>(height) / 1440) / display_scale_;
  // Faster than the room, which would else be empty: 1.75 at 3840 x 2160.
  const float scale = std::clamp(std::floor((1.5f * room - 0.5f) * 4) / 4, 1.0f, 2.0f);
  if (std::exchange(window_scale_, scale) != scale) apply();
}

void DesktopTheme::apply() {
  const bool is_dark = settings_.theme == ThemeChoice::system ? system_prefers_dark(prefers_dark_)
                                                              : settings_.theme == ThemeChoice::dark;
  apply_theme(is_dark, display_scale_ * window_scale_ * settings_.scale);
}

void DesktopTheme::ask() {
  if (settings_.theme != ThemeChoice::system || is_asking()) return;
  portal_.start([](JobControl&) { return portal_prefers_dark(); }, wake_);
}

void DesktopTheme::take_answer() {
  const auto answer = portal_.take();
  if (!answer) return;
  prefers_dark_ = *answer;
  apply();
}

}  // namespace stepladder
