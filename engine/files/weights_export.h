// A checkpoint's weights in the formats that other programs read.
#pragma once

#include <filesystem>
#include <string_view>

#include "engine/files/weights_file.h"

namespace stepladder {

enum class ExportFormat { safetensors, llmc, llmc_bf16 };
ExportFormat export_format(std::string_view name);  // throws RecipeError, which names those that there are

// `heads` is for files that do not tell. Throws DataError, also where the format cannot hold the model (llm.c knows
// only tied heads).
void export_weights(const WeightsFile& from, int heads, const std::filesystem::path& to, ExportFormat format);

}  // namespace stepladder
