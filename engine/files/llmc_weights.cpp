// Checkpoints of llm.c (gpt2_build_from_checkpoint in its train_gpt2.cu, write_model in its train_gpt2.py): 256 int32
// of header, then sixteen tensors, each over all layers. Little-endian.
#include <algorithm>
#include <array>
#include <limits>

#include "engine/files/weights_file.h"

namespace stepladder {
namespace {

constexpr std::int64_t llmc_header_bytes = 1024;
constexpr std::int64_t llmc_vocab_multiple = 128;
using LlmcHeader = std::array<std::int32_t, 256>;

std::int64_t padded_vocab(int vocab) {
  return (vocab + llmc_vocab_multiple - 1) / llmc_vocab_multiple * llmc_vocab_multiple;
}

struct LlmcModel {
  Gpt2Shape shape;
  std::int64_t padded_vocab = 0;
  TensorType type = TensorType::f32;

  // As in the file: with the rows that pad the vocabulary.
  std::int64_t stored_bytes(const Gpt2Part& part) const {
    TensorShape stored = part.shape(shape);
    if (part.rows == Gpt2Part::Size::vocab) stored[0] = padded_vocab;
    return bytes_of(type, stored).value_or(std::numeric_limits<std::int64_t>::max());
  }
};

LlmcModel read_llmc_header(const InputFile& file) {
  if (file.size_bytes() < llmc_header_bytes) {
    throw DataError(file.name() + " is cut short: llm.c's header alone has 1024 bytes, the file " +
                    std::to_string(file.size_bytes()));
  }
  LlmcHeader header;
  file.read(0, header.data(), llmc_header_bytes);
  if (header[1] != static_cast<int>(LlmcVersion::f32) && header[1] != static_cast<int>(LlmcVersion::bf16)) {
    throw DataError(file.name() + " is an llm.c checkpoint of version " + std::to_string(header[1]) +
                    "; only 3 (float32) and 5 (bfloat16) can be read");
  }
  constexpr std::array<std::string_view, 6> names = {"the sequence length",  "the vocabulary",
                                                     "the number of layers", "the number of heads",
                                                     "the model's width",    "the padded vocabulary"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (header[i + 2] > 0) continue;
    throw DataError(file.name() + ": its header says that " + std::string(names[i]) + " is " +
                    std::to_string(header[i + 2]));
  }
  LlmcModel model{.shape = {.layers = header[4],
                            .heads = header[5],
                            .d_model = header[6],
                            .vocab = header[3],
                            .max_seq = header[2],
                            .tied_head = true},
                  .padded_vocab = header[7],
                  .type = header[1] == static_cast<int>(LlmcVersion::bf16) ? TensorType::bf16 : TensorType::f32};
  if (model.padded_vocab < model.shape.vocab) {
    throw DataError(file.name() + ": its header says that a vocabulary of " + std::to_string(model.shape.vocab) +
                    " is padded to " + std::to_string(model.padded_vocab));
  }
  return model;
}

// Called before the header's numbers are used: a wrong one could ask for a list of billions of tensors.
void require_llmc_size(const InputFile& file, const LlmcModel& model) {
  std::int64_t end = llmc_header_bytes;
  for (const Gpt2Part& part : gpt2_parts) {
    std::int64_t bytes = model.stored_bytes(part);
    const bool overflow = (part.is_per_layer() && __builtin_mul_overflow(bytes, model.shape.layers, &bytes)) ||
                          __builtin_add_overflow(end, bytes, &end);
    if (overflow || end > file.size_bytes()) {
      const std::string last = part.full_name(model.shape.layers - 1);
      throw DataError(file.name() + " is cut short: " + last + " ends at byte " +
                      (overflow ? "2^63 or later" : std::to_string(end)) + ", the file at " +
                      std::to_string(file.size_bytes()));
    }
  }
  if (end < file.size_bytes()) {
    throw DataError(file.name() + ": " + std::to_string(file.size_bytes() - end) +
                    " bytes after ln_f.bias belong to no tensor");
  }
}

// Writes a tensor in the version's type; directly if it already has that type.
void write_as(OutputFile& file, const TensorView& tensor, LlmcVersion version) {
  const TensorType wanted = version == LlmcVersion::bf16 ? TensorType::bf16 : TensorType::f32;
  if (tensor.type == wanted) return file.write(tensor.bytes);
  const std::vector<float> values = to_f32(tensor.type, tensor.bytes);
  if (wanted == TensorType::f32) return file.write(std::as_bytes(std::span(values)));
  std::vector<std::uint16_t> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), to_bf16);
  file.write(std::as_bytes(std::span(rounded)));
}

