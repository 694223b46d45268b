// Shows files in the desktop's own programs.
#pragma once

#include <filesystem>
#include <string>

namespace stepladder {

// Opens the file in the program that the desktop has for it (xdg-open). Blocks until that program has started, or for
// three seconds. Throws std::runtime_error with a sentence that names the file and the reason.
void open_file(const std::filesystem::path& file);

// Opens the file manager with the file selected (org.freedesktop.FileManager1) or, where there is none, its folder.
// Blocks and throws likewise.
void show_in_folder(const std::filesystem::path& file);

std::string file_uri(const std::filesystem::path& file);  // "file:///tmp/a%20b"

}  // namespace stepladder
