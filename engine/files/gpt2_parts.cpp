#include "engine/files/gpt2_parts.h"

#include <charconv>

#include "storage/by_enum.h"

namespace stepladder {
namespace {

using enum Gpt2Part::Size;

}  // namespace

const std::array<Gpt2Part, 16> gpt2_parts = {{{"wte.weight", vocab, d},
                                              {"wpe.weight", max_seq, d},
                                              {"ln_1.weight", d},
                                              {"ln_1.bias", d},
                                              {"attn.c_attn.weight", d3, d},
                                              {"attn.c_attn.bias", d3},
                                              {"attn.c_proj.weight", d, d},
                                              {"attn.c_proj.bias", d},
                                              {"ln_2.weight", d},
                                              {"ln_2.bias", d},
                                              {"mlp.c_fc.weight", d4, d},
                                              {"mlp.c_fc.bias", d4},
                                              {"mlp.c_proj.weight", d, d4},
                                              {"mlp.c_proj.bias", d},
                                              {"ln_f.weight", d},
                                              {"ln_f.bias", d}}};

bool Gpt2Part::is_per_layer() const {
  const auto place = this - gpt2_parts.data();
  return place >= 2 && place < 14;
}

bool Gpt2Part::is_linear() const {
  return is_per_layer() && columns != Size::none;
}

std::string Gpt2Part::full_name(int layer) const {
  if (!is_per_layer()) return std::string(name);
  return "h." + std::to_string(layer) + "." + std::string(name);
}

TensorShape Gpt2Part::shape(const Gpt2Shape& model) const {
  TensorShape shape;
  const std::int64_t d = model.d_model;
  const auto sizes = by_enum<Size, std::int64_t>(0, model.vocab, model.max_seq, d, 3 * d, 4 * d);
  for (const Size size : {rows, columns})
    if (size != Size::none) shape.push_back(sizes[size]);
  return shape;
}

std::pair<int, std::string_view> split_layer(std::string_view name) {
  int layer = -1;
  if (!name.starts_with("h.")) return {-1, {}};
  const auto [end, error] = std::from_chars(name.data() + 2, name.data() + name.size(), layer);
  if (error != std::errc() || layer < 0 || end == name.data() + name.size() || *end != '.') return {-1, {}};
  return {layer, name.substr(static_cast<std::size_t>(end + 1 - name.data()))};
}

}  // namespace stepladder
