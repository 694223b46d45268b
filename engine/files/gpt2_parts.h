// The tensors of a GPT-2, by their names in Hugging Face's checkpoints (without "transformer.").
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "engine/files/tensor_type.h"

namespace stepladder {

// The model's shape, as its tensors show it.
struct Gpt2Shape {
  int layers = 0;
  int heads = 0;  // 0: the file doesn't give it
  int d_model = 0;
  int vocab = 0;
  int max_seq = 0;
  bool tied_head = true;  // lm_head.weight is absent, or its bytes are those of wte.weight
};

struct Gpt2Part {
  enum class Size { none, vocab, max_seq, d, d3, d4 };

  std::string_view name;
  Size rows;
  Size columns = Size::none;

  bool is_per_layer() const;  // one per layer, named "h.N." and the name
  bool is_linear() const;
  std::string full_name(int layer) const;
  TensorShape shape(const Gpt2Shape& model) const;  // linear weights as (out, in)
};

// The parts of a GPT-2 in llm.c's order. An untied head isn't among them.
extern const std::array<Gpt2Part, 16> gpt2_parts;
inline constexpr std::string_view token_embedding = "wte.weight";
inline constexpr std::string_view untied_head = "lm_head.weight";

// 3 and "attn.c_attn.weight" of "h.3.attn.c_attn.weight"; -1 for any other name.
std::pair<int, std::string_view> split_layer(std::string_view name);

}  // namespace stepladder
