// Named tensors in one file (https://huggingface.co/docs/safetensors): the header's length as u64, a JSON header with
// dtype, shape and offsets of each tensor, then the tensors' bytes; little-endian.
#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace stepladder {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Writes under a temporary name and then renames, so that no half-written file is ever seen under the right one.
// Throws std::runtime_error with a sentence that names the file.
void write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors);

}  // namespace stepladder
