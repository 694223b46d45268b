// The framing of TensorBoard's event files, of .wandb files and of journals: a file is split into its records, one
// record is changed, and the file is put together again with right lengths and checksums. Most mutations of the bytes
// as they are would be refused by the first checksum.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "storage/checksum.h"
#include "tests/fuzz/wire_mutator.h"

namespace stepladder {

struct EventFile {
  static std::vector<std::string> split(std::string_view bytes) {
    std::vector<std::string> records;
    while (bytes.size() >= 16) {
      std::uint64_t length = 0;
      std::memcpy(&length, bytes.data(), sizeof length);
      if (length > bytes.size() - 16) break;
      records.emplace_back(bytes.substr(12, length));
      bytes.remove_prefix(16 + length);
    }
    return records;
  }

  static std::string join(const std::vector<std::string>& records) {
    std::string bytes;
    for (const std::string& record : records) {
      const std::string length = fixed<std::uint64_t>(record.size());
      bytes += length + fixed(masked(crc32c(length))) + record + fixed(masked(crc32c(record)));
    }
    return bytes;
  }

 private:
  template <class T>
  static std::string fixed(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
};

struct WandbFile {
  static constexpr std::size_t block = 32768, header = 7;

  static std::vector<std::string> split(std::string_view bytes) {
    std::vector<std::string> records;
    std::string record;
    for (std::size_t at = header; at + header <= bytes.size();) {
      if (const std::size_t left = block - at % block; left < header) {
        at += left;
        continue;
      }
      const std::size_t length = static_cast<unsigned char>(bytes[at + 4]) |
                                 static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + 5])) << 8;
      const int type = bytes[at + 6];
      if (length > bytes.size() - at - header) break;
      record += bytes.substr(at + header, length);
      at += header + length;
      if (type == 1 || type == 4) records.push_back(std::exchange(record, {}));
    }
    return records;
  }

  static std::string join(const std::vector<std::string>& records) {
    std::string bytes(":W&B\xe1\xbe\0", header);
    for (const std::string& record : records) {
      std::string_view rest = record;
      bool first = true, last = false;
      while (!last) {
        std::size_t left = block - bytes.size() % block;
        if (left < header) {
          bytes.append(left, '\0');
          left = block;
        }
        const std::string_view piece = rest.substr(0, left - header);
        rest.remove_prefix(piece.size());
        last = rest.empty();
        std::string content(1, static_cast<char>(first && last ? 1 : first ? 2 : last ? 4 : 3));
        content += piece;
        const std::uint32_t checksum = crc32(content);
        bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
        bytes += static_cast<char>(piece.size());
        bytes += static_cast<char>(piece.size() >> 8);
        bytes += content;
        first = false;
      }
    }
    return bytes;
  }
};

// The lines of a journal, which are text.
struct JournalFile {
  static constexpr bool is_text = true;

  static std::vector<std::string> split(std::string_view bytes) {
    std::vector<std::string> records;
    for (std::size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1))
      if (end >= 9) records.emplace_back(bytes.substr(0, end - 9));
    return records;
  }

  static std::string join(const std::vector<std::string>& records) {
    std::string bytes;
    for (const std::string& record : records) {
      char checksum[16];
      std::snprintf(checksum, sizeof checksum, "\t%08x\n", crc32(record));
      bytes += record + checksum;
    }
    return bytes;
  }
};

// Changes one record of a framed file, or the order of its records. Empty if the bytes have no whole record.
template <class Framing>
std::string mutated_records(std::string_view bytes, Dice& dice) {
  std::vector<std::string> records = Framing::split(bytes);
  if (records.empty()) return {};
  const std::size_t at = dice() % records.size();
  switch (dice() % 16) {
    case 0:
      records.insert(records.begin() + static_cast<std::ptrdiff_t>(at), records[dice() % records.size()]);
      break;
    case 1:
      records.erase(records.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 2:
      std::swap(records[at], records[dice() % records.size()]);
      break;
    default:
      if constexpr (requires { Framing::is_text; })
        records[at] = mutated_bytes(records[at]);
      else
        records[at] = mutated_message(records[at], dice);
  }
  return Framing::join(records);
}

// A SQLite file keeps its size and the place of its pages: bytes are changed where they are, and its header seldom.
inline std::string mutated_pages(std::string_view bytes, Dice& dice) {
  std::string file(bytes);
  if (file.size() < 512) return {};
  for (std::size_t edits = 1 + dice() % 4; edits > 0; --edits) {
    const std::size_t begin = dice() % 16 == 0 ? 0 : 100;
    std::size_t at = begin + dice() % (file.size() - begin);
    if (dice() % 2 == 0) at = at / 512 * 512 + dice() % 16;  // where pages and their cells are described
    const std::size_t size = std::min<std::size_t>(1 + dice() % 8, file.size() - at);
    if (at < begin) continue;
    if (dice() % 3 == 0) {
      file.replace(at, size, file, dice() % (file.size() - size + 1), size);
    } else {
      for (std::size_t i = 0; i < size; ++i) file[at + i] = static_cast<char>(dice() % 3 == 0 ? 0xff : dice());
    }
  }
  return file;
}

}  // namespace stepladder
