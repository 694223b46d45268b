// Recognises the source code that some programs print at the top of their logs (modded-nanogpt does).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepladder {

// Hashes the source code at the beginning of an input from its first pieces, in bounded memory.
class SourceCodeHash {
 public:
  void take(std::string_view piece);

  // 16 hexadecimal digits; empty unless the input begins with Python source code that ends at a line of "=".
  std::string text() const;

 private:
  void end_line();

  std::string line_;                         // cut at 80 bytes
  std::uint64_t hash_ = 0xcbf29ce484222325;  // FNV-1a
  std::size_t bytes_ = 0;
  bool imports_ = false;  // a line imports a module
  bool ended_ = false;
  bool failed_ = false;
};

}  // namespace stepladder
