// Tells contents apart by a hash of their bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepladder {

// Hashes bytes as they are read: in pieces of any size, with the same result. Not cryptographic.
class ContentHash {
 public:
  void take(std::string_view piece);
  std::string text() const;  // "1234-" (bytes) and 16 hexadecimal digits

 private:
  void mix(std::uint64_t word);

  std::uint64_t hash_ = 0x9e3779b97f4a7c15;
  std::uint64_t word_ = 0;  // bytes that don't fill eight yet
  std::uint64_t bytes_ = 0;
};

}  // namespace stepladder
