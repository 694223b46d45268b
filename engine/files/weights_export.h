// A checkpoint's weights in the formats that other programs read.
#pragma once

#include <filesystem>
#include <string_view>

#include "engine/files/weights_file.h"

namespace stepladder {

enum class ExportFormat { safetensors, llmc, llmc_bf16 };
ExportFormat export_format(std::string_view name);  // throws RecipeError, which lists the formats

// `heads` is for files that don't give it. Throws DataError, also if the format cannot hold the model (llm.c has only
// tied heads).
void export_weights(const WeightsFile& from, int heads, const std::filesystem::path& to, ExportFormat format);

}  // namespace stepladder
