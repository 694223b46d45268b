// The two CRCs that protect the records of event files and .wandb files.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepladder {

namespace crc_detail {
// Reflected polynomials: 0x82f63b78 is Castagnoli's (CRC32C), 0xedb88320 that of zlib and Ethernet. Row k holds a
// byte's contribution when k more bytes follow, so that eight bytes are looked up at once (Kounavis & Berry 2005,
// "slicing-by-8").
constexpr std::array<std::array<std::uint32_t, 256>, 8> tables(std::uint32_t polynomial) {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? polynomial : 0);
    tables[0][i] = value;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t i = 0; i < 256; ++i) tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xff];
  return tables;
}

template <std::uint32_t polynomial>
std::uint32_t crc(std::string_view bytes) {
  static constexpr auto of = tables(polynomial);
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])); };
  std::uint32_t crc = 0xffff'ffff;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    crc ^= byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
    crc = of[7][crc & 0xff] ^ of[6][crc >> 8 & 0xff] ^ of[5][crc >> 16 & 0xff] ^ of[4][crc >> 24] ^ of[3][byte(4)] ^
          of[2][byte(5)] ^ of[1][byte(6)] ^ of[0][byte(7)];
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) crc = (crc >> 8) ^ of[0][(crc ^ byte(i)) & 0xff];
  return ~crc;
}
}  // namespace crc_detail

inline std::uint32_t crc32(std::string_view bytes) {
  return crc_detail::crc<0xedb8'8320>(bytes);
}
inline std::uint32_t crc32c(std::string_view bytes) {
  return crc_detail::crc<0x82f6'3b78>(bytes);
}

// As TFRecord and LevelDB store a CRC32C, so that data which contains checksums can be checksummed itself.
inline std::uint32_t masked(std::uint32_t crc) {
  return std::rotr(crc, 15) + 0xa282'ead8;
}

}  // namespace stepladder
