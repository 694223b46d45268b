// The part of WeightsFile that both formats share: recognising the format, checking tensors against GPT-2's shapes,
// reading. safetensors.cpp and llmc_weights.cpp parse the headers. Each size in a file is checked before it is used,
// since the file may be hostile.
#include "engine/files/weights_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "storage/number_text.h"

namespace stepladder {
namespace {

static_assert(std::endian::native == std::endian::little, "both formats are read and written as they are in memory");

std::size_t as_size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

int as_dimension(const WeightsFile& file, const TensorInfo& tensor, std::size_t axis) {
  if (tensor.shape.size() == 2 && tensor.shape[axis] > 0 && tensor.shape[axis] <= std::numeric_limits<int>::max())
    return static_cast<int>(tensor.shape[axis]);
  throw DataError(file.name() + ": " + tensor.name + " has the shape " + to_text(tensor.shape) +
                  ", which doesn't fit GPT-2");
}

int layers_of(const WeightsFile& file) {
  int last = -1;
  for (const TensorInfo& tensor : file.tensors()) last = std::max(last, split_layer(tensor.name).first);
  if (last == std::numeric_limits<int>::max()) throw DataError(file.name() + ": a layer has an impossible number");
  return last + 1;
}

int heads_of(const WeightsFile& file, int d_model) {
  const auto found = file.metadata().find("n_head");
  if (found == file.metadata().end()) return 0;
  const std::string& text = found->second;
  const int heads = parse_number<int>(text).value_or(0);
  if (heads <= 0 || d_model % heads != 0)
    throw DataError(file.name() + ": a width of " + std::to_string(d_model) + " cannot have \"" + text + "\" heads");
  return heads;
}

void require_part(const WeightsFile& file, const TensorInfo& tensor, TensorShape expected) {
  if (tensor.in_out) std::swap(expected[0], expected[1]);
  if (tensor.shape != expected) {
    throw DataError(file.name() + ": " + tensor.name + " has the shape " + to_text(tensor.shape) + ", expected " +
                    to_text(expected));
  }
  if (!is_float(tensor.type)) {
    throw DataError(file.name() + ": " + tensor.name + " is of type " + std::string(to_string(tensor.type)) +
                    ", expected floats");
  }
}

}  // namespace

WeightsFile::WeightsFile(const std::filesystem::path& path) : file_(path) {
  std::array<char, 9> beginning{};
  file_.read(0, beginning.data(), std::min<std::int64_t>(file_.size_bytes(), beginning.size()));
  const bool may_be_json = beginning[8] == '{';
  std::int32_t magic = 0;
  std::memcpy(&magic, beginning.data(), sizeof magic);
  if (magic == llmc_magic && !may_be_json)
    open_llmc();
  else if (may_be_json)
    open_safetensors();
  else
    throw DataError(file_.name() + " is neither a safetensors file nor an llm.c checkpoint");
}

// Queries, keys and values decide: only their sizes are certain to differ, C and 3 C.
void WeightsFile::mark_in_out() {
  const TensorInfo* first = find("h.0.attn.c_attn.weight");
  if (!first || first->shape.size() != 2 || first->shape[0] >= first->shape[1]) return;
  for (TensorInfo& tensor : tensors_) {
    const auto [layer, rest] = split_layer(tensor.name);
    const bool linear = std::ranges::any_of(
        gpt2_parts, [&, name = rest](const Gpt2Part& part) { return part.is_linear() && part.name == name; });
    tensor.in_out = layer >= 0 && linear;
  }
}

const TensorInfo* WeightsFile::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &TensorInfo::name);
  return found == tensors_.end() ? nullptr : &*found;
}

const TensorInfo& WeightsFile::tensor(std::string_view name) const {
  if (const TensorInfo* found = find(name)) return *found;
  throw DataError(file_.name() + ": " + std::string(name) + " is missing");
}

Gpt2Shape WeightsFile::gpt2_shape() const {
  Gpt2Shape shape;
  const TensorInfo& tokens = tensor(token_embedding);
  shape.vocab = as_dimension(*this, tokens, 0);
  shape.d_model = as_dimension(*this, tokens, 1);
  shape.max_seq = as_dimension(*this, tensor("wpe.weight"), 0);
  shape.layers = layers_of(*this);
  shape.heads = heads_of(*this, shape.d_model);

  std::map<std::string_view, const TensorInfo*> left;
  for (const TensorInfo& tensor : tensors_) left[tensor.name] = &tensor;
  const auto require = [&](const std::string& name, const Gpt2Part& part) {
    const auto found = left.find(name);
    if (found == left.end()) throw DataError(file_.name() + ": " + name + " is missing");
    require_part(*this, *found->second, part.shape(shape));
    left.erase(found);
  };
  for (const Gpt2Part& part : gpt2_parts)
    for (int layer = 0; layer < (part.is_per_layer() ? shape.layers : 1); ++layer) require(part.full_name(layer), part);
  if (left.contains(untied_head)) {
    require(std::string(untied_head), gpt2_parts.front());
    shape.tied_head = same_bytes(tensor(untied_head), tokens);
  }
  if (!left.empty()) throw DataError(file_.name() + ": " + std::string(left.begin()->first) + " isn't part of GPT-2");
  return shape;
}

bool WeightsFile::same_bytes(const TensorInfo& one, const TensorInfo& other) const {
  if (one.type != other.type || one.bytes != other.bytes) return false;
  constexpr std::int64_t chunk = 1 << 20;
  std::vector<char> one_chunk(as_size(std::min(chunk, one.bytes))), other_chunk(one_chunk.size());
  for (std::int64_t done = 0; done < one.bytes; done += chunk) {
    const std::int64_t bytes = std::min(chunk, one.bytes - done);
    file_.read(one.offset + done, one_chunk.data(), bytes);
    file_.read(other.offset + done, other_chunk.data(), bytes);
    if (std::memcmp(one_chunk.data(), other_chunk.data(), as_size(bytes)) != 0) return false;
  }
  return true;
}

void WeightsFile::read(const TensorInfo& tensor, std::span<std::byte> destination) const {
  if (destination.size() != as_size(tensor.bytes)) {
    throw DataError(file_.name() + ": " + tensor.name + " has " + std::to_string(tensor.bytes) +
                    " bytes, but the caller has room for " + std::to_string(destination.size()));
  }
  file_.read(tensor.offset, destination.data(), tensor.bytes);
}

std::vector<float> WeightsFile::read_f32(const TensorInfo& tensor) const {
  if (!is_float(tensor.type)) {
    throw DataError(file_.name() + ": " + tensor.name + " is of type " + std::string(to_string(tensor.type)) +
                    ", expected floats");
  }
  std::vector<std::byte> bytes(as_size(tensor.bytes));
  read(tensor, bytes);
  return to_f32(tensor.type, bytes);
}

std::map<std::string_view, const TensorView*> by_name(const std::string& file, std::span<const TensorView> tensors) {
  std::map<std::string_view, const TensorView*> named;
  for (const TensorView& tensor : tensors) {
    const auto needed = bytes_of(tensor.type, tensor.shape);
    if (!needed || as_size(*needed) != tensor.bytes.size()) {
      throw DataError(file + " cannot be written: " + tensor.name + " has the shape " + to_text(tensor.shape) + " of " +
                      std::string(to_string(tensor.type)) + " and " + std::to_string(tensor.bytes.size()) + " bytes");
    }
    if (!named.emplace(tensor.name, &tensor).second)
      throw DataError(file + " cannot be written: " + tensor.name + " is given twice");
  }
  return named;
}

}  // namespace stepladder
