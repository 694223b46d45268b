#include "engine/files/gpt2_parts.h"

#include <charconv>

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
  for (const Size size : {rows, columns}) {
    switch (size) {
      case Size::none:
        break;
      case Size::vocab:
        shape.push_back(model.vocab);
        break;
      case Size::max_seq:
        shape.push_back(model.max_seq);
        break;
      case Size::d:
        shape.push_back(model.d_model);
        break;
      case Size::d3:
        shape.push_back(std::int64_t{3} * model.d_model);
        break;
      case Size::d4:
        shape.push_back(std::int64_t{4} * model.d_model);
        break;
    }
  }
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
