// Logs and tables (CSV, JSON lines) as sources that grow, read by the importer that would import the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "storage/importers/growing_source.h"
#include "storage/importers/importer.h"

namespace stepladder {

// The importer's whole state isn't stored, so a reader that begins again reads from the file's start and skips what an
// earlier one has passed on. It knows that by its number and hash: a file whose beginning says something else was
// replaced, and one that was only written again, perhaps with one more column, is continued.
std::unique_ptr<GrowingSource> growing_text(const std::filesystem::path& file, const ImportOptions& options);

// The same of a copy of a program's output. `written_at`: unix seconds of the byte at this place.
std::unique_ptr<GrowingSource> growing_output(const std::filesystem::path& file, const ImportOptions& options,
                                              std::function<double(std::int64_t)> written_at);

}  // namespace stepladder
