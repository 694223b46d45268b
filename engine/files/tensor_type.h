// The number formats and shapes of tensors in files, as safetensors names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

enum class TensorType { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };
std::string_view to_string(TensorType type);  // as safetensors writes it: "BF16"
std::optional<TensorType> tensor_type_from(std::string_view name);
std::int64_t bytes_each(TensorType type);
bool is_float(TensorType type);

using TensorShape = std::vector<std::int64_t>;
std::string to_text(const TensorShape& shape);  // "(768, 2304)"

// The size in bytes; nullopt if a dimension is negative or the product doesn't fit into 63 bits.
std::optional<std::int64_t> bytes_of(TensorType type, const TensorShape& shape);

// Floating-point bytes as float32 (f64 is rounded); throws DataError for another type.
std::vector<float> to_f32(TensorType type, std::span<const std::byte> bytes);

// Rounds to nearest, ties to even; NaN stays NaN.
std::uint16_t to_bf16(float value);

}  // namespace stepladder
