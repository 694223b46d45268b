// A small fuzz input as a list of changes to a large sound file: three bytes of offset, one of length, the new bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace stepladder {

inline std::string changed(std::string file, std::string_view changes) {
  while (changes.size() >= 4) {
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(changes[i])); };
    const std::size_t offset = (byte(0) | byte(1) << 8 | byte(2) << 16) % file.size();
    const std::size_t wanted = std::min(byte(3) % 64, file.size() - offset);
    changes.remove_prefix(4);
    const std::string_view bytes = changes.substr(0, wanted);
    file.replace(offset, bytes.size(), bytes);
    changes.remove_prefix(bytes.size());
  }
  return file;
}

}  // namespace stepladder
