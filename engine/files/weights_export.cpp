#include "engine/files/weights_export.h"

#include <utility>

#include "engine/nearest.h"
#include "engine/recipe.h"

namespace stepladder {
namespace {

std::vector<float> transposed(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  std::vector<float> result(values.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      result[static_cast<std::size_t>(column * rows + row)] = values[static_cast<std::size_t>(row * columns + column)];
  return result;
}

}  // namespace

ExportFormat export_format(std::string_view name) {
  if (name == "safetensors") return ExportFormat::safetensors;
  if (name == "llmc") return ExportFormat::llmc;
  if (name == "llmc-bf16") return ExportFormat::llmc_bf16;
  throw RecipeError(FieldName{"format"},
                    unknown_name(name, std::vector<std::string>{"safetensors", "llmc", "llmc-bf16"}));
}

void export_weights(const WeightsFile& from, int heads, const std::filesystem::path& to, ExportFormat format) {
  std::vector<std::vector<float>> values;  // owns the floats of the views
  std::vector<TensorView> views;
  values.reserve(from.tensors().size());
  for (const TensorInfo& info : from.tensors()) {
    std::vector<std::int64_t> shape = info.shape;
    values.push_back(from.read_f32(info));
    const bool turn = info.in_out && format != ExportFormat::safetensors;
    if (turn) {
      values.back() = transposed(values.back(), shape[0], shape[1]);
      std::swap(shape[0], shape[1]);
    }
    const bool in_transformer = format == ExportFormat::safetensors && info.name != "lm_head.weight";
    views.push_back({(in_transformer ? "transformer." : "") + info.name, TensorType::f32, shape,
                     std::as_bytes(std::span(values.back()))});
  }
  if (format == ExportFormat::safetensors) return write_safetensors(to, views, from.metadata());
  Gpt2Shape shape = from.gpt2_shape();
  if (shape.heads == 0) shape.heads = heads;
  write_llmc(to, shape, views, format == ExportFormat::llmc ? LlmcVersion::f32 : LlmcVersion::bf16);
}

}  // namespace stepladder
