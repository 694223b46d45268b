#include "engine/trainer/safetensors.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace stepladder {
namespace {

const char* dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kDouble:
      return "F64";
    case at::kBFloat16:
      return "BF16";
    case at::kHalf:
      return "F16";
    case at::kLong:
      return "I64";
    case at::kInt:
      return "I32";
    default:
      throw std::runtime_error("safetensors: no name for the type " + std::string(c10::toString(type)));
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::uint64_t end = offset + tensor.nbytes();
    header[name] = {
        {"dtype", dtype_name(tensor.scalar_type())}, {"shape", tensor.sizes().vec()}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begins at a multiple of 8, as the format recommends

  auto temporary = file;
  temporary += ".part";
  {
    std::ofstream out(temporary, std::ios::binary);
    const std::uint64_t length = text.size();
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor plain = tensor.detach().cpu().contiguous();
      out.write(static_cast<const char*>(plain.const_data_ptr()), static_cast<std::streamsize>(plain.nbytes()));
    }
    out.close();
    if (!out) throw std::runtime_error(temporary.string() + " cannot be written: " + std::strerror(errno));
  }
  std::error_code error;
  std::filesystem::rename(temporary, file, error);
  if (error) throw std::runtime_error(file.string() + " cannot be written: " + error.message());
}

}  // namespace stepladder
