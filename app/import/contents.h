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

// The contents that a project has, and their runs. A content is a hash, which a run that was imported, or followed to
// its end, keeps as `content_hash` in its environment; a journal, whatever it has grown to; or a path that is followed.
using ImportedContents = std::map<std::string, std::vector<RunId>>;
ImportedContents imported_contents(RunStore& store);  // without runs in the bin

// The runs of the file or store at a path; null if the project doesn't have it. Reads only what may be there.
const std::vector<RunId>* runs_at(const ImportedContents& contents, const std::filesystem::path& path);
// The same of a journal.
const std::vector<RunId>* runs_of_journal(const ImportedContents& contents, const std::string& uid);

// Keeps the content of a path, all of which is stored now, in its run's environment.
void keep_content(Run& run, const std::filesystem::path& path);

// "a.log is in the project already (runs 3 - 5)"
std::string in_project_text(const std::string& file, const std::vector<RunId>& runs);
std::string run_numbers_text(const std::vector<RunId>& runs);  // "run 3", "runs 3 - 5, 9"

}  // namespace stepladder
