// Recognises the source code that some programs print at the top of their logs (modded-nanogpt does).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepladder {

// Takes the first pieces of an input, and hashes the source code that they begin with. In bounded memory.
class SourceCodeHash {
 public:
  void take(std::string_view piece);

  // 16 hexadecimal digits; empty where the input doesn't begin with Python source code that a line of "=" ends.
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
