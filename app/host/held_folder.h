// A folder of an experiment, which one process works on at a time. It may be from somebody else, so nothing in it is
// reached through a link, and files are created for this user alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "storage/own_folder.h"

namespace stepladder {

// Holds a folder for this process until it ends or the object does. Processes that it starts don't inherit it. Throws
// UsageError if another process holds it, StorageError if it cannot be written.
class HeldFolder {
 public:
  explicit HeldFolder(const std::filesystem::path& folder);

 private:
  Descriptor file_;
};

// Whether a process other than this one holds it. Call it in no process that may hold it: its lock would go.
bool is_held(const std::filesystem::path& folder);

// These throw StorageError.

// The folder that the user names: absolute, links followed.
std::filesystem::path experiment_folder(const std::filesystem::path& folder);

// Creates a private folder, and the missing ones above it.
void make_folder(const std::filesystem::path& folder);

// Opens a file to read and write, or makes it; neither a link nor a file with another name.
Descriptor open_private(const std::filesystem::path& file);

// The file appears under its name only when it is complete and on the disk. `mode` as for open(2). Throws DataError.
void write_whole(const std::filesystem::path& file, const std::string& text, unsigned mode = 0666);

// A file's text, of at most 64 MiB; empty if there is no file.
std::optional<std::string> text_of(const std::filesystem::path& file);

}  // namespace stepladder
