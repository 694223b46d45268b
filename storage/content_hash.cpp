#include "storage/content_hash.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

namespace stepladder {

void ContentHash::take(std::string_view piece) {
  const char* at = piece.data();
  const char* const end = at + piece.size();
  while (at != end && bytes_ % 8 != 0) {
    word_ |= std::uint64_t{static_cast<unsigned char>(*at++)} << (8 * (bytes_ % 8));
    if (++bytes_ % 8 == 0) mix(std::exchange(word_, 0));
  }
  for (; end - at >= 8; at += 8, bytes_ += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    mix(word);
  }
  for (; at != end; ++bytes_) word_ |= std::uint64_t{static_cast<unsigned char>(*at++)} << (8 * (bytes_ % 8));
}

// A round of xxHash64.
void ContentHash::mix(std::uint64_t word) {
  hash_ ^= std::rotl(word * 0xc2b2ae3d27d4eb4f, 31) * 0x9e3779b185ebca87;
  hash_ = std::rotl(hash_, 27) * 0x9e3779b185ebca87 + 0x85ebca77c2b2ae63;
}

std::string ContentHash::text() const {
  ContentHash last = *this;
  last.mix(word_);
  std::uint64_t hash = last.hash_ ^ bytes_;
  hash = (hash ^ (hash >> 33)) * 0xc2b2ae3d27d4eb4f;
  hash = (hash ^ (hash >> 29)) * 0x165667b19e3779f9;
  hash ^= hash >> 32;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return std::to_string(bytes_) + "-" + digits;
}

}  // namespace stepladder
