// Texts that other programs print.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace stepladder::far {

// Returns at least one field, which may be empty; drops an empty last one.
inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> fields;
  std::istringstream stream(text);
  for (std::string field; std::getline(stream, field, separator);) fields.push_back(field);
  if (fields.empty()) fields.emplace_back();
  return fields;
}

}  // namespace stepladder::far
