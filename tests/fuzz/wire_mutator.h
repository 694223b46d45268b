// Changes a Protocol Buffers message inside its framing: the lengths of all messages around the change are right
// again, so that readers see the change and not just a broken length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace stepladder {

using Dice = std::minstd_rand;

inline std::string mutated_bytes(std::string_view bytes, std::size_t most = 4096) {
  std::string data(bytes);
  data.resize(std::max(bytes.size() + 64, std::min(most, 2 * bytes.size())));
  data.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(data.data()), bytes.size(), data.size()));
  return data;
}

struct WireField {
  std::uint64_t tag;
  std::string value;  // a varint's or number's own bytes; the content of a length-delimited field
  bool delimited() const { return (tag & 7) == 2; }
};

inline std::string varint_bytes(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}

inline std::optional<std::uint64_t> take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

inline std::optional<std::vector<WireField>> wire_fields(std::string_view rest) {
  std::vector<WireField> fields;
  while (!rest.empty()) {
    const auto tag = take_varint(rest);
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    std::uint64_t size = 0;
    const std::string_view before = rest;
    switch (*tag & 7) {
      case 0:
        if (!take_varint(rest)) return std::nullopt;
        fields.push_back({*tag, std::string(before.substr(0, before.size() - rest.size()))});
        continue;
      case 1:
        size = 8;
        break;
      case 5:
        size = 4;
        break;
      case 2: {
        const auto length = take_varint(rest);
        if (!length) return std::nullopt;
        size = *length;
        break;
      }
      default:
        return std::nullopt;
    }
    if (size > rest.size()) return std::nullopt;
    fields.push_back({*tag, std::string(rest.substr(0, size))});
    rest.remove_prefix(size);
  }
  return fields;
}

inline std::string wire_message(const std::vector<WireField>& fields) {
  std::string message;
  for (const WireField& field : fields) {
    message += varint_bytes(field.tag);
    if (field.delimited()) message += varint_bytes(field.value.size());
    message += field.value;
  }
  return message;
}

inline std::string mutated_message(std::string_view message, Dice& dice, int depth = 0);

inline void mutate_value(WireField& field, Dice& dice, int depth) {
  static constexpr std::uint64_t interesting[] = {0,        1,   2,          127,        128,   255,       65535,
                                                  1U << 31, ~0U, 1ULL << 53, 1ULL << 63, ~0ULL, ~0ULL - 1, ~0ULL >> 1};
  if (field.delimited()) {
    const bool inside = depth < 8 && dice() % 4 != 0 && wire_fields(field.value);
    field.value = inside ? mutated_message(field.value, dice, depth + 1) : mutated_bytes(field.value);
  } else if ((field.tag & 7) == 0) {
    field.value = varint_bytes(dice() % 2 ? interesting[dice() % std::size(interesting)] : dice() % 4096);
  } else {
    for (char& byte : field.value)
      if (dice() % 3 == 0) byte = static_cast<char>(dice() % 2 ? dice() : (dice() % 2 ? 0xff : 0x7f));
  }
}

inline std::string mutated_message(std::string_view message, Dice& dice, int depth) {
  auto fields = wire_fields(message);
  if (!fields || fields->empty()) return mutated_bytes(message);
  const std::size_t at = dice() % fields->size();
  switch (dice() % 12) {
    case 0:
      fields->insert(fields->begin() + static_cast<std::ptrdiff_t>(at), (*fields)[dice() % fields->size()]);
      break;
    case 1:
      fields->erase(fields->begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 2:
      std::swap((*fields)[at], (*fields)[dice() % fields->size()]);
      break;
    case 3:  // another number for the same content
      (*fields)[at].tag = ((*fields)[at].tag & 7) | (1 + dice() % 32) << 3;
      break;
    default:
      mutate_value((*fields)[at], dice, depth);
  }
  return wire_message(*fields);
}

}  // namespace stepladder
