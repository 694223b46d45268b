// Files that spare a later run some work. Anybody may delete them at any time, and any number of processes use them at
// once. Uses no torch; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace stepladder {

// $XDG_CACHE_HOME/stepladder, else ~/.cache/stepladder; empty where neither variable names a folder.
std::filesystem::path cache_folder();

// Makes the folder where it is missing. The file appears at once and whole; one that can't be written stays as it was,
// which only costs a later run the time.
void write_cache_file(const std::filesystem::path& file, std::string_view bytes);

// FNV-1a of 64 bits in hexadecimal digits, by which an entry that isn't whole is found.
std::string cache_checksum(std::string_view bytes);

}  // namespace stepladder
