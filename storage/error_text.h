// An exception as a sentence for people, and the place of a mistake.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

namespace stepladder {

// what(), but the standard library's own sentence about a file ("filesystem error: status: Permission denied [...]")
// becomes one that begins with the file and says why.
inline std::string error_text(const std::exception& error) {
  const auto* const of_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (!of_file) return error.what();
  const std::filesystem::path& file = of_file->path2().empty() ? of_file->path1() : of_file->path2();
  return file.string() + " cannot be used: " + of_file->code().message();
}

// The number of the line that the byte belongs to, for parsers that report only the byte.
inline std::int64_t line_at(std::string_view text, std::size_t byte) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), byte)), '\n');
}

}  // namespace stepladder