LlmcHeader llmc_header(const Gpt2Shape& shape, LlmcVersion version) {
  LlmcHeader header{};
  header[0] = llmc_magic;
  header[1] = static_cast<std::int32_t>(version);
  header[2] = shape.max_seq;
  header[3] = shape.vocab;
  header[4] = shape.layers;
  header[5] = shape.heads;
  header[6] = shape.d_model;
  header[7] = static_cast<std::int32_t>(padded_vocab(shape.vocab));
  return header;
}

}  // namespace

void WeightsFile::open_llmc() {
  format_ = WeightsFormat::llmc;
  const LlmcModel model = read_llmc_header(file_);
  require_llmc_size(file_, model);
  std::int64_t offset = llmc_header_bytes;
  for (const Gpt2Part& part : gpt2_parts) {
    const std::int64_t stored = model.stored_bytes(part);
    for (int layer = 0; layer < (part.is_per_layer() ? model.shape.layers : 1); ++layer) {
      TensorInfo tensor{.name = part.full_name(layer), .type = model.type, .shape = part.shape(model.shape)};
      tensor.offset = offset;
      tensor.bytes = *bytes_of(tensor.type, tensor.shape);
      tensors_.push_back(std::move(tensor));
      offset += stored;
    }
  }
  metadata_ = {{"n_layer", std::to_string(model.shape.layers)},
               {"n_head", std::to_string(model.shape.heads)},
               {"n_embd", std::to_string(model.shape.d_model)},
               {"n_positions", std::to_string(model.shape.max_seq)},
               {"vocab_size", std::to_string(model.shape.vocab)}};
}

void write_llmc(const std::filesystem::path& path, const Gpt2Shape& shape, std::span<const TensorView> tensors,
                LlmcVersion version) {
  const auto named = by_name(path.string(), tensors);
  const auto fail = [&](const std::string& why) { throw DataError(path.string() + " cannot be written: " + why); };
  if (!shape.tied_head) fail("llm.c's format cannot hold an untied head");
  if (shape.heads <= 0) fail("llm.c's format needs the number of heads");

  OutputFile file(path);
  const LlmcHeader header = llmc_header(shape, version);
  file.write(std::as_bytes(std::span(header)));
  for (const Gpt2Part& part : gpt2_parts) {
    for (int layer = 0; layer < (part.is_per_layer() ? shape.layers : 1); ++layer) {
      const std::string name = part.full_name(layer);
      const auto found = named.find(name);
      if (found == named.end()) fail(name + " is missing");
      const TensorView& tensor = *found->second;
      if (tensor.shape != part.shape(shape))
        fail(name + " has the shape " + to_text(tensor.shape) + ", expected " + to_text(part.shape(shape)));
      if (!is_float(tensor.type)) fail(name + " isn't a floating-point tensor");
      write_as(file, tensor, version);
    }
    if (part.rows == Gpt2Part::Size::vocab) {
      const std::int64_t rows = padded_vocab(shape.vocab) - shape.vocab;
      const std::int64_t row_bytes = std::int64_t{shape.d_model} * (version == LlmcVersion::bf16 ? 2 : 4);
      file.write(std::vector<std::byte>(static_cast<std::size_t>(rows * row_bytes)));
    }
  }
  file.commit();
}

}  // namespace stepladder
