// An exception as a sentence for people.
#pragma once

#include <exception>
#include <filesystem>
#include <string>

namespace stepladder {

// what(), but the standard library's own sentence about a file ("filesystem error: status: Permission denied [...]")
// becomes one that begins with the file and says why.
inline std::string error_text(const std::exception& error) {
  const auto* const of_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (!of_file) return error.what();
  const std::filesystem::path& file = of_file->path2().empty() ? of_file->path1() : of_file->path2();
  return file.string() + " cannot be used: " + of_file->code().message();
}

}  // namespace stepladder
