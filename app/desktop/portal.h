// What the freedesktop portal says of colours: the one place where GNOME, KDE and others all tell dark from light
// (org.freedesktop.portal.Settings, https://flatpak.github.io/xdg-desktop-portal). Asked through a program, so that no
// D-Bus library is needed.
#pragma once

#include <optional>

namespace stepladder {

// Whether programs are to be dark; nullopt where the portal has no preference, or cannot be asked: there is no session
// bus, none of gdbus, busctl and dbus-send is on PATH, or none has answered within a second. Blocks: not for the UI
// thread.
std::optional<bool> portal_prefers_dark();

}  // namespace stepladder
