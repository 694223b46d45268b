// The weights of a GPT-2 as files: Hugging Face's safetensors, and the checkpoints of llm.c. No torch: whoever loads
// them into a model provides the memory.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/files.h"
#include "engine/files/gpt2_parts.h"

namespace stepladder {

// A tensor in a file, row-major.
struct TensorInfo {
  std::string name;  // as Hugging Face's GPT-2 checkpoints have it, without "transformer.": "h.0.attn.c_attn.weight"
  TensorType type = TensorType::f32;
  TensorShape shape;
  std::int64_t offset = 0;  // of its first byte, from the file's beginning
  std::int64_t bytes = 0;
  // A linear layer's weight that is stored as (in, out), as Hugging Face's do; our model holds (out, in), as llm.c
  // does.
  bool in_out = false;
};

enum class WeightsFormat { safetensors, llmc };

// An open file of weights, recognised by its content. Never changes, so threads may share it. Every function that reads
// throws DataError; no size that the file claims is trusted before it is checked against the file's own.
class WeightsFile {
 public:
  // Reads the header. The file must match it to the byte: missing or extra bytes, overlaps and gaps are errors.
  explicit WeightsFile(const std::filesystem::path& path);

  WeightsFormat format() const { return format_; }
  const std::string& name() const { return file_.name(); }

  // In the order of their bytes. llm.c's are cut into layers, and the rows that pad its vocabulary are skipped.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view tensor) const;  // nullptr if it doesn't exist
  const TensorInfo& tensor(std::string_view tensor) const;

  // The pairs under safetensors' __metadata__. llm.c's header appears as n_layer, n_head, n_embd, n_positions,
  // vocab_size.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Checks every tensor against GPT-2's; throws if one is missing, superfluous, of another shape or not of floats. The
  // number of heads is the metadata's n_head, if any. If both the head and the token embedding exist, reads and
  // compares them.
  Gpt2Shape gpt2_shape() const;

  // Reads a tensor's bytes as stored; `destination` must have exactly their size.
  void read(const TensorInfo& tensor, std::span<std::byte> destination) const;
  // A floating-point tensor as float32, in the file's order.
  std::vector<float> read_f32(const TensorInfo& tensor) const;

 private:
  void open_safetensors();  // engine/files/safetensors.cpp
  void open_llmc();         // engine/files/llmc_weights.cpp
  void mark_in_out();
  bool same_bytes(const TensorInfo& one, const TensorInfo& other) const;

  InputFile file_;
  WeightsFormat format_ = WeightsFormat::safetensors;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

// A tensor in memory, to be written: row-major, as many bytes as its shape asks for.
struct TensorView {
  std::string name;
  TensorType type = TensorType::f32;
  TensorShape shape;
  std::span<const std::byte> bytes;
};

// The tensors by name. Throws DataError, which names `file`, unless each name is unique and each size fits its shape.
std::map<std::string_view, const TensorView*> by_name(const std::string& file, std::span<const TensorView> tensors);

// Both write under a temporary name and rename once the disk has everything (OutputFile). Throw DataError.
// Pass n_head in the metadata so that readers know the number of heads.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata = {});

inline constexpr std::int32_t llmc_magic = 20240326;  // the first number of its checkpoints
enum class LlmcVersion { f32 = 3, bf16 = 5 };

// The tensors by their GPT-2 names in any order, floats of any type, linear weights as (out, in). llm.c has only tied
// heads: `shape.tied_head` must hold, `shape.heads` must be known, and an lm_head.weight among the tensors is skipped.
void write_llmc(const std::filesystem::path& path, const Gpt2Shape& shape, std::span<const TensorView> tensors,
                LlmcVersion version);

}  // namespace stepladder
