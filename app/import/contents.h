// Recognises files that were imported before, by their content and not by their name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "storage/content_hash.h"
#include "storage/records.h"

namespace stepladder {

class RunStore;

// The bytes of a file (with a database's log, FILE-wal) or of all files in a folder; 0 if they can't be read.
std::uint64_t content_bytes(const std::filesystem::path& path);

// The hash of these bytes and of the names of a folder's files. Empty if they can't be read.
std::string content_hash(const std::filesystem::path& path);

// The runs of each imported content, which a run keeps as `content_hash` in its environment.
using ImportedContents = std::map<std::string, std::vector<RunId>>;
ImportedContents imported_contents(RunStore& store);  // without runs in the bin

}  // namespace stepladder
