// One table of number formats, with the names and sizes that safetensors gives them, and the conversions of 16-bit
// floats. A new format needs its row in `types` and, if it holds floats, a case in `to_f32`.
#include "engine/files/tensor_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/files/files.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

struct TypeFacts {
  TensorType type;
  std::string_view name;
  int bytes;
};

constexpr std::array<TypeFacts, 13> types = {{{TensorType::f64, "F64", 8},
                                              {TensorType::f32, "F32", 4},
                                              {TensorType::f16, "F16", 2},
                                              {TensorType::bf16, "BF16", 2},
                                              {TensorType::i64, "I64", 8},
                                              {TensorType::i32, "I32", 4},
                                              {TensorType::i16, "I16", 2},
                                              {TensorType::i8, "I8", 1},
                                              {TensorType::u64, "U64", 8},
                                              {TensorType::u32, "U32", 4},
                                              {TensorType::u16, "U16", 2},
                                              {TensorType::u8, "U8", 1},
                                              {TensorType::boolean, "BOOL", 1}}};
static_assert(types.size() == enum_count<TensorType>());

const TypeFacts& facts(TensorType type) {
  return *std::ranges::find(types, type, &TypeFacts::type);
}

float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 mantissa bits.
float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // zero and subnormals
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide_exponent = exponent == 31 ? 255 : exponent - 15 + 127;
  return std::bit_cast<float>(sign | (wide_exponent << 23) | (mantissa << 13));
}

template <class Stored, class Convert>
std::vector<float> convert(std::span<const std::byte> bytes, Convert to_float) {
  std::vector<float> values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    values[i] = to_float(stored);
  }
  return values;
}

}  // namespace

std::string_view to_string(TensorType type) {
  return facts(type).name;
}

std::optional<TensorType> tensor_type_from(std::string_view name) {
  for (const TypeFacts& known : types)
    if (known.name == name) return known.type;
  return std::nullopt;
}

std::int64_t bytes_each(TensorType type) {
  return facts(type).bytes;
}

bool is_float(TensorType type) {
  return type == TensorType::f64 || type == TensorType::f32 || type == TensorType::f16 || type == TensorType::bf16;
}

std::string to_text(const TensorShape& shape) {
  std::string text = "(";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ")";
}

std::optional<std::int64_t> bytes_of(TensorType type, const TensorShape& shape) {
  std::int64_t bytes = bytes_each(type);
  for (const std::int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  return bytes;
}

std::vector<float> to_f32(TensorType type, std::span<const std::byte> bytes) {
  switch (type) {
    case TensorType::f64:
      return convert<double>(bytes, [](double value) { return static_cast<float>(value); });
    case TensorType::f32:
      return convert<float>(bytes, [](float value) { return value; });
    case TensorType::f16:
      return convert<std::uint16_t>(bytes, f16_to_f32);
    case TensorType::bf16:
      return convert<std::uint16_t>(bytes, bf16_to_f32);
    default:
      throw DataError("a tensor of type " + std::string(to_string(type)) + " isn't a floating-point tensor");
  }
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // or rounding may make it infinite
  const std::uint32_t half_less_one = 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>((bits + half_less_one) >> 16);
}

}  // namespace stepladder
