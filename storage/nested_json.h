// Limits the depth of nested JSON. Copying and writing a value recurse (nlohmann::json's do), so a few kilobytes of
// brackets from somebody else's file would end the program.
#pragma once

#include <string_view>

namespace stepladder {

inline constexpr int deepest_json = 100;  // of configurations and of what a project holds

inline bool nests_deep(std::string_view json, int deepest = deepest_json) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') quoted = !quoted;
    if (quoted && json[i] == '\\') ++i;
    if (quoted) continue;
    if (json[i] == '[' || json[i] == '{') ++depth;
    if (json[i] == ']' || json[i] == '}') --depth;
    if (depth > deepest) return true;
  }
  return false;
}

}  // namespace stepladder
