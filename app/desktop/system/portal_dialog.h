// The portal's file chooser (https://flatpak.github.io/xdg-desktop-portal/docs/doc-org.freedesktop.portal.FileChooser).
// Its answer is a signal to the connection that asked, so no helper program can ask; systemd's library does, if it is
// installed. Building needs none of it.
#pragma once

#include <atomic>
#include <optional>

#include "app/desktop/system/file_dialog.h"

namespace stepladder {

// Blocks until the dialog is closed. nullopt without a session bus, without the library, or without a portal that can
// choose files.
std::optional<FileAnswer> ask_portal_for_file(const FileQuestion& question, const std::atomic<bool>& cancelled);

}  // namespace stepladder
