// Moves weights between tensors and files (engine/files/weights_file.h).
#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <string>

#include "engine/files/weights_file.h"
#include "engine/trainer/model.h"

namespace stepladder {

// Tensors of any device, row-major and as they are. Throws DataError.
void write_tensors(const std::filesystem::path& file, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata = {});

// As Hugging Face stores a GPT-2: names begin with "transformer.", linear weights are (in, out). Skips the rows that
// pad the vocabulary. `parameters` are those of `named_parameters`, on any device.
void write_model(const std::filesystem::path& file, const NamedTensors& parameters, const Recipe& recipe);

// Fills the model from a GPT-2 in either format. Tables may have more rows in the file than the model (positions) or
// less (padding of the vocabulary). Throws DataError with a sentence that names the tensor at fault, and changes
// nothing in that case.
void load_model(Gpt& model, const Recipe& recipe, const WeightsFile& file);

// The tensor of that name in the shape and type that it has in `like`, or with fewer rows. Throws DataError.
at::Tensor read_tensor(const WeightsFile& file, const std::string& name, const at::Tensor& like);

}  // namespace stepladder
