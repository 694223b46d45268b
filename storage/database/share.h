// A copy of a project for others: the same numbers, without what describes its owner's machines. The functions are for
// storage/ only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "storage/database/backup.h"

namespace stepladder {

class Database;

struct SharedCopy {
  FileContents contents;
  std::map<std::string, std::int64_t> removed;  // how many rows or texts of each kind
};

struct ShareOptions {
  bool with_output = false;  // of watched programs
  // A text without secrets; `name` is that of the setting whose value it is, if it has one.
  std::function<std::string(const std::string& name, const std::string& text)> without_secrets;
};

// Writes the copy as back_up does: `out` is never replaced. Only the tables and text columns that share.cpp lists are
// kept, so that a new one is excluded until somebody decides. Absolute paths become their last part, and names of hosts
// "***". Texts that are marked as private are excluded (docs/database.md, "A copy for others").
SharedCopy share(Database& database, const std::filesystem::path& out, const ShareOptions& options);

// The two rules for texts. A line that begins with "private:", and what follows it, is private.
std::string without_paths(std::string_view text);
std::string without_private_part(std::string_view note);

}  // namespace stepladder
