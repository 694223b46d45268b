// The colour scheme that the freedesktop portal reports, for GNOME, KDE and others alike
// (org.freedesktop.portal.Settings, https://flatpak.github.io/xdg-desktop-portal). Asked through a program, so that no
// D-Bus library is needed.
#pragma once

#include <optional>

namespace stepladder {

// Whether there is a D-Bus session. Without one, gdbus would start one.
bool session_bus_is_there();

// True if the desktop prefers dark; nullopt if the portal has no preference or cannot be asked: there isn't a session
// bus, none of gdbus, busctl and dbus-send is on PATH, or none answered within a second. Blocks, so don't call it on
// the UI thread.
std::optional<bool> portal_prefers_dark();

}  // namespace stepladder
