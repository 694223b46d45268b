// Decodes a one-element TensorProto, which stores its value either in a typed field or as raw tensor_content. Larger
// tensors and unknown types give no value; zero is stored by leaving the field empty.
#include "storage/importers/trackers/tensorboard/tensor.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "storage/importers/trackers/wire_reader.h"

namespace stepladder {
namespace {

double half(std::uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits >> 10) & 0x1f;
  const double mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return mantissa != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 1024, exponent - 25);
}

double bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

enum DataType {
  dt_float = 1,
  dt_double = 2,
  dt_int32 = 3,
  dt_string = 7,
  dt_int64 = 9,
  dt_bfloat16 = 14,
  dt_half = 19
};

template <class T>
std::optional<T> raw(std::string_view bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

struct Tensor {
  std::int64_t type = 0;
  bool scalar = true;        // one element
  std::string_view content;  // its bytes, if stored as tensor_content
  std::optional<double> value;
  std::string_view text;
  int values = 0;
};

bool holds_one_element(std::string_view shape) {
  WireReader dimensions(shape);
  while (dimensions.next()) {
    if (dimensions.number() != 2) continue;
    std::int64_t size = 0;
    WireReader dimension(dimensions.bytes());
    while (dimension.next())
      if (dimension.number() == 1) size = dimension.integer();
    if (size != 1) return false;
  }
  return true;
}

// float_val and the like: one value, or several packed into one field; a scalar has only the first.
void read_value_field(const WireReader& field, Tensor& tensor) {
  ++tensor.values;
  const std::string_view packed = field.bytes();
  const auto first_varint = [&] {
    if (packed.empty()) return static_cast<std::uint64_t>(field.integer());
    return WireReader(packed).varint();
  };
  switch (field.number()) {
    case 5:
      if (field.is_real32())
        tensor.value = field.real32();
      else if (const auto value = raw<float>(packed.substr(0, 4)))
        tensor.value = *value;
      break;
    case 6:
      if (packed.empty())
        tensor.value = field.real();
      else if (const auto value = raw<double>(packed.substr(0, 8)))
        tensor.value = *value;
      break;
    case 7:
    case 10:
      tensor.value = static_cast<double>(static_cast<std::int64_t>(first_varint()));
      break;
    case 13: {
      const auto bits = static_cast<std::uint16_t>(first_varint());
      tensor.value = tensor.type == dt_bfloat16 ? bfloat16(bits) : half(bits);
      break;
    }
    default:
      break;
  }
}

std::optional<double> value_of_content(std::int64_t type, std::string_view content) {
  switch (type) {
    case dt_float:
      return raw<float>(content);
    case dt_double:
      return raw<double>(content);
    case dt_int32:
      return raw<std::int32_t>(content);
    case dt_int64:
      if (const auto value = raw<std::int64_t>(content)) return static_cast<double>(*value);
      return std::nullopt;
    case dt_half:
      if (const auto bits = raw<std::uint16_t>(content)) return half(*bits);
      return std::nullopt;
    case dt_bfloat16:
      if (const auto bits = raw<std::uint16_t>(content)) return bfloat16(*bits);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

Tensor read_tensor(std::string_view message) {
  Tensor tensor;
  WireReader field(message);
  while (field.next()) {
    switch (field.number()) {
      case 1:
        tensor.type = field.integer();
        break;
      case 2:
        tensor.scalar = holds_one_element(field.bytes());
        break;
      case 4:
        tensor.content = field.bytes();
        break;
      case 8:
        if (tensor.text.empty()) tensor.text = field.bytes();
        break;
      default:
        read_value_field(field, tensor);
    }
  }
  if (!tensor.content.empty()) tensor.value = value_of_content(tensor.type, tensor.content);
  // Writers omit a value that is zero.
  if (tensor.values == 0 && tensor.content.empty() && tensor.type != dt_string) tensor.value = 0;
  if (!tensor.scalar || field.malformed()) tensor.value.reset();
  return tensor;
}

}  // namespace

EventTensor read_event_tensor(std::string_view message) {
  const Tensor tensor = read_tensor(message);
  return {.value = tensor.value, .is_text = tensor.type == dt_string, .text = tensor.text};
}

}  // namespace stepladder
