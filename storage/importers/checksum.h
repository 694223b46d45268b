// The two CRCs by which the records of event files and .wandb files are guarded.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace stepladder {

namespace crc_detail {
// Reflected polynomials: 0x82f63b78 is Castagnoli's (CRC32C), 0xedb88320 that of zlib and Ethernet.
constexpr std::array<std::uint32_t, 256> table(std::uint32_t polynomial) {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? polynomial : 0);
    table[i] = value;
  }
  return table;
}

template <std::uint32_t polynomial>
std::uint32_t crc(std::string_view bytes) {
  static constexpr auto values = table(polynomial);
  std::uint32_t crc = 0xffff'ffff;
  for (const char c : bytes) crc = (crc >> 8) ^ values[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}
}  // namespace crc_detail

inline std::uint32_t crc32(std::string_view bytes) {
  return crc_detail::crc<0xedb8'8320>(bytes);
}
inline std::uint32_t crc32c(std::string_view bytes) {
  return crc_detail::crc<0x82f6'3b78>(bytes);
}

// As TFRecord and LevelDB store a CRC32C, so that a checksum of data that holds checksums stays one.
inline std::uint32_t masked(std::uint32_t crc) {
  return std::rotr(crc, 15) + 0xa282'ead8;
}

}  // namespace stepladder
